// SPDX-License-Identifier: Apache-2.0
// Test cases for the host library's caching allocator, transfers and statistics.
#include <algorithm>
#include <cstring>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/leak.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

backplane::Buffer make(HostSide& side, uint64_t bytes, uint32_t kind = BP_MEMORY_DEVICE, uint32_t flags = 0,
                       uint64_t alignment = 0) {
  bph_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.kind = kind;
  desc.bytes = bytes;
  desc.flags = flags;
  desc.alignment = alignment;
  desc.stream = (flags & BPH_BUFFER_RAW) != 0 ? nullptr : side.stream.get();
  return backplane::Buffer(side.device.get(), desc);
}

void put(HostSide& side, const backplane::Buffer& buffer, const Bytes& bytes, uint64_t offset = 0) {
  backplane::detail::call(bph_copy_in, side.stream.get(), buffer.get(), offset, static_cast<const void*>(bytes.data()),
                          uint64_t{bytes.size()}, uint32_t{0});
  side.stream.wait();
}
Bytes get(HostSide& side, const backplane::Buffer& buffer, uint64_t bytes, uint64_t offset = 0) {
  Bytes got(bytes);
  backplane::detail::call(bph_copy_out, side.stream.get(), static_cast<void*>(got.data()), buffer.get(), offset, bytes,
                          uint32_t{0});
  return got;
}

void round_trip(Context& context, uint32_t kind, uint64_t bytes) {
  need_kind(context, kind);
  HostSide side(context);
  const backplane::Buffer buffer = make(side, bytes, kind);
  for (int round = 0; round < 2; ++round) {
    const Bytes data = noise(context, bytes);
    put(side, buffer, data);
    require_same(context, get(side, buffer, bytes), data, "bytes through the host library");
  }
}

void many_live_at_once(Context& context, bool raw) {
  HostSide side(context);
  std::vector<backplane::Buffer> all;
  std::vector<Bytes> data;
  for (int i = 0; i < 120; ++i) {
    const uint64_t bytes = 1 + context.below(i % 10 == 0 ? 200000 : 3000);
    all.push_back(make(side, bytes, BP_MEMORY_DEVICE, raw ? BPH_BUFFER_RAW : 0));
    data.push_back(noise(context, bytes));
    put(side, all.back(), data.back());
    if (i % 3 == 2) {  // releases a random buffer, so that the allocator can reuse its memory
      const uint64_t which = context.below(all.size());
      all.erase(all.begin() + static_cast<ptrdiff_t>(which));
      data.erase(data.begin() + static_cast<ptrdiff_t>(which));
    }
  }
  for (size_t i = 0; i < all.size(); ++i)
    require_same(context, get(side, all[i], data[i].size()), data[i], "one of many buffers of the caching allocator");
}

void reuses(Context& context) {
  HostSide side(context);
  const bph_stats before = side.device.stats();
  for (int i = 0; i < 200; ++i) make(side, 10000 + static_cast<uint64_t>(i % 5));
  const bph_stats after = side.device.stats();
  context.require(after.allocations - before.allocations == 200, "{} allocations were counted of 200",
                  after.allocations - before.allocations);
  context.require(after.allocations_cached - before.allocations_cached >= 150,
                  "{} of 200 equal allocations came from the cache",
                  after.allocations_cached - before.allocations_cached);
}

void trims(Context& context) {
  HostSide side(context);
  { const backplane::Buffer passing = make(side, 32u << 20); }
  side.stream.wait();
  const uint64_t reserved = side.device.stats().bytes_reserved;
  const uint64_t given = side.device.trim();
  const bph_stats after = side.device.stats();
  context.require(given >= (32u << 20), "trim gave {} bytes back of a cached buffer of 32 MiB", given);
  context.require(after.bytes_reserved + given == reserved, "trim gave {} bytes back, and {} of {} stay reserved",
                  given, after.bytes_reserved, reserved);
  const backplane::Buffer again = make(side, 32u << 20);
  const Bytes data = noise(context, 4096);
  put(side, again, data, (32u << 20) - 4096);
  require_same(context, get(side, again, 4096, (32u << 20) - 4096), data, "a buffer made after a trim");
}

// Releases a buffer while work that uses the buffer is pending, and allocates again on the same
// stream. The allocator may reuse the memory immediately, because the stream runs the earlier work
// first.
void released_while_pending(Context& context) {
  HostSide side(context);
  constexpr uint64_t bytes = 1u << 20;
  const backplane::Buffer result = make(side, bytes);
  for (int round = 0; round < 24; ++round) {
    const Bytes data = noise(context, bytes);
    {
      const backplane::Buffer passing = make(side, bytes);
      backplane::detail::call(bph_copy_in, side.stream.get(), passing.get(), uint64_t{0},
                              static_cast<const void*>(data.data()), bytes, uint32_t{0});
      backplane::detail::call(bph_copy, side.stream.get(), result.get(), uint64_t{0}, passing.get(), uint64_t{0}, bytes,
                              uint32_t{0});
    }
    const backplane::Buffer next = make(side, bytes);
    const Bytes other = noise(context, bytes);
    backplane::detail::call(bph_copy_in, side.stream.get(), next.get(), uint64_t{0},
                            static_cast<const void*>(other.data()), bytes, uint32_t{0});
    require_same(context, get(side, result, bytes), data, "work whose buffer was released while it was pending");
    require_same(context, get(side, next, bytes), other, "a buffer in the place of one that was released");
  }
}

// Ends the case as not claimed if the device does not support `alignment`. A device need not
// support alignments above bp_device_info.alignment.
void need_alignment(Context& context, uint32_t kind, uint64_t alignment) {
  Device& device = context.device();
  if (alignment <= device.info().alignment) return;
  const bp_buffer_desc desc = {sizeof(desc), kind, 64, alignment};
  bp_buffer* made = nullptr;
  ErrorRecord error;
  expect_status(device->buffer_create(device.get(), &desc, &made, &error), error, "buffer_create",
                {BP_OK, BP_UNSUPPORTED});
  if (made == nullptr) context.not_claimed("the device does not support an alignment of {} bytes", alignment);
  device->buffer_destroy(device.get(), made);
}

void aligned(Context& context, uint64_t alignment) {
  HostSide side(context);
  const uint32_t kind = context.device().offers(BP_MEMORY_SHARED) ? BP_MEMORY_SHARED : BP_MEMORY_HOST;
  need_kind(context, kind);
  need_alignment(context, kind, alignment);
  for (int i = 0; i < 8; ++i) {
    const backplane::Buffer buffer = make(side, 100 + context.below(1000), kind, 0, alignment);
    const auto at = reinterpret_cast<uintptr_t>(buffer.map());
    context.require(at % alignment == 0, "a buffer of alignment {} is at {:#x}", alignment, at);
  }
}

void runs_out_and_goes_on(Context& context) {
  HostSide side(context);
  const Bytes data = noise(context, 4096);
  const backplane::Buffer held = make(side, 4096);
  put(side, held, data);
  for (const uint64_t bytes : {uint64_t{1} << 62, UINT64_MAX - 4096}) {
    bph_buffer_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.bytes = bytes;
    bph_buffer* none = nullptr;
    ErrorRecord error;
    expect_status(bph_buffer_create(side.device.get(), &desc, &none, &error), error, "bph_buffer_create",
                  {BP_OUT_OF_MEMORY, BP_INVALID_ARGUMENT});
    context.require(none == nullptr, "bph_buffer_create failed and gave a buffer");
  }
  const backplane::Buffer next = make(side, 1u << 20);
  require_same(context, get(side, held, 4096), data, "a buffer held while memory ran out");
}

void nothing_stays(Context& context) {
  HostSide side(context);
  OpDesc desc = elementwise(BP_OP_ADD, BP_U32, 1000);
  HostCall call(side, desc, {Bytes(4000), Bytes(4000)}, {Bytes(4000)}, {});
  expect_no_leak(context, "buffers, events and calls through the host library", 128, [&] {
    const backplane::Buffer buffer = make(side, 5000);
    const backplane::Event event(side.device);
    call.execute(context, side);
    event.record(side.stream);
    event.wait();
  });
  context.require(side.device.stats().bytes_in_use <= 64u << 10, "{} bytes are in use of three buffers of 4000",
                  side.device.stats().bytes_in_use);
}

void counts(Context& context) {
  HostSide side(context);
  OpDesc desc = elementwise(BP_OP_ADD, BP_U32, 1000);
  HostCall call(side, desc, {Bytes(4000), Bytes(4000)}, {Bytes(4000)}, {});
  const bph_stats before = side.device.stats();
  for (int i = 0; i < 50; ++i) {
    call.execute(context, side);
  }
  side.stream.wait();
  const bph_stats after = side.device.stats();
  context.require(after.executions - before.executions == 50, "{} executions were counted of 50",
                  after.executions - before.executions);
  context.require(after.plan_hits - before.plan_hits >= 49, "{} of 50 equal calls found their plan",
                  after.plan_hits - before.plan_hits);
  context.require(after.plans_created - before.plans_created <= 1, "{} plans were made for one call",
                  after.plans_created - before.plans_created);
  context.require(after.fallback_executions == 0, "{} executions ran elsewhere", after.fallback_executions);
}

void threads_share_a_device(Context& context) {
  HostSide side(context);
  in_threads(context, 6, [&](unsigned index) {
    const backplane::Stream stream(side.device);
    for (int round = 0; round < 30; ++round) {
      bph_buffer_desc desc = {};
      desc.struct_size = sizeof(desc);
      desc.bytes = 1000 + 100 * index;
      desc.stream = stream.get();
      const backplane::Buffer buffer(side.device.get(), desc);
      const Bytes data(desc.bytes, static_cast<unsigned char>(index * 30 + static_cast<unsigned>(round)));
      backplane::detail::call(bph_copy_in, stream.get(), buffer.get(), uint64_t{0},
                              static_cast<const void*>(data.data()), uint64_t{desc.bytes}, uint32_t{0});
      Bytes got(desc.bytes);
      backplane::detail::call(bph_copy_out, stream.get(), static_cast<void*>(got.data()), buffer.get(), uint64_t{0},
                              uint64_t{desc.bytes}, uint32_t{0});
      require_same(context, got, data, "a thread's own buffer");
    }
  });
}

}  // namespace

void add_host_memory_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::string_view requirement, std::function<void(Context&)> run,
                       std::string_view extension = "") {
    add_case(catalogue, "host.memory." + std::move(what), {requirement}, std::move(run), extension);
  };
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind)
    for (const uint64_t bytes : {1u, 3u, 64u, 4097u, 1048577u, 9437185u})
      add(
          fmt::format("{}_round_trip_of_{}_bytes", kind_name(kind), bytes), "BP-USE-006",
          [=](Context& context) { round_trip(context, kind, bytes); }, kind_extension(kind));
  add("many_live_at_once", "BP-USE-005", [](Context& context) { many_live_at_once(context, false); });
  add("many_raw_at_once", "BP-USE-005", [](Context& context) { many_live_at_once(context, true); });
  add("reuses", "BP-USE-005", reuses);
  add("trims", "BP-USE-005", trims);
  add("released_while_pending", "BP-USE-005", released_while_pending);
  for (const uint64_t alignment : {1u, 2u, 8u, 64u, 256u})
    add(
        fmt::format("aligned_to_{}", alignment), "BP-USE-005",
        [alignment](Context& context) { aligned(context, alignment); }, "MAPPED_MEMORY");
  add("runs_out_and_goes_on", "BP-USE-005", runs_out_and_goes_on);
  add("nothing_stays", "BP-USE-005", nothing_stays);
  add("counts", "BP-USE-011", counts);
  add("threads_share_a_device", "BP-USE-013", threads_share_a_device);
}

}  // namespace backplane::conformance
