// SPDX-License-Identifier: Apache-2.0
// The compiled kernels of a device whose driver accepts SPIR-V. Each kernel is a separate module.
// The module is compiled when a plan first needs the kernel, and its binary is stored in a file.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "cache_file.hpp"
#include "launcher.hpp"

namespace backplane::simt {

// A function that logs a warning for the user.
using Log = std::function<void(const std::string& line)>;

// The device, and the properties that determine the binary of a kernel.
struct CompilerTarget {
  const char* plugin;
  const char* cache_setting;  // environment variable: the folder of compiled kernels, or `off` to keep none
  std::string device, driver;
  std::string options;  // options of the driver's compiler
  uint32_t width;       // threads per sub-group
};

class CompiledKernels {
 public:
  explicit CompiledKernels(CompilerTarget target);
  virtual ~CompiledKernels() = default;
  CompiledKernels(const CompiledKernels&) = delete;
  CompiledKernels& operator=(const CompiledKernels&) = delete;

  // Compiles a kernel if necessary, and returns the kernel's number. Threads and processes that need the same
  // kernel wait for one compilation. A failure contains the driver's log. `log` receives failures
  // of the cache, which are not fatal.
  kit::Result<uint32_t> get(const KernelName& name, const Log& log);
  // Returns the file for the binary of a compiled module, or nothing if the user's setting keeps no files.
  std::optional<cache::CacheFile> file_of(std::span<const uint32_t> module) const;

 protected:
  using Module = void*;  // the driver's handle
  struct Entry {
    std::mutex mutex;  // locked during compilation
    uint32_t number = 0;
    std::string function;
    Module module = nullptr;
  };
  // Returns the entry of kernel `number`.
  const Entry& entry(uint32_t number);
  const std::deque<Entry>& entries() const { return entries_; }
  // Returns the words of a module, or nothing if there is no such module.
  virtual std::span<const uint32_t> spirv_of(std::string_view name) const;

 private:
  // Returns a module that is ready to use, or null if the driver rejects the binary.
  virtual Module load(std::span<const std::byte> binary, const std::string& function) const = 0;
  // Compiles a module.
  virtual kit::Result<Module> build(const KernelName& name, std::span<const uint32_t> spirv) const = 0;
  // Returns an empty vector if the driver provides no binary.
  virtual std::vector<std::byte> binary_of(Module module) const = 0;

  // Returns the module of a file, or null. If the file exists but is not usable, `objection` states the reason.
  Module load_file(const cache::CacheFile& file, const std::string& function, std::string& objection) const;
  kit::Status compile(const KernelName& name, Entry& entry, const Log& log) const;

  const CompilerTarget target_;
  const std::optional<std::string> folder_;
  cache::CacheKey key_;  // the part of the key that all modules share; file_of() adds the digest of the module
  std::mutex mutex_;     // guards the containers, but not the entries
  std::map<std::pair<std::string, std::string>, Entry*> names_;
  std::deque<Entry> entries_;  // the index is the kernel's number
};

}  // namespace backplane::simt
