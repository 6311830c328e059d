// SPDX-License-Identifier: Apache-2.0
// Test cases for copies between buffers: all pairs of memory kinds, many sizes and offsets, and
// unchanged bytes around the target.
#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kSizes[] = {1,  2,  3,  4,  5,   7,    8,    13,   15,    16,     31,
                               33, 63, 64, 65, 127, 1000, 4095, 4097, 65537, 1048579};
constexpr uint64_t kOffsets[] = {0, 1, 3, 4, 8, 17, 63, 64, 4093};
constexpr uint64_t kMargin = 4200;

// Makes a copy, and checks that exactly the requested bytes of the target changed.
void exact(Context& context, Device& device, Stream& stream, uint32_t to_kind, uint32_t from_kind, uint64_t bytes,
           uint64_t to_offset, uint64_t from_offset) {
  Buffer from(device, bytes + kMargin, from_kind), to(device, bytes + kMargin, to_kind);
  const Bytes source = noise(context, from.bytes);
  Bytes target = noise(context, to.bytes);
  upload(from, source);
  upload(to, target);
  stream.copy(to.get(), to_offset, from.get(), from_offset, bytes);
  stream.wait();
  std::copy_n(source.begin() + static_cast<ptrdiff_t>(from_offset), bytes,
              target.begin() + static_cast<ptrdiff_t>(to_offset));
  require_same(context, download<unsigned char>(to, to.bytes), target,
               fmt::format("copy of {} bytes from offset {} to offset {}", bytes, from_offset, to_offset));
  require_same(context, download<unsigned char>(from, from.bytes), source, "the source of a copy");
}

void of_size(Context& context, uint32_t to_kind, uint32_t from_kind, uint64_t bytes) {
  need_kind(context, to_kind);
  need_kind(context, from_kind);
  Stream stream(context.device());
  const int rounds = bytes > 100000 ? 2 : 5;
  for (int i = 0; i < rounds; ++i)
    exact(context, context.device(), stream, to_kind, from_kind, bytes, i == 0 ? 0 : context.below(100),
          i == 0 ? 0 : context.below(100));
}

void at_offset(Context& context, uint32_t to_kind, uint32_t from_kind, uint64_t offset) {
  need_kind(context, to_kind);
  need_kind(context, from_kind);
  Stream stream(context.device());
  for (const uint64_t other : kOffsets) exact(context, context.device(), stream, to_kind, from_kind, 61, offset, other);
}

void of_nothing(Context& context, uint32_t to_kind, uint32_t from_kind) {
  need_kind(context, to_kind);
  need_kind(context, from_kind);
  Device& device = context.device();
  Buffer from(device, 64, from_kind), to(device, 64, to_kind);
  const Bytes data = noise(context, 64);
  upload(to, data);
  Stream stream(device);
  for (const uint64_t at : {0u, 1u, 63u, 64u}) {
    stream.copy(to.get(), at, from.get(), 64 - at, 0);
    stream.wait();
  }
  require_same(context, download<unsigned char>(to, 64), data, "the target of a copy of 0 bytes");
}

void within_one(Context& context, bool up) {
  Device& device = context.device();
  Buffer buffer(device, 8192);
  Bytes data = noise(context, 8192);
  upload(buffer, data);
  Stream stream(device);
  const uint64_t low = 1, high = 4097, bytes = 4095;
  stream.copy(buffer.get(), up ? high : low, buffer.get(), up ? low : high, bytes);
  stream.wait();
  std::copy_n(data.begin() + static_cast<ptrdiff_t>(up ? low : high), bytes,
              data.begin() + static_cast<ptrdiff_t>(up ? high : low));
  require_same(context, download<unsigned char>(buffer, 8192), data, "a copy within one buffer");
}

// Enqueues many copies on one stream. Each copy reads the result of the previous copy.
void in_order(Context& context) {
  Device& device = context.device();
  constexpr uint64_t bytes = 4099;
  std::vector<Buffer> chain;
  for (int i = 0; i < 8; ++i) chain.emplace_back(device, bytes);
  const Bytes data = noise(context, bytes);
  upload(chain[0], data);
  Stream stream(device);
  for (int round = 0; round < 16; ++round)
    for (size_t i = 0; i < chain.size(); ++i)
      stream.copy(chain[(i + 1) % chain.size()].get(), 0, chain[i].get(), 0, bytes);
  stream.wait();
  for (const Buffer& each : chain)
    require_same(context, download<unsigned char>(each, bytes), data, "a chain of copies");
}

void many_small(Context& context) {
  Device& device = context.device();
  constexpr unsigned count = 2000;
  Buffer from(device, count * 4), to(device, count * 4);
  const Words data = noise_words(context, count);
  upload(from, data);
  Stream stream(device);
  for (unsigned i = 0; i < count; ++i)
    stream.copy(to.get(), uint64_t{4} * (count - 1 - i), from.get(), uint64_t{4} * i, 4);
  stream.wait();
  require_same(context, download<uint32_t>(to, count), Words(data.rbegin(), data.rend()), "2000 copies of 4 bytes");
}

}  // namespace

void add_copy_cases(Catalogue& catalogue) {
  for (uint32_t to = 0; to < BP_MEMORY_KINDS; ++to) {
    for (uint32_t from = 0; from < BP_MEMORY_KINDS; ++from) {
      if (to == BP_MEMORY_HOST && from == BP_MEMORY_HOST) continue;
      const std::string stem = fmt::format("runtime.copy.{}_to_{}", kind_name(from), kind_name(to));
      const std::string_view extension = kind_extension(to == BP_MEMORY_DEVICE ? from : to);
      for (const uint64_t bytes : kSizes)
        add_case(
            catalogue, fmt::format("{}.of_{}_bytes", stem, bytes), {"BP-CPY-001"},
            [=](Context& context) { of_size(context, to, from, bytes); }, extension);
      for (const uint64_t offset : kOffsets)
        add_case(
            catalogue, fmt::format("{}.to_offset_{}", stem, offset), {"BP-CPY-001"},
            [=](Context& context) { at_offset(context, to, from, offset); }, extension);
      add_case(
          catalogue, stem + ".of_nothing", {"BP-CPY-002"}, [=](Context& context) { of_nothing(context, to, from); },
          extension);
    }
  }
  add_case(catalogue, "runtime.copy.within_one_buffer.up", {"BP-CPY-006"},
           [](Context& context) { within_one(context, true); });
  add_case(catalogue, "runtime.copy.within_one_buffer.down", {"BP-CPY-006"},
           [](Context& context) { within_one(context, false); });
  add_case(catalogue, "runtime.copy.chain.in_order", {"BP-STR-001"}, in_order);
  add_case(catalogue, "runtime.copy.chain.many_small", {"BP-EXE-007", "BP-CPY-001"}, many_small);
}

}  // namespace backplane::conformance
