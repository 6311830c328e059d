// SPDX-License-Identifier: Apache-2.0
// Test cases for bp.peer: copies, mapped buffers and waits between two open devices of one plugin.
#include "cases/runtime/peer.hpp"

#include <algorithm>
#include <backplane/rules/tables.hpp>
#include <optional>

#include "cases/runtime/cases.hpp"
#include "cases/runtime/external.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/leak.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

bp_peer_api peer_of(Context& context, Device& device) {
  const Plugin& plugin = device.plugin();
  const void* given = plugin->get_interface == nullptr
                          ? nullptr
                          : plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_PEER, 1);
  if (given == nullptr) context.not_claimed("the device has no bp.peer");
  return backplane::rules::known_part(*static_cast<const bp_peer_api*>(given), plugin->abi_version);
}

Peers::Peers(Context& given, uint32_t uses)
    : context(given), own(given.device()), far(given.plugin(), other_index(given)), table(peer_of(given, own)) {
  context.require(table.peer_query != nullptr && table.peer_enable != nullptr,
                  "bp.peer has no peer_query or no peer_enable");
  if (uses == 0) return;
  for (const auto& [device, peer] : {std::pair{&own, &far}, std::pair{&far, &own}}) {
    if ((query(*device, *peer) & uses) != uses) context.not_claimed("the devices lack one of the uses {:#x}", uses);
    ErrorRecord error;
    expect_ok(table.peer_enable(device->get(), peer->get(), &error), error, "peer_enable");
  }
}

uint32_t Peers::query(Device& device, Device& of) const {
  uint32_t uses = 0xA5A5A5A5;
  ErrorRecord error;
  expect_ok(table.peer_query(device.get(), of.get(), &uses, &error), error, "peer_query");
  return uses;
}

namespace {

constexpr uint64_t kPeerBytes = 65536;

void query_is_constant(Context& context) {
  Peers peers(context, 0);
  for (const auto& [device, peer] : {std::pair{&peers.own, &peers.far}, std::pair{&peers.far, &peers.own}}) {
    const uint32_t uses = peers.query(*device, *peer);
    context.require((uses & ~7u) == 0 || context.plugin()->abi_version > BP_ABI_VERSION,
                    "peer_query gave the unknown uses {:#x}", uses);
    const auto needs = [&](uint32_t use, bool has, const char* slot) {
      context.require((uses & use) == 0 || has, "peer_query gave {:#x}, and {} is null", uses, slot);
    };
    needs(BP_PEER_COPY, peers.table.peer_copy != nullptr, "peer_copy");
    needs(BP_PEER_OPERAND, peers.table.peer_map != nullptr, "peer_map");
    needs(BP_PEER_WAIT, peers.table.peer_wait_event != nullptr, "peer_wait_event");
    ErrorRecord error;
    for (int i = 0; i < 3; ++i) {
      expect_status(peers.table.peer_enable(device->get(), peer->get(), &error), error, "peer_enable",
                    {uses == 0 ? BP_UNSUPPORTED : BP_OK});
      context.require(peers.query(*device, *peer) == uses, "peer_query gave other uses after peer_enable");
    }
  }
}

// The buffers of a copy between two devices.
struct PeerCopy {
  PeerCopy(Context& context, uint32_t dst_kind, uint32_t src_kind, bool into_far)
      : peers(context, BP_PEER_COPY),
        dst_device(into_far ? peers.far : peers.own),
        src_device(into_far ? peers.own : peers.far),
        dst(dst_device, kPeerBytes, dst_kind),
        src(src_device, kPeerBytes, src_kind) {}
  // Enqueues the copy on a stream of the target or of the source device.
  bp_status enqueue(Stream& stream, uint64_t to, uint64_t from, uint64_t bytes, bp_error* error) const {
    return peers.table.peer_copy(stream.device().get(), stream.get(), dst_device.get(), dst.get(), to, src_device.get(),
                                 src.get(), from, bytes, error);
  }
  Peers peers;
  Device& dst_device;
  Device& src_device;
  Buffer dst, src;
};

// Copies parts of different sizes on a stream of each of the two devices. Bytes next to the target
// must not change.
void copies_exactly(Context& context, uint32_t dst_kind, uint32_t src_kind, bool into_far) {
  need_kind(context, dst_kind);
  need_kind(context, src_kind);
  PeerCopy copy(context, dst_kind, src_kind, into_far);
  for (const bool on_target : {true, false}) {
    Stream stream(on_target ? copy.dst_device : copy.src_device);
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{4096}, uint64_t{50001}, kPeerBytes}) {
      const uint64_t room = kPeerBytes - bytes;
      const uint64_t to = context.below(room + 1), from = context.below(room + 1);
      const Bytes data = noise(context, kPeerBytes);
      Bytes expected = noise(context, kPeerBytes);
      upload(copy.src, data);
      upload(copy.dst, expected);
      ErrorRecord error;
      expect_ok(copy.enqueue(stream, to, from, bytes, &error), error, "peer_copy");
      stream.wait();
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(to));
      require_same(context, download<unsigned char>(copy.dst, kPeerBytes), expected,
                   "the target of a copy from a peer");
      require_same(context, download<unsigned char>(copy.src, kPeerBytes), data, "the source of a copy to a peer");
    }
  }
}

// A copy from a peer must run after the earlier work and before the later work of its stream.
void copies_in_order(Context& context) {
  PeerCopy copy(context, BP_MEMORY_DEVICE, BP_MEMORY_DEVICE, false);
  Delay delay(context);
  Stream stream(copy.dst_device);
  Buffer last(copy.dst_device, kPeerBytes), zeros(copy.dst_device, kPeerBytes);
  upload(zeros, Bytes(kPeerBytes, 0));
  for (unsigned round = 0; round < 16; ++round) {
    const Bytes data = noise(context, kPeerBytes);
    upload(copy.src, data);
    delay.enqueue(stream, context.below(3000));
    stream.copy(copy.dst.get(), 0, zeros.get(), 0, kPeerBytes);
    ErrorRecord error;
    expect_ok(copy.enqueue(stream, 0, 0, kPeerBytes, &error), error, "peer_copy");
    stream.copy(last.get(), 0, copy.dst.get(), 0, kPeerBytes);
    stream.wait();
    require_same(context, download<unsigned char>(last, kPeerBytes), data, "a copy after a copy from a peer");
  }
}

// peer_copy must return immediately, like every enqueue call, even if earlier work on the stream is
// pending.
void copy_does_not_wait(Context& context) {
  if (context.device().has(BP_CAP_SYNCHRONOUS)) context.not_claimed("the device is synchronous");
  PeerCopy copy(context, BP_MEMORY_DEVICE, BP_MEMORY_DEVICE, false);
  require_no_wait(context, "peer_copy", [&](Stream& busy) {
    ErrorRecord error;
    expect_ok(copy.enqueue(busy, 0, 0, 4096, &error), error, "peer_copy");
  });
}

void waits_for_an_event(Context& context, bool destroy) {
  Peers peers(context, BP_PEER_COPY | BP_PEER_WAIT);
  Delay delay(context);
  Stream writer(peers.own), reader(peers.far);
  Buffer from(peers.own, kPeerBytes), middle(peers.own, kPeerBytes), to(peers.far, kPeerBytes);
  ErrorRecord error;
  {
    Event never(peers.own);
    expect_ok(peers.table.peer_wait_event(peers.far.get(), reader.get(), peers.own.get(), never.get(), &error), error,
              "peer_wait_event");
    reader.wait();
  }
  Event reused(peers.own);
  for (unsigned round = 0; round < 32; ++round) {
    const Bytes data = noise(context, kPeerBytes);
    upload(from, data);
    upload(middle, Bytes(kPeerBytes, 0));
    delay.enqueue(writer, context.below(3000));
    writer.copy(middle.get(), 0, from.get(), 0, kPeerBytes);
    std::optional<Event> own;
    if (destroy) own.emplace(peers.own);
    Event& event = destroy ? *own : reused;
    writer.record(event.get());
    expect_ok(peers.table.peer_wait_event(peers.far.get(), reader.get(), peers.own.get(), event.get(), &error), error,
              "peer_wait_event");
    own.reset();
    expect_ok(peers.table.peer_copy(peers.far.get(), reader.get(), peers.far.get(), to.get(), 0, peers.own.get(),
                                    middle.get(), 0, kPeerBytes, &error),
              error, "peer_copy");
    reader.wait();
    require_same(context, download<unsigned char>(to, kPeerBytes), data, "memory after a wait for a peer's event");
    writer.wait();
  }
}

void maps_one_memory(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Peers peers(context, BP_PEER_OPERAND);
  Buffer source(peers.far, kPeerBytes, kind);
  const auto map = [&] {
    bp_buffer* made = reinterpret_cast<bp_buffer*>(&made);
    uint32_t made_kind = UINT32_MAX;
    ErrorRecord error;
    const bp_status status =
        peers.table.peer_map(peers.own.get(), peers.far.get(), source.get(), &made_kind, &made, &error);
    expect_status(status, error, "peer_map", {BP_OK, BP_UNSUPPORTED});
    context.require((status == BP_OK) == (made != nullptr), "peer_map returned {} and gave {}", status_name(status),
                    static_cast<const void*>(made));
    if (status != BP_OK) context.not_claimed("the device cannot map {} memory of its peer", kind_name(kind));
    context.require(made_kind < BP_MEMORY_KINDS && peers.own.offers(made_kind),
                    "peer_map gave memory of kind {}, which the device does not offer", made_kind);
    return std::pair{Buffer(peers.own, made, kPeerBytes), made_kind};
  };
  Words words(kPeerBytes / 4, 0);
  for (uint32_t i = 0; i < 1024; ++i) words[i] = i;
  upload(source, words);
  for (int round = 0; round < 3; ++round) {
    auto [mapped, mapped_kind] = map();
    require_same(context, download<uint32_t>(mapped, words.size()), words, "mapped memory of a peer, read");
    if (mapped_kind != BP_MEMORY_HOST || peers.own.has(BP_CAP_HOST_OPERANDS)) {
      Runner add(peers.own, elementwise(BP_OP_ADD, BP_U32, 1024));
      Stream stream(peers.own);
      add.enqueue(stream.get(), {{mapped.get()}, {mapped.get()}}, {{mapped.get(), 4096}});
      stream.wait();
      for (uint32_t i = 0; i < 1024; ++i) words[1024 + i] = 2 * words[i];
    }
    require_same(context, download<uint32_t>(source, words.size()), words, "mapped memory of a peer, written");
    mapped.reset();
    require_same(context, download<uint32_t>(source, words.size()), words, "memory whose map was destroyed");
    for (uint32_t& word : words) word += 3;
    upload(source, words);
  }
}

void peers_leave_nothing(Context& context) {
  Peers peers(context, BP_PEER_COPY);
  Buffer from(peers.far, kPeerBytes), to(peers.own, kPeerBytes);
  Stream stream(peers.own);
  expect_no_leak(context, "using a peer", 256, [&] {
    ErrorRecord error;
    expect_ok(peers.table.peer_enable(peers.own.get(), peers.far.get(), &error), error, "peer_enable");
    expect_ok(peers.table.peer_copy(peers.own.get(), stream.get(), peers.own.get(), to.get(), 0, peers.far.get(),
                                    from.get(), 0, kPeerBytes, &error),
              error, "peer_copy");
    stream.wait();
    if (peers.table.peer_map == nullptr) return;
    bp_buffer* made = nullptr;
    uint32_t kind = 0;
    const bp_status status = peers.table.peer_map(peers.own.get(), peers.far.get(), from.get(), &kind, &made, &error);
    if (status == BP_OK) const Buffer mapped(peers.own, made, kPeerBytes);
  });
}

void copy_refuses(Context& context) {
  PeerCopy copy(context, BP_MEMORY_DEVICE, BP_MEMORY_DEVICE, false);
  Stream stream(copy.dst_device);
  const auto refused = [&](uint64_t to, uint64_t from, uint64_t bytes) {
    ErrorRecord error;
    expect_status(copy.enqueue(stream, to, from, bytes, &error), error, "peer_copy", {BP_INVALID_ARGUMENT});
  };
  refused(1, 0, kPeerBytes);
  refused(0, 1, kPeerBytes);
  refused(0, 0, kPeerBytes + 1);
  refused(kPeerBytes + 1, 0, 0);
  refused(UINT64_MAX, 0, 2);
  refused(0, UINT64_MAX - 1, 4);
  refused(0, 0, UINT64_MAX);
  const Device& own = copy.peers.own;
  const Device& far = copy.peers.far;
  const auto two = [&](bp_device* dst_device, bp_device* src_device, bp_buffer* dst, bp_buffer* src, bp_stream* on) {
    ErrorRecord error;
    expect_status(copy.peers.table.peer_copy(own.get(), on, dst_device, dst, 0, src_device, src, 0, 16, &error), error,
                  "peer_copy", {BP_INVALID_ARGUMENT});
  };
  bp_buffer* const dst = copy.dst.get();
  bp_buffer* const src = copy.src.get();
  two(own.get(), own.get(), dst, dst, stream.get());
  two(nullptr, far.get(), dst, src, stream.get());
  two(own.get(), nullptr, dst, src, stream.get());
  two(own.get(), far.get(), nullptr, src, stream.get());
  two(own.get(), far.get(), dst, nullptr, stream.get());
  two(own.get(), far.get(), dst, src, nullptr);
  if (own.offers(BP_MEMORY_HOST) && far.offers(BP_MEMORY_HOST)) {
    const Buffer host_dst(copy.peers.own, 4096, BP_MEMORY_HOST), host_src(copy.peers.far, 4096, BP_MEMORY_HOST);
    two(own.get(), far.get(), host_dst.get(), host_src.get(), stream.get());
  }
  stream.wait();
}

void refuses_itself_and_null(Context& context) {
  Peers peers(context, 0);
  bp_device* const own = peers.own.get();
  bp_device* const far = peers.far.get();
  Stream stream(peers.own);
  Event event(peers.own);
  Buffer buffer(peers.own, 4096);
  uint32_t uses = 0;
  uint32_t kind = 0;
  bp_buffer* made = nullptr;
  ErrorRecord error;
  const auto refused = [&](bp_status status, const char* slot) {
    expect_status(status, error, slot, {BP_INVALID_ARGUMENT});
  };
  refused(peers.table.peer_query(own, own, &uses, &error), "peer_query");
  refused(peers.table.peer_query(own, nullptr, &uses, &error), "peer_query");
  refused(peers.table.peer_query(own, far, nullptr, &error), "peer_query");
  refused(peers.table.peer_enable(own, own, &error), "peer_enable");
  refused(peers.table.peer_enable(own, nullptr, &error), "peer_enable");
  if (const auto slot = peers.table.peer_map; slot != nullptr) {
    refused(slot(own, own, buffer.get(), &kind, &made, &error), "peer_map");
    refused(slot(own, nullptr, buffer.get(), &kind, &made, &error), "peer_map");
    refused(slot(own, far, nullptr, &kind, &made, &error), "peer_map");
    refused(slot(own, far, buffer.get(), &kind, nullptr, &error), "peer_map");
  }
  if (const auto slot = peers.table.peer_wait_event; slot != nullptr) {
    refused(slot(own, stream.get(), own, event.get(), &error), "peer_wait_event");
    refused(slot(own, stream.get(), nullptr, event.get(), &error), "peer_wait_event");
    refused(slot(own, stream.get(), far, nullptr, &error), "peer_wait_event");
    refused(slot(own, nullptr, far, event.get(), &error), "peer_wait_event");
  }
}

}  // namespace

void add_peer_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.peer." + std::move(what), std::move(requirements), std::move(run), kPeerExtension);
    catalogue.back().since = kPeerSince;
  };
  add("query_is_constant", {"BP-PEER-001"}, query_is_constant);
  for (uint32_t dst = 0; dst < BP_MEMORY_KINDS; ++dst)
    for (uint32_t src = 0; src < BP_MEMORY_KINDS; ++src)
      for (const bool into_far : {false, true})
        if (dst != BP_MEMORY_HOST || src != BP_MEMORY_HOST)
          add(fmt::format("copies.{}.{}_to_{}", into_far ? "to_the_peer" : "from_the_peer", kind_name(src),
                          kind_name(dst)),
              {"BP-PEER-002"}, [=](Context& context) { copies_exactly(context, dst, src, into_far); });
  add("copies_in_order", {"BP-PEER-003"}, copies_in_order);
  add("copy_does_not_wait", {"BP-PEER-003"}, copy_does_not_wait);
  add("waits_for_an_event.reused", {"BP-PEER-004"}, [](Context& context) { waits_for_an_event(context, false); });
  add("waits_for_an_event.destroyed", {"BP-PEER-004"}, [](Context& context) { waits_for_an_event(context, true); });
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind)
    add(fmt::format("maps_one_memory.{}", kind_name(kind)), {"BP-PEER-005"},
        [=](Context& context) { maps_one_memory(context, kind); });
  add("leaves_nothing", {"BP-PEER-006"}, peers_leave_nothing);
  add("copy_refuses", {"BP-PEER-007"}, copy_refuses);
  add("refuses_itself_and_null", {"BP-PEER-007"}, refuses_itself_and_null);
}

}  // namespace backplane::conformance
