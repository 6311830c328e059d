// SPDX-License-Identifier: Apache-2.0
// Test cases in which several threads use one device at once, each with its own streams.
#include <atomic>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/samples.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

constexpr unsigned kThreadCount = 8;

// All threads execute one plan at once. Each thread has its own stream, operands and workspace.
void one_plan(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  OpDesc desc = sample_of_rows(op, usual_dtype(op), 50);
  Runner runner(device, desc);
  const uint64_t bytes = runner.plan().info.workspace_bytes;
  std::vector<std::unique_ptr<Operands>> operands;
  std::vector<std::vector<Bytes>> expected;
  std::vector<Stream> streams;
  std::vector<Buffer> workspaces;
  for (unsigned i = 0; i < kThreadCount; ++i) {
    operands.push_back(std::make_unique<Operands>(context, op, desc));
    streams.emplace_back(device);
    workspaces.emplace_back(device, std::max<uint64_t>(bytes, 1));
    operands[i]->enqueue(streams[i], runner);  // computes the expected results, while no other execution runs
    streams[i].wait();
    expected.push_back(operands[i]->results());
    operands[i]->reset_outputs();
  }
  const bp_op_desc& shared = runner.desc().get();
  in_threads(context, kThreadCount, [&](unsigned index) {
    for (int i = 0; i < (op.shape_rule == BP_SHAPE_SCATTER ? 1 : 12); ++i) {
      ErrorRecord error;
      expect_ok(operands[index]->try_enqueue(streams[index].get(), runner.plan().get(), shared,
                                             bytes == 0 ? nullptr : workspaces[index].get(), 0, bytes, &error),
                error, "plan_execute");
    }
    streams[index].wait();
  });
  for (unsigned i = 0; i < kThreadCount; ++i) {
    const std::vector<Bytes> got = operands[i]->results();
    for (size_t output = 0; output < got.size(); ++output)
      require_same(context, got[output], expected[i][output], "one plan executed by eight threads at once");
  }
}

// All threads use an operator for the first time at once. The plugin may then create a kernel or a
// table concurrently. Afterwards one thread checks each result.
void first_use(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  OpDesc desc = sample_of_rows(op, usual_dtype(op), 50);
  std::vector<std::unique_ptr<Operands>> operands;
  std::vector<Stream> streams;
  for (unsigned i = 0; i < kThreadCount; ++i) {
    operands.push_back(std::make_unique<Operands>(context, op, desc));
    streams.emplace_back(device);
  }
  in_threads(context, kThreadCount, [&](unsigned index) {
    Runner runner(device, desc);
    operands[index]->enqueue(streams[index], runner);
    streams[index].wait();
  });
  Runner alone(device, desc);
  for (unsigned i = 0; i < kThreadCount; ++i) {
    const std::vector<Bytes> got = operands[i]->results();
    operands[i]->reset_outputs();
    operands[i]->enqueue(streams[i], alone);
    streams[i].wait();
    const std::vector<Bytes> expected = operands[i]->results();
    for (size_t output = 0; output < got.size(); ++output)
      require_same(context, got[output], expected[output], "the first plans of eight threads, executed at once");
  }
}

// All threads use plans, streams, events, buffers and copies at once.
void everything_at_once(Context& context) {
  Device& device = context.device();
  constexpr int64_t count = 2048;
  in_threads(context, kThreadCount, [&](unsigned index) {
    Stream stream(device), other(device);
    Buffer a(device, count * 4), b(device, count * 4), one(device, count * 4);
    Words start(count, index * 1000);
    device.write(a.get(), 0, start.data(), count * 4, stream.get());
    const Words ones(count, 1);
    device.write(one.get(), 0, ones.data(), count * 4, stream.get());
    for (unsigned round = 0; round < 20; ++round) {
      Runner add(device, elementwise(BP_OP_ADD, BP_U32, count));
      Event event(device);
      add.enqueue(stream.get(), {{a.get()}, {one.get()}}, {{b.get()}});
      stream.record(event.get());
      other.wait_event(event.get());
      other.copy(a.get(), 0, b.get(), 0, count * 4);
      other.record(event.get());
      stream.wait_event(event.get());
      const Buffer passing(device, 100 + round);
      if (round % 4 == 0) event.wait();
      stream.wait();
    }
    Words got(count);
    device.read(a.get(), 0, got.data(), count * 4, stream.get());
    require_same(context, got, Words(count, index * 1000 + 20), "a thread's own work among that of seven others");
  });
}

// Each thread uses one stream and one plan. All threads together make ten thousand executions.
void many_small_operators(Context& context) {
  Device& device = context.device();
  constexpr int64_t count = 64;
  in_threads(context, kThreadCount, [&](unsigned index) {
    Stream stream(device);
    Runner add(device, elementwise(BP_OP_ADD, BP_U32, count));
    Buffer a(device, count * 4), b(device, count * 4), one(device, count * 4);
    const Words zeros(count, index), ones(count, 1);
    device.write(a.get(), 0, zeros.data(), count * 4, stream.get());
    device.write(one.get(), 0, ones.data(), count * 4, stream.get());
    for (unsigned i = 0; i < 1250; ++i)
      add.enqueue(stream.get(), {{i % 2 == 0 ? a.get() : b.get()}, {one.get()}}, {{i % 2 == 0 ? b.get() : a.get()}});
    Words got(count);
    device.read(a.get(), 0, got.data(), count * 4, stream.get());
    require_same(context, got, Words(count, index + 1250), "1250 operators of one thread of eight");
  });
}

// One thread uses a stream while three other threads create and destroy streams.
void streams_come_and_go(Context& context) {
  Device& device = context.device();
  std::atomic<bool> stop{false};
  in_threads(context, 4, [&](unsigned index) {
    if (index != 0) {
      while (!stop) {
        Stream stream(device);
        const Event event(device);
        stream.record(event.get());
        stream.wait();
      }
      return;
    }
    try {
      constexpr int64_t count = 4096;
      Stream stream(device);
      Runner add(device, elementwise(BP_OP_ADD, BP_U32, count));
      Buffer a(device, count * 4), b(device, count * 4), one(device, count * 4);
      const Words zeros(count, 0), ones(count, 1);
      device.write(a.get(), 0, zeros.data(), count * 4, stream.get());
      device.write(one.get(), 0, ones.data(), count * 4, stream.get());
      for (unsigned i = 0; i < 400; ++i)
        add.enqueue(stream.get(), {{i % 2 == 0 ? a.get() : b.get()}, {one.get()}}, {{i % 2 == 0 ? b.get() : a.get()}});
      Words got(count);
      device.read(a.get(), 0, got.data(), count * 4, stream.get());
      require_same(context, got, Words(count, 400), "400 operators while other streams come and go");
    } catch (...) {
      stop = true;
      throw;
    }
    stop = true;
  });
}

}  // namespace

void add_concurrency_cases(Catalogue& catalogue) {
  const auto add = [&](const char* what, const bph_op_info& op, std::vector<std::string_view> requirements,
                       void (*run)(Context&, const bph_op_info&)) {
    catalogue.push_back({.id = fmt::format("runtime.threads.{}_{}", what, op.name),
                         .profile = op.profile,
                         .op = op.op,
                         .requirements = std::move(requirements),
                         .run = [op, run](Context& context) { run(context, op); }});
  };
  for (const bph_op_info& op : primitives()) {
    add("one_plan", op, {"BP-PLAN-011", "BP-THR-002"}, one_plan);
    add("first_use", op, {"BP-PLAN-001", "BP-THR-002", "BP-THR-010"}, first_use);
    catalogue.back().fresh = true;
  }
  add_case(catalogue, "runtime.threads.everything_at_once", {"BP-THR-002", "BP-EVT-003"}, everything_at_once);
  add_case(catalogue, "runtime.threads.many_small_operators", {"BP-THR-002", "BP-EXE-007"}, many_small_operators);
  add_case(catalogue, "runtime.threads.streams_come_and_go", {"BP-THR-002", "BP-STR-010"}, streams_come_and_go);
}

}  // namespace backplane::conformance
