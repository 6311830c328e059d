// SPDX-License-Identifier: Apache-2.0
// Test cases for timeouts, and for slots that must or must not wait. The cases use no clock to
// detect a wait: a slot that returns while work is pending did not wait for this work.
#include <functional>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

void expect(bp_status status, std::string_view slot, std::initializer_list<bp_status> expected) {
  for (const bp_status each : expected)
    if (status == each) return;
  throw CaseEnd{Outcome::fail, fmt::format("{} returned {}", slot, status_name(status))};
}

// Objects that the tested slots need, created before the stream is filled with work.
struct Objects {
  explicit Objects(Context& context)
      : device(context.device()),
        other(device),
        event(device),
        recorded(device),
        from(device, 4096),
        to(device, 4096),
        runner(device, elementwise(BP_OP_NEG, BP_I32, 1024)) {
    other.record(recorded.get());
    other.wait();
  }
  Device& device;
  Stream other;
  Event event, recorded;
  Buffer from, to;
  Runner runner;
  std::vector<Stream> made;
};

struct Slot {
  const char* name;
  std::string_view requirement;
  void (*call)(Objects& objects, Stream& busy);
};
constexpr Slot kSlots[] = {
    {"copy", "BP-STR-011", [](Objects& o, Stream& busy) { busy.copy(o.to.get(), 0, o.from.get(), 0, 4096); }},
    {"plan_execute", "BP-STR-011",
     [](Objects& o, Stream& busy) { o.runner.enqueue(busy.get(), {{o.from.get()}}, {{o.to.get()}}); }},
    {"event_record", "BP-STR-011", [](Objects& o, Stream& busy) { busy.record(o.event.get()); }},
    {"stream_wait_event_of_the_busy", "BP-EVT-015",
     [](Objects& o, Stream& busy) {
       busy.record(o.event.get());
       o.other.wait_event(o.event.get());
     }},
    {"stream_wait_event_by_the_busy", "BP-EVT-015",
     [](Objects& o, Stream& busy) { busy.wait_event(o.recorded.get()); }},
    {"stream_wait_poll", "BP-STR-002",
     [](Objects&, Stream& busy) {
       expect(busy.wait_for(0), "stream_wait", {BP_OK, BP_TIMEOUT});
     }},
    {"event_wait_poll", "BP-EVT-007",
     [](Objects& o, Stream& busy) {
       busy.record(o.event.get());
       expect(o.event.wait_for(0), "event_wait", {BP_OK, BP_TIMEOUT});
     }},
    {"event_wait_of_a_passed_one", "BP-EVT-007", [](Objects& o, Stream&) { o.recorded.wait(); }},
    {"event_create", "BP-EVT-013", [](Objects& o, Stream&) { const Event made(o.device); }},
    {"event_destroy_of_a_pending_one", "BP-EVT-005",
     [](Objects& o, Stream& busy) {
       const Event made(o.device);
       busy.record(made.get());
     }},
    {"stream_create", "BP-STR-010", [](Objects& o, Stream&) { o.made.emplace_back(o.device); }},
    {"memory_info", "BP-MEMI-004",
     [](Objects& o, Stream&) {
       bp_memory_info info = {};
       info.struct_size = sizeof(info);
       expect(o.device->memory_info(o.device.get(), BP_MEMORY_DEVICE, &info, nullptr), "memory_info", {BP_OK});
     }},
    {"plan_create", "BP-PLAN-018",
     [](Objects& o, Stream&) {
       OpDesc desc = elementwise(BP_OP_ADD, BP_U32, 512);
       const Plan plan(o.device, desc.get());
     }},
    {"plan_create_question", "BP-PLAN-008",
     [](Objects& o, Stream&) {
       OpDesc desc = elementwise(BP_OP_MUL, BP_F32, 512);
       bp_plan_info info = {};
       info.struct_size = sizeof(info);
       expect(o.device->plan_create(o.device.get(), &desc.get(), nullptr, &info, nullptr), "plan_create", {BP_OK});
     }},
    {"plan_destroy_of_a_pending_one", "BP-PLAN-010",
     [](Objects& o, Stream& busy) {
       Runner made(o.device, elementwise(BP_OP_NEG, BP_I32, 64));
       if (made.workspace() == nullptr) made.enqueue(busy.get(), {{o.from.get()}}, {{o.to.get()}});
     }},
};

void copies_in_and_out(Context& context, bool in) {
  Device& device = context.device();
  if (device->copy_in == nullptr || device->copy_out == nullptr)
    context.not_claimed("the device has no copy_in and copy_out");
  Buffer buffer(device, 1u << 16);
  std::vector<unsigned char> host(1u << 16);
  require_no_wait(context, in ? "copy_in" : "copy_out", [&](Stream& busy) {
    ErrorRecord error;
    if (in) {
      expect_ok(device->copy_in(device.get(), busy.get(), buffer.get(), 0, host.data(), host.size(), &error), error,
                "copy_in");
    } else {
      expect_ok(device->copy_out(device.get(), busy.get(), host.data(), buffer.get(), 0, host.size(), &error), error,
                "copy_out");
    }
  });
}

void maps_without_waiting(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Buffer buffer(context.device(), 4096, kind);
  require_no_wait(context, "buffer_map", [&](Stream&) { buffer.map(); });
}

void elapsed_without_waiting(Context& context) {
  Device& device = context.device();
  if (!device.has(BP_CAP_TIMING)) context.not_claimed("the device has no BP_CAP_TIMING");
  const Event begin(device, BP_EVENT_TIMING), end(device, BP_EVENT_TIMING);
  require_no_wait(context, "event_elapsed", [&](Stream& busy) {
    busy.record(begin.get());
    busy.record(end.get());
    int64_t ns = 0;
    expect(device->event_elapsed(device.get(), begin.get(), end.get(), &ns, nullptr), "event_elapsed",
           {BP_OK, BP_NOT_READY});
  });
}

// Checks a wait whose timeout is shorter than the work. At least one of many attempts must return
// TIMEOUT, and no attempt may return TIMEOUT too early. If kDelayAttempts * 2 / 3 or more waits
// return too late, the case fails, because the plugin ignores the timeout or uses a wrong unit.
void times_out(Context& context, uint64_t timeout_ns, bool of_event) {
  Device& device = context.device();
  if (device.has(BP_CAP_SYNCHRONOUS)) return;
  Delay delay(context);
  Stream stream(device);
  Event event(device);
  Buffer from(device, 4096), to(device, 4096);
  const Bytes data = noise(context, 4096);
  upload(from, data);
  upload(to, Bytes(4096, 0));
  bool timed_out = false;
  unsigned outlasted = 0;  // number of waits that returned too late; a busy machine may cause a few
  for (unsigned attempt = 0;
       attempt < kDelayAttempts * kDelayRounds && outlasted < kDelayAttempts * 2 / 3 && !timed_out; ++attempt) {
    delay.enqueue(stream, timeout_ns / 1000 * 3 + longer_delay(attempt));
    stream.copy(to.get(), 0, from.get(), 0, 4096);
    stream.record(event.get());
    ErrorRecord error;
    const uint64_t begin = now_ns();
    const bp_status status = of_event ? device->event_wait(device.get(), event.get(), timeout_ns, &error)
                                      : device->stream_wait(device.get(), stream.get(), timeout_ns, &error);
    const uint64_t took = now_ns() - begin;
    expect_status(status, error, of_event ? "event_wait" : "stream_wait", {BP_OK, BP_TIMEOUT});
    context.require(status != BP_TIMEOUT || took >= timeout_ns - timeout_ns / 8,
                    "a wait of {} ns returned TIMEOUT after {} ns", timeout_ns, took);
    timed_out = status == BP_TIMEOUT && took < 10 * (timeout_ns + kLateNs);
    if (!timed_out && took > timeout_ns + kLateNs) ++outlasted;
    stream.wait();
  }
  require_same(context, download<unsigned char>(to, 4096), data, "work that a wait gave up on");
  if (timed_out) return;
  if (outlasted < kDelayAttempts * 2 / 3)
    context.suspect("the device is idle before {} ns have passed: nothing can be concluded", timeout_ns);
  context.fail("a wait of {} ns lasted until the work had ended, or many times its own time", timeout_ns);
}

// Checks that a wait with a long timeout returns soon after the work has completed. The limit of
// 15 seconds exceeds the effect of any load.
void ends_with_the_work(Context& context, bool of_event) {
  Device& device = context.device();
  Delay delay(context);
  Stream stream(device);
  Event event(device);
  for (const uint64_t timeout :
       {uint64_t{20'000'000'000}, uint64_t{1} << 62, UINT64_MAX - 1, uint64_t{BP_WAIT_FOREVER}}) {
    delay.enqueue(stream, 1500);
    stream.record(event.get());
    const uint64_t begin = now_ns();
    const bp_status status = of_event ? event.wait_for(timeout) : stream.wait_for(timeout);
    context.require(status == BP_OK, "a wait of {} ns returned {}", timeout, status_name(status));
    context.require(now_ns() - begin < 15'000'000'000, "a wait lasted {} s for a millisecond of work",
                    (now_ns() - begin) / 1'000'000'000);
    stream.wait();
  }
}

// Returns timeouts near the values at which a count of nanoseconds, microseconds, milliseconds or
// seconds exceeds 31, 32 or 63 bits. Each timeout is at least two seconds, and the work takes
// milliseconds, so each wait succeeds.
std::vector<uint64_t> edges_of(uint64_t unit_ns) {
  std::vector<uint64_t> edges;
  for (const unsigned bits : {31u, 32u, 63u}) {
    const uint64_t count = uint64_t{1} << bits;
    if (count > UINT64_MAX / unit_ns - 2) continue;
    for (const uint64_t timeout : {count * unit_ns - 1, count * unit_ns, count * unit_ns + 1, (count + 1) * unit_ns})
      edges.push_back(timeout);
  }
  return edges;
}
void outlasts_the_work(Context& context, const std::vector<uint64_t>& timeouts, bool of_event) {
  Device& device = context.device();
  if (device.has(BP_CAP_SYNCHRONOUS)) return;
  Delay delay(context);
  Stream stream(device);
  Event event(device);
  for (const uint64_t timeout : timeouts) {
    bool pending = false;
    for (unsigned attempt = 0; attempt < kDelayAttempts && !pending; ++attempt) {
      delay.enqueue(stream, longer_delay(attempt) / 2);
      stream.record(event.get());
      pending = stream.wait_for(0) == BP_TIMEOUT;
      const bp_status status = of_event ? event.wait_for(timeout) : stream.wait_for(timeout);
      context.require(status == BP_OK,
                      "a wait of {} ns, which is {} s, returned {} while milliseconds of work were pending", timeout,
                      timeout / 1'000'000'000, status_name(status));
      stream.wait();
    }
    if (!pending) context.suspect("the device is idle before it can be waited for: nothing can be concluded");
  }
}

}  // namespace

void add_wait_cases(Catalogue& catalogue) {
  for (const Slot& slot : kSlots)
    add_case(catalogue, fmt::format("runtime.no_wait.{}", slot.name), {slot.requirement, "BP-STR-011"},
             [&slot](Context& context) {
               Objects objects(context);
               require_no_wait(context, slot.name, [&](Stream& busy) { slot.call(objects, busy); });
               objects.other.wait();
             });
  add_case(
      catalogue, "runtime.no_wait.copy_in", {"BP-CPY-004", "BP-STR-011"},
      [](Context& context) { copies_in_and_out(context, true); }, "PAGEABLE_COPY");
  add_case(
      catalogue, "runtime.no_wait.copy_out", {"BP-CPY-005", "BP-STR-011"},
      [](Context& context) { copies_in_and_out(context, false); }, "PAGEABLE_COPY");
  add_case(catalogue, "runtime.no_wait.event_elapsed", {"BP-EVT-011"}, elapsed_without_waiting, "TIMING");
  for (const uint32_t kind : {BP_MEMORY_HOST, BP_MEMORY_SHARED})
    add_case(
        catalogue, fmt::format("runtime.no_wait.buffer_map_of_{}", kind_name(kind)), {"BP-BUF-008"},
        [kind](Context& context) { maps_without_waiting(context, kind); }, kind_extension(kind));
  for (const bool of_event : {false, true}) {
    const char* const noun = of_event ? "event" : "stream";
    const std::string_view requirement = of_event ? "BP-EVT-016" : "BP-STR-003";
    for (const uint64_t microseconds : {0u, 1u, 100u, 1000u, 3000u, 10000u})
      add_case(catalogue, fmt::format("runtime.timeout.{}_wait_of_{}_us", noun, microseconds),
               {requirement, of_event ? "BP-EVT-007" : "BP-STR-002", "BP-ERR-002"},
               [=](Context& context) { times_out(context, microseconds * 1000, of_event); });
    add_case(catalogue, fmt::format("runtime.timeout.{}_wait_ends_with_the_work", noun), {requirement},
             [of_event](Context& context) { ends_with_the_work(context, of_event); });
    for (const auto& [name, unit] : {std::pair{"ns", uint64_t{1}}, std::pair{"us", uint64_t{1'000}},
                                     std::pair{"ms", uint64_t{1'000'000}}, std::pair{"s", uint64_t{1'000'000'000}}})
      add_case(catalogue, fmt::format("runtime.timeout.{}_wait_at_edges_of_{}", noun, name),
               {requirement, "BP-STR-013"},
               [=, unit = unit](Context& context) { outlasts_the_work(context, edges_of(unit), of_event); });
    add_case(catalogue, fmt::format("runtime.timeout.{}_wait_at_edges_of_deadlines", noun), {requirement, "BP-STR-013"},
             [of_event](Context& context) {
               outlasts_the_work(
                   context,
                   {INT64_MAX - now_ns(), INT64_MAX - now_ns() + 1'000'000'000, UINT64_MAX - now_ns(), INT64_MAX,
                    uint64_t{INT64_MAX} + 1, UINT64_MAX / 2 + now_ns(), UINT64_MAX - 1'000'000'000, UINT64_MAX - 1},
                   of_event);
             });
  }
}

}  // namespace backplane::conformance
