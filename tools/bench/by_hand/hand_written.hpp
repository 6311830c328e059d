// SPDX-License-Identifier: Apache-2.0
// A minimal program that runs a kernel with Vulkan. It has three buffers, a descriptor set, and one
// recorded command buffer. It uses the Vulkan loader and none of the plugin's code. Only one thread
// may use it. Failed calls throw std::runtime_error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace by_hand {

struct Program {
  std::span<const uint32_t> spirv;
  uint32_t elements;  // number of floats in each buffer
  uint32_t count;     // value of the kernel's push constant
  uint32_t groups;
  // Number of dispatches per submission. A barrier follows each dispatch. The plugin also inserts a
  // barrier between calls that write the same output.
  uint32_t calls;
};

class HandWritten {
 public:
  // Opens the first device, and fills both inputs with `values`, which has `elements` floats.
  HandWritten(const Program& program, std::span<const float> values);
  ~HandWritten();
  HandWritten(const HandWritten&) = delete;
  HandWritten& operator=(const HandWritten&) = delete;

  // Submits the command buffer and waits until it has completed.
  void run();
  std::span<const float> result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace by_hand
