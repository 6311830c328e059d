// SPDX-License-Identifier: Apache-2.0
// Tests of test drivers: memory, streams, events, a kernel, and the rules that the driver enforces. The tests of the
// cuda plugin and of the hip plugin include these tests, which call the driver through the plugin's Stack.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <optional>

#include "gpu_host/platform.hpp"
#include "gpu_host/test_driver/driver.hpp"
#include "params.hpp"

namespace backplane::gpu_host::test {

// Returns the devices of the plugin under test. The tests of each plugin define this function.
Platform& platform();

// The arguments of a kernel that writes 5, 8, 11, ... to `out`.
struct KernelArguments {
  explicit KernelArguments(std::byte* out);
  // Returns a node that refers to these arguments.
  GraphNode node(Handle kernel) const;

  std::byte* pointers[4];
  simt::NestParams params{};
};

class DriverTest : public testing::Test {
 public:
  static constexpr uint32_t kCount = 10000;  // elements

 protected:
  static constexpr std::size_t kBytes = kCount * sizeof(uint32_t);

  // Enters device 0 and creates a stream and an event. Skips the test if the test driver finds no OpenCL runtime.
  void SetUp() override;
  void TearDown() override;

  const Context& context(uint32_t i = 0) const { return *platform().open(i).value()->context; }
  const Stack& stack() const { return context().stack(); }
  // Returns the violations since the previous call.
  std::string violations() const;
  // Checks that a call returned `code` and that the driver reported `rule`.
  void expect_violation(const kit::Status& status, test_driver::Result code, const char* rule) const;
  std::byte* device_memory() const;
  static std::byte* address_of(std::vector<uint32_t>& values) { return reinterpret_cast<std::byte*>(values.data()); }
  void copy(std::byte* to, const std::byte* from) const;
  std::vector<uint32_t> read(const std::byte* address) const;
  Handle kernel() const;
  GraphNode copy_node(std::byte* to, const std::byte* from, uint64_t bytes = kBytes) const;
  // Writes 5, 8, 11, ... to `out`.
  kit::Status launch(Handle function, std::byte* out, uint32_t group_size = 64, Handle on = nullptr) const;
  // Polls an event until it completes, and checks that no work has failed.
  void wait_for(Handle recorded) const;

  std::filesystem::path folder;
  std::optional<Scope> scope;
  Handle stream = nullptr, event = nullptr;
};

}  // namespace backplane::gpu_host::test
