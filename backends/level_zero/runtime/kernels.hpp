// SPDX-License-Identifier: Apache-2.0
// The compiled kernels of a Level Zero device.
#pragma once

#include "runtime/context.hpp"
#include "spirv/compiled_kernels.hpp"

namespace backplane::level_zero {

// Environment variable. Its value is the folder of the cache, or `off` to disable the cache.
inline constexpr const char* kCacheSetting = "BACKPLANE_LEVEL_ZERO_CACHE";

class Kernels : public simt::CompiledKernels {
 public:
  explicit Kernels(const Context& context);
  ~Kernels() override;

  const simt::Limits& limits() const { return context_.device().limits; }
  // Returns whether the device has the numeric types that a kernel needs.
  bool can_run(const simt::KernelName& name) const;
  // Returns a new kernel object. Kernel objects contain arguments, so only one thread at a time may
  // use an object.
  kit::Result<ze_kernel_handle_t> create(uint32_t number);

 private:
  Module load(std::span<const std::byte> binary, const std::string& function) const override;
  kit::Result<Module> build(const simt::KernelName& name, std::span<const uint32_t> spirv) const override;
  std::vector<std::byte> binary_of(Module module) const override;
  // Creates a module. `registers` is a flag of the compiler, or empty. If `build_log` is not null, stores the driver's
  // log there.
  ze_result_t create_module(ze_module_format_t format, std::span<const std::byte> code, const char* registers,
                            ze_module_handle_t& out, std::string* build_log) const;
  // If the kernel spills registers, compiles it with the large register file, and keeps the module
  // that spills less.
  void reduce_spills(std::span<const std::byte> code, const std::string& function, ze_module_handle_t& module) const;
  // Returns the bytes that a kernel spills per thread, or 0 if the driver does not report them.
  uint32_t spilled_bytes(ze_module_handle_t module, const std::string& function) const;

  const Context& context_;
};

}  // namespace backplane::level_zero
