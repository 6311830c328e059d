// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels.hpp"

namespace backplane::opencl {

namespace {

// The operators never launch larger groups.
constexpr std::size_t kMaxGroup = 256;

cl_program program_of(void* module) { return static_cast<cl_program>(module); }

}  // namespace

Kernels::Kernels(const Context& context)
    : CompiledKernels(
          {"opencl", kCacheSetting, context.device().name, context.device().driver, "", context.device().limits.width}),
      context_(context) {}

Kernels::~Kernels() {
  for (const Entry& entry : entries()) {
    if (entry.module != nullptr) context_.api().clReleaseProgram(program_of(entry.module));
  }
}

Kernels::Module Kernels::load(std::span<const std::byte> binary, const std::string&) const {
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

std::vector<std::byte> Kernels::binary_of(Module module) const {
  std::size_t size = 0;
  const Api& cl = context_.api();
  cl_program program = program_of(module);
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) != CL_SUCCESS) return {};
  std::vector<std::byte> out(size);
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  const cl_int code = cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr);
  return code == CL_SUCCESS ? out : std::vector<std::byte>{};
}

std::size_t Kernels::max_group_size(cl_program program, const std::string& function) const {
  const Api& cl = context_.api();
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = cl.clCreateKernel(program, function.c_str(), &code);
  if (kernel == nullptr) return 0;
  std::size_t out = 0;
  code =
      cl.clGetKernelWorkGroupInfo(kernel, context_.device().id, CL_KERNEL_WORK_GROUP_SIZE, sizeof(out), &out, nullptr);
  cl.clReleaseKernel(kernel);
  return code == CL_SUCCESS ? out : 0;
}

kit::Result<Kernels::Module> Kernels::build(const simt::KernelName& name, std::span<const uint32_t> spirv) const {
  const Api& cl = context_.api();
  const PhysicalDevice& device = context_.device();
  cl_int code = CL_SUCCESS;
  cl_program program = cl.clCreateProgramWithIL(context_.handle(), spirv.data(), spirv.size_bytes(), &code);
  if (kit::Status status = status_of(code, "clCreateProgramWithIL"); !status.ok()) return status;
  code = cl.clBuildProgram(program, 1, &device.id, "", nullptr, nullptr);
  if (code != CL_SUCCESS) {
    std::size_t bytes = 0;
    (void)cl.clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
    std::string text(bytes, '\0');
    (void)cl.clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, bytes, text.data(), nullptr);
    if (!text.empty()) text.pop_back();  // the terminating null
    cl.clReleaseProgram(program);
    return kit::Status{BP_INTERNAL,
                       kit::text(status_of(code, "clBuildProgram").message(), " for the kernel ", name.function, " of ",
                                 name.module, ": ", text),
                       code};
  }
  if (const std::size_t most = max_group_size(program, name.function); most < kMaxGroup) {
    cl.clReleaseProgram(program);
    return kit::unsupported("opencl: the kernel ", name.function, " of ", name.module, " may have only ", most,
                            " threads per group on this device; the plugin needs ", kMaxGroup);
  }
  return Module{program};
}

kit::Result<cl_kernel> Kernels::create(uint32_t number) {
  const Entry& kernel = entry(number);
  cl_int code = CL_SUCCESS;
  cl_kernel out = context_.api().clCreateKernel(program_of(kernel.module), kernel.function.c_str(), &code);
  if (kit::Status status = status_of(code, "clCreateKernel"); !status.ok()) return status;
  return out;
}

}  // namespace backplane::opencl
