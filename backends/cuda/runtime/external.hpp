// SPDX-License-Identifier: Apache-2.0
// Memory and timeline semaphores that CUDA shares with Vulkan and with other processes, as opaque file descriptors.
#pragma once

#include "gpu_host/external.hpp"
#include "runtime/api.hpp"

namespace backplane::cuda {

// Environment variable. With `on`, devices offer "bp.external".
inline constexpr const char* kExternalSetting = "BACKPLANE_CUDA_EXTERNAL";
// Returns whether the variable is `on`. Returns INVALID_ARGUMENT for an unknown value.
kit::Result<bool> offers_external();

class External : public gpu_host::External {
 public:
  explicit External(const Api& api) : cu_(api) {}

  struct Abilities {
    bool shares_memory, imports_semaphores;
  };
  // Returns the types of a device.
  std::span<const kit::ExternalType> types(Abilities device) const;

  kit::Result<gpu_host::SharedMemory> allocate(int ordinal, uint64_t bytes) const override;
  kit::Result<int> descriptor_of(const gpu_host::SharedMemory& memory) const override;
  kit::Result<gpu_host::SharedMemory> import_memory(int ordinal, int fd, uint64_t bytes) const override;
  kit::Status free(const gpu_host::SharedMemory& memory) const override;
  kit::Result<gpu_host::Handle> import_semaphore(int fd) const override;
  void destroy_semaphore(gpu_host::Handle semaphore) const override;
  kit::Status signal(gpu_host::Handle semaphore, uint64_t value, gpu_host::Handle stream) const override;
  kit::Status wait(gpu_host::Handle semaphore, uint64_t value, gpu_host::Handle stream) const override;

 private:
  kit::Result<uint64_t> granularity(int ordinal) const;
  // Maps the driver's object `out.object`, which has out.bytes bytes, and sets out.address.
  kit::Status map(int ordinal, gpu_host::SharedMemory& out) const;
  kit::Status import_object(int ordinal, int fd, gpu_host::SharedMemory& out) const;
  kit::Status import_foreign(int fd, gpu_host::SharedMemory& out) const;

  const Api& cu_;
};

}  // namespace backplane::cuda
