// SPDX-License-Identifier: Apache-2.0
// Test cases for event_elapsed: unit, sign, readiness, and several streams.
#include <chrono>
#include <thread>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"

namespace backplane::conformance {

namespace {

void need_timing(Context& context) {
  if (!context.device().has(BP_CAP_TIMING)) context.not_claimed("the device has no BP_CAP_TIMING");
}

bp_status elapsed_status(Device& device, const Event& begin, const Event& end, int64_t& ns, ErrorRecord& error) {
  return device->event_elapsed(device.get(), begin.get(), end.get(), &ns, &error);
}
int64_t elapsed(const Event& begin, const Event& end) {
  ErrorRecord error;
  int64_t ns = 0;
  expect_status(elapsed_status(begin.device(), begin, end, ns, error), error, "event_elapsed", {BP_OK});
  return ns;
}

// Compares the elapsed time with two bounds. The upper bound is slightly above the time that the host measures around
// the work. The lower bound is 1/200 of the host's time, or of the calibrated time of at most 48 copies if that is
// shorter. The lower bound is this low because load may have lengthened the calibration. A wrong unit changes the time
// by a factor of at least a thousand, and so violates a bound.
void in_nanoseconds(Context& context, uint64_t microseconds) {
  need_timing(context);
  Device& device = context.device();
  Delay delay(context);
  Stream stream(device);
  const Event begin(device, BP_EVENT_TIMING), end(device, BP_EVENT_TIMING);
  // Load may have lengthened the calibration so much that one copy is longer than the given time.
  microseconds = std::max(microseconds, 4 * delay.copy_ns() / 1000);
  for (int round = 0; round < 3; ++round) {
    const uint64_t from = now_ns();
    stream.record(begin.get());
    delay.enqueue(stream, microseconds);
    stream.record(end.get());
    stream.wait();
    const uint64_t host = now_ns() - from;
    const int64_t ns = elapsed(begin, end);
    context.require(ns > 0, "event_elapsed gave {} ns for {} microseconds of copies", ns, microseconds);
    context.require(static_cast<uint64_t>(ns) <= host + host / 10 + 1'000'000,
                    "event_elapsed gave {} ns for work that the host saw end within {} ns", ns, host);
    const uint64_t copies = std::min<uint64_t>(48, microseconds * 1000 / delay.copy_ns());
    context.require(
        static_cast<uint64_t>(ns) * 100 >= copies * std::min(delay.copy_ns(), host / std::max<uint64_t>(copies, 1)) / 2,
        "event_elapsed gave {} ns for {} copies of {} ns each", ns, copies, delay.copy_ns());
  }
}

void negative_if_end_came_first(Context& context) {
  need_timing(context);
  Device& device = context.device();
  Delay delay(context);
  Stream stream(device);
  const Event first(device, BP_EVENT_TIMING), second(device, BP_EVENT_TIMING);
  stream.record(first.get());
  delay.enqueue(stream, 3000);
  stream.record(second.get());
  stream.wait();
  const int64_t forward = elapsed(first, second), back = elapsed(second, first);
  context.require(forward > 0 && back < 0, "from first to second event_elapsed gave {}, from second to first {}",
                  forward, back);
  context.require(forward == -back, "event_elapsed gave {} one way and {} the other", forward, back);
  context.require(elapsed(first, first) == 0, "event_elapsed from an event to itself is not 0");
}

void adds_up(Context& context) {
  need_timing(context);
  Device& device = context.device();
  Delay delay(context);
  Stream stream(device);
  std::vector<Event> events;
  for (int i = 0; i < 5; ++i) {
    events.emplace_back(device, BP_EVENT_TIMING);
    stream.record(events.back().get());
    delay.enqueue(stream, 500);
  }
  stream.wait();
  int64_t sum = 0;
  for (size_t i = 1; i < events.size(); ++i) {
    const int64_t part = elapsed(events[i - 1], events[i]);
    context.require(part >= 0, "event {} is {} ns before the one recorded before it", i, -part);
    sum += part;
  }
  const int64_t whole = elapsed(events.front(), events.back());
  context.require(std::abs(whole - sum) <= 4000 + whole / 100, "parts of {} ns make a whole of {} ns", sum, whole);
}

// The case queries the elapsed time before it polls the event. So an event that is pending at the
// poll was also pending at the query.
void not_ready_while_pending(Context& context) {
  need_timing(context);
  Device& device = context.device();
  if (device.has(BP_CAP_SYNCHRONOUS)) return;
  Delay delay(context);
  Stream stream(device);
  Event begin(device, BP_EVENT_TIMING), end(device, BP_EVENT_TIMING);
  bool seen = false;
  for (unsigned attempt = 0; attempt < kDelayAttempts && !seen; ++attempt) {
    stream.record(begin.get());
    delay.enqueue(stream, longer_delay(attempt));
    stream.record(end.get());
    ErrorRecord error;
    int64_t ns = 0;
    const bp_status status = elapsed_status(device, begin, end, ns, error);
    const bool pending = end.wait_for(0) == BP_TIMEOUT;
    expect_status(status, error, "event_elapsed", {BP_OK, BP_NOT_READY});
    context.require(!pending || status == BP_NOT_READY, "event_elapsed returned {} before both events had passed",
                    status_name(status));
    seen = pending;
    stream.wait();
    context.require(elapsed(begin, end) > 0, "event_elapsed gave nothing once both events had passed");
  }
  if (!seen) context.suspect("the events had always passed at the query");
}

void across_streams(Context& context) {
  need_timing(context);
  Device& device = context.device();
  Delay delay(context);
  Stream first(device), second(device);
  const Event begin(device, BP_EVENT_TIMING), end(device, BP_EVENT_TIMING);
  const uint64_t from = now_ns();
  first.record(begin.get());
  delay.enqueue(first, 2000);
  const Event passed(device);
  first.record(passed.get());
  second.wait_event(passed.get());
  second.record(end.get());
  second.wait();
  first.wait();
  const auto host = static_cast<int64_t>(now_ns() - from);
  ErrorRecord error;
  int64_t ns = 0;
  const bp_status status = elapsed_status(device, begin, end, ns, error);
  expect_status(status, error, "event_elapsed", {BP_OK, BP_UNSUPPORTED});
  if (status == BP_OK)
    context.require(ns > 0 && ns <= host + host / 10 + 1'000'000, "across streams event_elapsed gave {} ns of {} ns",
                    ns, host);
}

// Measures times of several seconds, which exceed 2^31 and 2^32 nanoseconds. The host waits for the
// first event, then sleeps, and then records the second event. So the host's clock provides a lower
// and an upper bound.
void of_seconds(Context& context) {
  need_timing(context);
  Device& device = context.device();
  Stream stream(device);
  const Event begin(device, BP_EVENT_TIMING), middle(device, BP_EVENT_TIMING), end(device, BP_EVENT_TIMING);
  const uint64_t before = now_ns();
  stream.record(begin.get());
  stream.wait();
  const uint64_t passed = now_ns();
  const auto check = [&](const Event& later, uint64_t milliseconds) {
    const uint64_t until = passed + milliseconds * 1'000'000;
    std::this_thread::sleep_for(std::chrono::nanoseconds(until - std::min(now_ns(), until)));
    const auto least = static_cast<int64_t>(now_ns() - passed);
    stream.record(later.get());
    stream.wait();
    const auto most = static_cast<int64_t>(now_ns() - before);
    const int64_t ns = elapsed(begin, later);
    context.require(ns >= least - least / 50 && ns <= most + most / 50,
                    "event_elapsed gave {} ns for what lasted {} to {} ns", ns, least, most);
    context.require(elapsed(later, begin) == -ns, "event_elapsed gave {} ns one way and {} the other", ns,
                    elapsed(later, begin));
  };
  check(middle, 2200);
  check(end, 4350);
}

// Checks that event_elapsed uses the latest event_record call for each event.
void recorded_again(Context& context) {
  need_timing(context);
  Device& device = context.device();
  Delay delay(context);
  Stream stream(device);
  const Event begin(device, BP_EVENT_TIMING), end(device, BP_EVENT_TIMING);
  stream.record(end.get());
  stream.record(begin.get());
  delay.enqueue(stream, 3000);
  stream.record(end.get());
  stream.wait();
  context.require(elapsed(begin, end) > 0, "event_elapsed counts an earlier record");
}

}  // namespace

void add_timing_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::string_view requirement, std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.timing." + std::move(what), {requirement, "BP-DEV-017"}, std::move(run), "TIMING");
  };
  for (const uint64_t microseconds : {3000u, 10000u})
    add(fmt::format("in_nanoseconds.of_{}_us", microseconds), "BP-EVT-010",
        [microseconds](Context& context) { in_nanoseconds(context, microseconds); });
  add("negative_if_end_came_first", "BP-EVT-010", negative_if_end_came_first);
  add("adds_up", "BP-EVT-010", adds_up);
  add("not_ready_while_pending", "BP-EVT-011", not_ready_while_pending);
  add("across_streams", "BP-EVT-010", across_streams);
  add("recorded_again", "BP-EVT-010", recorded_again);
  add("of_seconds", "BP-EVT-010", of_seconds);
}

}  // namespace backplane::conformance
