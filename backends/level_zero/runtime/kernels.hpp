// SPDX-License-Identifier: Apache-2.0
// The compiled kernels of a device. Each kernel is a module of its own, which is compiled when a
// plan first needs the kernel.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "cache_file.hpp"
#include "runtime/context.hpp"

namespace backplane::level_zero {

// Environment variable. Its value is the folder of the cache, or `off` to disable the cache.
inline constexpr const char* kCacheSetting = "BACKPLANE_LEVEL_ZERO_CACHE";

class Kernels {
 public:
  // Receives a warning for the user.
  using Log = std::function<void(const std::string& line)>;

  explicit Kernels(const Context& context);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Returns whether the device has the numeric types that a kernel needs.
  bool can_run(const simt::KernelName& name) const;
  // Returns the number of a kernel, and compiles it if necessary. Threads that need the same kernel
  // wait for one compilation. A failure contains the driver's log. `log` receives failures of the
  // cache, which are not fatal.
  kit::Result<uint32_t> get(const simt::KernelName& name, const Log& log);
  // Returns the file that contains the binary of a compiled module, if files are kept.
  std::optional<cache::CacheFile> file_of(std::span<const uint32_t> module) const;
  // Returns a new kernel object. Kernel objects contain arguments, so only one thread at a time may
  // use an object.
  kit::Result<ze_kernel_handle_t> create(uint32_t number);

 private:
  struct Entry {
    std::mutex mutex;  // locked during compilation
    uint32_t number = 0;
    std::string function;
    ze_module_handle_t module = nullptr;
  };
  kit::Status compile(const simt::KernelName& name, Entry& entry, const Log& log) const;
  // Creates a module. `registers` is a flag of the compiler, or empty. If `build_log` is not null, it
  // receives the driver's log.
  ze_result_t create_module(ze_module_format_t format, std::span<const std::byte> code, const char* registers,
                            ze_module_handle_t& out, std::string* build_log) const;
  // If the kernel spills registers, compiles it with the large register file, and keeps the module
  // that spills less.
  void reduce_spills(std::span<const std::byte> code, Entry& entry) const;
  // Returns the bytes that a kernel spills per thread, or 0 if the driver does not report them.
  uint32_t spilled_bytes(ze_module_handle_t module, const std::string& function) const;
  std::vector<std::byte> binary_of(ze_module_handle_t module) const;

  const Context& context_;
  const std::optional<std::string> folder_;
  cache::CacheKey key_;  // without the digest of a module
  std::mutex mutex_;     // guards the containers, but not the entries
  std::map<std::pair<std::string, std::string>, Entry*> names_;
  std::deque<Entry> entries_;  // the index is the number
};

}  // namespace backplane::level_zero
