// SPDX-License-Identifier: Apache-2.0
// Tests kernels, the files of compiled kernels, and failures, on the first device.
#include "runtime/device.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "spirv/modules.hpp"
#include "spirv/spirv.hpp"

namespace backplane::opencl::test {

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

const simt::KernelName kKernel{"copy_32", "copy_rows"};

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    auto platforms = Platforms::shared();
    if (!platforms.ok()) GTEST_SKIP() << platforms.status().message();
    std::string pattern = testing::TempDir() + "backplane_opencl_XXXXXX";
    folder = ::mkdtemp(pattern.data());
    ::setenv(kCacheSetting, folder.c_str(), 1);
    auto made = Context::create(platforms.value()->devices[0]);
    ASSERT_TRUE(made.ok()) << made.status().message();
    context = std::move(made.value());
  }
  void TearDown() override {
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
    context->api().clReleaseKernel(kernel.value());
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".cache") out.push_back(entry.path());
    }
    return out;
  }

  std::string folder;
  std::unique_ptr<Context> context;
  std::vector<std::string> lines;
};

TEST_F(OnDevice, ACompiledKernelIsKept) {
  compile();
  ASSERT_EQ(files().size(), 1u);
  const auto written = fs::last_write_time(files()[0]);
  compile();
  EXPECT_EQ(fs::last_write_time(files()[0]), written);
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(OnDevice, ADamagedFileIsLoggedAndReplaced) {
  compile();
  ASSERT_EQ(files().size(), 1u);
  std::ofstream(files()[0], std::ios::binary) << "no kernel";
  compile();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0],
              testing::AllOf(HasSubstr(files()[0].string()), HasSubstr("is not used"), HasSubstr("replaced")));
  compile();
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(OnDevice, ABinaryThatTheDriverDoesNotKnowIsReplaced) {
  const PhysicalDevice& device = context->device();
  const auto module = simt::single_kernel(simt::find_module(kKernel.module), kKernel.function, device.limits.width);
  const auto file = Kernels(*context).file_of(module);
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(file->store(std::vector<std::byte>(500, std::byte{0xA5})), "");
  compile();
  std::string objection;
  EXPECT_NE(file->load(objection), std::vector<std::byte>(500, std::byte{0xA5}));
}

TEST_F(OnDevice, AFolderThatCannotBeMadeIsLogged) {
  std::ofstream(folder + "/file") << "no folder";
  ::setenv(kCacheSetting, (folder + "/file").c_str(), 1);
  compile();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::AllOf(HasSubstr("is not kept"), HasSubstr(kCacheSetting)));
}

TEST_F(OnDevice, OffKeepsNoFiles) {
  ::setenv(kCacheSetting, "off", 1);
  compile();
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(OnDevice, AnUnknownKernelIsNamed) {
  Kernels kernels(*context);
  const auto status = kernels.get({"copy_32", "copy_nothing"}, [](const std::string&) {}).status();
  EXPECT_EQ(status.code(), BP_INTERNAL);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr("copy_nothing"), HasSubstr("copy_32")));
}

TEST_F(OnDevice, ABufferBeyondTheLimitIsOutOfMemory) {
  bp_buffer_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.bytes = context->device().max_buffer_bytes + 1;
  desc.kind = BP_MEMORY_DEVICE;
  desc.alignment = context->device().alignment;
  EXPECT_EQ(context->allocate(desc).status().code(), BP_OUT_OF_MEMORY);
}

TEST(Statuses, CodesOfTheDriverHaveTheirMeaning) {
  EXPECT_TRUE(status_of(CL_SUCCESS, "clFlush").ok());
  for (const cl_int code : {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE}) {
    EXPECT_EQ(status_of(code, "clFlush").code(), BP_OUT_OF_MEMORY);
  }
  EXPECT_EQ(status_of(CL_DEVICE_NOT_AVAILABLE, "clFlush").code(), BP_DEVICE_LOST);
  const kit::Status other = status_of(CL_INVALID_KERNEL_ARGS, "clFlush");
  EXPECT_EQ(other.code(), BP_INTERNAL);
  EXPECT_EQ(other.vendor_code(), CL_INVALID_KERNEL_ARGS);
  EXPECT_THAT(other.message(), testing::AllOf(HasSubstr("clFlush"), HasSubstr("CL_INVALID_KERNEL_ARGS")));
}

}  // namespace

}  // namespace backplane::opencl::test
