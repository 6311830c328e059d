// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels.hpp"

#include "spirv/modules.hpp"
#include "spirv/spirv.hpp"

namespace backplane::level_zero {

namespace {

constexpr const char* kLargeRegisterFile = "-ze-opt-large-register-file";

// Kernels access buffers above 4 GiB only if the module is compiled with this flag.
const char* buffer_flag(const PhysicalDevice& device) {
  return device.relaxes_limits ? "-ze-opt-greater-than-4GB-buffer-required " : "";
}

ze_module_handle_t module_of(void* module) { return static_cast<ze_module_handle_t>(module); }

}  // namespace

Kernels::Kernels(const Context& context)
    : CompiledKernels({"level_zero", kCacheSetting, context.device().name, context.device().version,
                       kit::text(buffer_flag(context.device()), kLargeRegisterFile), context.device().limits.width}),
      context_(context) {}

Kernels::~Kernels() {
  for (const Entry& entry : entries()) {
    if (entry.module != nullptr) context_.api().zeModuleDestroy(module_of(entry.module));
  }
}

bool Kernels::can_run(const simt::KernelName& name) const {
  const simt::NumericTypes types = simt::types_of(simt::find_module(name.module));
  return (context_.device().has_f16 || !types.f16) && (context_.device().has_f64 || !types.f64);
}

ze_result_t Kernels::create_module(ze_module_format_t format, std::span<const std::byte> code, const char* registers,
                                   ze_module_handle_t& out, std::string* build_log) const {
  const Api& ze = context_.api();
  const std::string flags = kit::text(buffer_flag(context_.device()), registers);
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

void Kernels::reduce_spills(std::span<const std::byte> code, const std::string& function,
                            ze_module_handle_t& module) const {
  const uint32_t spilled = spilled_bytes(module, function);
  if (spilled == 0) return;
  ze_module_handle_t other = nullptr;
  if (create_module(ZE_MODULE_FORMAT_IL_SPIRV, code, kLargeRegisterFile, other, nullptr) != ZE_RESULT_SUCCESS) return;
  if (spilled_bytes(other, function) < spilled) std::swap(module, other);
  context_.api().zeModuleDestroy(other);
}

Kernels::Module Kernels::load(std::span<const std::byte> binary, const std::string&) const {
  ze_module_handle_t out = nullptr;
  const ze_result_t code = create_module(ZE_MODULE_FORMAT_NATIVE, binary, "", out, nullptr);
  return code == ZE_RESULT_SUCCESS ? out : nullptr;
}

std::vector<std::byte> Kernels::binary_of(Module module) const {
  std::size_t size = 0;
  const Api& ze = context_.api();
  if (ze.zeModuleGetNativeBinary(module_of(module), &size, nullptr) != ZE_RESULT_SUCCESS) return {};
  std::vector<std::byte> out(size);
  auto* bytes = reinterpret_cast<uint8_t*>(out.data());
  const ze_result_t code = ze.zeModuleGetNativeBinary(module_of(module), &size, bytes);
  return code == ZE_RESULT_SUCCESS ? out : std::vector<std::byte>{};
}

kit::Result<Kernels::Module> Kernels::build(const simt::KernelName& name, std::span<const uint32_t> spirv) const {
  std::string build_log;
  ze_module_handle_t out = nullptr;
  const std::span<const std::byte> code = std::as_bytes(spirv);
  const ze_result_t result = create_module(ZE_MODULE_FORMAT_IL_SPIRV, code, "", out, &build_log);
  if (result != ZE_RESULT_SUCCESS) {
    const kit::Status status = context_.check(result, "zeModuleCreate");
    return kit::Status{
        status.code(),
        kit::text(status.message(), "; the kernel is ", name.function, " of ", name.module, ": ", build_log),
        status.vendor_code()};
  }
  reduce_spills(code, name.function, out);
  return Module{out};
}

kit::Result<ze_kernel_handle_t> Kernels::create(uint32_t number) {
  const Entry& compiled = entry(number);
  const ze_kernel_desc_t desc{ZE_STRUCTURE_TYPE_KERNEL_DESC, nullptr, 0, compiled.function.c_str()};
  ze_kernel_handle_t kernel = nullptr;
  const ze_result_t code = context_.api().zeKernelCreate(module_of(compiled.module), &desc, &kernel);
  if (kit::Status status = context_.check(code, "zeKernelCreate"); !status.ok()) return status;
  return kernel;
}

}  // namespace backplane::level_zero
