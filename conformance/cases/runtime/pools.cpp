// SPDX-License-Identifier: Apache-2.0
// Test cases with more live objects and pending commands than a driver's fixed-size pools may hold.
// Each object has its own data.
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/samples.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kBytes = 256;
// Durations of work, in microseconds. The work should still be pending when the last of many calls
// returns. A busy machine needs the longer durations.
constexpr uint64_t kDelaysUs[] = {2000, 10000, 40000};

// Returns up to `wanted` streams, but at least four. A driver may run out of streams before
// `wanted` streams exist.
std::vector<Stream> streams_of(Context& context, unsigned wanted) {
  Device& device = context.device();
  std::vector<Owner<bp_stream, &bp_device_api::stream_destroy>> probes;
  for (unsigned i = 0; i < wanted; ++i) {
    bp_stream_desc desc = {};
    desc.struct_size = sizeof(desc);
    bp_stream* handle = nullptr;
    ErrorRecord error;
    const bp_status status = device->stream_create(device.get(), &desc, &handle, &error);
    if (i < 4) expect_ok(status, error, "stream_create");
    expect_status(status, error, "stream_create", {BP_OK, BP_OUT_OF_MEMORY});
    if (status != BP_OK) break;
    probes.emplace_back(device, handle);
  }
  const size_t count = probes.size();
  probes.clear();
  std::vector<Stream> streams;
  for (size_t i = 0; i < count; ++i) streams.emplace_back(device);
  return streams;
}

// Source buffers with different data, and one target buffer per source.
struct Pairs {
  Pairs(Context& context, size_t count, uint32_t kind = BP_MEMORY_DEVICE) {
    for (size_t i = 0; i < count; ++i) {
      from.emplace_back(context.device(), kBytes, kind);
      to.emplace_back(context.device(), kBytes);
    }
    renew(context);
  }
  void renew(Context& context) {
    data.clear();
    for (size_t i = 0; i < from.size(); ++i) {
      data.push_back(noise(context, kBytes));
      upload(from[i], data[i]);
      upload(to[i], Bytes(kBytes, 0));
    }
  }
  void copy(size_t i, Stream& stream) { stream.copy(to[i].get(), 0, from[i].get(), 0, kBytes); }
  void check(Context& context, size_t i, std::string_view what) {
    require_same(context, download<unsigned char>(to[i], kBytes), data[i], fmt::format("{}, number {}", what, i));
  }
  std::vector<Buffer> from, to;
  std::vector<Bytes> data;
};

void buffers(Context& context, unsigned count) {
  Device& device = context.device();
  std::vector<Buffer> all;
  std::vector<Bytes> data;
  for (unsigned i = 0; i < count; ++i) {
    all.emplace_back(device, kBytes);
    data.push_back(noise(context, kBytes));
    upload(all.back(), data.back());
  }
  for (unsigned i = 0; i < count; ++i)
    require_same(context, download<unsigned char>(all[i], kBytes), data[i], fmt::format("buffer {} of {}", i, count));
}

// For each mapping, the host writes data that the device reads, and reads data that the device
// wrote.
void mappings(Context& context, uint32_t kind, unsigned count) {
  need_kind(context, kind);
  Device& device = context.device();
  std::vector<Buffer> all;
  std::vector<char*> addresses;
  std::vector<Bytes> data;
  for (unsigned i = 0; i < count; ++i) {
    all.emplace_back(device, kBytes, kind);
    addresses.push_back(all.back().map());
    data.push_back(noise(context, kBytes));
    std::memcpy(addresses[i], data[i].data(), kBytes);
  }
  Buffer whole(device, kBytes * count);
  Stream stream(device);
  for (unsigned i = 0; i < count; ++i) stream.copy(whole.get(), kBytes * i, all[i].get(), 0, kBytes);
  stream.wait();
  for (unsigned i = 0; i < count; ++i)
    require_same(context, download<unsigned char>(whole, kBytes, kBytes * i), data[i],
                 fmt::format("mapped buffer {} of {}, read by the device", i, count));
  for (unsigned i = 0; i < count; ++i) stream.copy(all[i].get(), 0, whole.get(), kBytes * (count - 1 - i), kBytes);
  stream.wait();
  for (unsigned i = 0; i < count; ++i)
    require_same(context, Bytes(addresses[i], addresses[i] + kBytes), data[count - 1 - i],
                 fmt::format("mapped buffer {} of {}, written by the device", i, count));
}

// Records half of the events on a busy stream and half on an idle stream. Each event must complete
// after the earlier work on its own stream.
void events(Context& context, unsigned count, uint32_t flags) {
  Device& device = context.device();
  if (flags != 0 && !device.has(BP_CAP_TIMING)) context.not_claimed("the device has no BP_CAP_TIMING");
  Delay delay(context);
  Stream busy(device), idle(device);
  Pairs pairs(context, count);
  std::vector<Event> all;
  for (unsigned i = 0; i < count; ++i) all.emplace_back(device, flags);
  for (int round = 0; round < 3; ++round) {
    if (round != 0) pairs.renew(context);
    delay.enqueue(busy, kDelaysUs[round]);
    for (unsigned i = 0; i < count; ++i) {
      Stream& stream = i < (count + 1) / 2 ? busy : idle;
      if (i % 16 == 15 && &stream == &busy) delay.enqueue(busy, 100);
      pairs.copy(i, stream);
      stream.record(all[i].get());
    }
    for (unsigned i = 0; i < count; ++i) {
      all[i].wait();
      pairs.check(context, i, fmt::format("work before one of {} living events", count));
    }
    busy.wait();
    idle.wait();
  }
}

// One stream has many pending waits, and must not skip any of them. The events complete in the
// order of the waits or in reverse order.
void pending_waits(Context& context, unsigned count, bool last_first) {
  Device& device = context.device();
  Delay delay(context);
  Stream producer(device), consumer(device);
  Pairs pairs(context, count);
  std::vector<Buffer> results;
  std::vector<Event> all;
  for (unsigned i = 0; i < count; ++i) {
    results.emplace_back(device, kBytes);
    all.emplace_back(device);
  }
  for (int round = 0; round < 3; ++round) {
    if (round != 0) pairs.renew(context);
    delay.enqueue(producer, kDelaysUs[round]);
    for (unsigned i = 0; i < count; ++i) {
      if (i + 1 == count) delay.enqueue(producer, kDelaysUs[round]);
      pairs.copy(i, producer);
      producer.record(all[i].get());
    }
    for (unsigned i = 0; i < count; ++i) consumer.wait_event(all[last_first ? count - 1 - i : i].get());
    for (unsigned i = 0; i < count; ++i) consumer.copy(results[i].get(), 0, pairs.to[i].get(), 0, kBytes);
    consumer.wait();
    for (unsigned i = 0; i < count; ++i)
      require_same(context, download<unsigned char>(results[i], kBytes), pairs.data[i],
                   fmt::format("work after {} pending waits, number {}", count, i));
    producer.wait();
  }
}

// Each stream runs a copy, an operator and another copy on its own data, several times. The work of
// all streams is pending at once.
void streams(Context& context, unsigned wanted) {
  Device& device = context.device();
  std::vector<Stream> all = streams_of(context, wanted);
  Delay delay(context);
  Pairs pairs(context, all.size());
  Runner invert(device, elementwise(BP_OP_BITNOT, BP_U8, kBytes));
  std::vector<Buffer> between;
  for (size_t i = 0; i < all.size(); ++i) between.emplace_back(device, kBytes);
  delay.enqueue(all[0], 2000);
  for (int lap = 0; lap < 3; ++lap)
    for (size_t i = 0; i < all.size(); ++i) {
      pairs.copy(i, all[i]);
      invert.enqueue(all[i].get(), {{pairs.to[i].get()}}, {{between[i].get()}});
      all[i].copy(pairs.from[i].get(), 0, between[i].get(), 0, kBytes);
    }
  for (size_t i = all.size(); i-- > 0;) all[i].wait();
  for (size_t i = 0; i < all.size(); ++i) {
    Bytes inverted = pairs.data[i];
    for (unsigned char& byte : inverted) byte = static_cast<unsigned char>(~byte);
    pairs.check(context, i, fmt::format("the work of one of {} streams", all.size()));
    require_same(context, download<unsigned char>(pairs.from[i], kBytes), inverted,
                 fmt::format("the result of stream {} of {}", i, all.size()));
  }
}

struct Many {
  Many(Context& context, const bph_op_info& op, OpDesc desc, size_t count, uint64_t workspace_bytes) {
    for (size_t i = 0; i < count; ++i) {
      operands.push_back(std::make_unique<Operands>(context, op, desc));
      for (size_t scalar = 0; scalar < operands[i]->scalars().size(); ++scalar)
        operands[i]->set_scalar(scalar,
                                bph_scalar_from_i64(desc.outputs()[0].dtype, static_cast<int64_t>(i + scalar + 1)));
      expected.push_back(operands[i]->expected(desc));
      workspaces.emplace_back(context.device(), std::max<uint64_t>(workspace_bytes, 1));
    }
  }
  void enqueue(size_t i, Stream& stream, Runner& runner) {
    const uint64_t needed = runner.plan().info.workspace_bytes;
    ErrorRecord error;
    expect_ok(operands[i]->try_enqueue(stream.get(), runner.plan().get(), runner.desc().get(),
                                       needed == 0 ? nullptr : workspaces[i].get(), 0, needed, &error),
              error, "plan_execute");
  }
  void check(Context& context, std::string_view what) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::vector<Bytes> got = operands[i]->results();
      for (size_t output = 0; output < got.size(); ++output)
        require_same(context, got[output], expected[i][output], fmt::format("{}, number {}", what, i));
    }
  }
  std::vector<std::unique_ptr<Operands>> operands;
  std::vector<std::vector<Bytes>> expected;
  std::vector<Buffer> workspaces;
};

// Executes one plan on many streams, or many times on one stream, while the first execution is
// still pending.
void executions(Context& context, const bph_op_info& op, unsigned wanted, bool on_streams) {
  Device& device = context.device();
  OpDesc desc = sample_of_rows(op, usual_dtype(op), 5);
  Runner runner(device, desc);
  std::vector<Stream> all = streams_of(context, on_streams ? wanted : 4);
  const size_t count = on_streams ? all.size() : wanted;
  Many many(context, op, desc, count, runner.plan().info.workspace_bytes);
  Delay delay(context);
  for (int round = 0; round < 2; ++round) {
    for (const auto& operands : many.operands) operands->reset_outputs();
    delay.enqueue(all[0], kDelaysUs[round]);
    for (size_t i = 0; i < count; ++i) many.enqueue(i, all[on_streams ? i : 0], runner);
    for (Stream& stream : all) stream.wait();
    many.check(context, on_streams ? fmt::format("one plan on {} streams at once", count)
                                   : fmt::format("one plan with {} executions pending", count));
  }
}

void pending_copies(Context& context, unsigned count, bool in) {
  Device& device = context.device();
  if (device->copy_in == nullptr || device->copy_out == nullptr)
    context.not_claimed("the device has no copy_in and copy_out");
  Delay delay(context);
  Stream stream(device);
  Pairs pairs(context, count);
  std::vector<Bytes> host = in ? pairs.data : std::vector<Bytes>(count, Bytes(kBytes));
  delay.enqueue(stream, 20000);
  for (unsigned i = 0; i < count; ++i) {
    ErrorRecord error;
    if (in) {
      expect_ok(device->copy_in(device.get(), stream.get(), pairs.to[i].get(), 0, host[i].data(), kBytes, &error),
                error, "copy_in");
    } else {
      expect_ok(device->copy_out(device.get(), stream.get(), host[i].data(), pairs.from[i].get(), 0, kBytes, &error),
                error, "copy_out");
    }
  }
  stream.wait();
  for (unsigned i = 0; i < count; ++i) {
    if (in) {
      pairs.check(context, i, fmt::format("{} pending copies from the host", count));
    } else {
      require_same(context, host[i], pairs.data[i], fmt::format("{} pending copies to the host, number {}", count, i));
    }
  }
}

// Checks that the elapsed time since the first event never decreases from event to event, and is
// positive for the last event.
void timed_events(Context& context, unsigned count) {
  Device& device = context.device();
  if (!device.has(BP_CAP_TIMING)) context.not_claimed("the device has no BP_CAP_TIMING");
  Delay delay(context);
  Stream stream(device);
  std::vector<Event> all;
  for (unsigned i = 0; i < count; ++i) all.emplace_back(device, BP_EVENT_TIMING);
  for (const Event& event : all) {
    stream.record(event.get());
    delay.enqueue(stream, 60);
  }
  stream.wait();
  const auto elapsed = [&](const Event& begin, const Event& end) {
    ErrorRecord error;
    int64_t ns = 0;
    expect_ok(device->event_elapsed(device.get(), begin.get(), end.get(), &ns, &error), error, "event_elapsed");
    return ns;
  };
  int64_t before = 0;
  for (unsigned i = 1; i < count; ++i) {
    const int64_t ns = elapsed(all[0], all[i]);
    context.require(ns >= before,
                    "of {} timed events on a stream, number {} is {} ns after the first, and the one before it {}",
                    count, i, ns, before);
    before = ns;
  }
  context.require(before > 0, "{} timed events with work in between have one time", count);
}

// Creates plans that differ in operator, size or attribute. No plan is executed before the last
// plan exists.
void plans(Context& context, const std::vector<OpDesc>& descs) {
  Device& device = context.device();
  struct Made {
    Made(Context& given, OpDesc desc)
        : runner(given.device(), desc), operands(given, op_info(desc.op()), desc), expected(operands.expected(desc)) {}
    Runner runner;
    Operands operands;
    std::vector<Bytes> expected;
  };
  std::vector<std::unique_ptr<Made>> all;
  for (const OpDesc& desc : descs) all.push_back(std::make_unique<Made>(context, desc));
  Stream stream(device);
  for (int round = 0; round < 2; ++round) {
    for (const auto& made : all) {
      if (round != 0) made->operands.reset_outputs();
      made->operands.enqueue(stream, made->runner);
    }
    stream.wait();
    for (size_t i = 0; i < all.size(); ++i) {
      const std::vector<Bytes> got = all[i]->operands.results();
      for (size_t output = 0; output < got.size(); ++output)
        require_same(context, got[output], all[i]->expected[output],
                     fmt::format("plan {} of {} living ones", i, all.size()));
    }
  }
}

// Returns descriptors of several operators. The operators repeat, each time with one more row.
std::vector<OpDesc> of_operators(unsigned count) {
  constexpr uint32_t ops[] = {BP_OP_ADD, BP_OP_MAX,        BP_OP_NEG,    BP_OP_MUL,    BP_OP_REDUCE_SUM, BP_OP_SELECT,
                              BP_OP_MIN, BP_OP_REDUCE_MAX, BP_OP_CUMSUM, BP_OP_MATMUL, BP_OP_SUB,        BP_OP_GATHER};
  std::vector<OpDesc> made;
  for (unsigned i = 0; i < count; ++i) {
    const bph_op_info& op = op_info(ops[i % std::size(ops)]);
    made.push_back(sample_of_rows(op, usual_dtype(op), 3 + i / std::size(ops)));
  }
  return made;
}
std::vector<OpDesc> of_predicates(unsigned count) {
  std::vector<OpDesc> made;
  for (unsigned i = 0; i < count; ++i) {
    made.push_back(sample_of_rows(op_info(BP_OP_COMPARE), BP_F32, 3));
    bp_compare_attributes attributes = {};
    attributes.predicate = i % 6;
    made.back().attributes(attributes);
  }
  return made;
}
std::vector<OpDesc> of_scans(unsigned count) {
  std::vector<OpDesc> made;
  for (unsigned i = 0; i < count; ++i) {
    made.push_back(sample_of_rows(op_info(BP_OP_CUMSUM), BP_I32, 3));
    bp_cumsum_attributes attributes = {};
    attributes.axis = i % 2;
    attributes.exclusive = i / 2 % 2;
    attributes.reverse = i / 4 % 3 == 1 ? 1 : 0;
    made.back().attributes(attributes);
  }
  return made;
}

}  // namespace

void add_pool_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements, std::function<void(Context&)> run,
                       std::string_view extension = "") {
    requirements.insert(requirements.begin(), "BP-POOL-001");
    add_case(catalogue, "runtime.pool." + std::move(what), std::move(requirements), std::move(run), extension);
  };
  for (const unsigned count : {17u, 65u, 130u}) {
    add(fmt::format("streams.{}", count), {"BP-STR-001"}, [=](Context& context) { streams(context, count); });
    add(fmt::format("events.{}", count), {"BP-EVT-002"}, [=](Context& context) { events(context, count, 0); });
    add(
        fmt::format("events.{}_with_timing", count), {"BP-EVT-002"},
        [=](Context& context) { events(context, count, BP_EVENT_TIMING); }, "TIMING");
    add(
        fmt::format("timed_events.{}", count), {"BP-EVT-010"}, [=](Context& context) { timed_events(context, count); },
        "TIMING");
    for (const bool last_first : {false, true})
      add(fmt::format("pending_waits.{}{}", count, last_first ? "_from_the_last" : ""), {"BP-EVT-003"},
          [=](Context& context) { pending_waits(context, count, last_first); });
    for (const bool in : {false, true})
      add(
          fmt::format("pending_copies.{}_{}", count, in ? "in" : "out"), {"BP-CPY-003"},
          [=](Context& context) { pending_copies(context, count, in); }, "PAGEABLE_COPY");
    for (const uint32_t kind : {BP_MEMORY_HOST, BP_MEMORY_SHARED})
      add(
          fmt::format("mapped_buffers.{}_of_{}", count, kind_name(kind)), {"BP-BUF-008", "BP-BUF-010"},
          [=](Context& context) { mappings(context, kind, count); }, kind_extension(kind));
    add(fmt::format("plans.{}_of_operators", count), {"BP-PLAN-014"},
        [=](Context& context) { plans(context, of_operators(count)); });
    add(fmt::format("plans.{}_of_predicates", count), {"BP-PLAN-014"},
        [=](Context& context) { plans(context, of_predicates(count)); });
    add(fmt::format("plans.{}_of_scans", count), {"BP-PLAN-014"},
        [=](Context& context) { plans(context, of_scans(count)); });
    for (const uint32_t id : {BP_OP_MUL, BP_OP_FILL, BP_OP_REDUCE_SUM, BP_OP_MATMUL, BP_OP_CUMSUM, BP_OP_SORT})
      for (const bool on_streams : {false, true}) {
        const bph_op_info& op = op_info(id);
        catalogue.push_back(
            {.id = fmt::format("runtime.pool.{}.{}_of_{}", on_streams ? "executions_on_streams" : "pending_executions",
                               count, op.name),
             .profile = op.profile,
             .op = op.op,
             .dtype = usual_dtype(op),
             .requirements = {"BP-POOL-001", "BP-PLAN-011", "BP-EXE-005"},
             .run = [=](Context& context) { executions(context, op, count, on_streams); }});
      }
  }
  for (const unsigned count : {65u, 300u})
    add(fmt::format("buffers.{}", count), {"BP-BUF-010"}, [=](Context& context) { buffers(context, count); });
}

}  // namespace backplane::conformance
