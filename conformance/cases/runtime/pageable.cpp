// SPDX-License-Identifier: Apache-2.0
// Test cases for copy_in and copy_out: exact bytes, order, and no access to host memory after
// completion.
#include <chrono>
#include <cstring>
#include <thread>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/guarded.hpp"

namespace backplane::conformance {

namespace {

constexpr const char* kExtension = "PAGEABLE_COPY";

void need_slots(Context& context) {
  if (context.device()->copy_in == nullptr || context.device()->copy_out == nullptr)
    context.not_claimed("the device has no copy_in and copy_out; the host library stages");
}

void copy_in(Stream& stream, const Buffer& to, uint64_t offset, const void* from, uint64_t bytes) {
  Device& device = stream.device();
  ErrorRecord error;
  expect_ok(device->copy_in(device.get(), stream.get(), to.get(), offset, from, bytes, &error), error, "copy_in");
}
void copy_out(Stream& stream, void* to, const Buffer& from, uint64_t offset, uint64_t bytes) {
  Device& device = stream.device();
  ErrorRecord error;
  expect_ok(device->copy_out(device.get(), stream.get(), to, from.get(), offset, bytes, &error), error, "copy_out");
}

// Copies to and from host memory that ends at an inaccessible page.
void round_trip(Context& context, uint64_t bytes) {
  need_slots(context);
  Device& device = context.device();
  Stream stream(device);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{64}}) {
    Buffer buffer(device, bytes + 200);
    Bytes whole = noise(context, buffer.bytes);
    copy_in(stream, buffer, 0, whole.data(), whole.size());
    stream.wait();
    const Bytes part = noise(context, bytes);
    const GuardedBytes from(bytes, 0, 1), to(bytes, 0x5A, 1);
    std::memcpy(from.data(), part.data(), bytes);
    copy_in(stream, buffer, offset, from.data(), bytes);
    copy_out(stream, to.data(), buffer, offset, bytes);
    stream.wait();
    require_same(context, Bytes(to.data(), to.data() + bytes), part, "copy_in and copy_out");
    require_same(context, Bytes(from.data(), from.data() + bytes), part, "the source of copy_in");
    std::copy(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(offset));
    Bytes all(buffer.bytes);
    copy_out(stream, all.data(), buffer, 0, all.size());
    stream.wait();
    require_same(context, all, whole, "the buffer around copy_in");
  }
}

// Checks that copy_out does not change the bytes before and after its target.
void target_margins(Context& context) {
  need_slots(context);
  Device& device = context.device();
  Stream stream(device);
  Buffer buffer(device, 4096);
  const Bytes data = noise(context, 4096);
  upload(buffer, data);
  for (uint64_t bytes = 1; bytes < 70; ++bytes) {
    Bytes target(256, 0x5A);
    copy_out(stream, target.data() + 64 + bytes % 5, buffer, bytes % 3, bytes);
    stream.wait();
    Bytes expected(256, 0x5A);
    std::copy_n(data.begin() + static_cast<ptrdiff_t>(bytes % 3), bytes,
                expected.begin() + 64 + static_cast<ptrdiff_t>(bytes % 5));
    require_same(context, target, expected, fmt::format("copy_out of {} bytes and the bytes around them", bytes));
  }
}

void of_nothing(Context& context) {
  need_slots(context);
  Device& device = context.device();
  Stream stream(device);
  Buffer buffer(device, 64);
  const Bytes data = noise(context, 64);
  upload(buffer, data);
  Bytes host(1, 0x5A);
  copy_in(stream, buffer, 64, host.data(), 0);
  copy_out(stream, host.data(), buffer, 64, 0);
  stream.wait();
  require_same(context, host, Bytes(1, 0x5A), "the target of copy_out of 0 bytes");
  require_same(context, download<unsigned char>(buffer, 64), data, "the target of copy_in of 0 bytes");
}

// Checks that the host can reuse the source's memory as soon as the copy has completed.
void source_is_free_after_the_pass(Context& context, uint64_t bytes, bool by_event) {
  need_slots(context);
  Device& device = context.device();
  Stream stream(device);
  Event event(device);
  Buffer buffer(device, bytes), copied(device, bytes);
  Bytes host(bytes);
  for (unsigned round = 0; round < 64; ++round) {
    const auto fill = static_cast<unsigned char>(round + 1);
    std::fill(host.begin(), host.end(), fill);
    copy_in(stream, buffer, 0, host.data(), bytes);
    stream.record(event.get());
    by_event ? event.wait() : stream.wait();
    std::fill(host.begin(), host.end(), 0xEE);
    stream.copy(copied.get(), 0, buffer.get(), 0, bytes);
    if (round % 16 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Bytes got(bytes);
    copy_out(stream, got.data(), round % 2 == 0 ? copied : buffer, 0, bytes);
    stream.wait();
    require_same(context, got, Bytes(bytes, fill), "copy_in whose source was used again after the pass");
  }
}

void target_is_free_after_the_pass(Context& context, uint64_t bytes, bool by_event) {
  need_slots(context);
  Device& device = context.device();
  Stream stream(device);
  Event event(device);
  Buffer buffer(device, bytes);
  const Bytes data(bytes, 0x11);
  upload(buffer, data);
  Bytes host(bytes);
  for (unsigned round = 0; round < 64; ++round) {
    copy_out(stream, host.data(), buffer, 0, bytes);
    stream.record(event.get());
    by_event ? event.wait() : stream.wait();
    require_same(context, host, data, "copy_out after the pass");
    std::fill(host.begin(), host.end(), 0x77);
    if (round % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    require_same(context, host, Bytes(bytes, 0x77), "the target of copy_out, used again after the pass");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  require_same(context, host, Bytes(bytes, 0x77), "the target of copy_out, long after the pass");
}

// copy_in must run after earlier work that reads its target, and copy_out after earlier work that
// writes its source.
void keeps_its_place(Context& context, bool in) {
  need_slots(context);
  Device& device = context.device();
  Delay delay(context);
  Stream stream(device);
  constexpr uint64_t bytes = 4096;
  Buffer first(device, bytes), second(device, bytes);
  for (unsigned round = 0; round < 24; ++round) {
    const Bytes before = noise(context, bytes), after = noise(context, bytes);
    upload(first, before);
    upload(second, Bytes(bytes, 0));
    delay.enqueue(stream, context.below(3000));
    Bytes host = in ? after : Bytes(bytes);
    stream.copy(second.get(), 0, first.get(), 0, bytes);
    if (in) {
      copy_in(stream, first, 0, host.data(), bytes);
    } else {
      copy_out(stream, host.data(), second, 0, bytes);
      stream.copy(second.get(), 0, first.get(), 0, 1);
    }
    stream.wait();
    if (in) {
      require_same(context, download<unsigned char>(second, bytes), before, "work that was enqueued before copy_in");
      require_same(context, download<unsigned char>(first, bytes), after, "copy_in");
    } else {
      require_same(context, host, before, "copy_out after the work that wrote its source");
    }
  }
}

// Makes copies in both directions on several streams at once.
void on_streams(Context& context) {
  need_slots(context);
  Device& device = context.device();
  constexpr uint64_t bytes = 1u << 18;
  std::vector<Stream> streams;
  std::vector<Buffer> buffers;
  std::vector<Bytes> sources, targets;
  for (int i = 0; i < 6; ++i) {
    streams.emplace_back(device);
    buffers.emplace_back(device, bytes);
    sources.push_back(noise(context, bytes));
    targets.emplace_back(bytes);
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    copy_in(streams[i], buffers[i], 0, sources[i].data(), bytes);
    copy_out(streams[i], targets[i].data(), buffers[i], 0, bytes);
  }
  for (Stream& stream : streams) stream.wait();
  for (size_t i = 0; i < streams.size(); ++i)
    require_same(context, targets[i], sources[i], "copies of one of six streams");
}

}  // namespace

void add_pageable_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.pageable." + std::move(what), std::move(requirements), std::move(run), kExtension);
  };
  for (const uint64_t bytes : {1u, 2u, 3u, 4u, 7u, 16u, 63u, 65u, 1000u, 4095u, 4097u, 65537u, 1048577u, 8388611u})
    add(fmt::format("round_trip_of_{}_bytes", bytes), {"BP-CPY-003"},
        [bytes](Context& context) { round_trip(context, bytes); });
  add("target_margins", {"BP-CPY-003"}, target_margins);
  add("of_nothing", {"BP-CPY-002"}, of_nothing);
  for (const bool by_event : {false, true}) {
    for (const uint64_t bytes : {16u, 4096u, 1048576u}) {
      const std::string how = fmt::format("{}_bytes_by_{}", bytes, by_event ? "event" : "stream");
      add("source_is_free_after_the_pass." + how, {"BP-CPY-004"},
          [=](Context& context) { source_is_free_after_the_pass(context, bytes, by_event); });
      add("target_is_free_after_the_pass." + how, {"BP-CPY-005"},
          [=](Context& context) { target_is_free_after_the_pass(context, bytes, by_event); });
    }
  }
  add("copy_in_keeps_its_place", {"BP-CPY-004", "BP-STR-001"},
      [](Context& context) { keeps_its_place(context, true); });
  add("copy_out_keeps_its_place", {"BP-CPY-005", "BP-STR-001"},
      [](Context& context) { keeps_its_place(context, false); });
  add("on_streams", {"BP-CPY-003", "BP-STR-005"}, on_streams);
}

}  // namespace backplane::conformance
