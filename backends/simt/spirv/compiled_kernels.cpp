// SPDX-License-Identifier: Apache-2.0
#include "spirv/compiled_kernels.hpp"

#include <backplane/kit/driver_guard.hpp>

#include "driver_call.hpp"
#include "spirv/modules.hpp"
#include "spirv/spirv.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace backplane::simt {

namespace {

// A driver loads its compiler when it first receives a module, and the compiler registers exit
// handlers. DriverCall therefore registers its own handler afterwards (driver_call.hpp).
struct StopsAtExit {
  ~StopsAtExit() { [[maybe_unused]] static const bool once = (DriverCall::stop_at_exit(), true); }
};

}  // namespace

CompiledKernels::CompiledKernels(CompilerTarget target)
    : target_(std::move(target)), folder_(cache::cache_folder(target_.cache_setting, target_.plugin)) {
  const auto digest = [](const std::string& of, uint8_t(&out)[16]) {
    const XXH128_hash_t hash = XXH3_128bits(of.data(), of.size());
    std::memcpy(out, &hash, sizeof(out));
  };
  digest(target_.device, key_.device);
  digest(target_.driver, key_.driver);
}

kit::Result<uint32_t> CompiledKernels::get(const KernelName& name, const Log& log) {
  Entry* entry = nullptr;
  {
    std::lock_guard lock(mutex_);
    Entry*& known = names_[{name.module, name.function}];
    if (known == nullptr) {
      known = &entries_.emplace_back();
      known->number = static_cast<uint32_t>(entries_.size() - 1);
      known->function = name.function;
    }
    entry = known;
  }
  std::lock_guard lock(entry->mutex);
  if (entry->module == nullptr) {
    const kit::DriverGuard guard;
    if (kit::Status status = compile(name, *entry, log); !status.ok()) return status;
  }
  return entry->number;
}

const CompiledKernels::Entry& CompiledKernels::entry(uint32_t number) {
  std::lock_guard lock(mutex_);
  return entries_[number];
}

std::optional<cache::CacheFile> CompiledKernels::file_of(std::span<const uint32_t> module) const {
  if (!folder_) return std::nullopt;
  cache::CacheKey key = key_;
  const uint64_t options = XXH3_64bits(target_.options.data(), target_.options.size());
  key.build = XXH3_64bits_withSeed(module.data(), module.size_bytes(), options);
  return std::optional<cache::CacheFile>(std::in_place, *folder_, key);
}

std::span<const uint32_t> CompiledKernels::spirv_of(std::string_view name) const { return find_module(name); }

CompiledKernels::Module CompiledKernels::load_file(const cache::CacheFile& file, const std::string& function,
                                                   std::string& objection) const {
  const std::vector<std::byte> binary = file.load(objection);
  if (binary.empty()) return nullptr;
  const Module module = load(binary, function);
  if (module == nullptr) objection = "the driver does not take it";
  return module;
}

kit::Status CompiledKernels::compile(const KernelName& name, Entry& entry, const Log& log) const {
  const std::vector<uint32_t> spirv = single_kernel(spirv_of(name.module), name.function, target_.width);
  if (spirv.empty()) {
    return {BP_INTERNAL, kit::text(target_.plugin, ": the plugin was built without the kernel ", name.function, " of ",
                                   name.module, "; report this to its vendor")};
  }
  const std::optional<cache::CacheFile> file = file_of(spirv);
  const StopsAtExit stops_at_exit;
  std::optional<cache::CacheFile::ComputeLock> lock;
  if (file) {
    std::string objection;
    entry.module = load_file(*file, name.function, objection);
    if (entry.module != nullptr) return {};
    // Processes that need the same kernel wait for one compilation.
    lock.emplace(*file);
    entry.module = load_file(*file, name.function, objection);
    if (entry.module != nullptr) return {};
    if (!objection.empty()) {
      log(kit::text(target_.plugin, ": the compiled kernel ", file->path(), " is not used: ", objection,
                    "; it is replaced"));
    }
  }
  auto built = build(name, spirv);
  if (!built.ok()) return built.status();
  entry.module = built.value();
  if (!file) return {};
  const std::vector<std::byte> binary = binary_of(entry.module);
  const std::string why = binary.empty() ? "the driver gives no binary" : file->store(binary);
  if (!why.empty()) {
    log(kit::text(target_.plugin, ": the compiled kernel ", file->path(), " is not kept: ", why,
                  "; make its folder writable, or set ", target_.cache_setting, " to another folder, or to off"));
  }
  return {};
}

}  // namespace backplane::simt
