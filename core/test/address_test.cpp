// SPDX-License-Identifier: Apache-2.0
// Tests the addresses of buffers, and the search for a buffer by address.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "memory_fixture.hpp"

namespace backplane::core::test {
namespace {

class AddressTest : public MemoryTest {
 protected:
  struct Found {
    bph_device* device = nullptr;
    bph_buffer* buffer = nullptr;
    uint64_t offset = 0;
  };
  static Found find(uint64_t address) {
    Found found;
    EXPECT_OK(bph_buffer_from_address(address, &found.device, &found.buffer, &found.offset, &error));
    return found;
  }
  static void expect_nothing(uint64_t address) {
    Found found{reinterpret_cast<bph_device*>(1), reinterpret_cast<bph_buffer*>(1), 1};
    EXPECT_FAILS(bph_buffer_from_address(address, &found.device, &found.buffer, &found.offset, &error),
                 BP_INVALID_ARGUMENT, "lies in no living buffer");
    EXPECT_EQ(found.device, nullptr);
    EXPECT_EQ(found.buffer, nullptr);
    EXPECT_EQ(found.offset, 0u);
  }
  void expect_found(bph_buffer* buffer) {
    const bph_buffer_info about = info(buffer);
    for (const uint64_t offset : {uint64_t{0}, about.bytes / 2, about.bytes - 1}) {
      const Found found = find(about.address + offset);
      EXPECT_EQ(found.buffer, buffer);
      EXPECT_EQ(found.device, device);
      EXPECT_EQ(found.offset, offset);
    }
  }
  static char* mapped(bph_buffer* buffer) {
    void* address = nullptr;
    EXPECT_EQ(bph_buffer_map(buffer, &address, nullptr), BP_OK);
    return static_cast<char*>(address);
  }
};

// Returns true if the address is in mapped pages that are not readable. Core reserves such pages
// for the addresses that represent device memory.
bool is_reserved(uint64_t address) {
  const long page = sysconf(_SC_PAGESIZE);
  auto* const begin = reinterpret_cast<void*>(address & ~(static_cast<uint64_t>(page) - 1));
  unsigned char resident = 0;
  // mincore fails for a page that is not mapped.
  if (mincore(begin, static_cast<size_t>(page), &resident) != 0) return false;
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const ssize_t written = write(pipe_ends[1], reinterpret_cast<const void*>(address), 1);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  return written < 0;
}

TEST_F(AddressTest, DeviceMemoryWithoutAddressesGetsReservedNumbers) {
  FakeOptions options;
  options.addresses = false;
  open(options);
  bph_stream* one = stream();
  std::vector<bph_buffer*> buffers;
  for (const uint64_t bytes : {1u, 512u, 5000u, 3u << 20, 30u << 20}) buffers.push_back(create(bytes, one));
  bph_buffer_desc raw = desc_of(700, one);
  raw.flags = BPH_BUFFER_RAW;
  buffers.push_back(create(raw));
  for (size_t i = 0; i < buffers.size(); ++i) {
    const bph_buffer_info about = info(buffers[i]);
    EXPECT_NE(about.address, 0u);
    EXPECT_EQ(about.flags, 0u);
    EXPECT_EQ(about.reserved, 0u);
    EXPECT_TRUE(is_reserved(about.address));
    EXPECT_EQ(info(buffers[i]).address, about.address) << "as long as it lives";
    expect_found(buffers[i]);
    for (size_t other = 0; other < i; ++other) {
      const bph_buffer_info before = info(buffers[other]);
      EXPECT_TRUE(about.address >= before.address + before.bytes || before.address >= about.address + about.bytes);
    }
  }
  expect_nothing(info(buffers[0]).address + 1);  // outside the buffer, but inside its block
  const uint64_t ended = info(buffers[2]).address;
  bph_buffer_release(buffers[2]);
  expect_nothing(ended);
  buffers[2] = create(5000, one);
  EXPECT_EQ(find(ended).buffer, buffers[2]) << "the same memory, another buffer";
  std::vector<uint64_t> addresses;
  for (bph_buffer* buffer : buffers) {
    addresses.push_back(info(buffer).address);
    bph_buffer_release(buffer);
  }
  trim();
  for (const uint64_t address : addresses) {
    expect_nothing(address);
    EXPECT_FALSE(is_reserved(address)) << "given back with the memory";
  }
}

TEST_F(AddressTest, AddressesOfTheProcessAreTakenAsTheyAre) {
  FakeOptions options;
  options.capabilities |= BP_CAP_PROCESS_ADDRESSES;
  open(options);
  bph_stream* one = stream();
  bph_buffer* a = create(1000, one);
  bph_buffer* b = create(1000, one);
  for (bph_buffer* each : {a, b}) {
    EXPECT_EQ(info(each).flags, BPH_BUFFER_ADDRESS_NATIVE);
    expect_found(each);
  }
  EXPECT_EQ(info(b).address - info(a).address, place(b).second - place(a).second);
  EXPECT_EQ(fake->calls("buffer_address"), 1u) << "once for memory of the plugin's";
}

// Core replaces the address that a device reports if the process or another device uses the same
// address.
TEST_F(AddressTest, AddressesThatMeetOthersAreReplaced) {
  static std::array<char, 1 << 16> host_memory;
  FakeOptions options;
  options.address = reinterpret_cast<uint64_t>(host_memory.data());
  open(options);
  bph_stream* one = stream();
  bph_buffer* a = create(1000, one);
  EXPECT_EQ(info(a).flags, 0u);
  EXPECT_TRUE(is_reserved(info(a).address));
  expect_found(a);
  expect_nothing(options.address);
}

TEST_F(AddressTest, AnAddressOutsideTheProcessIsKeptFreeForTheDevice) {
  void* const pages = mmap(nullptr, 64u << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  munmap(pages, 64u << 20);
  FakeOptions options;
  options.address = reinterpret_cast<uint64_t>(pages) + 256;
  open(options);
  bph_buffer* a = create(1u << 20);
  const bph_buffer_info about = info(a);
  EXPECT_EQ(about.flags, BPH_BUFFER_ADDRESS_NATIVE);
  EXPECT_EQ(about.address, options.address);
  EXPECT_TRUE(is_reserved(about.address));
  // Opens a second device, whose memory has the same address as the first device's memory.
  {
    OpenDevice other(options);
    bph_buffer* b = other.create(1u << 20);
    EXPECT_EQ(info(b).flags, 0u);
    EXPECT_NE(info(b).address, about.address);
    EXPECT_EQ(find(info(b).address).device, other.device);
    EXPECT_EQ(find(about.address).device, device);
  }
  bph_buffer_release(a);
  trim();
  EXPECT_FALSE(is_reserved(options.address));
}

TEST_F(AddressTest, APluginThatFailsToSayIsNotAsked) {
  open();
  fake->fail("buffer_address", BP_INTERNAL);
  bph_buffer* a = create(100);
  EXPECT_EQ(info(a).flags, 0u);
  EXPECT_TRUE(is_reserved(info(a).address));
}

TEST_F(AddressTest, MappedMemoryIsWhereItIsMapped) {
  for (const bool addresses : {false, true}) {
    FakeOptions options;
    options.addresses = addresses;
    open(options);
    bph_stream* one = stream();
    for (const uint32_t kind : {BP_MEMORY_HOST, BP_MEMORY_SHARED}) {
      bph_buffer* first = create(600, one, kind);
      bph_buffer* second = create(600, one, kind);
      char* const at = mapped(second);
      EXPECT_EQ(find(reinterpret_cast<uint64_t>(at) + 5).buffer, second) << "after a map alone";
      EXPECT_EQ(find(reinterpret_cast<uint64_t>(at) + 5).offset, 5u);
      EXPECT_EQ(info(second).address, reinterpret_cast<uint64_t>(at));
      EXPECT_EQ(info(second).flags, addresses ? BPH_BUFFER_ADDRESS_NATIVE : 0u);
      expect_found(first);
    }
    close();
  }
}

TEST_F(AddressTest, ImportedMemoryIsWhereItIs) {
  open();
  alignas(64) char memory[4096];
  const auto at = reinterpret_cast<uint64_t>(&memory[0]);
  bph_import_desc desc = import_of(memory, sizeof(memory));
  bph_buffer* imported = nullptr;
  ASSERT_OK(bph_buffer_import(device, &desc, &imported, &error));
  EXPECT_EQ(find(at + 4095).buffer, imported) << "without a question before";
  EXPECT_EQ(info(imported).address, at);
  // If memory is imported twice, by one device or by two, a lookup finds one of the imports.
  desc = import_of(memory + 1024, 1024);
  bph_buffer* part = nullptr;
  ASSERT_OK(bph_buffer_import(device, &desc, &part, &error));
  EXPECT_EQ(info(part).address, at + 1024);
  EXPECT_EQ(find(at + 1500).offset, 1500u);
  bph_buffer_release(imported);
  EXPECT_EQ(find(at + 1500).buffer, part);
  EXPECT_EQ(find(at + 1500).offset, 476u);
  expect_nothing(at);
  expect_nothing(at + 2048);
  bph_buffer_release(part);
  expect_nothing(at + 1500);
  // After a failed import, no lookup finds the memory.
  fake->fail("import_memory", BP_UNSUPPORTED);
  EXPECT_FAILS(bph_buffer_import(device, &desc, &part, &error), BP_UNSUPPORTED, "import_memory");
  expect_nothing(at + 1500);
}

TEST_F(AddressTest, NothingIsAtTheseAddresses) {
  open();
  bph_buffer* empty = create(0);
  EXPECT_EQ(info(empty).address, 0u);
  EXPECT_EQ(info(empty).flags, 0u);
  for (const uint64_t address :
       {uint64_t{0}, uint64_t{1}, UINT64_MAX, reinterpret_cast<uint64_t>(&empty), reinterpret_cast<uint64_t>(empty)}) {
    expect_nothing(address);
  }
  Found found;
  EXPECT_FAILS(bph_buffer_from_address(1, nullptr, &found.buffer, &found.offset, &error), BP_INVALID_ARGUMENT,
               "out is null");
  EXPECT_FAILS(bph_buffer_from_address(1, &found.device, nullptr, &found.offset, &error), BP_INVALID_ARGUMENT,
               "out is null");
  EXPECT_FAILS(bph_buffer_from_address(1, &found.device, &found.buffer, nullptr, &error), BP_INVALID_ARGUMENT,
               "out is null");
  bph_buffer_info about = {};
  about.struct_size = BPH_BUFFER_INFO_MIN_SIZE - 8;
  EXPECT_FAILS(bph_buffer_get_info(empty, &about, &error), BP_INVALID_ARGUMENT, "less than its minimum of 48");
}

TEST_F(AddressTest, ADeviceHandleThatWasReleasedIsNull) {
  open();
  bph_buffer* buffer = create(100);
  const uint64_t address = info(buffer).address;
  bph_device_release(device);
  EXPECT_EQ(find(address).buffer, buffer);
  EXPECT_EQ(find(address).device, nullptr);
  bph_buffer_release(buffer);
  EXPECT_TRUE(fake->is_closed());
  expect_nothing(address);
  device = nullptr;
}

TEST_F(AddressTest, AChildAfterForkKnowsNone) {
  bph_registry_desc quiet = {};
  quiet.struct_size = sizeof(quiet);
  quiet.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
  Owned<bph_registry> registry;  // the first registry installs the fork handlers
  ASSERT_OK(bph_registry_create(&quiet, registry.out(), &error));
  open();
  bph_buffer* buffer = create(100);
  const uint64_t address = info(buffer).address;
  const pid_t child = fork();
  if (child == 0) {
    Found found;
    _exit(bph_buffer_from_address(address, &found.device, &found.buffer, &found.offset, nullptr) == BP_INVALID_ARGUMENT
              ? 0
              : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(AddressTest, ThreadsLookUpWhileOthersAllocate) {
  FakeOptions options;
  options.capabilities |= BP_CAP_PROCESS_ADDRESSES;
  open(options);
  bph_buffer* kept = create(2000);
  const uint64_t address = info(kept).address;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        bph_buffer* buffer = create(static_cast<uint64_t>(100 + i));
        const uint64_t own = info(buffer).address;
        EXPECT_EQ(find(own).buffer, buffer);
        bph_buffer_release(buffer);
        if (i % 50 == 0) trim();
      }
      done = true;
    });
  }
  threads.emplace_back([&] {
    while (!done) {
      EXPECT_EQ(find(address + 7).buffer, kept);
      Found found;  // other threads may allocate and free this memory during the lookup
      (void)bph_buffer_from_address(address + 4096, &found.device, &found.buffer, &found.offset, nullptr);
    }
  });
  for (std::thread& thread : threads) thread.join();
}

// The framework's allocator returns a part of a raw buffer, so a lookup of an address in that part
// finds the raw buffer.
TEST_F(AddressTest, MemoryOfTheFrameworksAllocatorIsPartOfItsBuffer) {
  struct Framework {
    bph_buffer* whole = nullptr;
    static bp_status allocate(void* context, bph_device*, uint32_t, uint64_t, uint64_t, bph_stream*, bph_buffer** out,
                              uint64_t* out_offset, bp_error*) {
      *out = static_cast<Framework*>(context)->whole;
      *out_offset = 512;
      return BP_OK;
    }
    static void release(void*, bph_buffer*, uint64_t, uint64_t, bph_stream*) {}
  } framework;
  const bph_allocator allocator = {sizeof(allocator), 0, &framework, Framework::allocate, Framework::release};
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.allocator = &allocator;
  open({}, &desc);
  bph_buffer_desc raw = desc_of(4096);
  raw.flags = BPH_BUFFER_RAW;
  const Owned<bph_buffer> whole(create(raw));
  framework.whole = whole;
  const Owned<bph_buffer> part(create(100));
  EXPECT_EQ(info(part).address, info(framework.whole).address + 512);
  EXPECT_EQ(find(info(part).address).buffer, framework.whole);
}

// Two threads request the first address of one segment. Each would find no address yet, and the second would overlap
// the first.
TEST_F(AddressTest, ThreadsThatAskForTheFirstAddressGetTheNativeOne) {
  FakeOptions options;
  options.capabilities |= BP_CAP_PROCESS_ADDRESSES;
  open(options);
  bph_stream* one = stream();
  bph_buffer* buffers[2] = {create(512, one), create(512, one)};
  fake->hook = [](std::string_view slot) {
    if (slot == "buffer_address") std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  bph_buffer_info found[2] = {};
  std::thread other([&] { found[1] = info(buffers[1]); });
  found[0] = info(buffers[0]);
  other.join();
  for (const bph_buffer_info& about : found) EXPECT_EQ(about.flags, BPH_BUFFER_ADDRESS_NATIVE);
  EXPECT_EQ(fake->calls("buffer_address"), 1u);
}

}  // namespace
}  // namespace backplane::core::test
