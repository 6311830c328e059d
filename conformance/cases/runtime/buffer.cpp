// SPDX-License-Identifier: Apache-2.0
// Test cases for buffers: sizes, alignments, addresses, many buffers at once, and exhaustion of
// memory.
#include <algorithm>
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/health_check.hpp"
#include "cases/support/op_desc.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

// Writes up to 64 KiB at the start and at the end of the buffer, and checks the bytes at the end.
void holds_bytes(Context& context, Buffer& buffer) {
  const Bytes data = noise(context, std::min<uint64_t>(buffer.bytes, 1u << 16));
  upload(buffer, data);
  upload(buffer, data, buffer.bytes - data.size());
  require_same(context, download<unsigned char>(buffer, data.size(), buffer.bytes - data.size()), data, "a new buffer");
}

void of_size(Context& context, uint32_t kind, uint64_t bytes) {
  need_kind(context, kind);
  Buffer buffer(context.device(), bytes, kind);
  holds_bytes(context, buffer);
}

bool take_alignment(Context& context, uint32_t kind, uint64_t alignment, bp_buffer** out) {
  Device& device = context.device();
  bp_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.kind = kind;
  desc.bytes = 100;
  desc.alignment = alignment;
  ErrorRecord error;
  const bp_status status = device->buffer_create(device.get(), &desc, out, &error);
  expect_status(status, error, "buffer_create", {BP_OK, BP_UNSUPPORTED});
  return status == BP_OK;
}

void of_alignment(Context& context, uint32_t kind, uint64_t alignment) {
  need_kind(context, kind);
  Device& device = context.device();
  const uint64_t stated = alignment == 0 ? device.info().alignment : alignment;
  std::vector<Owner<bp_buffer, &bp_device_api::buffer_destroy>> held;
  for (int i = 0; i < 16; ++i) {  // checks several buffers, because one buffer may be aligned by chance
    bp_buffer* buffer = nullptr;
    if (!take_alignment(context, kind, alignment, &buffer)) {
      context.require(alignment > device.info().alignment, "alignment {} is refused, and the device's own is {}",
                      alignment, device.info().alignment);
      return;
    }
    held.emplace_back(device, buffer);
    if (kind == BP_MEMORY_DEVICE) continue;
    void* address = nullptr;
    ErrorRecord error;
    expect_status(device->buffer_map(device.get(), buffer, &address, &error), error, "buffer_map", {BP_OK});
    context.require(reinterpret_cast<uintptr_t>(address) % stated == 0,
                    "a buffer of alignment {} is at {}, which is not a multiple of this alignment", stated, address);
  }
}

void maps_to_one_address(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device& device = context.device();
  Buffer buffer(device, 4096, kind);
  char* const address = buffer.map();
  std::memset(address, 0x42, 4096);
  for (int i = 0; i < 16; ++i) {
    const Buffer other(device, 4096, kind);
    context.require(buffer.map() == address, "buffer_map gave another address");
  }
  context.require(address[0] == 0x42 && address[4095] == 0x42, "data that the host wrote to mapped memory are lost");
  Stream stream(device);
  Buffer copy(device, 4096);
  stream.copy(copy.get(), 0, buffer.get(), 0, 4096);
  stream.wait();
  require_same(context, download<unsigned char>(copy, 4096), Bytes(4096, 0x42),
               "what the host wrote, read by the device");
  const Bytes data = noise(context, 4096);
  upload(copy, data);
  stream.copy(buffer.get(), 0, copy.get(), 0, 4096);
  stream.wait();
  require_same(context, Bytes(address, address + 4096), data, "what the device wrote, read by the host");
  context.require(buffer.map() == address, "buffer_map gave another address after use");
}

// The host writes a buffer between enqueue calls. The device must see each write that precedes the
// call that enqueues a read.
void host_writes_are_seen(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device& device = context.device();
  Buffer buffer(device, 4096, kind), target(device, 4096 * 16);
  Stream stream(device);
  for (unsigned round = 0; round < 16; ++round) {
    std::memset(buffer.map(), static_cast<int>(round + 1), 4096);
    stream.copy(target.get(), uint64_t{4096} * round, buffer.get(), 0, 4096);
    stream.wait();
  }
  const Bytes got = download<unsigned char>(target, 4096 * 16);
  for (unsigned round = 0; round < 16; ++round)
    context.require(got[4096 * round] == round + 1 && got[4096 * round + 4095] == round + 1,
                    "the device read {} where the host had written {}", got[4096 * round], round + 1);
}

void many_at_once(Context& context, uint32_t kind, unsigned count, uint64_t bytes) {
  need_kind(context, kind);
  Device& device = context.device();
  std::vector<Buffer> all;
  std::vector<Words> data;
  for (unsigned i = 0; i < count; ++i) {
    all.emplace_back(device, bytes + i % 7, kind);
    data.push_back(noise_words(context, 1));
    upload(all.back(), data.back());
  }
  for (unsigned i = 0; i < count; ++i)
    require_same(context, download<uint32_t>(all[i], 1), data[i], "one of many buffers");
  std::shuffle(all.begin(), all.end(), context.random());
}

void mapped_ranges_are_apart(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device& device = context.device();
  std::vector<Buffer> all;
  std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
  for (unsigned i = 0; i < 64; ++i) {
    all.emplace_back(device, 1 + context.below(5000), kind);
    const auto begin = reinterpret_cast<uintptr_t>(all.back().map());
    ranges.emplace_back(begin, begin + all.back().bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    context.require(ranges[i - 1].second <= ranges[i].first, "two buffers share bytes at {:#x}", ranges[i].first);
}

// Repeatedly requests more memory than exists. An existing buffer must stay intact, and a small
// buffer must still be available.
void exhausted_and_recovers(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device device(context.plugin(), context.device_index());
  Buffer held(device, 1u << 20, kind);
  const Bytes data = noise(context, 1u << 20);
  upload(held, data);
  bp_memory_info memory = {};
  memory.struct_size = sizeof(memory);
  ErrorRecord error;
  expect_status(device->memory_info(device.get(), kind, &memory, &error), error, "memory_info", {BP_OK});
  for (int i = 0; i < 8; ++i) {
    bp_buffer_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.kind = kind;
    desc.bytes = std::max(memory.total_bytes, device.info().max_buffer_bytes);
    desc.bytes = desc.bytes > UINT64_MAX / 2 ? UINT64_MAX / 2 : desc.bytes + (uint64_t{1} << 40);
    bp_buffer* none = nullptr;
    ErrorRecord refused;
    expect_status(device->buffer_create(device.get(), &desc, &none, &refused), refused,
                  "buffer_create of more than there is", {BP_OUT_OF_MEMORY});
    context.require(none == nullptr, "buffer_create failed and gave a buffer");
    Buffer next(device, 1u << 16, kind);
    holds_bytes(context, next);
  }
  require_same(context, download<unsigned char>(held, data.size()), data, "a buffer held while memory ran out");
}

// Allocates up to 2 GiB, or until memory is exhausted. Then frees all buffers and checks that a
// buffer can be allocated. On devices with more free memory, the case does not test exhaustion.
void filled_and_recovers(Context& context) {
  constexpr uint64_t most = uint64_t{2} << 30;
  Device device(context.plugin(), context.device_index());
  bp_memory_info memory = {};
  memory.struct_size = sizeof(memory);
  ErrorRecord error;
  expect_status(device->memory_info(device.get(), BP_MEMORY_DEVICE, &memory, &error), error, "memory_info", {BP_OK});
  const uint64_t piece = std::min(device.info().max_buffer_bytes, std::max<uint64_t>(memory.total_bytes / 16, 4096));
  std::vector<Owner<bp_buffer, &bp_device_api::buffer_destroy>> all;
  uint64_t taken = 0;
  bool full = false;
  while (!full && taken + piece <= most && taken <= memory.total_bytes) {
    bp_buffer_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.bytes = piece;
    bp_buffer* buffer = nullptr;
    ErrorRecord refused;
    const bp_status status = device->buffer_create(device.get(), &desc, &buffer, &refused);
    expect_status(status, refused, "buffer_create", {BP_OK, BP_OUT_OF_MEMORY});
    full = status != BP_OK;
    if (full) break;
    all.emplace_back(device, buffer);
    taken += piece;
  }
  all.clear();
  Buffer again(device, piece);
  holds_bytes(context, again);
}

void buffers_from_threads(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device& device = context.device();
  in_threads(context, 8, [&](unsigned index) {
    for (unsigned i = 0; i < 40; ++i) {
      Buffer first(device, 1 + 97 * index + i, kind), second(device, 4096, kind);
      if (kind == BP_MEMORY_DEVICE) continue;
      std::memset(first.map(), static_cast<int>(index), first.bytes);
      std::memset(second.map(), 0xEE, second.bytes);
      context.require(static_cast<unsigned char>(first.map()[first.bytes - 1]) == index, "a thread's buffer changed");
    }
  });
}

void odd_alignment(Context& context, uint64_t alignment) {
  Device& device = context.device();
  bp_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bytes = 64;
  desc.alignment = alignment;
  bp_buffer* buffer = nullptr;
  ErrorRecord error;
  expect_status(device->buffer_create(device.get(), &desc, &buffer, &error), error, "buffer_create",
                {BP_INVALID_ARGUMENT, BP_UNSUPPORTED});
  context.require(buffer == nullptr, "buffer_create failed and gave a buffer");
  require_healthy(context);
}

}  // namespace

void add_buffer_cases(Catalogue& catalogue) {
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    const auto add = [&](std::string what, std::vector<std::string_view> requirements, auto body, auto... arguments) {
      add_case(
          catalogue, fmt::format("runtime.buffer.{}_{}", kind_name(kind), what), std::move(requirements),
          [=](Context& context) { body(context, kind, arguments...); }, kind_extension(kind));
    };
    for (const uint64_t bytes : {1u, 2u, 3u, 4u, 7u, 8u, 31u, 63u, 64u, 65u, 255u, 257u, 4095u, 4096u, 4097u, 65537u,
                                 1048575u, 1048576u, 16777217u})
      add(fmt::format("of_{}_bytes", bytes), {"BP-BUF-001"}, of_size, bytes);
    for (uint64_t alignment = 1; alignment <= (1u << 21); alignment *= 2)
      add(fmt::format("aligned_to_{}", alignment), {"BP-BUF-001", "BP-BUF-007"}, of_alignment, alignment);
    add("aligned_by_default", {"BP-BUF-007", "BP-DEV-009"}, of_alignment, uint64_t{0});
    add("many_of_64", {"BP-BUF-010"}, many_at_once, 256u, uint64_t{64});
    add("many_of_5000", {"BP-BUF-010"}, many_at_once, 96u, uint64_t{5000});
    add("exhausted_and_recovers", {"BP-BUF-004", "BP-BUF-013"}, exhausted_and_recovers);
    add("from_threads", {"BP-BUF-012", "BP-THR-002"}, buffers_from_threads);
    if (kind == BP_MEMORY_DEVICE) continue;
    add("maps_to_one_address", {"BP-BUF-008", "BP-BUF-011"}, maps_to_one_address);
    add("host_writes_are_seen", {"BP-BUF-011"}, host_writes_are_seen);
    add("mapped_ranges_are_apart", {"BP-BUF-010"}, mapped_ranges_are_apart);
  }
  add_case(catalogue, "runtime.buffer.filled_and_recovers", {"BP-BUF-013"}, filled_and_recovers);
  for (const uint64_t alignment : {3u, 24u, 48u, 100u, 4097u})
    add_case(catalogue, fmt::format("negative.buffer_create.alignment_{}", alignment), {"BP-BUF-006"},
             [alignment](Context& context) { odd_alignment(context, alignment); });
}

}  // namespace backplane::conformance
