// SPDX-License-Identifier: Apache-2.0
// Tests the handles of "bp.native" on the test driver, which ends the process if the plugin violates a rule of the
// API, for example if it destroys an object of the caller. Only barriers and events order the driver's commands.
#include <gmock/gmock.h>

#include <array>

#include "runtime/device.hpp"

namespace backplane::level_zero::test {

namespace {

using testing::HasSubstr;

constexpr uint64_t kBytes = 1u << 16;

class LevelZeroNative : public testing::Test {
 protected:
  void SetUp() override {
    auto count = Native::count();
    if (!count.ok()) GTEST_SKIP() << count.status().message();
    auto opened = Native::open(0, kit::Host(nullptr));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    native = std::move(opened.value());
    ze = Api::load().value();
    device = reinterpret_cast<ze_device_handle_t>(native->device_handle(1).value().value);
    context = reinterpret_cast<ze_context_handle_t>(native->device_handle(2).value().value);
  }
  void TearDown() override { ::unsetenv(kListsSetting); }

  ze_command_queue_desc_t queue_desc() const {
    ze_command_queue_desc_t desc{};
    desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    desc.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
    return desc;
  }
  static bp_native_handle handle_of(const char* type, const void* object) {
    return kit::native_handle(type, reinterpret_cast<uintptr_t>(object));
  }
  static bp_native_handle handle_of_memory(const void* address, uint64_t offset = 0, uint64_t bytes = kBytes) {
    bp_native_handle out =
        kit::native_handle("level_zero.address", reinterpret_cast<uintptr_t>(address), BP_NATIVE_ADDRESS);
    out.offset = offset;
    out.bytes = bytes;
    return out;
  }
  simt::Buffer* allocate(uint32_t kind) const {
    auto made = native->allocate({sizeof(bp_buffer_desc), kind, kBytes, 64});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.value();
  }
  void expect_refusal(const bp_native_handle& handle, bp_status code, const char* reason) const {
    uint32_t kind = 0;
    const kit::Status status =
        handle.bytes == 0 ? native->wrap_queue(handle).status() : native->wrap_memory(handle, kind).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(reason));
  }
  // Copies through `queue`, through other code's `append(to, from)`, and through `queue` again. Without barriers
  // before and after the commands of the queue, the copies overlap.
  template <class Append>
  void expect_order(Queue& queue, const Append& append) const {
    simt::Buffer* buffers[4] = {};
    for (simt::Buffer*& each : buffers) each = allocate(BP_MEMORY_HOST);
    for (int round = 0; round < 20; ++round) {
      std::memset(buffers[0]->address, round + 1, kBytes);
      ASSERT_TRUE(native->copy(queue, buffers[1], 0, buffers[0], 0, kBytes).ok());
      append(buffers[2]->address, buffers[1]->address);
      ASSERT_TRUE(native->copy(queue, buffers[3], 0, buffers[2], 0, kBytes).ok());
      auto mark = native->mark(queue, false);
      ASSERT_TRUE(mark.ok()) << mark.status().message();
      EXPECT_EQ(kit::type_of(native->handle(mark.value()).value()), "level_zero.event");
      ASSERT_TRUE(native->wait(mark.value(), 10'000'000'000u).ok());
      ASSERT_EQ(std::memcmp(buffers[3]->address, buffers[0]->address, kBytes), 0) << "round " << round;
    }
    for (simt::Buffer* each : buffers) native->free(each);
  }

  std::unique_ptr<Native> native;
  const Api* ze = nullptr;
  ze_device_handle_t device = nullptr;
  ze_context_handle_t context = nullptr;
};

TEST_F(LevelZeroNative, AnImmediateListIsSharedAndNotDestroyed) {
  const ze_command_queue_desc_t desc = queue_desc();
  ze_command_list_handle_t list = nullptr;
  ASSERT_EQ(ze->zeCommandListCreateImmediate(context, device, &desc, &list), ZE_RESULT_SUCCESS);
  {
    auto wrapped = native->wrap_queue(handle_of("level_zero.immediate_list", list));
    ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
    EXPECT_EQ(native->handle(*wrapped.value()).value().value, reinterpret_cast<uintptr_t>(list));
    expect_order(*wrapped.value(), [&](void* to, const void* from) {
      ASSERT_EQ(ze->zeCommandListAppendMemoryCopy(list, to, from, kBytes, nullptr, 0, nullptr), ZE_RESULT_SUCCESS);
    });
  }
  EXPECT_EQ(ze->zeCommandListDestroy(list), ZE_RESULT_SUCCESS);
}

TEST_F(LevelZeroNative, ACommandQueueIsSharedAndNotDestroyed) {
  const ze_command_queue_desc_t desc = queue_desc();
  ze_command_queue_handle_t queue = nullptr;
  ASSERT_EQ(ze->zeCommandQueueCreate(context, device, &desc, &queue), ZE_RESULT_SUCCESS);
  std::vector<ze_command_list_handle_t> lists;
  {
    auto wrapped = native->wrap_queue(handle_of("level_zero.command_queue", queue));
    ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
    EXPECT_EQ(native->handle(*wrapped.value()).value().value, reinterpret_cast<uintptr_t>(queue));
    expect_order(*wrapped.value(), [&](void* to, const void* from) {
      ze_command_list_desc_t of_list{};
      of_list.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC;
      ze_command_list_handle_t list = nullptr;
      ASSERT_EQ(ze->zeCommandListCreate(context, device, &of_list, &list), ZE_RESULT_SUCCESS);
      ASSERT_EQ(ze->zeCommandListAppendMemoryCopy(list, to, from, kBytes, nullptr, 0, nullptr), ZE_RESULT_SUCCESS);
      ASSERT_EQ(ze->zeCommandListClose(list), ZE_RESULT_SUCCESS);
      ASSERT_EQ(ze->zeCommandQueueExecuteCommandLists(queue, 1, &list, nullptr), ZE_RESULT_SUCCESS);
      lists.push_back(list);
    });
  }
  for (ze_command_list_handle_t list : lists) EXPECT_EQ(ze->zeCommandListDestroy(list), ZE_RESULT_SUCCESS);
  EXPECT_EQ(ze->zeCommandQueueDestroy(queue), ZE_RESULT_SUCCESS);
}

TEST_F(LevelZeroNative, TheHandleOfAStreamDependsOnItsLists) {
  for (const char* lists : {"immediate", "regular"}) {
    ::setenv(kListsSetting, lists, 1);
    auto own = native->create_queue({sizeof(bp_stream_desc), 0});
    ASSERT_TRUE(own.ok()) << own.status().message();
    const bp_native_handle handle = native->handle(*own.value()).value();
    EXPECT_EQ(kit::type_of(handle),
              std::string(lists) == "regular" ? "level_zero.command_queue" : "level_zero.immediate_list");
    auto wrapped = native->wrap_queue(handle);
    ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
    expect_order(*own.value(), [&](void* to, const void* from) {
      simt::Buffer target, source;
      target.address = static_cast<std::byte*>(to);
      source.address = static_cast<std::byte*>(const_cast<void*>(from));
      ASSERT_TRUE(wrapped.value()->copy(target.address, source.address, kBytes).ok());
    });
  }
}

TEST_F(LevelZeroNative, QueuesThatAreNoneAreRefused) {
  expect_refusal(handle_of("level_zero.immediate_list", nullptr), BP_INVALID_ARGUMENT, "the value is 0");
  expect_refusal(handle_of("level_zero.event", context), BP_UNSUPPORTED, "level_zero.event");
  bp_native_handle address = handle_of("level_zero.command_queue", context);
  address.flags = BP_NATIVE_ADDRESS;
  expect_refusal(address, BP_UNSUPPORTED, "no address");
}

TEST_F(LevelZeroNative, MemoryOfEachKindIsWrappedAndNotFreed) {
  for (const uint32_t kind : {BP_MEMORY_DEVICE, BP_MEMORY_HOST, BP_MEMORY_SHARED}) {
    simt::Buffer* const own = allocate(kind);
    const bp_native_handle whole = native->handle(own).value();
    EXPECT_EQ(kit::type_of(whole), "level_zero.address");
    uint32_t given = UINT32_MAX;
    auto wrapped = native->wrap_memory(handle_of_memory(own->address, 4096, kBytes - 4096), given);
    ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
    EXPECT_EQ(given, kind);
    EXPECT_EQ(native->address(wrapped.value()), whole.value + 4096);
    native->free(wrapped.value());
    native->free(own);  // the test driver ends the process if the memory was freed before
  }
}

TEST_F(LevelZeroNative, MemoryThatTheDeviceCannotUseIsRefused) {
  simt::Buffer* const own = allocate(BP_MEMORY_DEVICE);
  const std::array<char, 64> ordinary{};
  expect_refusal(handle_of_memory(own->address, 4096), BP_INVALID_ARGUMENT, "exceed the allocation");
  expect_refusal(handle_of_memory(ordinary.data(), 0, 64), BP_INVALID_ARGUMENT, "in no memory of the context");
  expect_refusal(handle_of_memory(nullptr), BP_INVALID_ARGUMENT, "the address is 0");
  bp_native_handle number = handle_of_memory(own->address);
  number.flags = 0;
  expect_refusal(number, BP_UNSUPPORTED, "BP_NATIVE_ADDRESS");
  native->free(own);
}

// The handle of process memory has the type host.address, whether the memory was imported or wrapped.
TEST_F(LevelZeroNative, MemoryOfTheProcessIsWrappedIfKernelsCanAccessIt) {
  if (!native->imports()) GTEST_SKIP() << "kernels cannot access all memory of the process";
  std::array<char, 64> ordinary{};
  uint32_t kind = 0;
  bp_native_handle handle =
      kit::native_handle("host.address", reinterpret_cast<uintptr_t>(ordinary.data()), BP_NATIVE_ADDRESS);
  handle.bytes = ordinary.size();
  auto wrapped = native->wrap_memory(handle, kind);
  ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
  EXPECT_EQ(kind, BP_MEMORY_SHARED);
  EXPECT_EQ(kit::type_of(native->handle(wrapped.value()).value()), "host.address");
  native->free(wrapped.value());
}

}  // namespace

}  // namespace backplane::level_zero::test
