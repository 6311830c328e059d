// SPDX-License-Identifier: Apache-2.0
// Test cases for two devices that use each other's objects through the host library.
#include "cases/runtime/peer.hpp"

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/runtime/external.hpp"
#include "cases/support/add_case.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kHostPeerBytes = 65536;

// The device of a HostSide, and another device of the same plugin and registry.
struct HostPeers {
  explicit HostPeers(Context& context, const char* layers = "")
      : side(context, layers), far(side.plugin.open(other_index(context))), far_stream(far) {}
  HostSide side;
  backplane::Device far;
  backplane::Stream far_stream;
};

backplane::Buffer raw_buffer(const backplane::Device& device, const backplane::Stream& stream, uint32_t flags = 0) {
  auto desc = backplane::detail::sized<bph_buffer_desc>();
  desc.bytes = kHostPeerBytes;
  desc.stream = stream.get();
  desc.flags = flags;
  return backplane::Buffer(device.get(), desc);
}
void fill(const backplane::Stream& stream, const backplane::Buffer& buffer, const Bytes& bytes) {
  backplane::detail::call(bph_copy_in, stream.get(), buffer.get(), uint64_t{0}, static_cast<const void*>(bytes.data()),
                          uint64_t{bytes.size()}, uint32_t{BPH_COPY_SOURCE_FREE});
}
Bytes contents(const backplane::Stream& stream, const backplane::Buffer& buffer) {
  Bytes got(kHostPeerBytes);
  backplane::detail::call(bph_copy_out, stream.get(), static_cast<void*>(got.data()), buffer.get(), uint64_t{0},
                          kHostPeerBytes, uint32_t{0});
  return got;
}
void across(const backplane::Stream& to_stream, const backplane::Buffer& to, const backplane::Stream& from_stream,
            const backplane::Buffer& from) {
  backplane::detail::call(bph_copy_across, to_stream.get(), to.get(), uint64_t{0}, from_stream.get(), from.get(),
                          uint64_t{0}, kHostPeerBytes, uint32_t{0});
}

// Checks that a copy between two devices is direct if, and only if, query_peer reports the necessary
// uses. The counters of the target device count direct copies.
void counts_each_way(Context& context, bool one_registry, const char* layers = "") {
  HostPeers peers(context, layers);
  const HostSide stranger(context);
  const backplane::Device& far = one_registry ? peers.far : stranger.device;
  const backplane::Stream& far_stream = one_registry ? peers.far_stream : stranger.stream;
  const uint32_t forth = peers.side.device.query_peer(far), back = far.query_peer(peers.side.device);
  context.require(one_registry || (forth | back) == 0, "devices of two registries have the uses {:#x} and {:#x}", forth,
                  back);
  const bool direct =
      (forth & (BP_PEER_COPY | BP_PEER_WAIT)) == (BP_PEER_COPY | BP_PEER_WAIT) && (back & BP_PEER_WAIT) != 0;
  const backplane::Buffer from = raw_buffer(far, far_stream), to = raw_buffer(peers.side.device, peers.side.stream);
  const bph_stats before = peers.side.device.stats();
  for (uint64_t round = 1; round <= 8; ++round) {
    const Bytes data = noise(context, kHostPeerBytes);
    fill(far_stream, from, data);
    across(peers.side.stream, to, far_stream, from);
    fill(far_stream, from, Bytes(kHostPeerBytes, 0));  // must not affect the copy, which precedes this fill
    require_same(context, contents(peers.side.stream, to), data, "a copy across devices");
    const bph_stats after = peers.side.device.stats();
    context.require(after.peer_copies - before.peer_copies == (direct ? round : 0) &&
                        after.peer_bytes - before.peer_bytes == (direct ? round * kHostPeerBytes : 0),
                    "after {} copies, with the uses {:#x} and {:#x}, peer_copies grew by {} and peer_bytes by {}",
                    round, forth, back, after.peer_copies - before.peer_copies, after.peer_bytes - before.peer_bytes);
  }
}

void host_waits_for_peer_events(Context& context, const char* layers) {
  HostPeers peers(context, layers);
  const backplane::Event event(peers.far);
  const backplane::Buffer from = raw_buffer(peers.far, peers.far_stream),
                          to = raw_buffer(peers.side.device, peers.side.stream);
  if ((peers.side.device.query_peer(peers.far) & BP_PEER_WAIT) == 0) {
    ErrorRecord error;
    const bp_status status = bph_stream_wait_event(peers.side.stream.get(), event.get(), &error);
    expect_status(status, error, "bph_stream_wait_event", {BP_INVALID_ARGUMENT});
    context.not_claimed("the device does not wait for events of a peer");
  }
  for (int round = 0; round < 8; ++round) {
    const Bytes data = noise(context, kHostPeerBytes);
    fill(peers.far_stream, from, data);
    event.record(peers.far_stream);
    peers.side.stream.wait_event(event);
    peers.side.stream.wait();
    require_same(context, contents(peers.far_stream, from), data, "memory of a peer after its event");
  }
}

// A mapped buffer must keep its source's memory alive, even after the source and its device are
// released.
void maps_and_keeps(Context& context, const char* layers) {
  HostPeers peers(context, layers);
  const bool maps = (peers.side.device.query_peer(peers.far) & BP_PEER_OPERAND) != 0;
  const Bytes data = noise(context, kHostPeerBytes), back = noise(context, kHostPeerBytes);
  const auto map = [&](const backplane::Buffer& source) {
    bph_buffer* made = nullptr;
    ErrorRecord error;
    const bp_status status = bph_buffer_map_peer(peers.side.device.get(), source.get(), nullptr, &made, &error);
    bph_buffer_release(made);
    return status;
  };
  auto source = std::make_unique<backplane::Buffer>(raw_buffer(peers.far, peers.far_stream, BPH_BUFFER_RAW));
  context.require(map(raw_buffer(peers.far, peers.far_stream)) == BP_INVALID_ARGUMENT,
                  "bph_buffer_map_peer accepts memory that other buffers share");
  context.require(map(raw_buffer(peers.side.device, peers.side.stream, BPH_BUFFER_RAW)) == BP_INVALID_ARGUMENT,
                  "bph_buffer_map_peer accepts a buffer of the same device");
  if (!maps) {
    context.require(map(*source) == BP_UNSUPPORTED, "bph_buffer_map_peer works without BP_PEER_OPERAND");
    context.not_claimed("the device maps no memory of a peer");
  }
  fill(peers.far_stream, *source, data);
  peers.far_stream.wait();
  const auto mapped = backplane::Buffer::map_peer(peers.side.device.get(), *source, peers.side.stream.get());
  require_same(context, contents(peers.side.stream, mapped), data, "mapped memory of a peer, read");
  fill(peers.side.stream, mapped, back);
  peers.side.stream.wait();
  require_same(context, contents(peers.far_stream, *source), back, "mapped memory of a peer, written");
  source.reset();
  peers.far_stream = backplane::Stream();
  peers.far = backplane::Device();
  require_same(context, contents(peers.side.stream, mapped), back, "mapped memory whose source was released");
}

void refuses_one_device(Context& context) {
  const HostSide side(context);
  uint32_t uses = 7;
  ErrorRecord error;
  expect_status(bph_device_query_peer(side.device.get(), side.device.get(), &uses, &error), error,
                "bph_device_query_peer", {BP_INVALID_ARGUMENT});
  context.require(uses == 0, "bph_device_query_peer failed and gave {:#x}", uses);
  expect_status(bph_device_query_peer(side.device.get(), nullptr, &uses, &error), error, "bph_device_query_peer",
                {BP_INVALID_ARGUMENT});
}

}  // namespace

void add_host_peer_cases(Catalogue& catalogue) {
  const auto add = [&](const char* what, std::string_view requirement, std::function<void(Context&)> run) {
    add_case(catalogue, fmt::format("host.peer.{}", what), {requirement},
             not_claimed_where_declined([run](Context& context) {
               (void)peer_of(context, context.device());
               run(context);
             }),
             kPeerExtension);
    catalogue.back().since = kPeerSince;
  };
  add("counts_each_way.one_registry", "BP-USE-044", [](Context& context) { counts_each_way(context, true); });
  add("counts_each_way.two_registries", "BP-USE-044", [](Context& context) { counts_each_way(context, false); });
  add("counts_each_way.checked", "BP-USE-044", [](Context& context) { counts_each_way(context, true, "validation"); });
  add("waits_for_events", "BP-USE-045", [](Context& context) { host_waits_for_peer_events(context, ""); });
  add("waits_for_events.checked", "BP-USE-045",
      [](Context& context) { host_waits_for_peer_events(context, "validation"); });
  add("maps_and_keeps", "BP-USE-046", [](Context& context) { maps_and_keeps(context, ""); });
  add("maps_and_keeps.checked", "BP-USE-046", [](Context& context) { maps_and_keeps(context, "validation"); });
  add("refuses_one_device", "BP-USE-044", refuses_one_device);
}

}  // namespace backplane::conformance
