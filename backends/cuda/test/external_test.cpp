// SPDX-License-Identifier: Apache-2.0
// Tests memory and semaphores of other code on the test driver. On the test driver, such memory is a shared file of
// the kit, so this program takes the place of the other code. The cases runtime.external of the suite test memory
// that the plugin exports.
#include <gmock/gmock.h>

#include <array>
#include <backplane/kit/host_semaphore.hpp>

#include "gpu_host/device.hpp"
#include "runtime/stack.hpp"

namespace backplane::cuda::test {

namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Native = gpu_host::Native<platform>;

constexpr uint64_t kBytes = 3u << 16;  // no multiple of the granularity of CUDA's own memory

class CudaExternal : public testing::Test {
 protected:
  void SetUp() override {
    auto count = Native::count();
    if (!count.ok()) GTEST_SKIP() << count.status().message();
    for (uint32_t i = 0; i < std::size(devices); ++i) {
      auto opened = Native::open(i, kit::Host(nullptr));
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      devices[i] = std::move(opened.value());
      bp_device_info info{};
      ASSERT_TRUE(Native::info(i, info).ok());
      std::copy(std::begin(info.uuid), std::end(info.uuid), uuids[i].begin());
    }
  }
  bp_external_handle handle(int fd, uint64_t bytes = 0, std::size_t device = 0) const {
    bp_external_handle out = kit::external_handle("opaque_fd", fd);
    out.bytes = out.object_bytes = bytes;
    std::ranges::copy(uuids[device], out.uuid);
    return out;
  }
  // Copies bytes to or from the host, and waits.
  void copy(std::byte* dst, const std::byte* src, uint64_t bytes) {
    auto queue = std::move(devices[0]->create_queue({}).value());
    ASSERT_TRUE(queue->copy(dst, src, bytes).ok());
    ASSERT_TRUE(kit::await_mark(*devices[0], queue->mark(false).value(), BP_WAIT_FOREVER).ok());
  }

  std::unique_ptr<Native> devices[2];
  std::array<uint8_t, 16> uuids[2];
};

TEST(CudaExternalTypes, ADriverOrADeviceWithoutTheFunctionsHasNone) {
  Api api;
  EXPECT_THAT(External(api).types({true, true}), IsEmpty());
  api.has_external = true;
  EXPECT_THAT(External(api).types({false, true}), IsEmpty());
  const auto memory_only = External(api).types({true, false});
  ASSERT_EQ(memory_only.size(), 1u);
  EXPECT_EQ(memory_only[0].name, "opaque_fd");
  EXPECT_EQ(memory_only[0].flags, BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT);
  EXPECT_EQ(External(api).types({true, true})[0].flags, memory_only[0].flags | BP_EXTERNAL_SEMAPHORE_IMPORT);
  EXPECT_EQ(Stack(Api{}).external(), nullptr);
}

TEST(CudaExternalTypes, TheSettingPermitsThem) {
  const auto offers = [](const char* value) {
    ::setenv(kExternalSetting, value, 1);
    return offers_external();
  };
  EXPECT_FALSE(offers("").value());
  EXPECT_FALSE(offers("off").value());
  EXPECT_THAT(offers("yes").status().message(), HasSubstr("set it to on or off"));
  EXPECT_TRUE(offers("on").value());
}

TEST_F(CudaExternal, MemoryOfOtherCodeIsNotCopied) {
  auto file = kit::SharedFile::create("the test", kBytes).value();
  const kit::Descriptor fd(file->duplicate("the test").value());
  bp_external_handle part = handle(fd.get(), kBytes);
  part.offset = 4096;
  part.bytes = kBytes - 4096;
  uint32_t kind = UINT32_MAX;
  auto imported = devices[0]->import_external(part, kind);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(kind, BP_MEMORY_DEVICE);
  file->address()[4096 + 5] = std::byte{17};
  std::array<std::byte, 8> bytes{};
  copy(bytes.data(), imported.value()->address, bytes.size());
  EXPECT_EQ(bytes[5], std::byte{17});
  bytes[6] = std::byte{18};
  copy(imported.value()->address, bytes.data(), bytes.size());
  EXPECT_EQ(file->address()[4096 + 6], std::byte{18});
  EXPECT_EQ(devices[0]->export_memory(imported.value(), "opaque_fd").status().code(), BP_UNSUPPORTED);
  devices[0]->free(imported.value());
}

TEST_F(CudaExternal, AHandleOfAnotherDeviceIsRefused) {
  const bp_buffer_desc desc{sizeof(desc), BP_MEMORY_DEVICE, kBytes, 256};
  auto own = devices[0]->allocate_external(desc, "opaque_fd");
  ASSERT_TRUE(own.ok()) << own.status().message();
  const bp_external_handle exported = devices[0]->export_memory(own.value(), "opaque_fd").value();
  const kit::Descriptor fd(static_cast<int>(exported.fd));
  bp_external_handle given = exported;
  given.bytes = kBytes;
  uint32_t kind = 0;
  EXPECT_EQ(devices[1]->import_external(given, kind).status().code(), BP_UNSUPPORTED);
  auto twin = devices[0]->import_external(given, kind);
  ASSERT_TRUE(twin.ok()) << twin.status().message();
  devices[0]->free(own.value());
  devices[0]->free(twin.value());
}

TEST_F(CudaExternal, AWrongSizeIsRefused) {
  auto file = kit::SharedFile::create("the test", kBytes).value();
  const kit::Descriptor fd(file->duplicate("the test").value());
  uint32_t kind = 0;
  const kit::Status status = devices[0]->import_external(handle(fd.get(), kBytes + 4096), kind).status();
  EXPECT_EQ(status.code(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(status.message(), HasSubstr("cuImportExternalMemory"));
  EXPECT_TRUE(devices[0]->health().ok()) << "a wrong handle loses no device";
}

TEST_F(CudaExternal, ASemaphoreOrdersStreamsAndOtherCode) {
  auto others = kit::HostSemaphore::create(3).value();
  const kit::Descriptor fd(others->file().duplicate("the test").value());
  auto made = devices[0]->import_semaphore(handle(fd.get()));
  ASSERT_TRUE(made.ok()) << made.status().message();
  gpu_host::Semaphore& semaphore = *made.value();
  auto queue = std::move(devices[0]->create_queue({}).value());
  ASSERT_TRUE(devices[0]->wait(*queue, semaphore, 4).ok());
  ASSERT_TRUE(devices[0]->signal(*queue, semaphore, 6).ok());
  const auto mark = queue->mark(false).value();
  EXPECT_EQ(devices[0]->poll(mark).code(), BP_TIMEOUT);
  EXPECT_FALSE(others->reached(5));
  others->raise(4);
  EXPECT_TRUE(kit::await_mark(*devices[0], mark, BP_WAIT_FOREVER).ok());
  EXPECT_TRUE(others->reached(6));
  // The test driver ends the process if a signal does not raise the semaphore.
  for (const uint64_t lower : {5u, 6u}) EXPECT_TRUE(devices[0]->signal(*queue, semaphore, lower).ok());
  EXPECT_TRUE(kit::await_mark(*devices[0], queue->mark(false).value(), BP_WAIT_FOREVER).ok());
  EXPECT_FALSE(others->reached(7));
  EXPECT_EQ(devices[0]->signal(semaphore, 8).code(), BP_UNSUPPORTED) << "the host cannot raise it";
}

TEST_F(CudaExternal, MemoryIsNoSemaphore) {
  auto file = kit::SharedFile::create("the test", 4096).value();
  const kit::Descriptor fd(file->duplicate("the test").value());
  EXPECT_EQ(devices[0]->import_semaphore(handle(fd.get())).status().code(), BP_INVALID_ARGUMENT);
  EXPECT_TRUE(devices[0]->health().ok());
}

}  // namespace

}  // namespace backplane::cuda::test
