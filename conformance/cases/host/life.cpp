// SPDX-License-Identifier: Apache-2.0
// Test cases for loading and releasing the plugin through the host library, and for process exit.
#include <algorithm>
#include <array>
#include <cstring>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/leak.hpp"
#include "cases/support/threads.hpp"
#include "harness/probe.hpp"
#include "harness/probes.hpp"

namespace backplane::conformance {

namespace {

// Computes `out = a + a` on the device of `side`, and checks the result.
void work(Context& context, HostSide& side) {
  OpDesc desc = elementwise(BP_OP_ADD, BP_U32, 100);
  const Words data = noise_words(context, 100);
  Bytes bytes(400);
  std::memcpy(bytes.data(), data.data(), 400);
  HostCall call(side, desc, {bytes, bytes}, {Bytes(400)}, {});
  call.execute(context, side);
  Words got(100), expected(100);
  std::memcpy(got.data(), call.results(side)[0].data(), 400);
  for (size_t i = 0; i < 100; ++i) expected[i] = 2 * data[i];
  require_same(context, got, expected, "an addition through the host library");
}

void loads(Context& context) {
  HostSide side(context);
  const bph_plugin_info info = side.plugin.info();
  context.require(std::strcmp(info.name, context.plugin()->name) == 0, "the host library calls the plugin \"{}\"",
                  info.name);
  context.require(info.abi_version == context.plugin()->abi_version, "the host library reads ABI {:#x}",
                  info.abi_version);
  work(context, side);
}

void says_the_same(Context& context) {
  HostSide side(context);
  const bp_device_info of_host = side.device.info(), own = context.plugin().device_info(context.device_index());
  context.require(std::memcmp(&of_host, &own, sizeof(own)) == 0,
                  "the host library returns other device properties than the plugin");
  context.require(side.plugin.device_count() == context.plugin().device_count(),
                  "the host library returns another number of devices than the plugin");
}

void loads_without_a_word(Context& context) {
  HostSide side(context);
  work(context, side);
  for (const std::string& line : side.log.lines())
    context.require(line.find("warning") == std::string::npos && line.find("took") == std::string::npos &&
                        line.find("restored") == std::string::npos,
                    "the host library logs a problem with the plugin: {}", line);
}

void again_and_again(Context& context) {
  expect_no_leak(context, "loading, working and releasing through the host library", 12, [&] {
    HostSide side(context);
    work(context, side);
  });
}

void two_registries(Context& context) {
  HostSide first(context), second(context);
  context.require(first.plugin.get() != second.plugin.get(), "two registries have one plugin handle");
  for (int i = 0; i < 3; ++i) {
    work(context, first);
    work(context, second);
  }
}

void one_registry_ends(Context& context) {
  HostSide left(context);
  for (int i = 0; i < 3; ++i) {
    HostSide passing(context);
    work(context, passing);
    work(context, left);
  }
  work(context, left);
}

void two_opens(Context& context) {
  HostSide side(context);
  const backplane::Device other = side.plugin.open(context.device_index());
  context.require(other.get() != side.device.get(), "two opens have one device handle");
  work(context, side);
}

// Releases the handles in the order that `permutation` selects. Each handle must keep its parents
// alive.
void released_in_order(Context& context, unsigned permutation) {
  HostLog log;
  const bph_registry_desc desc = log.desc("");
  bph_registry* registry = nullptr;
  bph_plugin* plugin = nullptr;
  bph_device* device = nullptr;
  bph_stream* stream = nullptr;
  using backplane::detail::call;
  call(bph_registry_create, &desc, &registry);
  call(bph_plugin_load, registry, context.path().c_str(), &plugin);
  call(bph_plugin_device_open, plugin, context.device_index(), static_cast<const bph_device_desc*>(nullptr), &device);
  call(bph_stream_create, device, nullptr, &stream);
  std::array<unsigned, 4> order = {0, 1, 2, 3};
  for (unsigned i = 0; i < permutation; ++i) std::next_permutation(order.begin(), order.end());
  for (const unsigned which : order) {
    if (which != 3 && stream != nullptr) call(bph_stream_wait, stream, uint64_t{BP_WAIT_FOREVER});
    switch (which) {
      case 0:
        bph_registry_release(registry);
        break;
      case 1:
        bph_plugin_release(plugin);
        break;
      case 2:
        bph_device_release(device);
        break;
      default:
        bph_stream_release(std::exchange(stream, nullptr));
        break;
    }
  }
}

void from_threads(Context& context) {
  in_threads(context, 6, [&](unsigned) {
    for (int i = 0; i < 4; ++i) {
      const HostSide side(context);
      side.stream.wait();
    }
  });
}

void exits(Context& context, const char* probe) {
  const ProbeEnd end = run_probe(probe, context.path(), context.device_index());
  context.require(end.ok, "the process of the probe {} ended with {}", probe, end.how);
}

}  // namespace

void add_host_life_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::string_view requirement, std::function<void(Context&)> run) {
    add_case(catalogue, "host.life." + std::move(what), {requirement}, std::move(run));
  };
  add("loads", "BP-USE-001", loads);
  add("says_the_same", "BP-USE-001", says_the_same);
  add("loads_without_a_word", "BP-USE-001", loads_without_a_word);
  add("again_and_again", "BP-USE-001", again_and_again);
  add("two_registries", "BP-USE-002", two_registries);
  add("one_registry_ends", "BP-USE-002", one_registry_ends);
  add("two_opens", "BP-USE-002", two_opens);
  for (unsigned permutation = 0; permutation < 24; ++permutation)
    add(fmt::format("released_in_order_{}", permutation), "BP-USE-001",
        [permutation](Context& context) { released_in_order(context, permutation); });
  add("from_threads", "BP-USE-013", from_threads);
  for (const ProbeRow& row : probe_rows())
    if (row.by_host)
      add(fmt::format("exits_with_{}", row.name), "BP-USE-003",
          [name = row.name](Context& context) { exits(context, name); });
}

}  // namespace backplane::conformance
