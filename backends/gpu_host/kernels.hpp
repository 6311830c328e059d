// SPDX-License-Identifier: Apache-2.0
// The kernels of a device. A module is loaded when a plan first needs one of its kernels.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "gpu_host/events.hpp"

namespace backplane::gpu_host {

class Kernels {
 public:
  explicit Kernels(const Context& context) : context_(context) {}
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  const simt::Limits& limits() const { return context_.device().limits; }
  // Returns the number of a kernel, and loads its module if necessary. Threads that need the same
  // module wait for one load.
  kit::Result<uint32_t> get(const simt::KernelName& name, const std::function<void(const std::string&)>& log);
  // Returns the kernel with a number that get() has returned.
  Handle kernel(uint32_t number);

 private:
  struct Module {
    std::mutex mutex;  // locked while the module is loaded
    Handle handle = nullptr;
    std::map<std::string, uint32_t> numbers;  // the numbers that get() has returned, by the names of the kernels
  };
  kit::Status load(const simt::KernelName& name, Module& module) const;

  const Context& context_;
  std::mutex mutex_;  // guards the containers, but not the modules
  std::map<std::string, Module> modules_;
  std::deque<Handle> kernels_;  // the index is the kernel's number
};

}  // namespace backplane::gpu_host
