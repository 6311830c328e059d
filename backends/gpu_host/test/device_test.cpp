// SPDX-License-Identifier: Apache-2.0
// Tests memory, imports, events, losses and forks on the test driver, which ends the process if the plugin violates a
// rule of the API.
#include "gpu_host/test/device_test.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

namespace backplane::gpu_host::test {

using Owner = AddressKind::Owner;
using testing::AllOf;
using testing::HasSubstr;

void DeviceTest::SetUp() {
  auto count = platform().count();
  if (!count.ok()) GTEST_SKIP() << count.status().message();
  ASSERT_GE(count.value(), std::size(devices));
  for (uint32_t i = 0; i < std::size(devices); ++i) {
    auto opened = platform().open(i);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    devices[i] = opened.value();
  }
}

std::unique_ptr<Queue> DeviceTest::create_queue(int i) const {
  auto made = Queue::create(context(i), devices[i]->kernels, devices[i]->events, devices[i]->products, 0);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made.value());
}

simt::Buffer* DeviceTest::allocate(uint32_t kind, uint64_t bytes) const {
  const bp_buffer_desc desc{sizeof(desc), kind, bytes, 256};
  auto made = context().allocate(desc);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.value();
}

uint64_t DeviceTest::free_bytes() const {
  bp_memory_info info{};
  EXPECT_TRUE(context().memory_info(BP_MEMORY_DEVICE, info).ok());
  return info.free_bytes;
}

uint64_t DeviceTest::unreserved_bytes() const {
  const Scope scope(context());
  uint64_t out = 0, total = 0;
  EXPECT_TRUE(context().stack().memory_info(out, total).ok());
  return out;
}

bp_import_desc DeviceTest::import_of(const void* address, uint64_t bytes, uint32_t type) {
  return {sizeof(bp_import_desc), type, reinterpret_cast<uint64_t>(address), bytes};
}

kit::Status DeviceTest::import(const bp_import_desc& desc, simt::Buffer*& out, int i) const {
  uint32_t kind = 0;
  auto made = context(i).import_memory(desc, kind);
  out = made.value();
  return made.status();
}

Owner DeviceTest::owner_of(const void* address) const {
  const Scope scope(context());
  return context().stack().kind_of(static_cast<const std::byte*>(address)).owner;
}

void DeviceTest::expect_passes(const Mark& mark) const {
  const Scope scope(context());
  kit::Status status;
  do {
    status = context().stack().query(mark->event);
  } while (status.code() == BP_TIMEOUT);
  EXPECT_TRUE(status.ok()) << status.message();
}

void DeviceTest::use_device() const {
  for (const uint32_t kind : {BP_MEMORY_DEVICE, BP_MEMORY_HOST, BP_MEMORY_SHARED}) context().free(allocate(kind));
  expect_passes(create_queue()->mark(false).value());
  const bp_buffer_desc absurd{sizeof(absurd), BP_MEMORY_HOST, uint64_t{1} << 60, 256};
  EXPECT_EQ(context().allocate(absurd).status().code(), BP_OUT_OF_MEMORY);
}

TEST_F(DeviceTest, EventsAreReused) {
  const auto queue = create_queue();
  std::set<Handle> seen;
  for (int i = 0; i < 300; ++i) {
    auto made = queue->mark(false);
    ASSERT_TRUE(made.ok()) << made.status().message();
    seen.insert(made.value()->event);
    expect_passes(made.value());
  }
  EXPECT_LE(seen.size(), 2u);
}

TEST_F(DeviceTest, ACopyMovesBytesBetweenKindsOfMemory) {
  const auto queue = create_queue();
  simt::Buffer *const host = allocate(BP_MEMORY_HOST), *const device = allocate(BP_MEMORY_DEVICE),
                      *const shared = allocate(BP_MEMORY_SHARED);
  std::memset(host->address, 0x5A, kBytes);
  ASSERT_TRUE(queue->copy(device->address, host->address, kBytes).ok());
  ASSERT_TRUE(queue->copy(shared->address, device->address, kBytes).ok());
  expect_passes(queue->mark(false).value());
  EXPECT_EQ(std::memcmp(shared->address, host->address, kBytes), 0);
  for (simt::Buffer* buffer : {host, device, shared}) context().free(buffer);
}

TEST_F(DeviceTest, ThePoolKeepsFreedMemoryAndItCountsAsFree) {
  const uint64_t before = free_bytes();
  simt::Buffer* const first = allocate(BP_MEMORY_DEVICE);
  std::byte* const address = first->address;
  EXPECT_EQ(free_bytes(), before - kBytes);
  context().free(first);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_LE(unreserved_bytes(), before - kBytes);
  simt::Buffer* const second = allocate(BP_MEMORY_DEVICE);
  EXPECT_EQ(second->address, address);
  EXPECT_EQ(free_bytes(), before - kBytes);
  EXPECT_EQ(owner_of(second->address), Owner::kDevice);
  context().free(second);
}

TEST_F(DeviceTest, ThePoolKeepsAtMostItsThreshold) {
  constexpr uint64_t kMost = 64u << 20;
  const uint64_t before = free_bytes();
  context().free(allocate(BP_MEMORY_DEVICE, kMost + 256));
  EXPECT_GT(unreserved_bytes(), before - kMost);
  EXPECT_EQ(free_bytes(), before);
}

// Without the trim, each of these allocations would fail, or the pool would keep memory that nothing uses.
TEST_F(DeviceTest, AnAllocationThatFailsTrimsThePool) {
  context().free(allocate(BP_MEMORY_DEVICE));
  ::setenv("TEST_DRIVER_BYTES", std::to_string(kBytes * 3 / 2).c_str(), 1);
  context().free(allocate(BP_MEMORY_DEVICE, kBytes + 256));
  ::unsetenv("TEST_DRIVER_BYTES");
  const uint64_t before = free_bytes();
  EXPECT_LT(unreserved_bytes(), before);
  const bp_buffer_desc absurd{sizeof(absurd), BP_MEMORY_HOST, uint64_t{1} << 60, 256};
  EXPECT_EQ(context().allocate(absurd).status().code(), BP_OUT_OF_MEMORY);
  EXPECT_EQ(unreserved_bytes(), before);
}

// The memory of the context's pool is free again after the end of the context.
TEST_F(DeviceTest, AContextDestroysItsPool) {
  const uint64_t before = unreserved_bytes();
  Registrations registrations;
  auto own = Context::create(context().stack(), context().device(), registrations);
  ASSERT_TRUE(own.ok()) << own.status().message();
  auto made = own.value()->allocate({sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, kBytes, 256});
  ASSERT_TRUE(made.ok()) << made.status().message();
  own.value()->free(made.value());
  EXPECT_EQ(unreserved_bytes(), before - kBytes);
  own.value().reset();
  EXPECT_EQ(unreserved_bytes(), before);
}

TEST_F(DeviceTest, TheKindsOfMemoryAreKnown) {
  const std::pair<uint32_t, Owner> kinds[] = {
      {BP_MEMORY_DEVICE, Owner::kDevice}, {BP_MEMORY_HOST, Owner::kHost}, {BP_MEMORY_SHARED, Owner::kShared}};
  for (const auto& [kind, owner] : kinds) {
    simt::Buffer* const buffer = allocate(kind);
    EXPECT_EQ(owner_of(buffer->address), owner);
    context().free(buffer);
  }
  EXPECT_EQ(owner_of(&kinds), Owner::kNone);
}

TEST_F(DeviceTest, PagesAreRegisteredOnceForAllDevices) {
  void* const pages = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  simt::Buffer *first = nullptr, *second = nullptr, *other = nullptr, *third = nullptr;
  ASSERT_TRUE(import(import_of(pages, kBytes), first).ok());
  ASSERT_TRUE(import(import_of(static_cast<char*>(pages) + 5000, 100), second).ok());
  ASSERT_TRUE(import(import_of(pages, kBytes), other, 1).ok());
  context().free(first);
  EXPECT_EQ(owner_of(pages), Owner::kHost);
  context().free(second);
  context(1).free(other);
  EXPECT_EQ(owner_of(pages), Owner::kNone);
  ASSERT_TRUE(import(import_of(pages, kBytes), third).ok());
  context().free(third);
  ::munmap(pages, kBytes);
}

TEST_F(DeviceTest, MemoryOfAnotherLibraryIsImportedAsItIs) {
  simt::Buffer *const pinned = allocate(BP_MEMORY_HOST), *const device = allocate(BP_MEMORY_DEVICE);
  simt::Buffer* imported = nullptr;
  ASSERT_TRUE(import(import_of(pinned->address, kBytes), imported, 1).ok());
  context(1).free(imported);
  ASSERT_TRUE(import(import_of(device->address, kBytes, BP_IMPORT_DEVICE), imported).ok());
  context().free(imported);
  EXPECT_THAT(import(import_of(device->address, kBytes, BP_IMPORT_DEVICE), imported, 1).message(),
              HasSubstr("is not in the memory of"));
  EXPECT_EQ(import(import_of(pinned->address, kBytes, BP_IMPORT_DEVICE), imported).code(), BP_UNSUPPORTED);
  context().free(device);
  context().free(pinned);
}

TEST_F(DeviceTest, AnUnknownKernelIsNamed) {
  const auto ignore = [](const std::string&) {};
  for (const simt::KernelName& name : {simt::KernelName{"copy_32", "nothing"}, {"nothing_32", "copy_rows"}}) {
    const kit::Status status = devices[0]->kernels.get(name, ignore).status();
    EXPECT_EQ(status.code(), BP_INTERNAL);
    EXPECT_THAT(status.message(), HasSubstr("nothing"));
  }
}

TEST_F(DeviceTest, AForkedChildReceivesAFailure) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bp_buffer_desc desc{sizeof(desc), BP_MEMORY_DEVICE, kBytes, 256};
    const bool lost = context().allocate(desc).status().code() == BP_DEVICE_LOST &&
                      context().health().code() == BP_DEVICE_LOST &&
                      platform().open(0).status().code() == BP_UNAVAILABLE;
    ::_exit(lost ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  context().free(allocate(BP_MEMORY_DEVICE));
}

// Only this test uses device 2, because device 2 is lost afterwards.
TEST_F(DeviceTest, ALossIsRememberedAndOtherDevicesContinue) {
  EXPECT_TRUE(context(2).health().ok());
  const kit::Status loss(BP_DEVICE_LOST, "a kernel failed; restart the process");
  EXPECT_EQ(context(2).check(loss).code(), BP_DEVICE_LOST);
  EXPECT_THAT(context(2).health().message(), AllOf(HasSubstr("a kernel failed"), HasSubstr("restart the process")));
  EXPECT_TRUE(context(0).health().ok());
  context(0).free(allocate(BP_MEMORY_DEVICE));
}

}  // namespace backplane::gpu_host::test
