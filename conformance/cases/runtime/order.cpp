// SPDX-License-Identifier: Apache-2.0
// Test cases for the order of work across streams. Slow copies delay the work before each recorded
// event.
#include <functional>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kOrderBytes = 4096;

// One producer stream, several consumer streams, and their buffers.
struct OrderScene {
  explicit OrderScene(Context& given, unsigned consumer_count = 1)
      : context(given),
        device(given.device()),
        delay(given),
        producer(device),
        from(device, kOrderBytes),
        middle(device, kOrderBytes) {
    for (unsigned i = 0; i < consumer_count; ++i) {
      consumers.emplace_back(device);
      results.emplace_back(device, kOrderBytes);
    }
  }
  Bytes produce(uint64_t most_us) {
    Bytes data = noise(context, kOrderBytes);
    upload(from, data);
    upload(middle, Bytes(kOrderBytes, 0));
    delay.enqueue(producer, context.below(most_us));
    producer.copy(middle.get(), 0, from.get(), 0, kOrderBytes);
    return data;
  }
  void consume(unsigned index) { consumers[index].copy(results[index].get(), 0, middle.get(), 0, kOrderBytes); }
  void check(unsigned index, const Bytes& data, std::string_view what) {
    consumers[index].wait();
    require_same(context, download<unsigned char>(results[index], kOrderBytes), data, what);
  }
  Context& context;
  Device& device;
  Delay delay;
  Stream producer;
  Buffer from, middle;
  std::vector<Stream> consumers;
  std::vector<Buffer> results;
};

void one_waits(Context& context, uint64_t most_us) {
  OrderScene scene(context);
  Event event(scene.device);
  for (unsigned round = 0; round < 64; ++round) {
    const Bytes data = scene.produce(most_us);
    scene.producer.record(event.get());
    scene.consumers[0].wait_event(event.get());
    scene.consume(0);
    scene.check(0, data, "work after another stream's event");
  }
}

void by_operator(Context& context) {
  OrderScene scene(context);
  Event event(scene.device);
  Runner invert(scene.device, elementwise(BP_OP_BITNOT, BP_U8, kOrderBytes));
  for (unsigned round = 0; round < 48; ++round) {
    Bytes data = scene.produce(1500);
    scene.producer.record(event.get());
    scene.consumers[0].wait_event(event.get());
    invert.enqueue(scene.consumers[0].get(), {{scene.middle.get()}}, {{scene.results[0].get()}});
    for (unsigned char& byte : data) byte = static_cast<unsigned char>(~byte);
    scene.check(0, data, "an operator after another stream's event");
  }
}

void of_an_operator(Context& context) {
  OrderScene scene(context);
  Event event(scene.device);
  Runner invert(scene.device, elementwise(BP_OP_BITNOT, BP_U8, kOrderBytes));
  for (unsigned round = 0; round < 48; ++round) {
    Bytes data = noise(context, kOrderBytes);
    upload(scene.from, data);
    upload(scene.middle, Bytes(kOrderBytes, 0));
    scene.delay.enqueue(scene.producer, context.below(1500));
    invert.enqueue(scene.producer.get(), {{scene.from.get()}}, {{scene.middle.get()}});
    scene.producer.record(event.get());
    scene.consumers[0].wait_event(event.get());
    scene.consume(0);
    for (unsigned char& byte : data) byte = static_cast<unsigned char>(~byte);
    scene.check(0, data, "work after an operator of another stream");
  }
}

void destroyed_at_once(Context& context) {
  OrderScene scene(context);
  for (unsigned round = 0; round < 48; ++round) {
    const Bytes data = scene.produce(1500);
    {
      const Event event(scene.device);
      scene.producer.record(event.get());
      scene.consumers[0].wait_event(event.get());
    }
    const Event other(scene.device);
    scene.consume(0);
    scene.check(0, data, "work after an event that was destroyed after the wait was enqueued");
  }
}

// A wait refers to the latest event_record call before the wait. A later event_record call does not
// affect the wait.
void recorded_again(Context& context, bool elsewhere) {
  OrderScene scene(context);
  Event event(scene.device);
  Stream idle(scene.device);
  for (unsigned round = 0; round < 48; ++round) {
    const Bytes data = scene.produce(1500);
    scene.producer.record(event.get());
    scene.consumers[0].wait_event(event.get());
    (elsewhere ? idle : scene.producer).record(event.get());
    scene.consume(0);
    scene.check(0, data, "work after a record that a later one replaced");
    scene.producer.wait();
  }
}

// A wait refers to the latest event_record call before the wait.
void latest_record(Context& context) {
  OrderScene scene(context);
  Event event(scene.device);
  Stream idle(scene.device);
  for (unsigned round = 0; round < 48; ++round) {
    idle.record(event.get());
    scene.producer.record(event.get());
    const Bytes data = scene.produce(1500);
    scene.producer.record(event.get());
    scene.consumers[0].wait_event(event.get());
    scene.consume(0);
    scene.check(0, data, "work after the latest record");
  }
}

// Checks that a stream's wait for an event can complete while work that was enqueued after the
// event_record call is still pending.
void later_work_is_not_waited_for(Context& context) {
  OrderScene scene(context);
  if (scene.device.has(BP_CAP_SYNCHRONOUS)) return;
  Event event(scene.device);
  for (unsigned attempt = 0; attempt < kDelayAttempts; ++attempt) {
    const Bytes data = scene.produce(500);
    scene.producer.record(event.get());
    scene.consumers[0].wait_event(event.get());
    scene.consume(0);
    scene.delay.enqueue(scene.producer, longer_delay(attempt));
    scene.producer.record(event.get());
    scene.check(0, data, "work after the first record");
    const bool pending = scene.producer.wait_for(0) == BP_TIMEOUT;
    scene.producer.wait();
    if (pending) return;
  }
  context.not_claimed(
      "a stream's wait never ended before work that was enqueued after event_record: streams alternate");
}

void fan_out(Context& context, unsigned count) {
  OrderScene scene(context, count);
  Event event(scene.device);
  for (unsigned round = 0; round < 24; ++round) {
    const Bytes data = scene.produce(1000);
    scene.producer.record(event.get());
    for (unsigned i = 0; i < count; ++i) {
      scene.consumers[i].wait_event(event.get());
      scene.consume(i);
    }
    for (unsigned i = count; i-- > 0;) scene.check(i, data, "one of several streams after an event");
  }
}

// The streams form a ring. Each stream adds 1 to the result of the previous stream.
void ring(Context& context, unsigned count) {
  OrderScene scene(context, count);
  Runner add(scene.device, elementwise(BP_OP_ADD, BP_U32, kOrderBytes / 4));
  Buffer one(scene.device, kOrderBytes);
  upload(one, Words(kOrderBytes / 4, 1));
  std::vector<Event> events;
  for (unsigned i = 0; i < count; ++i) events.emplace_back(scene.device);
  for (unsigned round = 0; round < 12; ++round) {
    upload(scene.results[0], Words(kOrderBytes / 4, round));
    unsigned steps = 0;
    for (unsigned lap = 0; lap < 3; ++lap) {
      for (unsigned i = 0; i < count; ++i, ++steps) {
        Stream& stream = scene.consumers[i];
        if (steps != 0) stream.wait_event(events[(i + count - 1) % count].get());
        scene.delay.enqueue(stream, context.below(400));
        add.enqueue(stream.get(), {{scene.results[i].get()}, {one.get()}}, {{scene.results[(i + 1) % count].get()}});
        stream.record(events[i].get());
      }
    }
    for (Stream& stream : scene.consumers) stream.wait();
    require_same(context, download<uint32_t>(scene.results[0], kOrderBytes / 4), Words(kOrderBytes / 4, round + steps),
                 "a ring of streams");
  }
}

// The consumer waits until the data are complete. The producer waits until the consumer has read
// the data, and then overwrites them.
void there_and_back(Context& context) {
  OrderScene scene(context);
  Event full(scene.device), empty(scene.device);
  constexpr unsigned rounds = 32;
  std::vector<Buffer> sources, results;
  std::vector<Bytes> data;
  for (unsigned i = 0; i < rounds; ++i) {
    data.push_back(noise(context, kOrderBytes));
    sources.emplace_back(scene.device, kOrderBytes);
    results.emplace_back(scene.device, kOrderBytes);
    upload(sources.back(), data.back());
  }
  Stream& consumer = scene.consumers[0];
  for (unsigned i = 0; i < rounds; ++i) {
    scene.producer.wait_event(empty.get());
    if (i % 3 == 0) scene.delay.enqueue(scene.producer, context.below(600));
    scene.producer.copy(scene.middle.get(), 0, sources[i].get(), 0, kOrderBytes);
    scene.producer.record(full.get());
    consumer.wait_event(full.get());
    if (i % 3 == 1) scene.delay.enqueue(consumer, context.below(600));
    consumer.copy(results[i].get(), 0, scene.middle.get(), 0, kOrderBytes);
    consumer.record(empty.get());
  }
  consumer.wait();
  for (unsigned i = 0; i < rounds; ++i)
    require_same(context, download<unsigned char>(results[i], kOrderBytes), data[i], "a buffer handed there and back");
}

void own_event(Context& context) {
  OrderScene scene(context);
  Event event(scene.device);
  for (unsigned round = 0; round < 16; ++round) {
    const Bytes data = scene.produce(500);
    scene.producer.record(event.get());
    scene.producer.wait_event(event.get());
    scene.producer.copy(scene.results[0].get(), 0, scene.middle.get(), 0, kOrderBytes);
    scene.producer.wait();
    require_same(context, download<unsigned char>(scene.results[0], kOrderBytes), data,
                 "a stream that waits on its own event");
  }
}

// Destroys the producer stream while the consumer's wait may still be pending in the driver.
void producer_ends(Context& context) {
  OrderScene scene(context);
  for (unsigned round = 0; round < 16; ++round) {
    const Bytes data = noise(context, kOrderBytes);
    upload(scene.from, data);
    upload(scene.middle, Bytes(kOrderBytes, 0));
    Event event(scene.device);
    {
      Stream producer(scene.device);
      scene.delay.enqueue(producer, context.below(800));
      producer.copy(scene.middle.get(), 0, scene.from.get(), 0, kOrderBytes);
      producer.record(event.get());
      scene.consumers[0].wait_event(event.get());
      scene.consume(0);
      producer.wait();
    }
    event.reset();
    scene.check(0, data, "work after an event of a stream that has ended");
  }
}

}  // namespace

void add_order_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    requirements.push_back("BP-EVT-003");
    add_case(catalogue, "runtime.order." + std::move(what), std::move(requirements), std::move(run));
  };
  for (const uint64_t most_us : {1u, 300u, 1000u, 3000u})
    add(fmt::format("one_waits.delays_up_to_{}_us", most_us), {},
        [most_us](Context& context) { one_waits(context, most_us); });
  add("one_waits.by_operator", {}, by_operator);
  add("one_waits.of_an_operator", {}, of_an_operator);
  add("event.destroyed_at_once", {"BP-EVT-005"}, destroyed_at_once);
  add("event.recorded_again", {"BP-EVT-004"}, [](Context& context) { recorded_again(context, false); });
  add("event.recorded_again_elsewhere", {"BP-EVT-004"}, [](Context& context) { recorded_again(context, true); });
  add("event.latest_record", {"BP-EVT-004"}, latest_record);
  add("event.own", {}, own_event);
  add("event.producer_ends", {"BP-EVT-006"}, producer_ends);
  add_case(catalogue, "runtime.order.event.later_work_is_not_waited_for", {"BP-EVT-004"}, later_work_is_not_waited_for,
           "CONCURRENT_STREAMS");
  for (const unsigned count : {2u, 4u, 8u})
    add(fmt::format("fan_out.to_{}", count), {"BP-STR-005"}, [count](Context& context) { fan_out(context, count); });
  for (const unsigned count : {2u, 3u, 5u})
    add(fmt::format("ring.of_{}", count), {}, [count](Context& context) { ring(context, count); });
  add("there_and_back.on_two_streams", {}, there_and_back);
}

}  // namespace backplane::conformance
