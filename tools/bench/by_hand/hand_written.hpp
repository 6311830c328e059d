// SPDX-License-Identifier: Apache-2.0
// The least program that runs a kernel with Vulkan: three buffers, a descriptor set, a command buffer that is recorded once. It
// shares nothing with the plugin, and links the loader. One thread; calls that fail throw std::runtime_error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace by_hand {

struct Program {
  std::span<const uint32_t> spirv;
  uint32_t elements;  // of each buffer, floats
  uint32_t count;     // what the kernel is told
  uint32_t groups;
  uint32_t calls;  // dispatches of a submission, each behind a barrier, as calls of an operator on the same output are
};

class HandWritten {
 public:
  // On the first device. Both inputs get `values`, of `elements`.
  HandWritten(const Program& program, std::span<const float> values);
  ~HandWritten();
  HandWritten(const HandWritten&) = delete;
  HandWritten& operator=(const HandWritten&) = delete;

  // Submits, and waits for the end.
  void run();
  std::span<const float> result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace by_hand
