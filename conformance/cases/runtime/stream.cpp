// SPDX-License-Identifier: Apache-2.0
// Test cases for streams: creation, order within a stream, several streams at once, and threads.
#include <thread>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/op_desc.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

void idle_is_ready(Context& context) {
  Stream stream(context.device());
  for (const uint64_t timeout : {uint64_t{0}, uint64_t{1}, uint64_t{1000000}, uint64_t{BP_WAIT_FOREVER}})
    context.require(stream.wait_for(timeout) == BP_OK, "stream_wait({}) on an idle stream did not return OK", timeout);
}

// Checks that a poll returns OK after the work has completed.
void polling_ends(Context& context) {
  Device& device = context.device();
  Delay delay(context);
  Stream stream(device);
  Buffer from(device, 4096), to(device, 4096);
  const Bytes data = noise(context, 4096);
  upload(from, data);
  delay.enqueue(stream, 5000);
  stream.copy(to.get(), 0, from.get(), 0, 4096);
  const uint64_t begin = now_ns();
  ErrorRecord error;
  bp_status status = BP_TIMEOUT;
  while (status == BP_TIMEOUT && now_ns() - begin < 20'000'000'000) {
    status = device->stream_wait(device.get(), stream.get(), 0, &error);
    expect_status(status, error, "stream_wait", {BP_OK, BP_TIMEOUT});
    std::this_thread::yield();
  }
  context.require(status == BP_OK, "a stream was polled for 20 seconds and was never ready");
  require_same(context, download<unsigned char>(to, 4096), data, "a copy that a poll said has ended");
}

void of_priority(Context& context, int32_t priority) {
  Device& device = context.device();
  Stream stream(device, priority);
  Runner neg(device, elementwise(BP_OP_NEG, BP_I32, 256));
  Buffer from(device, 1024), to(device, 1024);
  const std::vector<int32_t> ones(256, 17);
  upload(from, ones);
  neg.enqueue(stream.get(), {{from.get()}}, {{to.get()}});
  stream.wait();
  require_same(context, download<int32_t>(to, 256), std::vector<int32_t>(256, -17), "an operator on such a stream");
}

// Enqueues operators and copies alternately. Each command reads the result of the previous command.
void in_order(Context& context, unsigned delayed_us) {
  Device& device = context.device();
  constexpr int64_t count = 1000;
  Delay delay(context);
  Stream stream(device);
  Runner add(device, elementwise(BP_OP_ADD, BP_U32, count));
  Buffer a(device, count * 4), b(device, count * 4), one(device, count * 4);
  upload(one, Words(count, 1));
  for (unsigned round = 0; round < 8; ++round) {
    const Words start = noise_words(context, count);
    upload(a, start);
    delay.enqueue(stream, context.below(delayed_us + 1));
    for (int step = 0; step < 40; ++step) {
      add.enqueue(stream.get(), {{a.get()}, {one.get()}}, {{b.get()}});
      stream.copy(a.get(), 0, b.get(), 0, count * 4);
    }
    stream.wait();
    Words expected = start;
    for (uint32_t& word : expected) word += 40;
    require_same(context, download<uint32_t>(a, count), expected, "40 operators and copies in turn");
  }
}

void many_small_operators(Context& context) {
  Device& device = context.device();
  constexpr int64_t count = 16;
  constexpr unsigned times = 10000;
  Stream stream(device);
  Runner add(device, elementwise(BP_OP_ADD, BP_U32, count));
  Buffer sum(device, count * 4), one(device, count * 4);
  upload(sum, Words(count, 0));
  upload(one, Words(count, 1));
  // The operator runs in place: its output is the first input.
  OpDesc in_place = elementwise(BP_OP_ADD, BP_U32, count);
  in_place.outputs()[0].alias = 1;
  Runner next(device, std::move(in_place));
  const bool direct = next.plan().info.stage_inputs == 0 && next.plan().info.stage_outputs == 0;
  Buffer other(device, count * 4);
  for (unsigned i = 0; i < times; ++i) {
    if (direct) {
      next.enqueue(stream.get(), {{sum.get()}, {one.get()}}, {{sum.get()}});
    } else {
      add.enqueue(stream.get(), {{i % 2 == 0 ? sum.get() : other.get()}, {one.get()}},
                  {{i % 2 == 0 ? other.get() : sum.get()}});
    }
  }
  stream.wait();
  require_same(context, download<uint32_t>(sum, count), Words(count, times), "10000 operators");
}

void at_once(Context& context, unsigned count) {
  Device& device = context.device();
  constexpr uint64_t bytes = 1u << 16;
  std::vector<Delay> delays;  // one Delay per stream, because concurrent writes to one buffer are unordered
  std::vector<Stream> streams;
  std::vector<Buffer> from, to;
  std::vector<Bytes> data;
  for (unsigned i = 0; i < count; ++i) {
    streams.emplace_back(device);
    from.emplace_back(device, bytes);
    to.emplace_back(device, bytes);
    data.push_back(noise(context, bytes));
    upload(from.back(), data.back());
  }
  for (unsigned i = 0; i < count; ++i) {
    if (i % 2 == 0) delays.emplace_back(context).enqueue(streams[i], 500);
    streams[i].copy(to[i].get(), 0, from[i].get(), 0, bytes);
  }
  for (unsigned i = count; i-- > 0;) streams[i].wait();
  for (unsigned i = 0; i < count; ++i)
    require_same(context, download<unsigned char>(to[i], bytes), data[i], "one stream of many");
}

// Checks that a stream makes progress while another stream has a long queue.
void run_side_by_side(Context& context) {
  Device& device = context.device();
  if (device.has(BP_CAP_SYNCHRONOUS)) return;
  Delay delay(context);
  Stream busy(device);
  std::vector<Stream> others;
  for (int i = 0; i < 3; ++i) others.emplace_back(device);
  Buffer from(device, 64), to(device, 64);
  for (unsigned attempt = 0; attempt < kDelayAttempts; ++attempt) {
    delay.enqueue(busy, longer_delay(attempt));
    for (Stream& each : others) {
      each.copy(to.get(), 0, from.get(), 0, 64);
      each.wait();
    }
    const bool pending = busy.wait_for(0) == BP_TIMEOUT;
    busy.wait();
    if (pending) return;
  }
  context.not_claimed(
      "three streams never completed a small copy before a fourth completed its long queue: work is serialized");
}

void from_thread_to_thread(Context& context) {
  Device& device = context.device();
  Stream stream(device);
  constexpr int64_t count = 512;
  Runner add(device, elementwise(BP_OP_ADD, BP_U32, count));
  Buffer a(device, count * 4), b(device, count * 4), one(device, count * 4);
  upload(a, Words(count, 5));
  upload(one, Words(count, 1));
  for (unsigned i = 0; i < 16; ++i) {
    std::exception_ptr failure;
    std::thread([&] {
      try {
        add.enqueue(stream.get(), {{i % 2 == 0 ? a.get() : b.get()}, {one.get()}}, {{i % 2 == 0 ? b.get() : a.get()}});
        if (i % 5 == 4) stream.wait();
      } catch (...) {
        failure = std::current_exception();
      }
    }).join();
    if (failure != nullptr) std::rethrow_exception(failure);
  }
  stream.wait();
  require_same(context, download<uint32_t>(a, count), Words(count, 21), "work of 16 threads on one stream");
}

void streams_by_threads(Context& context) {
  Device& device = context.device();
  in_threads(context, 8, [&](unsigned index) {
    for (unsigned i = 0; i < 20; ++i) {
      Stream stream(device, static_cast<int32_t>(index % 3) - 1);
      Buffer from(device, 256), to(device, 256);
      stream.copy(to.get(), 0, from.get(), 0, 256);
      stream.wait();
    }
  });
}

// Destroys a stream that is unused, or whose work has completed.
void ends_idle(Context& context) {
  Device& device = context.device();
  Buffer from(device, 4096), to(device, 4096);
  const Bytes data = noise(context, 4096);
  upload(from, data);
  for (int i = 0; i < 32; ++i) {
    {
      const Stream unused(device);
    }
    Stream used(device);
    used.copy(to.get(), 0, from.get(), 0, 4096);
    used.wait();
  }
  require_same(context, download<unsigned char>(to, 4096), data, "a copy on a stream that has ended");
}

}  // namespace

void add_stream_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.stream." + std::move(what), std::move(requirements), std::move(run));
  };
  add("idle_is_ready", {"BP-STR-007"}, idle_is_ready);
  add("polling_ends", {"BP-STR-002", "BP-STR-004"}, polling_ends);
  for (const int32_t priority : {INT32_MIN, -5, -1, 0, 1, 2, 5, 100, INT32_MAX})
    add(fmt::format("of_priority_{}", priority), {"BP-STR-006"},
        [priority](Context& context) { of_priority(context, priority); });
  add("in_order", {"BP-STR-001"}, [](Context& context) { in_order(context, 0); });
  add("in_order_behind_delays", {"BP-STR-001"}, [](Context& context) { in_order(context, 4000); });
  add("many_small_operators", {"BP-EXE-007", "BP-STR-001"}, many_small_operators);
  for (const unsigned count : {2u, 4u, 8u, 16u})
    add(fmt::format("{}_at_once", count), {"BP-STR-005"}, [count](Context& context) { at_once(context, count); });
  add_case(catalogue, "runtime.stream.run_side_by_side", {"BP-STR-005"}, run_side_by_side, "CONCURRENT_STREAMS");
  add("from_thread_to_thread", {"BP-STR-009"}, from_thread_to_thread);
  add("streams_by_threads", {"BP-STR-010", "BP-THR-002"}, streams_by_threads);
  add("ends_idle", {"BP-STR-007"}, ends_idle);
}

}  // namespace backplane::conformance
