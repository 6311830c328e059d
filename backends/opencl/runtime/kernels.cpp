// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels.hpp"

#include "driver_call.hpp"
#include "spirv/modules.hpp"
#include "spirv/spirv.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace backplane::opencl {

Kernels::Kernels(const Context& context) : context_(context), folder_(cache::cache_folder(kCacheSetting, "opencl")) {
  const auto digest = [](const std::string& of, uint8_t(&out)[16]) {
    const XXH128_hash_t hash = XXH3_128bits(of.data(), of.size());
    std::memcpy(out, &hash, sizeof(out));
  };
  digest(context.device().name, key_.device);
  digest(context.device().driver, key_.driver);
}

Kernels::~Kernels() {
  for (const Entry& entry : entries_) {
    if (entry.program != nullptr) context_.api().clReleaseProgram(entry.program);
  }
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
  if (entry->program == nullptr) {
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

cl_program Kernels::load(std::span<const std::byte> binary) const {
  if (binary.empty()) return nullptr;
  const Api& cl = context_.api();
  const cl_device_id device = context_.device().id;
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t size = binary.size();
  cl_int code = CL_SUCCESS, loaded = CL_SUCCESS;
  cl_program program = cl.clCreateProgramWithBinary(context_.handle(), 1, &device, &size, &bytes, &loaded, &code);
  if (program == nullptr) return nullptr;
  if (code == CL_SUCCESS && loaded == CL_SUCCESS &&
      cl.clBuildProgram(program, 1, &device, "", nullptr, nullptr) == CL_SUCCESS) {
    return program;
  }
  cl.clReleaseProgram(program);
  return nullptr;
}

std::vector<std::byte> Kernels::binary_of(cl_program program) const {
  std::size_t size = 0;
  const Api& cl = context_.api();
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) != CL_SUCCESS) return {};
  std::vector<std::byte> out(size);
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  const cl_int code = cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr);
  return code == CL_SUCCESS ? out : std::vector<std::byte>{};
}

kit::Status Kernels::compile(const simt::KernelName& name, Entry& entry, const Log& log) const {
  const Api& cl = context_.api();
  const PhysicalDevice& device = context_.device();
  const std::vector<uint32_t> module =
      simt::single_kernel(simt::find_module(name.module), name.function, device.limits.width);
  if (module.empty()) {
    return {BP_INTERNAL, kit::text("opencl: the plugin was built without the kernel ", name.function, " of ",
                                   name.module, "; report this to its vendor")};
  }
  const std::optional<cache::CacheFile> file = file_of(module);
  std::string objection;
  if (file) entry.program = load(file->load(objection));
  if (!objection.empty()) {
    log(kit::text("opencl: the compiled kernel ", file->path(), " is not used: ", objection, "; it is replaced"));
  }
  if (entry.program != nullptr) return {};
  cl_int code = CL_SUCCESS;
  cl_program program =
      cl.clCreateProgramWithIL(context_.handle(), module.data(), module.size() * sizeof(uint32_t), &code);
  if (kit::Status status = status_of(code, "clCreateProgramWithIL"); !status.ok()) return status;
  code = cl.clBuildProgram(program, 1, &device.id, "", nullptr, nullptr);
  if (code != CL_SUCCESS) {
    std::string text(4096, '\0');
    std::size_t bytes = 0;
    const cl_int read =
        cl.clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, text.size(), text.data(), &bytes);
    text.resize(read == CL_SUCCESS && bytes != 0 ? bytes - 1 : 0);
    cl.clReleaseProgram(program);
    return {BP_INTERNAL,
            kit::text(status_of(code, "clBuildProgram").message(), " for the kernel ", name.function, " of ",
                      name.module, ": ", text),
            code};
  }
  entry.program = program;
  // A driver loads its compiler at the first compilation, and the compiler registers exit handlers.
  // DriverCall therefore registers its handler after the compilation (driver_call.hpp).
  static const bool stopped = (simt::DriverCall::stop_at_exit(), true);
  (void)stopped;
  if (!file) return {};
  const std::vector<std::byte> binary = binary_of(program);
  const std::string why = binary.empty() ? "the driver gives no binary" : file->store(binary);
  if (!why.empty()) {
    log(kit::text("opencl: the compiled kernel ", file->path(), " is not kept: ", why,
                  "; make its folder writable, or set ", kCacheSetting, " to another, or to off"));
  }
  return {};
}

kit::Result<cl_kernel> Kernels::create(uint32_t number) {
  const Entry* entry = nullptr;
  {
    std::lock_guard lock(mutex_);
    entry = &entries_[number];
  }
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = context_.api().clCreateKernel(entry->program, entry->function.c_str(), &code);
  if (kit::Status status = status_of(code, "clCreateKernel"); !status.ok()) return status;
  return kernel;
}

}  // namespace backplane::opencl
