// SPDX-License-Identifier: Apache-2.0
// The compiled kernels of a device. Each kernel is a program of its own, which is compiled when a
// plan first needs the kernel.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "cache_file.hpp"
#include "launcher.hpp"
#include "runtime/context.hpp"

namespace backplane::opencl {

// Environment variable. Its value is the folder of compiled kernels, or `off` to keep none.
inline constexpr const char* kCacheSetting = "BACKPLANE_OPENCL_CACHE";

// Logs a warning for the user.
using Log = std::function<void(const std::string& line)>;

class Kernels {
 public:
  explicit Kernels(const Context& context);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Returns the number of a kernel, and compiles it if necessary. Threads that need the same kernel
  // wait for one compilation. A failure contains the driver's log. `log` receives failures of the
  // cache, which are not fatal.
  kit::Result<uint32_t> get(const simt::KernelName& name, const Log& log);
  // Returns the file that contains the binary of a compiled module, if files are kept.
  std::optional<cache::CacheFile> file_of(std::span<const uint32_t> module) const;
  // Returns a new kernel object. OpenCL kernel objects contain arguments, so only one thread at a
  // time may use an object.
  kit::Result<cl_kernel> create(uint32_t number);

 private:
  struct Entry {
    std::mutex mutex;  // locked during compilation
    uint32_t number = 0;
    std::string function;
    cl_program program = nullptr;
  };
  kit::Status compile(const simt::KernelName& name, Entry& entry, const Log& log) const;
  // Returns a program that is ready to use, or null if the driver does not take the binary.
  cl_program load(std::span<const std::byte> binary) const;
  std::vector<std::byte> binary_of(cl_program program) const;

  const Context& context_;
  const std::optional<std::string> folder_;
  cache::CacheKey key_;  // without the digest of a module
  std::mutex mutex_;     // guards the containers, but not the entries
  std::map<std::pair<std::string, std::string>, Entry*> names_;
  std::deque<Entry> entries_;  // the index is the number
};

}  // namespace backplane::opencl
