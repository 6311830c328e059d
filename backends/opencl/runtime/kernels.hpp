// SPDX-License-Identifier: Apache-2.0
// The compiled kernels of an OpenCL device. Each kernel is a cl_program.
#pragma once

#include "runtime/context.hpp"
#include "spirv/compiled_kernels.hpp"

namespace backplane::opencl {

// Environment variable. Its value is the folder of compiled kernels, or `off` to keep none.
inline constexpr const char* kCacheSetting = "BACKPLANE_OPENCL_CACHE";

class Kernels : public simt::CompiledKernels {
 public:
  explicit Kernels(const Context& context);
  ~Kernels() override;
  const simt::Limits& limits() const { return context_.device().limits; }

  // Returns a new kernel object. OpenCL kernel objects contain arguments, so only one thread at a
  // time may use an object.
  kit::Result<cl_kernel> create(uint32_t number);

 private:
  Module load(std::span<const std::byte> binary, const std::string& function) const override;
  kit::Result<Module> build(const simt::KernelName& name, std::span<const uint32_t> spirv) const override;
  std::vector<std::byte> binary_of(Module module) const override;
  // Returns the maximum number of threads per group of a kernel, or 0 if the driver does not report
  // it.
  std::size_t max_group_size(cl_program program, const std::string& function) const;

  const Context& context_;
};

}  // namespace backplane::opencl
