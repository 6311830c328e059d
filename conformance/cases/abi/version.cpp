// SPDX-License-Identifier: Apache-2.0
// Test cases for version negotiation, and for bp_host tables whose size differs from the size in
// this ABI version.
#include <backplane/rules/tables.hpp>
#include <cstring>

#include "cases/abi/cases.hpp"
#include "cases/support/guarded.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

constexpr uint32_t version_of(uint32_t major, uint32_t minor) { return major << 16 | minor; }

// Queries the plugin with `host`. On success, uses the instance and shuts it down.
void work_with(Context& context, const bp_host& host, std::initializer_list<bp_status> expected) {
  const Library library(context.path());
  const bp_plugin* instance = nullptr;
  ErrorRecord error;
  const bp_status status = library.query(&host, &instance, &error);
  expect_status(status, error, BP_PLUGIN_QUERY_SYMBOL, expected);
  if (status != BP_OK) {
    context.require(instance == nullptr, "bp_plugin_query failed and gave an instance");
    return;
  }
  context.require(instance != nullptr, "bp_plugin_query returned OK with a null instance");
  context.require(instance->abi_version == context.plugin()->abi_version &&
                      instance->abi_version_min == context.plugin()->abi_version_min,
                  "the plugin's versions depend on the host's");
  uint32_t count = 0;
  expect_status(instance->device_count(instance, &count, &error), error, "device_count", {BP_OK});
  bp_device* device = nullptr;
  expect_status(instance->device_open(instance, context.device_index(), nullptr, &device, &error), error, "device_open",
                {BP_OK});
  instance->device_api->close(device);
  instance->shutdown(instance);
}

struct Tail {
  const char* name;
  size_t bytes;
  bool garbage;
};
constexpr Tail kTails[] = {{"none", 0, false},          {"zero_8", 8, false},     {"zero_64", 64, false},
                           {"garbage_8", 8, true},      {"garbage_64", 64, true}, {"zero_4096", 4096, false},
                           {"garbage_4096", 4096, true}};

// Loads the plugin with a bp_host of `version` that has extra bytes at its end. The plugin must
// ignore the extra bytes.
void with_tail(Context& context, uint32_t version, const Tail& tail) {
  LogHost host(version);
  const GuardedStruct<bp_host> table(sizeof(bp_host) + tail.bytes, host.table);
  if (tail.garbage) std::memset(table.bytes() + sizeof(bp_host), 0xA5, tail.bytes);
  work_with(context, *table.get(), {BP_OK});
}

void versions_are_stated(Context& context) {
  const Plugin& plugin = context.plugin();
  context.require(plugin->abi_version_min <= plugin->abi_version, "abi_version_min {:#x} is above abi_version {:#x}",
                  plugin->abi_version_min, plugin->abi_version);
  context.require(plugin->abi_version >> 16 == BP_ABI_VERSION_MAJOR,
                  "built for ABI major {}; this suite measures major {}", plugin->abi_version >> 16,
                  BP_ABI_VERSION_MAJOR);
  context.require(plugin->abi_version >= BP_ABI_VERSION_OLDEST,
                  "built for ABI {:#x}; hosts of this one serve plugins from {:#x} on", plugin->abi_version,
                  BP_ABI_VERSION_OLDEST);
  context.require(plugin->abi_version_min <= BP_ABI_VERSION, "works with hosts from ABI {:#x} on; this one has {:#x}",
                  plugin->abi_version_min, BP_ABI_VERSION);
}

// Checks the size of one of the plugin's tables. A table that is newer than this suite may be
// larger.
template <class Table>
void is_as_long_as_its_version(Context& context, const char* type, const Table& table) {
  const uint32_t version = context.plugin()->abi_version;
  const uint32_t bytes = backplane::rules::table_bytes<Table>(version);
  context.require(version > BP_ABI_VERSION ? table.struct_size >= bytes : table.struct_size == bytes,
                  "{}.struct_size is {}; at ABI {}.{} it is {}. It counts no private field of a derived struct", type,
                  table.struct_size, version >> 16, version & 0xFFFF, bytes);
}

void tables_are_whole(Context& context) {
  const Plugin& plugin = context.plugin();
  is_as_long_as_its_version(context, "bp_plugin", *plugin.get());
  is_as_long_as_its_version(context, "bp_device_api", *plugin->device_api);
  if (plugin->get_interface == nullptr) return;
  Device& device = context.device();
  const void* import = plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_IMPORT, 1);
  if (import != nullptr)
    is_as_long_as_its_version(context, "bp_import_api", *static_cast<const bp_import_api*>(import));
  const void* native = plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_NATIVE, 1);
  if (native != nullptr)
    is_as_long_as_its_version(context, "bp_native_api", *static_cast<const bp_native_api*>(native));
  const void* graph = plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_GRAPH, 1);
  if (graph != nullptr) is_as_long_as_its_version(context, "bp_graph_api", *static_cast<const bp_graph_api*>(graph));
  const void* peer = plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_PEER, 1);
  if (peer != nullptr) is_as_long_as_its_version(context, "bp_peer_api", *static_cast<const bp_peer_api*>(peer));
  const void* pack = plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_PACK, 1);
  if (pack != nullptr) is_as_long_as_its_version(context, "bp_pack_api", *static_cast<const bp_pack_api*>(pack));
  const void* external = plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_EXTERNAL, 1);
  if (external != nullptr)
    is_as_long_as_its_version(context, "bp_external_api", *static_cast<const bp_external_api*>(external));
}

void null_interface_slot(Context& context) {
  LogHost host;
  host.table.get_interface = nullptr;
  const Library library(context.path());
  work_with(context, host.table, {BP_OK});
}

}  // namespace

void add_version_cases(Catalogue& catalogue) {
  const auto add = [&](std::string id, std::vector<std::string_view> requirements, std::function<void(Context&)> run) {
    catalogue.push_back(
        {.id = "abi.version." + std::move(id), .requirements = std::move(requirements), .run = std::move(run)});
  };
  add("stated", {"BP-VER-003", "BP-VER-007"}, versions_are_stated);
  add("tables_are_whole", {"BP-VER-006"}, tables_are_whole);
  add("host_without_get_interface", {"BP-VER-005"}, null_interface_slot);
  for (const auto& [name, version] : {std::pair{"same", BP_ABI_VERSION}, std::pair{"next_minor", BP_ABI_VERSION + 1},
                                      std::pair{"far_minor", BP_ABI_VERSION | 0xFFFFu}})
    for (const Tail& tail : kTails)
      add(fmt::format("host_{}.tail_{}", name, tail.name), {"BP-VER-001", "BP-VER-004", "BP-VER-005"},
          [version = version, &tail](Context& context) { with_tail(context, version, tail); });
  // A plugin may read only the first two fields of a bp_host of another major version. A guard page
  // follows these two fields.
  for (const uint32_t major : {1u, 2u, 0xFFFFu})
    for (const uint32_t minor : {0u, 0xFFFFu})
      add(fmt::format("host_of_major_{}.minor_{}", major, minor), {"BP-VER-002"}, [=](Context& context) {
        GuardedStruct<bp_host> host(8, bp_host{});
        host.get()->abi_version = version_of(major, minor);
        work_with(context, *host.get(), {BP_ABI_MISMATCH});
      });
}

}  // namespace backplane::conformance
