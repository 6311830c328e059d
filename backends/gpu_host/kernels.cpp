// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/kernels.hpp"

#include <backplane/kit/driver_guard.hpp>

namespace backplane::gpu_host {

kit::Result<uint32_t> Kernels::get(const simt::KernelName& name, const std::function<void(const std::string&)>&) {
  Module* module = nullptr;
  {
    std::lock_guard lock(mutex_);
    module = &modules_[name.module];
  }
  std::lock_guard lock(module->mutex);
  if (const auto known = module->numbers.find(name.function); known != module->numbers.end()) return known->second;
  const kit::DriverGuard guard;
  const Scope scope(context_);
  if (!scope) return context_.check(scope.status());
  if (kit::Status status = load(name, *module); !status.ok()) return status;
  auto found = context_.with_room(
      [&] { return context_.stack().find_kernel(module->handle, name.function, name.launch_bytes); });
  if (!found.ok()) {
    const kit::Status status = context_.check(found.status());
    return kit::Status{status.code(),
                       kit::text(status.message(), "; the kernel is ", name.function, " of ", name.module),
                       status.vendor_code()};
  }
  std::lock_guard containers(mutex_);
  kernels_.push_back(found.value());
  return module->numbers[name.function] = static_cast<uint32_t>(kernels_.size() - 1);
}

kit::Status Kernels::load(const simt::KernelName& name, Module& module) const {
  if (module.handle != nullptr) return {};
  const Stack& stack = context_.stack();
  const std::span<const std::byte> image = stack.image_of(name.module);
  if (image.empty()) {
    return {BP_INTERNAL, kit::text(stack.plugin(), ": the plugin was built without the kernels of ", name.module,
                                   "; report this to its vendor")};
  }
  auto loaded = context_.with_room([&] { return stack.load_module(image); });
  if (loaded.ok()) {
    module.handle = loaded.value();
    return {};
  }
  const kit::Status status = context_.check(loaded.status());
  return {status.code(),
          kit::text(status.message(), "; the module is ", name.module, ", and ", context_.device().name, " is an ",
                    context_.device().architecture),
          status.vendor_code()};
}

Handle Kernels::kernel(uint32_t number) {
  std::lock_guard lock(mutex_);
  return kernels_[number];
}

}  // namespace backplane::gpu_host
