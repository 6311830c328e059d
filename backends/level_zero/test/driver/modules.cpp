// SPDX-License-Identifier: Apache-2.0
// Modules and kernels of the Level Zero test driver.
#include <cstring>

#include "objects.hpp"

namespace backplane::level_zero::test_driver {

namespace {

ze_result_t ZE_APICALL module_create(ze_context_handle_t context, ze_device_handle_t device,
                                     const ze_module_desc_t* desc, ze_module_handle_t* out,
                                     ze_module_build_log_handle_t* log) {
  if (log != nullptr) *log = nullptr;
  const auto requested = static_cast<ze_result_t>(simt::test_driver::requested_failure("zeModuleCreate"));
  if (context == nullptr || device == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  NEED(desc)
  NEED(out)
  NEED(desc->pInputModule)
  if (desc->inputSize == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
  object_of<Device>(device);
  std::string text = "the test driver was asked to fail";
  std::shared_ptr<simt::test_driver::Module> made;
  const std::span code(reinterpret_cast<const std::byte*>(desc->pInputModule), desc->inputSize);
  const bool is_native = desc->format == ZE_MODULE_FORMAT_NATIVE;
  if (requested == ZE_RESULT_SUCCESS) {
    text.clear();
    made = is_native ? simt::test_driver::Module::from_binary(machine(), code)
                     : simt::test_driver::Module::from_spirv(machine(), code, text);
  }
  if (log != nullptr) *log = handle_of<Log, ze_module_build_log_handle_t>(new Log(text));
  if (requested != ZE_RESULT_SUCCESS) return requested;
  if (made == nullptr) return is_native ? ZE_RESULT_ERROR_INVALID_NATIVE_BINARY : ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
  const bool is_large = desc->pBuildFlags != nullptr && std::strstr(desc->pBuildFlags, "-ze-opt-large-register-file");
  const auto spill = static_cast<uint32_t>(std::stoul(simt::test_driver::setting("TEST_DRIVER_SPILL", "0")));
  *out = handle_of<Module, ze_module_handle_t>(
      new Module(object_of<Context>(context), made, is_native || is_large ? 0 : spill));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL module_destroy(ze_module_handle_t handle) {
  ENTER(zeModuleDestroy, handle)
  auto* module = object_of<Module>(handle);
  if (module->kernels != 0) violation("zeModuleDestroy: a kernel of the module lives");
  destroy(module);
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL module_binary(ze_module_handle_t handle, std::size_t* bytes, uint8_t* out) {
  ENTER(zeModuleGetNativeBinary, handle)
  NEED(bytes)
  const std::vector<std::byte> binary = object_of<Module>(handle)->code->binary();
  if (out != nullptr) {
    if (*bytes < binary.size()) return ZE_RESULT_ERROR_INVALID_SIZE;
    std::memcpy(out, binary.data(), binary.size());
  }
  *bytes = binary.size();
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL log_destroy(ze_module_build_log_handle_t handle) {
  ENTER(zeModuleBuildLogDestroy, handle)
  destroy(object_of<Log>(handle));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL log_text(ze_module_build_log_handle_t handle, std::size_t* bytes, char* out) {
  ENTER(zeModuleBuildLogGetString, handle)
  NEED(bytes)
  const std::string& text = object_of<Log>(handle)->text;
  if (out != nullptr) {
    if (*bytes < text.size() + 1) return ZE_RESULT_ERROR_INVALID_SIZE;
    std::memcpy(out, text.c_str(), text.size() + 1);
  }
  *bytes = text.size() + 1;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL kernel_create(ze_module_handle_t handle, const ze_kernel_desc_t* desc, ze_kernel_handle_t* out) {
  ENTER(zeKernelCreate, handle)
  NEED(desc)
  NEED(desc->pKernelName)
  NEED(out)
  auto* module = object_of<Module>(handle);
  auto made = simt::test_driver::Kernel::create(machine(), module->code, desc->pKernelName);
  if (made == nullptr) return ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
  *out = handle_of<Kernel, ze_kernel_handle_t>(new Kernel(module, std::move(made)));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL kernel_destroy(ze_kernel_handle_t handle) {
  ENTER(zeKernelDestroy, handle)
  destroy(object_of<Kernel>(handle));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL kernel_properties(ze_kernel_handle_t handle, ze_kernel_properties_t* out) {
  ENTER(zeKernelGetProperties, handle)
  NEED(out)
  auto* kernel = object_of<Kernel>(handle);
  out->numKernelArgs = static_cast<uint32_t>(kernel->is_set.size());
  out->spillMemSize = kernel->module->spill_bytes;
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL kernel_group_size(ze_kernel_handle_t handle, uint32_t x, uint32_t y, uint32_t z) {
  ENTER(zeKernelSetGroupSize, handle)
  auto* kernel = object_of<Kernel>(handle);
  const Exclusive one(kernel->busy, "zeKernelSetGroupSize");
  const auto limit = machine().info<std::size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE);
  if (x == 0 || y == 0 || z == 0 || std::size_t{x} * y * z > limit) return ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
  kernel->group_size[0] = x;
  kernel->group_size[1] = y;
  kernel->group_size[2] = z;
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL kernel_argument(ze_kernel_handle_t handle, uint32_t index, std::size_t bytes,
                                       const void* value) {
  ENTER(zeKernelSetArgumentValue, handle)
  auto* kernel = object_of<Kernel>(handle);
  const Exclusive one(kernel->busy, "zeKernelSetArgumentValue");
  if (index >= kernel->is_set.size()) return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX;
  if (bytes == 0) return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE;
  std::vector<std::byte>& out = kernel->arguments.values[index];
  out.assign(bytes, std::byte{0});
  if (value != nullptr) std::memcpy(out.data(), value, bytes);
  if (bytes == sizeof(void*)) {
    const void* pointer = nullptr;
    std::memcpy(&pointer, out.data(), sizeof(pointer));
    if (pointer != nullptr && lacks("system") && !machine().contains(pointer, 1)) {
      violation("zeKernelSetArgumentValue: the pointer is not in memory that the device can access");
    }
  }
  kernel->is_set[index] = true;
  return ZE_RESULT_SUCCESS;
}

}  // namespace

void fill(ze_module_dditable_t& out) {
  out.pfnCreate = module_create;
  out.pfnDestroy = module_destroy;
  out.pfnGetNativeBinary = module_binary;
}
void fill(ze_module_build_log_dditable_t& out) {
  out.pfnDestroy = log_destroy;
  out.pfnGetString = log_text;
}
void fill(ze_kernel_dditable_t& out) {
  out.pfnCreate = kernel_create;
  out.pfnDestroy = kernel_destroy;
  out.pfnGetProperties = kernel_properties;
  out.pfnSetGroupSize = kernel_group_size;
  out.pfnSetArgumentValue = kernel_argument;
}

}  // namespace backplane::level_zero::test_driver
