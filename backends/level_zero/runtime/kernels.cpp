// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels.hpp"

#include "driver_call.hpp"
#include "spirv/modules.hpp"
#include "spirv/spirv.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace backplane::level_zero {

namespace {

struct Registered {
  ~Registered() { [[maybe_unused]] static const bool once = (simt::DriverCall::stop_at_exit(), true); }
};

}  // namespace

Kernels::Kernels(const Context& context)
    : context_(context), folder_(cache::cache_folder(kCacheSetting, "level_zero")) {
  const auto digest = [](const std::string& of, uint8_t(&out)[16]) {
    const XXH128_hash_t hash = XXH3_128bits(of.data(), of.size());
    std::memcpy(out, &hash, sizeof(out));
  };
  digest(context.device().name, key_.device);
  digest(context.device().version, key_.driver);
}

Kernels::~Kernels() {
  for (const Entry& entry : entries_) {
    if (entry.module != nullptr) context_.api().zeModuleDestroy(entry.module);
  }
}

bool Kernels::can_run(const simt::KernelName& name) const {
  const simt::NumericTypes types = simt::types_of(simt::find_module(name.module));
  return (context_.device().has_f16 || !types.f16) && (context_.device().has_f64 || !types.f64);
}

kit::Result<uint32_t> Kernels::get(const simt::KernelName& name, const Log& log) {
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
    if (kit::Status status = compile(name, *entry, log); !status.ok()) return status;
  }
  return entry->number;
}

std::optional<cache::CacheFile> Kernels::file_of(std::span<const uint32_t> module) const {
  if (!folder_) return std::nullopt;
  cache::CacheKey key = key_;
  key.build = XXH3_64bits(module.data(), module.size_bytes());
  return std::optional<cache::CacheFile>(std::in_place, *folder_, key);
}

ze_result_t Kernels::create_module(ze_module_format_t format, std::span<const std::byte> code, const char* registers,
                                   ze_module_handle_t& out, std::string* build_log) const {
  const Api& ze = context_.api();
  // Kernels access buffers above 4 GiB only if the module is compiled with the first flag.
  const std::string flags =
      kit::text(context_.device().relaxes_limits ? "-ze-opt-greater-than-4GB-buffer-required " : "", registers);
  const ze_module_desc_t desc{ZE_STRUCTURE_TYPE_MODULE_DESC,
                              nullptr,
                              format,
                              code.size(),
                              reinterpret_cast<const uint8_t*>(code.data()),
                              flags.c_str(),
                              nullptr};
  ze_module_build_log_handle_t log = nullptr;
  const ze_result_t code_of_result = ze.zeModuleCreate(context_.handle(), context_.device().id, &desc, &out, &log);
  if (log == nullptr) return code_of_result;
  std::size_t bytes = 0;
  if (build_log != nullptr && ze.zeModuleBuildLogGetString(log, &bytes, nullptr) == ZE_RESULT_SUCCESS && bytes > 1) {
    build_log->resize(bytes);
    if (ze.zeModuleBuildLogGetString(log, &bytes, build_log->data()) != ZE_RESULT_SUCCESS) bytes = 1;
    build_log->resize(bytes - 1);
  }
  ze.zeModuleBuildLogDestroy(log);
  return code_of_result;
}

uint32_t Kernels::spilled_bytes(ze_module_handle_t module, const std::string& function) const {
  const Api& ze = context_.api();
  const ze_kernel_desc_t desc{ZE_STRUCTURE_TYPE_KERNEL_DESC, nullptr, 0, function.c_str()};
  ze_kernel_handle_t kernel = nullptr;
  if (ze.zeKernelCreate(module, &desc, &kernel) != ZE_RESULT_SUCCESS) return 0;
  ze_kernel_properties_t properties{};
  properties.stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES;
  if (ze.zeKernelGetProperties(kernel, &properties) != ZE_RESULT_SUCCESS) properties.spillMemSize = 0;
  ze.zeKernelDestroy(kernel);
  return properties.spillMemSize;
}

void Kernels::reduce_spills(std::span<const std::byte> code, Entry& entry) const {
  const uint32_t spilled = spilled_bytes(entry.module, entry.function);
  if (spilled == 0) return;
  ze_module_handle_t other = nullptr;
  if (create_module(ZE_MODULE_FORMAT_IL_SPIRV, code, "-ze-opt-large-register-file", other, nullptr) !=
      ZE_RESULT_SUCCESS) {
    return;
  }
  if (spilled_bytes(other, entry.function) < spilled) std::swap(entry.module, other);
  context_.api().zeModuleDestroy(other);
}

std::vector<std::byte> Kernels::binary_of(ze_module_handle_t module) const {
  std::size_t size = 0;
  if (context_.api().zeModuleGetNativeBinary(module, &size, nullptr) != ZE_RESULT_SUCCESS) return {};
  std::vector<std::byte> out(size);
  auto* bytes = reinterpret_cast<uint8_t*>(out.data());
  const ze_result_t code = context_.api().zeModuleGetNativeBinary(module, &size, bytes);
  return code == ZE_RESULT_SUCCESS ? out : std::vector<std::byte>{};
}

kit::Status Kernels::compile(const simt::KernelName& name, Entry& entry, const Log& log) const {
  const std::vector<uint32_t> module =
      simt::single_kernel(simt::find_module(name.module), name.function, context_.device().limits.width);
  if (module.empty()) {
    return {BP_INTERNAL, kit::text("level_zero: the plugin was built without the kernel ", name.function, " of ",
                                   name.module, "; report this to its vendor")};
  }
  const std::optional<cache::CacheFile> file = file_of(module);
  // A driver loads its compiler at the first compilation, and the compiler registers exit handlers.
  // DriverCall therefore registers its handler after the compilation (driver_call.hpp).
  const Registered at_exit;
  if (file) {
    std::string objection;
    const std::vector<std::byte> binary = file->load(objection);
    if (!binary.empty() &&
        create_module(ZE_MODULE_FORMAT_NATIVE, binary, "", entry.module, nullptr) != ZE_RESULT_SUCCESS) {
      entry.module = nullptr;
      objection = "the driver does not take it";
    }
    if (!objection.empty()) {
      log(kit::text("level_zero: the compiled kernel ", file->path(), " is not used: ", objection, "; it is replaced"));
    }
    if (entry.module != nullptr) return {};
  }
  std::string build_log;
  const std::span<const std::byte> spirv = std::as_bytes(std::span(module));
  const ze_result_t code = create_module(ZE_MODULE_FORMAT_IL_SPIRV, spirv, "", entry.module, &build_log);
  if (code != ZE_RESULT_SUCCESS) {
    entry.module = nullptr;
    const kit::Status status = context_.check(code, "zeModuleCreate");
    return {status.code(),
            kit::text(status.message(), "; the kernel is ", name.function, " of ", name.module, ": ", build_log),
            status.vendor_code()};
  }
  reduce_spills(spirv, entry);
  if (!file) return {};
  const std::vector<std::byte> binary = binary_of(entry.module);
  const std::string why = binary.empty() ? "the driver gives no binary" : file->store(binary);
  if (!why.empty()) {
    log(kit::text("level_zero: the compiled kernel ", file->path(), " is not kept: ", why,
                  "; make its folder writable, or set ", kCacheSetting, " to another, or to off"));
  }
  return {};
}

kit::Result<ze_kernel_handle_t> Kernels::create(uint32_t number) {
  const Entry* entry = nullptr;
  {
    std::lock_guard lock(mutex_);
    entry = &entries_[number];
  }
  const ze_kernel_desc_t desc{ZE_STRUCTURE_TYPE_KERNEL_DESC, nullptr, 0, entry->function.c_str()};
  ze_kernel_handle_t kernel = nullptr;
  const ze_result_t code = context_.api().zeKernelCreate(entry->module, &desc, &kernel);
  if (kit::Status status = context_.check(code, "zeKernelCreate"); !status.ok()) return status;
  return kernel;
}

}  // namespace backplane::level_zero
