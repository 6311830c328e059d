// SPDX-License-Identifier: Apache-2.0
// Tests contexts, memory, imports, events, losses and forks on the test driver, which ends the process
// if the plugin violates a rule of the API.
#include "gpu_host/device.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "runtime/architectures.hpp"
#include "runtime/stack.hpp"

namespace backplane::cuda::test {

namespace {

using gpu_host::Mark;
using gpu_host::OpenedDevice;
using gpu_host::Queue;
using Owner = gpu_host::AddressKind::Owner;
using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kBytes = 1u << 16;

TEST(Architectures, MachineCodeRunsOnLaterMinorVersions) {
  EXPECT_TRUE(can_run("sm_80", 8, 0));
  EXPECT_TRUE(can_run("sm_80", 8, 9));
  EXPECT_FALSE(can_run("sm_86", 8, 0));
  EXPECT_FALSE(can_run("sm_80", 9, 0));
  EXPECT_TRUE(can_run("sm_80,sm_100", 10, 3));
}

TEST(Architectures, PtxRunsOnAllLaterDevices) {
  EXPECT_TRUE(can_run("compute_90", 12, 0));
  EXPECT_FALSE(can_run("compute_90", 8, 9));
  EXPECT_TRUE(can_run("sm_80,compute_90", 12, 1));
}

TEST(Architectures, ASuffixMeansOneArchitecture) {
  EXPECT_TRUE(can_run("sm_90a", 9, 0));
  EXPECT_FALSE(can_run("sm_100a", 10, 3));
  EXPECT_FALSE(can_run("compute_90a", 10, 0));
}

TEST(Architectures, WordsThatAreNoneServeNoDevice) {
  for (const char* words : {"", "sm", "sm_", "sm_x", ","}) EXPECT_FALSE(can_run(words, 8, 0)) << words;
}

TEST(Results, AMessageNamesTheCallTheCodeAndTheRemedy) {
  Api api;
  api.cuGetErrorName = [](CUresult, const char** out) {
    *out = "CUDA_ERROR_OUT_OF_MEMORY";
    return CUDA_SUCCESS;
  };
  const kit::Status status = api.status_of(CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc");
  EXPECT_EQ(status.code(), BP_OUT_OF_MEMORY);
  EXPECT_EQ(status.vendor_code(), 2);
  EXPECT_EQ(status.message(),
            "cuda: cuMemAlloc returned 2, CUDA_ERROR_OUT_OF_MEMORY; free memory of the device and try again");
}

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    auto count = platform().count();
    if (!count.ok()) GTEST_SKIP() << count.status().message();
    ASSERT_GE(count.value(), std::size(devices));
    for (uint32_t i = 0; i < std::size(devices); ++i) {
      auto opened = platform().open(i);
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      devices[i] = opened.value();
    }
    cu = Api::load().value();
  }

  const gpu_host::Context& context(int i = 0) const { return *devices[i]->context; }
  std::unique_ptr<Queue> create_queue(int i = 0) const {
    auto made = Queue::create(context(i), devices[i]->kernels, devices[i]->events, 0);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made.value());
  }
  simt::Buffer* allocate(uint32_t kind) const {
    const bp_buffer_desc desc{sizeof(desc), kind, kBytes, 256};
    auto made = context().allocate(desc);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.value();
  }
  static bp_import_desc import_of(const void* address, uint64_t bytes, uint32_t type = BP_IMPORT_HOST) {
    return {sizeof(bp_import_desc), type, reinterpret_cast<uint64_t>(address), bytes};
  }
  kit::Status import(const bp_import_desc& desc, simt::Buffer*& out, int i = 0) const {
    uint32_t kind = 0;
    auto made = context(i).import_memory(desc, kind);
    out = made.value();
    return made.status();
  }
  Owner owner_of(const void* address) const {
    const gpu_host::Scope scope(context());
    return context().stack().kind_of(static_cast<const std::byte*>(address)).owner;
  }
  void expect_passes(const Mark& mark) const {
    const gpu_host::Scope scope(context());
    kit::Status status;
    do {
      status = context().stack().query(mark->event);
    } while (status.code() == BP_TIMEOUT);
    EXPECT_TRUE(status.ok()) << status.message();
  }

  OpenedDevice* devices[3] = {};
  const Api* cu = nullptr;
};

TEST_F(CudaDevice, TheContextOfTheCallerStays) {
  const auto own = static_cast<CUcontext>(context(1).handle());
  ASSERT_EQ(cu->cuCtxPushCurrent(own), CUDA_SUCCESS);
  for (const uint32_t kind : {BP_MEMORY_DEVICE, BP_MEMORY_HOST, BP_MEMORY_SHARED}) context().free(allocate(kind));
  { const auto queue = create_queue(); }
  const bp_buffer_desc absurd{sizeof(absurd), BP_MEMORY_DEVICE, uint64_t{1} << 60, 256};
  EXPECT_EQ(context().allocate(absurd).status().code(), BP_OUT_OF_MEMORY);
  CUcontext current = nullptr;
  ASSERT_EQ(cu->cuCtxPopCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, own);
}

TEST_F(CudaDevice, EventsAreReused) {
  const auto queue = create_queue();
  std::set<gpu_host::Handle> seen;
  for (int i = 0; i < 300; ++i) {
    auto made = queue->mark(false);
    ASSERT_TRUE(made.ok()) << made.status().message();
    seen.insert(made.value()->event);
    expect_passes(made.value());
  }
  EXPECT_LE(seen.size(), 2u);
}

TEST_F(CudaDevice, ACopyMovesBytesBetweenKindsOfMemory) {
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

TEST_F(CudaDevice, PagesAreRegisteredOnceForAllDevices) {
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

TEST_F(CudaDevice, MemoryOfAnotherLibraryIsImportedAsItIs) {
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

TEST_F(CudaDevice, AnUnknownKernelIsNamed) {
  const auto ignore = [](const std::string&) {};
  for (const simt::KernelName& name : {simt::KernelName{"copy_32", "nothing"}, {"nothing_32", "copy_rows"}}) {
    const kit::Status status = devices[0]->kernels.get(name, ignore).status();
    EXPECT_EQ(status.code(), BP_INTERNAL);
    EXPECT_THAT(status.message(), HasSubstr("nothing"));
  }
}

TEST_F(CudaDevice, AForkedChildReceivesAFailure) {
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

// This test makes device 2 unusable, so no other test uses it.
TEST_F(CudaDevice, ALossIsRememberedAndOtherDevicesContinue) {
  EXPECT_TRUE(context(2).health().ok());
  const kit::Status loss = cu->status_of(CUDA_ERROR_ILLEGAL_ADDRESS, "cuEventQuery");
  EXPECT_EQ(context(2).check(loss).code(), BP_DEVICE_LOST);
  EXPECT_THAT(context(2).health().message(), AllOf(HasSubstr("cuEventQuery"), HasSubstr("restart the process")));
  EXPECT_TRUE(context(0).health().ok());
  context(0).free(allocate(BP_MEMORY_DEVICE));
}

}  // namespace

}  // namespace backplane::cuda::test
