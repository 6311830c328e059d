// SPDX-License-Identifier: Apache-2.0
// Tests of devices on a test driver. The tests of the cuda plugin and of the hip plugin include these tests.
#pragma once

#include <gmock/gmock.h>

#include "gpu_host/device.hpp"

namespace backplane::gpu_host::test {

// Returns the devices of the plugin under test. The tests of each plugin define this function.
Platform& platform();

class DeviceTest : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = 1u << 16;

  // Opens the devices. Skips the test if the test driver finds no OpenCL runtime.
  void SetUp() override;

  const Context& context(int i = 0) const { return *devices[i]->context; }
  std::unique_ptr<Queue> create_queue(int i = 0) const;
  simt::Buffer* allocate(uint32_t kind, uint64_t bytes = kBytes) const;
  // Returns the free memory of device 0 that the plugin reports.
  uint64_t free_bytes() const;
  // Returns the free memory of device 0 that the driver reports, which excludes the memory that pools keep.
  uint64_t unreserved_bytes() const;
  static bp_import_desc import_of(const void* address, uint64_t bytes, uint32_t type = BP_IMPORT_HOST);
  kit::Status import(const bp_import_desc& desc, simt::Buffer*& out, int i = 0) const;
  AddressKind::Owner owner_of(const void* address) const;
  void expect_passes(const Mark& mark) const;
  // Allocates and frees memory of each kind on device 0, records an event, and makes an allocation that must fail.
  void use_device() const;

  OpenedDevice* devices[3] = {};
};

}  // namespace backplane::gpu_host::test
