// SPDX-License-Identifier: Apache-2.0
// Test cases for plugin instances: concurrent and successive instances, instances on many threads,
// and leaks.
#include <chrono>
#include <deque>
#include <memory>
#include <thread>

#include "cases/abi/cases.hpp"
#include "cases/support/leak.hpp"
#include "cases/support/op_desc.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

// Checks that device `index` of `plugin` computes correct results.
void work(Plugin& plugin, uint32_t index) {
  Device device(plugin, index);
  Buffer data(device, 64);
  const std::vector<float> ones(16, 1.5F);
  device.write(data.get(), 0, ones.data(), 64);
  Runner neg(device, elementwise(BP_OP_NEG, BP_F32, 16));
  Buffer result(device, 64);
  neg.enqueue(device.stream(), {{data.get()}}, {{result.get()}});
  std::vector<float> got(16);
  device.read(result.get(), 0, got.data(), 64);
  for (const float value : got)
    if (value != -1.5F) throw CaseEnd{Outcome::fail, fmt::format("-(1.5) gave {}", value)};
}

void are_their_own(Context& context) {
  Plugin first(context.path()), second(context.path());
  context.require(first.get() != second.get(), "two queries gave one instance");
  work(first, context.device_index());
  work(second, context.device_index());
}

void one_outlives_the_other(Context& context, bool first_ends) {
  auto first = std::make_unique<Plugin>(context.path());
  auto second = std::make_unique<Plugin>(context.path());
  work(*first, context.device_index());
  work(*second, context.device_index());
  Plugin& left = first_ends ? *second : *first;
  Device device(left, context.device_index());
  Stream stream(device);
  (first_ends ? first : second).reset();
  stream.wait();
  work(left, context.device_index());
}

void ended_with_a_device_of_the_other_busy(Context& context) {
  Plugin left(context.path());
  Device device(left, context.device_index());
  Stream stream(device);
  const uint64_t bytes = 1u << 20;
  Buffer from(device, bytes), to(device, bytes);
  const std::vector<unsigned char> data(bytes, 0x3C);
  device.write(from.get(), 0, data.data(), bytes);
  for (int i = 0; i < 16; ++i) stream.copy(to.get(), 0, from.get(), 0, bytes);
  { const Plugin other(context.path()); }
  stream.wait();
  std::vector<unsigned char> got(bytes);
  device.read(to.get(), 0, got.data(), bytes);
  context.require(got == data, "work of one instance was disturbed by the shutdown of another");
}

void eight_at_once(Context& context) {
  std::deque<Plugin> all;
  for (int i = 0; i < 8; ++i) all.emplace_back(context.path());
  for (Plugin& each : all) work(each, context.device_index());
  while (!all.empty()) {
    context.random()() % 2 == 0 ? all.pop_front() : all.pop_back();
    if (!all.empty()) work(all.front(), context.device_index());
  }
}

void from_many_threads(Context& context) {
  in_threads(context, 8, [&](unsigned) {
    for (int i = 0; i < 8; ++i) {
      Plugin plugin(context.path());
      work(plugin, context.device_index());
    }
  });
}

void again_and_again(Context& context) {
  expect_no_leak(context, "loading, working and shutting down", 16, [&] {
    Plugin plugin(context.path());
    work(plugin, context.device_index());
  });
}

void query_and_shutdown_only(Context& context) {
  expect_no_leak(context, "a query and its shutdown", 64, [&] { const Plugin plugin(context.path()); });
}

void query_starts_no_thread(Context& context) {
  { const Plugin warm(context.path()); }
  const Footprint before = Footprint::now();
  const Plugin plugin(context.path());
  const Footprint after = Footprint::now();
  context.require(after.threads <= before.threads, "bp_plugin_query started {} threads",
                  after.threads - before.threads);
}

void silent_after_shutdown(Context& context) {
  const Library library(context.path());
  LogHost host;
  const bp_plugin* instance = nullptr;
  ErrorRecord error;
  expect_status(library.query(&host.table, &instance, &error), error, BP_PLUGIN_QUERY_SYMBOL, {BP_OK});
  bp_device* device = nullptr;
  expect_status(instance->device_open(instance, context.device_index(), nullptr, &device, &error), error, "device_open",
                {BP_OK});
  const bp_stream_desc plain = {sizeof(plain), 0};
  bp_stream* stream = nullptr;
  expect_status(instance->device_api->stream_create(device, &plain, &stream, &error), error, "stream_create", {BP_OK});
  instance->device_api->stream_destroy(device, stream);
  instance->device_api->close(device);
  instance->shutdown(instance);
  const uint64_t lines = host.count();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  if (host.count() != lines) context.fail("the plugin logged after shutdown: {}", host.lines().back());
}

void no_interface_of_that_name(Context& context, const char* name, uint32_t version, bool of_device) {
  Plugin& plugin = context.plugin();
  if (plugin->get_interface == nullptr) return;
  bp_device* const device = of_device ? context.device().get() : nullptr;
  context.require(plugin->get_interface(plugin.get(), device, name, version) == nullptr,
                  "get_interface gave a table for \"{}\" version {}", name, version);
}

}  // namespace

void add_instance_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    catalogue.push_back(
        {.id = "abi.instance." + std::move(what), .requirements = std::move(requirements), .run = std::move(run)});
  };
  add("each_is_its_own", {"BP-INST-003"}, are_their_own);
  add("first_ends_first", {"BP-INST-004"}, [](Context& context) { one_outlives_the_other(context, true); });
  add("second_ends_first", {"BP-INST-004"}, [](Context& context) { one_outlives_the_other(context, false); });
  add("ends_while_another_is_busy", {"BP-INST-004", "BP-THR-007"}, ended_with_a_device_of_the_other_busy);
  add("eight_at_once", {"BP-INST-003", "BP-INST-004"}, eight_at_once);
  add("from_many_threads", {"BP-INST-006"}, from_many_threads);
  add("reload_and_work", {"BP-INST-005"}, again_and_again);
  add("reload_only", {"BP-INST-005"}, query_and_shutdown_only);
  add("query_starts_no_thread", {"BP-INST-007"}, query_starts_no_thread);
  add("silent_after_shutdown", {"BP-INST-008"}, silent_after_shutdown);
  for (const bool of_device : {false, true}) {
    const char* const whose = of_device ? "device" : "plugin";
    add(fmt::format("no_empty_interface_of_{}", whose), {"BP-INST-009"},
        [of_device](Context& context) { no_interface_of_that_name(context, "", 1, of_device); });
    add(fmt::format("no_unknown_interface_of_{}", whose), {"BP-INST-009"},
        [of_device](Context& context) { no_interface_of_that_name(context, "bp.no_such_interface", 1, of_device); });
    add(fmt::format("no_near_name_of_{}", whose), {"BP-INST-009"},
        [of_device](Context& context) { no_interface_of_that_name(context, "bp.import2", 1, of_device); });
    add(fmt::format("no_version_0_of_{}", whose), {"BP-INST-009"},
        [of_device](Context& context) { no_interface_of_that_name(context, BP_INTERFACE_IMPORT, 0, of_device); });
    add(fmt::format("no_far_version_of_{}", whose), {"BP-INST-009"}, [of_device](Context& context) {
      no_interface_of_that_name(context, BP_INTERFACE_IMPORT, UINT32_MAX, of_device);
    });
  }
}

}  // namespace backplane::conformance
