// SPDX-License-Identifier: Apache-2.0
// Test cases for buffer_address: constant and unique addresses, and imports of these addresses with bp.import.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

constexpr const char* kExtension = "BUFFER_ADDRESS";

void need_slot(Context& context) {
  if (context.device().slots().buffer_address == nullptr) context.not_claimed("the device has no buffer_address");
}

// Returns the device address of `buffer`, or 0 if the buffer has no address.
uint64_t address_of(Context& context, const Buffer& buffer) {
  Device& device = context.device();
  ErrorRecord error;
  uint64_t address = 0;
  const bp_status status = device->buffer_address(device.get(), buffer.get(), &address, &error);
  expect_status(status, error, "buffer_address", {BP_OK, BP_UNSUPPORTED});
  context.require((status == BP_OK) == (address != 0), "buffer_address returned {} and gave {:#x}", status_name(status),
                  address);
  return address;
}
uint64_t need_address(Context& context, const Buffer& buffer) {
  const uint64_t address = address_of(context, buffer);
  if (address == 0) context.not_claimed("buffers of this kind have no address");
  return address;
}

void is_constant(Context& context, uint32_t kind) {
  need_slot(context);
  need_kind(context, kind);
  Device& device = context.device();
  const Buffer buffer(device, 5000, kind);
  const uint64_t address = need_address(context, buffer);
  Stream stream(device);
  Buffer other(device, 5000);
  for (int i = 0; i < 8; ++i) {
    stream.copy(other.get(), 0, buffer.get(), 0, 5000);
    const Buffer passing(device, 5000, kind);
    context.require(address_of(context, buffer) == address, "buffer_address gave another address");
  }
  stream.wait();
  context.require(address_of(context, buffer) == address, "buffer_address gave another address after use");
}

void are_apart(Context& context, uint32_t kind) {
  need_slot(context);
  need_kind(context, kind);
  std::vector<Buffer> all;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (unsigned i = 0; i < 64; ++i) {
    const uint32_t each = i % 4 == 3 ? BP_MEMORY_DEVICE : kind;
    all.emplace_back(context.device(), 1 + context.below(5000), each);
    const uint64_t address = need_address(context, all.back());
    ranges.emplace_back(address, address + all.back().bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    context.require(ranges[i - 1].second <= ranges[i].first, "two buffers share the address {:#x}", ranges[i].first);
}

void address_from_threads(Context& context) {
  need_slot(context);
  Device& device = context.device();
  const Buffer shared(device, 4096);
  const uint64_t address = need_address(context, shared);
  in_threads(context, 4, [&](unsigned) {
    for (int i = 0; i < 100; ++i) {
      const Buffer own(device, 512);
      context.require(address_of(context, own) != address, "two buffers have the address {:#x}", address);
      context.require(address_of(context, shared) == address, "buffer_address gave another address");
    }
  });
}

// Checks that the first, middle and last bytes of a buffer are in mapped pages of the process. While a page is mapped,
// no other allocation can use the addresses of the page.
void are_of_the_process(Context& context, uint32_t kind) {
  if (!context.device().has(BP_CAP_PROCESS_ADDRESSES))
    context.not_claimed("the device does not declare BP_CAP_PROCESS_ADDRESSES");
  context.require(context.device().slots().buffer_address != nullptr,
                  "BP_CAP_PROCESS_ADDRESSES without buffer_address");
  need_kind(context, kind);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  Device& device = context.device();
  for (const uint64_t bytes : {uint64_t{64}, uint64_t{5000}, uint64_t{4} << 20}) {
    const Buffer buffer(device, bytes, kind);
    const uint64_t address = address_of(context, buffer);
    context.require(address != 0, "BP_CAP_PROCESS_ADDRESSES, and a buffer without an address");
    for (const uint64_t byte : {address, address + bytes / 2, address + bytes - 1}) {
      auto* const begin = reinterpret_cast<void*>(byte & ~(page - 1));
      void* const got = mmap(begin, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      const bool was_free = got == begin;
      if (got != MAP_FAILED) munmap(got, page);
      context.require(!was_free, "no page of the process is mapped at {:#x}, so a later mapping may get this address",
                      byte);
    }
    if (kind == BP_MEMORY_DEVICE) continue;
    const auto mapped = reinterpret_cast<uint64_t>(const_cast<Buffer&>(buffer).map());
    context.require(address == mapped || address + bytes <= mapped || mapped + bytes <= address,
                    "the buffer is mapped at {:#x} and has the address {:#x}, and the two ranges overlap", mapped,
                    address);
  }
}

// Imports part of a buffer by its address. The import must refer to the buffer's memory.
void is_imported_again(Context& context) {
  need_slot(context);
  Device& device = context.device();
  Plugin& plugin = context.plugin();
  const auto* table = plugin->get_interface == nullptr ? nullptr
                                                       : static_cast<const bp_import_api*>(plugin->get_interface(
                                                             plugin.get(), device.get(), BP_INTERFACE_IMPORT, 1));
  if (table == nullptr) context.not_claimed("the device has no bp.import");
  Buffer buffer(device, 8192), copy(device, 4096);
  const Bytes data = noise(context, 8192);
  upload(buffer, data);
  const bp_import_desc desc = {sizeof(desc), BP_IMPORT_DEVICE, need_address(context, buffer) + 1024, 4096};
  ErrorRecord error;
  uint32_t kind = UINT32_MAX;
  bp_buffer* made = nullptr;
  const bp_status status = table->import_memory(device.get(), &desc, &kind, &made, &error);
  expect_status(status, error, "import_memory", {BP_OK, BP_UNSUPPORTED});
  context.require((status == BP_OK) == (made != nullptr), "import_memory returned {} and gave {}", status_name(status),
                  static_cast<const void*>(made));
  if (made == nullptr) return;  // the plugin may decline the import
  {
    const Owner<bp_buffer, &bp_device_api::buffer_destroy> twin(device, made);
    context.require(kind == BP_MEMORY_DEVICE, "import_memory gave memory of kind {} for BP_IMPORT_DEVICE", kind);
    Stream stream(device);
    stream.copy(copy.get(), 0, twin.get(), 0, 4096);
    stream.wait();
    require_same(context, download<unsigned char>(copy, 4096), Bytes(data.begin() + 1024, data.begin() + 5120),
                 "device memory that was imported");
  }
  require_same(context, download<unsigned char>(buffer, 8192), data, "memory whose import was destroyed");
}

}  // namespace

void add_address_cases(Catalogue& catalogue) {
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    const auto add = [&](std::string what, std::string_view requirement, auto body) {
      add_case(
          catalogue, fmt::format("runtime.address.{}_{}", kind_name(kind), what), {requirement},
          [=](Context& context) { body(context, kind); }, kExtension);
    };
    add("is_constant", "BP-BUF-016", is_constant);
    add("are_apart", "BP-BUF-016", are_apart);
    add("are_of_the_process", "BP-DEV-021", are_of_the_process);
  }
  add_case(catalogue, "runtime.address.from_threads", {"BP-BUF-016", "BP-THR-002"}, address_from_threads, kExtension);
  add_case(catalogue, "runtime.address.is_imported_again", {"BP-BUF-017"}, is_imported_again, kExtension);
}

}  // namespace backplane::conformance
