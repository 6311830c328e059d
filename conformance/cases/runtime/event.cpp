// SPDX-License-Identifier: Apache-2.0
// Test cases for events that the host observes: completion, repeated recording, lifetimes and
// threads.
#include <atomic>
#include <thread>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kEventBytes = 4096;

void never_recorded(Context& context, uint32_t flags) {
  Device& device = context.device();
  if (flags != 0 && !device.has(BP_CAP_TIMING)) context.not_claimed("the device has no BP_CAP_TIMING");
  Event event(device, flags);
  for (const uint64_t timeout : {uint64_t{0}, uint64_t{1000}, uint64_t{BP_WAIT_FOREVER}})
    context.require(event.wait_for(timeout) == BP_OK, "an event that was never recorded does not count as passed");
  Stream stream(device);
  stream.wait_event(event.get());
  Buffer from(device, kEventBytes), to(device, kEventBytes);
  const Bytes data = noise(context, kEventBytes);
  upload(from, data);
  stream.copy(to.get(), 0, from.get(), 0, kEventBytes);
  stream.wait();
  require_same(context, download<unsigned char>(to, kEventBytes), data,
               "work after a wait for an event never recorded");
}

// A stream that copies new data after a delay. The case compares the data to determine whether the
// copy has completed.
struct Producer {
  explicit Producer(Context& context)
      : delay(context),
        stream(context.device()),
        from(context.device(), kEventBytes),
        to(context.device(), kEventBytes) {}
  // Enqueues a copy of new data after a delay. Returns the data.
  Bytes enqueue(Context& context, uint64_t microseconds) {
    Bytes data = noise(context, kEventBytes);
    upload(from, data);
    upload(to, Bytes(kEventBytes, 0));
    delay.enqueue(stream, microseconds);
    stream.copy(to.get(), 0, from.get(), 0, kEventBytes);
    return data;
  }
  Delay delay;
  Stream stream;
  Buffer from, to;
};

enum class How { wait, poll, short_waits };

void wait_for(Event& event, How how) {
  if (how == How::wait) return event.wait();
  const uint64_t timeout = how == How::poll ? 0 : 100'000;
  const uint64_t begin = now_ns();
  bp_status status = BP_TIMEOUT;
  while ((status = event.wait_for(timeout)) == BP_TIMEOUT) {
    if (now_ns() - begin > 20'000'000'000) throw CaseEnd{Outcome::fail, "an event did not pass within 20 seconds"};
    std::this_thread::yield();
  }
  if (status != BP_OK) throw CaseEnd{Outcome::fail, fmt::format("event_wait returned {}", status_name(status))};
}

// The host waits for the event and then reads the data on another stream. Only this wait orders the
// read after the work.
void passes_behind_the_work(Context& context, How how) {
  Producer producer(context);
  Event event(context.device());
  for (unsigned round = 0; round < 64; ++round) {
    const Bytes data = producer.enqueue(context, context.below(1500));
    producer.stream.record(event.get());
    wait_for(event, how);
    require_same(context, download<unsigned char>(producer.to, kEventBytes), data,
                 "work before an event that has passed");
  }
}

// Checks that the host can read mapped memory as soon as the event has completed.
void mapped_behind_the_work(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device& device = context.device();
  Producer producer(context);
  Buffer mapped(device, kEventBytes, kind);
  char* const address = mapped.map();
  Event event(device);
  for (unsigned round = 0; round < 32; ++round) {
    const Bytes data = producer.enqueue(context, context.below(1500));
    producer.stream.copy(mapped.get(), 0, producer.to.get(), 0, kEventBytes);
    producer.stream.record(event.get());
    event.wait();
    require_same(context, Bytes(address, address + kEventBytes), data, "mapped memory after an event that has passed");
  }
}

void record_again(Context& context) {
  Producer producer(context);
  Event event(context.device());
  for (unsigned round = 0; round < 32; ++round) {
    producer.stream.record(event.get());
    producer.stream.record(event.get());
    const Bytes data = producer.enqueue(context, context.below(1500));
    producer.stream.record(event.get());
    event.wait();
    require_same(context, download<unsigned char>(producer.to, kEventBytes), data, "work before the latest record");
  }
}

// Records an event first on one stream, and then on another stream. The event completes when the
// work before the latest event_record call has completed, even if the work on the first stream
// takes longer.
void record_on_another_stream(Context& context) {
  Producer first(context), second(context);
  Event event(context.device());
  for (unsigned round = 0; round < 24; ++round) {
    first.enqueue(context, context.below(1000));
    first.stream.record(event.get());
    const Bytes data = second.enqueue(context, context.below(1000));
    second.stream.record(event.get());
    event.wait();
    require_same(context, download<unsigned char>(second.to, kEventBytes), data, "work before the latest record");
    first.stream.wait();
  }
}

// Starts a wait for an event, and then records the event again. The wait must return when the work
// before the first event_record call has completed, and must not wait for later work.
void wait_keeps_its_record(Context& context) {
  Device& device = context.device();
  if (device.has(BP_CAP_SYNCHRONOUS)) return;
  Delay delay(context);
  Stream stream(device);
  Event event(device), last(device);
  for (unsigned attempt = 0; attempt < kDelayAttempts; ++attempt) {
    delay.enqueue(stream, longer_delay(attempt) / 2);
    stream.record(event.get());
    std::atomic<bool> begun{false}, behind{false};
    std::exception_ptr failure;
    {
      const std::jthread waiter([&] {
        try {
          begun = true;
          event.wait();
          behind = last.wait_for(0) == BP_TIMEOUT;
        } catch (...) {
          failure = std::current_exception();
        }
      });
      while (!begun) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      delay.enqueue(stream, longer_delay(attempt));
      stream.record(last.get());
      stream.record(event.get());
    }
    if (failure != nullptr) std::rethrow_exception(failure);
    stream.wait();
    if (behind) return;
  }
  context.fail("a wait for an event always lasted until work had completed that was enqueued after the wait began");
}

void destroyed_after_record(Context& context) {
  Producer producer(context);
  for (unsigned round = 0; round < 32; ++round) {
    const Bytes data = producer.enqueue(context, context.below(1000));
    {
      const Event event(context.device());
      producer.stream.record(event.get());
    }
    const Event other(context.device());  // may reuse the address of the destroyed event
    producer.stream.wait();
    require_same(context, download<unsigned char>(producer.to, kEventBytes), data, "work whose event was destroyed");
  }
}

void of_an_ended_stream(Context& context) {
  Device& device = context.device();
  Event event(device);
  Buffer from(device, kEventBytes), to(device, kEventBytes);
  const Bytes data = noise(context, kEventBytes);
  upload(from, data);
  for (int round = 0; round < 16; ++round) {
    {
      Stream stream(device);
      stream.copy(to.get(), 0, from.get(), 0, kEventBytes);
      stream.record(event.get());
      stream.wait();
    }
    context.require(event.wait_for(0) == BP_OK, "an event whose stream has ended does not count as passed");
    event.wait();
    Stream other(device);
    other.wait_event(event.get());
    other.record(event.get());
    other.wait();
  }
  require_same(context, download<unsigned char>(to, kEventBytes), data, "work of a stream that has ended");
}

// Checks that one thread can enqueue to a stream while another thread waits for an event on this
// stream.
void wait_leaves_the_stream_alone(Context& context) {
  Producer producer(context);
  Event event(context.device());
  Buffer extra(context.device(), kEventBytes);
  const Bytes data = producer.enqueue(context, 8000);
  producer.stream.record(event.get());
  std::exception_ptr failure;
  {
    const std::jthread waiter([&] {
      try {
        event.wait();
      } catch (...) {
        failure = std::current_exception();
      }
    });
    for (int i = 0; i < 100; ++i) producer.stream.copy(extra.get(), 0, producer.to.get(), 0, kEventBytes);
  }
  if (failure != nullptr) std::rethrow_exception(failure);
  producer.stream.wait();
  require_same(context, download<unsigned char>(extra, kEventBytes), data,
               "work enqueued while an event was waited on");
}

void waited_on_by_threads(Context& context) {
  Producer producer(context);
  Device& device = context.device();
  Event event(device);
  std::atomic<bool> stop{false};
  std::exception_ptr failure;
  std::jthread recorder([&] {
    try {
      for (unsigned round = 0; round < 200; ++round) {
        producer.stream.copy(producer.to.get(), 0, producer.from.get(), 0, kEventBytes);
        producer.stream.record(event.get());
      }
    } catch (...) {
      failure = std::current_exception();
    }
    stop = true;
  });
  std::exception_ptr other;
  try {
    in_threads(context, 6, [&](unsigned index) {
      Stream own(device);
      while (!stop) {
        const bp_status status = event.wait_for(index % 2 == 0 ? 0 : 50'000);
        context.require(status == BP_OK || status == BP_TIMEOUT, "event_wait returned {}", status_name(status));
        own.wait_event(event.get());
      }
      own.wait();
    });
  } catch (...) {
    other = std::current_exception();
    stop = true;
  }
  recorder.join();
  if (failure != nullptr) std::rethrow_exception(failure);
  if (other != nullptr) std::rethrow_exception(other);
  producer.stream.wait();
  event.wait();
}

// Checks that event_record submits the earlier work of the stream. The case only polls the event,
// until the event has completed.
void record_submits(Context& context) {
  Producer producer(context);
  Event event(context.device());
  for (unsigned round = 0; round < 16; ++round) {
    const Bytes data = producer.enqueue(context, 300);
    producer.stream.record(event.get());
    const uint64_t begin = now_ns();
    bp_status status = BP_TIMEOUT;
    while (status == BP_TIMEOUT && now_ns() - begin < 20'000'000'000) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      status = event.wait_for(0);
    }
    context.require(status == BP_OK, "an event that was only polled did not pass: the record did not submit");
    require_same(context, download<unsigned char>(producer.to, kEventBytes), data, "work that a record submitted");
  }
}

}  // namespace

void add_event_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.event." + std::move(what), std::move(requirements), std::move(run));
  };
  add("never_recorded", {"BP-EVT-001"}, [](Context& context) { never_recorded(context, 0); });
  add_case(
      catalogue, "runtime.event.never_recorded_with_timing", {"BP-EVT-001"},
      [](Context& context) { never_recorded(context, BP_EVENT_TIMING); }, "TIMING");
  for (const auto& [name, how] : {std::pair{"waited_on", How::wait}, std::pair{"polled", How::poll},
                                  std::pair{"waited_on_in_pieces", How::short_waits}})
    add(fmt::format("passes_behind_the_work.{}", name), {"BP-EVT-002", "BP-EVT-007"},
        [how = how](Context& context) { passes_behind_the_work(context, how); });
  for (const uint32_t kind : {BP_MEMORY_HOST, BP_MEMORY_SHARED})
    add_case(
        catalogue, fmt::format("runtime.event.passes_behind_the_work.mapped_{}", kind_name(kind)),
        {"BP-EVT-002", "BP-BUF-011"}, [kind](Context& context) { mapped_behind_the_work(context, kind); },
        kind_extension(kind));
  add("record_again", {"BP-EVT-004"}, record_again);
  add("record_on_another_stream", {"BP-EVT-004"}, record_on_another_stream);
  add("wait_keeps_its_record", {"BP-EVT-004"}, wait_keeps_its_record);
  add("destroyed_after_record", {"BP-EVT-005"}, destroyed_after_record);
  add("of_an_ended_stream", {"BP-EVT-006"}, of_an_ended_stream);
  add("wait_leaves_the_stream_alone", {"BP-EVT-007"}, wait_leaves_the_stream_alone);
  add("waited_on_by_threads", {"BP-EVT-014", "BP-THR-002"}, waited_on_by_threads);
  add("record_submits", {"BP-EVT-008"}, record_submits);
}

}  // namespace backplane::conformance
