// SPDX-License-Identifier: Apache-2.0
// Tests kernels, the files of compiled kernels, events and command lists, on the test driver. The
// test driver ends the process if the plugin violates a rule of the API.
#include "runtime/device.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "spirv/modules.hpp"
#include "spirv/spirv.hpp"

namespace backplane::level_zero::test {

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

const simt::KernelName kKernel{"copy_32", "copy_rows"};

class OnTestDriver : public testing::Test {
 protected:
  void SetUp() override {
    auto platforms = Platforms::shared();
    if (!platforms.ok()) GTEST_SKIP() << platforms.status().message();
    std::string pattern = testing::TempDir() + "backplane_level_zero_XXXXXX";
    folder = ::mkdtemp(pattern.data());
    ::setenv(kCacheSetting, folder.c_str(), 1);
    auto made = Context::create(platforms.value()->devices[0]);
    ASSERT_TRUE(made.ok()) << made.status().message();
    context = std::move(made.value());
  }
  void TearDown() override {
    ::unsetenv(kListsSetting);
    if (!folder.empty()) fs::remove_all(folder);
  }

  // Simulates a separate process, which compiles a kernel or loads its file, and creates a kernel
  // object.
  void compile() {
    Kernels kernels(*context);
    auto number = kernels.get(kKernel, [&](const std::string& line) { lines.push_back(line); });
    ASSERT_TRUE(number.ok()) << number.status().message();
    auto kernel = kernels.create(number.value());
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    context->api().zeKernelDestroy(kernel.value());
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".cache") out.push_back(entry.path());
    }
    return out;
  }
  std::unique_ptr<Queue> create_queue(Kernels& kernels, Events& events) const {
    auto made = Queue::create(*context, kernels, events);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made.value());
  }
  Mark mark(Queue& queue) const {
    auto made = queue.mark(false);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.value();
  }
  void expect_passes(const Mark& mark) const {
    EXPECT_EQ(context->api().zeEventHostSynchronize(mark->event, 10'000'000'000u), ZE_RESULT_SUCCESS);
  }

  std::string folder;
  std::unique_ptr<Context> context;
  std::vector<std::string> lines;
};

TEST_F(OnTestDriver, ACompiledKernelIsKept) {
  compile();
  ASSERT_EQ(files().size(), 1u);
  const auto written = fs::last_write_time(files()[0]);
  compile();
  EXPECT_EQ(fs::last_write_time(files()[0]), written);
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(OnTestDriver, ABinaryThatTheDriverDoesNotTakeIsReplaced) {
  const auto module =
      simt::single_kernel(simt::find_module(kKernel.module), kKernel.function, context->device().limits.width);
  const auto file = Kernels(*context).file_of(module);
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(file->store(std::vector<std::byte>(500, std::byte{0xA5})), "");
  compile();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("the driver does not take it"));
  compile();
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(OnTestDriver, AnUnknownKernelIsNamed) {
  Kernels kernels(*context);
  const auto status = kernels.get({"copy_32", "copy_nothing"}, [](const std::string&) {}).status();
  EXPECT_EQ(status.code(), BP_INTERNAL);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr("copy_nothing"), HasSubstr("copy_32")));
}

TEST(Modules, TheTypesOfAModuleAreItsCapabilities) {
  const uint32_t header[] = {0x07230203, 0x00010300, 0, 1, 0};
  std::vector<uint32_t> module(std::begin(header), std::end(header));
  EXPECT_FALSE(simt::types_of(module).f16 || simt::types_of(module).f64);
  module.insert(module.end(), {2u << 16 | 17, 9, 2u << 16 | 17, 10});
  EXPECT_TRUE(simt::types_of(module).f16 && simt::types_of(module).f64);
}

// The kernels convert f16 and f64 with integers, so that every device can run them.
TEST(Modules, NoKernelNeedsF16OrF64) {
  for (const char* name : {"cast_f64", "cast_f16", "matmul_f16", "index_scatter_f64"}) {
    const auto module = simt::find_module(name);
    ASSERT_FALSE(module.empty()) << name;
    EXPECT_FALSE(simt::types_of(module).f16 || simt::types_of(module).f64) << name;
  }
}

TEST_F(OnTestDriver, EventsAreReused) {
  Kernels kernels(*context);
  Events events(*context);
  const auto queue = create_queue(kernels, events);
  std::set<ze_event_handle_t> seen;
  for (int i = 0; i < 300; ++i) {
    const Mark made = mark(*queue);
    seen.insert(made->event);
    expect_passes(made);
  }
  EXPECT_LE(seen.size(), 64u);
}

TEST_F(OnTestDriver, AWaitHoldsItsEvent) {
  for (const char* lists : {"immediate", "regular"}) {
    ::setenv(kListsSetting, lists, 1);
    Kernels kernels(*context);
    Events events(*context);
    const auto a = create_queue(kernels, events), b = create_queue(kernels, events);
    Mark last;
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(b->wait_for(mark(*a)).ok());
      last = mark(*b);
      ASSERT_TRUE(a->wait_for(last).ok());
    }
    expect_passes(last);
    expect_passes(mark(*a));
  }
}

TEST_F(OnTestDriver, ALossIsRemembered) {
  EXPECT_TRUE(context->health().ok());
  EXPECT_EQ(context->check(ZE_RESULT_ERROR_DEVICE_LOST, "zeSomething").code(), BP_DEVICE_LOST);
  EXPECT_THAT(context->health().message(), testing::AllOf(HasSubstr("zeSomething"), HasSubstr("close the device")));
}

TEST(Results, AMessageNamesTheCallTheCodeAndTheRemedy) {
  const kit::Status status = status_of(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, "zeMemAllocDevice");
  EXPECT_EQ(status.code(), BP_OUT_OF_MEMORY);
  EXPECT_EQ(status.vendor_code(), 0x70000003);
  EXPECT_EQ(
      status.message(),
      "level_zero: zeMemAllocDevice returned 0x70000003, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY; free device memory "
      "and try again");
}

}  // namespace

}  // namespace backplane::level_zero::test
