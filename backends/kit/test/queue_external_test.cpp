// SPDX-License-Identifier: Apache-2.0
// Tests the slots of "bp.external" on a queue device.
#include <backplane/kit/device_table.hpp>

#include "queue_driver.hpp"

namespace backplane::kit::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kType = "test.shared";

// A native device that shares memory and semaphores. Tests set the types before they create a device.
class SharingNative : public ManualNative {
 public:
  struct Semaphore {
    std::vector<std::string>* calls;
    ~Semaphore() { calls->emplace_back("destroy"); }
  };

  static inline std::vector<ExternalType> types;
  static inline std::vector<std::string> calls;
  static inline Status condition;  // the result of health()

  Status health() const { return condition; }
  std::span<const ExternalType> external_types() const { return types; }
  Result<Memory> allocate_external(const bp_buffer_desc& desc, std::string_view type) {
    if (Status status = check_external_type(type, kType); !status.ok()) return status;
    return allocate(desc);
  }
  Result<bp_external_handle> export_memory(const Memory& memory, std::string_view) {
    bp_external_handle out = external_handle(kType, 100 + memory);
    out.object_bytes = 4096;
    return out;
  }
  Result<Memory> import_external(const bp_external_handle& handle, uint32_t& kind) {
    kind = BP_MEMORY_DEVICE;
    return static_cast<int>(handle.fd);
  }
  Result<std::unique_ptr<Semaphore>> create_semaphore(std::string_view, uint64_t value) {
    calls.push_back(text("create ", value));
    return std::unique_ptr<Semaphore>(new Semaphore{&calls});
  }
  Result<bp_external_handle> export_semaphore(const Semaphore&, std::string_view type) {
    return external_handle(type, 7);
  }
  Result<std::unique_ptr<Semaphore>> import_semaphore(const bp_external_handle& handle) {
    calls.push_back(text("import ", handle.fd));
    return std::unique_ptr<Semaphore>(new Semaphore{&calls});
  }
  Status signal(const Semaphore&, uint64_t value) {
    calls.push_back(text("raise ", value));
    return {};
  }
  Status signal(Queue& queue, const Semaphore&, uint64_t value) {
    calls.push_back(text("signal ", value));
    return copy(queue, 0, 0, 0, 0, 0);
  }
  Status wait(Queue& queue, const Semaphore&, uint64_t value) {
    calls.push_back(text("wait ", value));
    return copy(queue, 0, 0, 0, 0, 0);
  }
};

using SharingDevice = QueueDevice<SharingNative>;

class QueueExternalTest : public testing::Test {
 protected:
  void SetUp() override {
    ManualNative::reset();
    SharingNative::types = {{kType, BP_EXTERNAL_MEMORY_EXPORT}};
    SharingNative::calls.clear();
    SharingNative::condition = {};
  }
  bp_buffer_desc desc(uint64_t bytes) const { return {sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, bytes, 0}; }

  Operators<SharingDevice::Operator> operators;
  SharingDevice device{std::make_unique<SharingNative>(),
                       [] {
                         bp_device_info info{};
                         info.alignment = 64;
                         info.memory_kinds = 1u << BP_MEMORY_DEVICE;
                         return info;
                       }(),
                       operators};
};

TEST_F(QueueExternalTest, OnlyADeviceWithTypesHasTheInterface) {
  const auto interface = [&] {
    return DeviceTable<SharingDevice>::interface(reinterpret_cast<bp_device*>(&device), BP_INTERFACE_EXTERNAL, 1);
  };
  EXPECT_EQ(interface(), &ExternalTable<SharingDevice>::table);
  SharingNative::types.clear();
  EXPECT_EQ(interface(), nullptr);
}

TEST_F(QueueExternalTest, TheSlotsAreThoseOfTheNativeDevice) {
  const bp_external_api& all = ExternalTable<SharingDevice>::table;
  EXPECT_NE(all.buffer_import, nullptr);
  EXPECT_NE(all.semaphore_create, nullptr);
  EXPECT_NE(all.semaphore_wait, nullptr);
  EXPECT_NE(all.semaphore_destroy, nullptr);
  EXPECT_FALSE(kHasExternal<QueueDevice<ManualNative>>) << "its native device shares nothing";
}

TEST_F(QueueExternalTest, MemoryHasTheBytesOfItsBuffer) {
  const std::unique_ptr<SharingDevice::Buffer> own(device.create_external(desc(48), kType).value());
  const bp_external_handle handle = device.export_memory(*own, kType).value();
  EXPECT_EQ(handle.fd, 101);
  EXPECT_EQ(handle.bytes, 48u) << "the kit states the size of the buffer";
  EXPECT_EQ(handle.object_bytes, 4096u);
  uint32_t kind = UINT32_MAX;
  const std::unique_ptr<SharingDevice::Buffer> other(device.import_external(handle, kind).value());
  EXPECT_EQ(other->bytes, 48u);
  EXPECT_EQ(other->kind, BP_MEMORY_DEVICE);
  EXPECT_EQ(kind, BP_MEMORY_DEVICE);
}

TEST_F(QueueExternalTest, TheKitChecksADescriptorAsForEachBuffer) {
  EXPECT_EQ(device.create_external(desc(0), kType).status().code(), BP_INVALID_ARGUMENT);
  EXPECT_EQ(device.create_external({sizeof(bp_buffer_desc), BP_MEMORY_HOST, 48, 0}, kType).status().code(),
            BP_UNSUPPORTED);
  EXPECT_EQ(device.create_external(desc(48), "test.unknown").status().code(), BP_UNSUPPORTED);
}

TEST_F(QueueExternalTest, SemaphoresAreCommandsOfTheirStream) {
  {
    const std::unique_ptr<SharingDevice::Stream> stream(device.create_stream({sizeof(bp_stream_desc), 0}).value());
    SharingDevice::Semaphore* const semaphore = device.create_semaphore(kType, 5).value();
    EXPECT_TRUE(device.signal(stream.get(), *semaphore, 6).ok());
    EXPECT_TRUE(device.wait(*stream, *semaphore, 7).ok());
    EXPECT_TRUE(device.signal(nullptr, *semaphore, 8).ok());
    EXPECT_EQ(ManualNative::queues[0]->commands.size(), 2u);
    EXPECT_EQ(device.wait(*stream, 0).code(), BP_TIMEOUT) << "the stream has work";
    ManualNative::queues[0]->run();
    EXPECT_TRUE(device.wait(*stream, BP_WAIT_FOREVER).ok());
    device.destroy(semaphore);
    device.destroy(device.import_semaphore(external_handle(kType, 9)).value());
  }
  EXPECT_THAT(SharingNative::calls,
              ElementsAre("create 5", "signal 6", "wait 7", "raise 8", "destroy", "import 9", "destroy"));
}

TEST_F(QueueExternalTest, AFailedStreamSignalsNothing) {
  const std::unique_ptr<SharingDevice::Stream> stream(device.create_stream({sizeof(bp_stream_desc), 0}).value());
  const std::unique_ptr<SharingDevice::Semaphore> semaphore(device.create_semaphore(kType, 0).value());
  ManualNative::enqueue_result = {BP_EXECUTION_FAILED, "a planted failure"};
  EXPECT_EQ(device.wait(*stream, *semaphore, 1).code(), BP_EXECUTION_FAILED);
  ManualNative::enqueue_result = {};
  const Status failed = device.signal(stream.get(), *semaphore, 1);
  EXPECT_EQ(failed.code(), BP_EXECUTION_FAILED);
  EXPECT_THAT(failed.message(), HasSubstr("a planted failure"));
  EXPECT_THAT(SharingNative::calls, ElementsAre("create 0", "wait 1"));
  EXPECT_EQ(device.wait(*stream, 0).code(), BP_TIMEOUT);
  ManualNative::queues[0]->run();  // the destructor of the stream waits for the queue
}

TEST_F(QueueExternalTest, ALostDeviceSharesNothing) {
  const std::unique_ptr<SharingDevice::Buffer> own(device.create_external(desc(48), kType).value());
  const std::unique_ptr<SharingDevice::Semaphore> semaphore(device.create_semaphore(kType, 0).value());
  SharingNative::condition = {BP_DEVICE_LOST, "a planted loss"};
  uint32_t kind = 0;
  EXPECT_EQ(device.create_external(desc(48), kType).status().code(), BP_DEVICE_LOST);
  EXPECT_EQ(device.export_memory(*own, kType).status().code(), BP_DEVICE_LOST);
  EXPECT_EQ(device.import_external(external_handle(kType, 1), kind).status().code(), BP_DEVICE_LOST);
  EXPECT_EQ(device.create_semaphore(kType, 0).status().code(), BP_DEVICE_LOST);
  EXPECT_EQ(device.export_semaphore(*semaphore, kType).status().code(), BP_DEVICE_LOST);
  EXPECT_EQ(device.import_semaphore(external_handle(kType, 1)).status().code(), BP_DEVICE_LOST);
  EXPECT_EQ(device.signal(nullptr, *semaphore, 1).code(), BP_DEVICE_LOST);
}

}  // namespace
}  // namespace backplane::kit::test
