// SPDX-License-Identifier: Apache-2.0
// Test cases for leaks of each kind of object, call and rejection.
#include "cases/support/leak.hpp"
#include "cases/negative/refusals.hpp"
#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/samples.hpp"

namespace backplane::conformance {

namespace {

void of_buffers(Context& context, uint32_t kind, uint64_t bytes) {
  need_kind(context, kind);
  Device& device = context.device();
  expect_no_leak(context, "creating and destroying a buffer", 256, [&] { const Buffer made(device, bytes, kind); });
}

void of_mapped_buffers(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device& device = context.device();
  expect_no_leak(context, "creating, mapping and destroying a buffer", 256, [&] {
    Buffer made(device, 1000, kind);
    *made.map() = 1;
  });
}

void of_streams(Context& context, bool used) {
  Device& device = context.device();
  Buffer from(device, 64), to(device, 64);
  expect_no_leak(context, "creating and destroying a stream", 64, [&] {
    Stream made(device);
    if (!used) return;
    made.copy(to.get(), 0, from.get(), 0, 64);
    made.wait();
  });
}

void of_events(Context& context, uint32_t flags, bool used) {
  Device& device = context.device();
  if (flags != 0 && !device.has(BP_CAP_TIMING)) context.not_claimed("the device has no BP_CAP_TIMING");
  Stream stream(device), other(device);
  expect_no_leak(context, "creating and destroying an event", 512, [&] {
    const Event made(device, flags);
    if (!used) return;
    stream.record(made.get());
    other.wait_event(made.get());
    stream.record(made.get());
  });
  stream.wait();
  other.wait();
}

void of_waits(Context& context) {
  Device& device = context.device();
  Stream stream(device);
  Event event(device);
  expect_no_leak(context, "recording, waiting and polling", 512, [&] {
    stream.record(event.get());
    event.wait_for(0);
    stream.wait_for(0);
    event.wait();
    stream.wait();
  });
}

// Checks that waits for pending work do not leak. The cycle keeps work pending most of the time, so
// most waits return TIMEOUT.
void of_pending_waits(Context& context, uint64_t timeout_ns, unsigned count) {
  Device& device = context.device();
  if (device.has(BP_CAP_SYNCHRONOUS)) return;  // a synchronous device never has pending work
  Delay delay(context);
  Stream stream(device);
  Event event(device);
  // The first delay touches the delay's memory, which makes the memory resident. This must happen
  // before the measurement, which would otherwise count the resident memory as a leak.
  delay.enqueue(stream, 5000);
  stream.wait();
  expect_no_leak(context, timeout_ns == 0 ? "polling what is pending" : "a wait that times out", count, [&] {
    if (event.wait_for(timeout_ns) == BP_OK) {
      delay.enqueue(stream, 5000);
      stream.record(event.get());
    }
    stream.wait_for(timeout_ns);
  });
  stream.wait();
}

void of_copies(Context& context) {
  Device& device = context.device();
  Buffer from(device, 4096), to(device, 4096);
  Stream stream(device);
  expect_no_leak(context, "a copy", 512, [&] {
    stream.copy(to.get(), 7, from.get(), 3, 1000);
    stream.wait();
  });
}

void of_transfers(Context& context) {
  Device& device = context.device();
  Buffer buffer(device, 4096);
  Bytes host(4096);
  expect_no_leak(context, "moving bytes in and out", 256, [&] {
    device.write(buffer.get(), 0, host.data(), host.size());
    device.read(buffer.get(), 0, host.data(), host.size());
  });
}

void of_devices(Context& context, bool used) {
  Plugin& plugin = context.plugin();
  expect_no_leak(context, "opening and closing a device", 32, [&] {
    Device device(plugin, context.device_index());
    if (!used) return;
    const Buffer buffer(device, 4096);
    Stream stream(device);
    const Event event(device);
    stream.record(event.get());
    stream.wait();
  });
}

void of_questions(Context& context) {
  Plugin& plugin = context.plugin();
  expect_no_leak(context, "device_count and device_info", 512, [&] {
    plugin.device_count();
    plugin.device_info(context.device_index());
  });
}

void of_plans(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  OpDesc desc = sample(op, usual_dtype(op));
  expect_no_leak(context, "creating and destroying a plan", 512, [&] { const Plan plan(device, desc.get()); });
}

// Creates plans of up to 4096 different shapes. The plugin's plan cache may grow, but only up to a limit.
void of_plans_of_many_shapes(Context& context, const bph_op_info& op) {
  constexpr int64_t shapes = 4096;
  Device& device = context.device();
  int64_t row_count = 1;
  const auto cycle = [&] {
    OpDesc desc = sample_of_rows(op, usual_dtype(op), 1 + row_count++ % shapes);
    const Plan plan(device, desc.get());
  };
  expect_no_leak(context, "plans of many shapes", 512, cycle, shapes);
}

void of_executions(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  OpDesc desc = sample_of_rows(op, usual_dtype(op), 8);
  Operands operands(context, op, desc);
  Runner runner(device, desc);
  Stream stream(device);
  expect_no_leak(context, "an execution", 256, [&] {
    operands.enqueue(stream, runner);
    stream.wait();
  });
}

void of_refusals(Context& context, const std::string& slot) {
  std::vector<Refusal> all;
  for (Refusal& refusal : all_refusals())
    if (refusal.slot == slot) all.push_back(std::move(refusal));
  if (slot == "plan_create")
    for (Refusal& refusal : operator_refusals()) all.push_back(std::move(refusal));
  const unsigned count = std::max<unsigned>(slot == "query" ? 16 : 64, static_cast<unsigned>(all.size()));
  size_t next = 0;
  expect_no_leak(context, fmt::format("refusals of {}", slot), count, [&] {
    ErrorRecord error;
    all[next++ % all.size()].call(context, &error);
  });
}

}  // namespace

void add_leak_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements, std::function<void(Context&)> run,
                       std::string_view extension = "") {
    add_case(catalogue, "runtime.leak." + std::move(what), std::move(requirements), std::move(run), extension);
  };
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    for (const uint64_t bytes : {1u, 1000u, 65536u, 4194304u})
      add(
          fmt::format("{}_buffer_of_{}_bytes", kind_name(kind), bytes), {"BP-BUF-014"},
          [=](Context& context) { of_buffers(context, kind, bytes); }, kind_extension(kind));
    if (kind != BP_MEMORY_DEVICE)
      add(
          fmt::format("{}_buffer_mapped", kind_name(kind)), {"BP-BUF-014"},
          [=](Context& context) { of_mapped_buffers(context, kind); }, kind_extension(kind));
  }
  for (const bool used : {false, true}) {
    const char* const how = used ? "used" : "unused";
    add(fmt::format("stream_{}", how), {"BP-STR-008"}, [used](Context& context) { of_streams(context, used); });
    add(fmt::format("event_{}", how), {"BP-EVT-013"}, [used](Context& context) { of_events(context, 0, used); });
    add(
        fmt::format("event_with_timing_{}", how), {"BP-EVT-013"},
        [used](Context& context) { of_events(context, BP_EVENT_TIMING, used); }, "TIMING");
    add(fmt::format("device_{}", how), {"BP-LIFE-001"}, [used](Context& context) { of_devices(context, used); });
  }
  add("waits", {"BP-EVT-013"}, of_waits);
  add("polls_of_pending_work", {"BP-LIFE-005"}, [](Context& context) { of_pending_waits(context, 0, 2048); });
  add("waits_that_time_out", {"BP-LIFE-005"}, [](Context& context) { of_pending_waits(context, 1000, 128); });
  add("copies", {"BP-LIFE-004"}, of_copies);
  add("transfers", {"BP-LIFE-004"}, of_transfers);
  add("device_questions", {"BP-LIFE-001"}, of_questions);
  for (const char* slot : {"query", "device_info", "device_open", "memory_info", "buffer_create", "buffer_map",
                           "stream_create", "event_create", "event_elapsed", "plan_create"})
    add(
        fmt::format("refusals_of_{}", slot), {"BP-LIFE-002"}, [slot](Context& context) { of_refusals(context, slot); },
        std::string_view(slot) == "event_elapsed" ? "TIMING"
        : std::string_view(slot) == "buffer_map"  ? "HOST_MEMORY"
                                                  : "");
  for (const bph_op_info& op : primitives()) {
    const auto add_op = [&](const char* what, std::string_view requirement, void (*run)(Context&, const bph_op_info&)) {
      catalogue.push_back({.id = fmt::format("runtime.leak.{}_{}", op.name, what),
                           .profile = op.profile,
                           .op = op.op,
                           .requirements = {requirement},
                           .run = [op, run](Context& context) { run(context, op); }});
    };
    add_op("plan", "BP-PLAN-015", of_plans);
    add_op("plans_of_many_shapes", "BP-PLAN-015", of_plans_of_many_shapes);
    add_op("execution", "BP-LIFE-003", of_executions);
  }
}

}  // namespace backplane::conformance
