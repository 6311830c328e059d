// SPDX-License-Identifier: Apache-2.0
// Test cases for streams and events through the host library, with and without the validation
// layer.
#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/delay.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kBytes = 4096;

struct OrderScene {
  OrderScene(Context& context, const char* layers) : side(context, layers), other(side.device) {
    const auto make = [&](uint64_t size) {
      bph_buffer_desc desc = {};
      desc.struct_size = sizeof(desc);
      desc.bytes = size;
      return backplane::Buffer(side.device.get(), desc);
    };
    from = make(kBytes);
    middle = make(kBytes);
    to = make(kBytes);
    large = make(8u << 20);
    larger = make(8u << 20);
  }
  void copy(const backplane::Stream& stream, const backplane::Buffer& target, const backplane::Buffer& source,
            uint64_t count) {
    backplane::detail::call(bph_copy, stream.get(), target.get(), uint64_t{0}, source.get(), uint64_t{0}, count,
                            uint32_t{0});
  }
  void put(const Bytes& data) {
    backplane::detail::call(bph_copy_in, side.stream.get(), from.get(), uint64_t{0},
                            static_cast<const void*>(data.data()), kBytes, uint32_t{0});
    side.stream.wait();
  }
  Bytes get(const backplane::Stream& stream, const backplane::Buffer& buffer) {
    Bytes got(kBytes);
    backplane::detail::call(bph_copy_out, stream.get(), static_cast<void*>(got.data()), buffer.get(), uint64_t{0},
                            kBytes, uint32_t{0});
    return got;
  }
  void check_log(Context& context) {
    for (const std::string& line : side.log.lines())
      context.require(line.find("BP-VAL-") == std::string::npos, "the validation layer reports a violation: {}", line);
  }
  HostSide side;
  backplane::Stream other;
  backplane::Buffer from, middle, to, large, larger;
};

void across_streams(Context& context, const char* layers) {
  OrderScene scene(context, layers);
  const backplane::Event event(scene.side.device), back(scene.side.device);
  for (int round = 0; round < 24; ++round) {
    const Bytes data = noise(context, kBytes);
    scene.put(data);
    scene.side.stream.wait_event(back);
    for (uint64_t i = context.below(3); i-- > 0;) scene.copy(scene.side.stream, scene.larger, scene.large, 8u << 20);
    scene.copy(scene.side.stream, scene.middle, scene.from, kBytes);
    event.record(scene.side.stream);
    scene.other.wait_event(event);
    scene.copy(scene.other, scene.to, scene.middle, kBytes);
    back.record(scene.other);
    require_same(context, scene.get(scene.other, scene.to), data, "work after another stream's event");
  }
  scene.side.stream.wait();
  scene.other.wait();
  scene.check_log(context);
}

void timed(Context& context, const char* layers) {
  if (!context.device().has(BP_CAP_TIMING)) context.not_claimed("the device has no BP_CAP_TIMING");
  OrderScene scene(context, layers);
  const backplane::Event begin(scene.side.device, BP_EVENT_TIMING), end(scene.side.device, BP_EVENT_TIMING);
  const uint64_t from = now_ns();
  begin.record(scene.side.stream);
  for (int i = 0; i < 4; ++i) scene.copy(scene.side.stream, scene.larger, scene.large, 8u << 20);
  end.record(scene.side.stream);
  end.wait();
  const auto host = static_cast<int64_t>(now_ns() - from);
  const int64_t ns = begin.nanoseconds_to(end);
  context.require(ns > 0 && ns <= host + host / 10 + 1'000'000, "32 MiB took {} ns of {} ns", ns, host);
  scene.check_log(context);
}

void polled(Context& context, const char* layers) {
  OrderScene scene(context, layers);
  const backplane::Event event(scene.side.device);
  context.require(event.wait(0), "an event that was never recorded does not count as passed");
  for (int round = 0; round < 4; ++round) {
    scene.copy(scene.side.stream, scene.larger, scene.large, 8u << 20);
    event.record(scene.side.stream);
    const uint64_t begin = now_ns();
    while (!event.wait(100'000))
      context.require(now_ns() - begin < 20'000'000'000, "an event did not pass within 20 seconds");
    context.require(scene.side.stream.wait(20'000'000'000), "a stream did not end within 20 seconds");
  }
  scene.check_log(context);
}

}  // namespace

void add_host_order_cases(Catalogue& catalogue) {
  for (const char* layers : {"", "validation"}) {
    const char* const how = *layers == 0 ? "plain" : "layered";
    const std::string_view also = *layers == 0 ? "BP-USE-012" : "BP-LAYER-002";
    add_case(catalogue, fmt::format("host.order.across_streams.{}", how), {"BP-USE-012", also},
             [layers](Context& context) { across_streams(context, layers); });
    add_case(
        catalogue, fmt::format("host.order.timed.{}", how), {"BP-USE-012", also},
        [layers](Context& context) { timed(context, layers); }, "TIMING");
    add_case(catalogue, fmt::format("host.order.polled.{}", how), {"BP-USE-012", also},
             [layers](Context& context) { polled(context, layers); });
  }
}

}  // namespace backplane::conformance
