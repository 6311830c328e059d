// SPDX-License-Identifier: Apache-2.0
// Tests core's copy of a plugin's table. Empty slots become stubs, and core applies only layers
// that are named.
#include "loading/plugin_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.hpp"
#include "layers/layer_list.hpp"
#include "loading/plugin.hpp"
#include "loading/registry.hpp"

namespace backplane::core::test {

namespace {

using testing::HasSubstr;

std::string null_plugin() {
  const char* folder = std::getenv("BACKPLANE_TEST_PLUGINS");
  return std::string(folder != nullptr ? folder : "plugins") + "/null_plugin.so";
}

// A loaded plugin with its registry, which the destructor closes.
class Loaded {
 public:
  explicit Loaded(const char* layers) {
    bph_registry_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
    desc.search_path = "";
    desc.layers = layers;
    registry_ = Registry::create(&desc);
    plugin_ = registry_->load(null_plugin().c_str());
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() { registry_->close(); }
  Plugin* operator->() const { return plugin_.get(); }

 private:
  Ref<Registry> registry_;
  Ref<Plugin> plugin_;
};

TEST(Table, EmptyOptionalSlotsAnswerUnsupported) {
  bp_device_api empty = {};
  empty.struct_size = sizeof(empty);
  const bp_device_api api = complete_table(empty);
  const auto expect = [](const char* slot, bp_status status, const bp_error& error) {
    EXPECT_EQ(status, BP_UNSUPPORTED) << slot;
    EXPECT_EQ(error.status, BP_UNSUPPORTED) << slot;
    EXPECT_THAT(error.message, HasSubstr(std::string(slot) + ": not implemented by the plugin"));
  };
  bp_error error = fresh_error();
  void* address = &error;
  expect("buffer_map", api.buffer_map(nullptr, nullptr, &address, &error), error);
  EXPECT_EQ(address, nullptr);
  int64_t ns = 1;
  expect("event_elapsed", api.event_elapsed(nullptr, nullptr, nullptr, &ns, &error), error);
  EXPECT_EQ(ns, 0);
  expect("copy_in", api.copy_in(nullptr, nullptr, nullptr, 0, nullptr, 0, &error), error);
  expect("copy_out", api.copy_out(nullptr, nullptr, nullptr, nullptr, 0, 0, &error), error);
  uint64_t bytes = 1;
  expect("plan_workspace", api.plan_workspace(nullptr, nullptr, nullptr, &bytes, &error), error);
  EXPECT_EQ(bytes, 0u);
}

// The sizes describe a table that has grown twice since version 0.2, as in rules/tables.hpp.
TEST(Table, ItsLengthIsThatOfItsVersion) {
  constexpr rules::TableSize sizes[] = {{BP_VERSION(0, 2), 24}, {BP_VERSION(0, 4), 32}, {BP_VERSION(1, 1), 56}};
  EXPECT_EQ(rules::bytes_at(sizes, BP_VERSION(0, 1)), 0u);
  EXPECT_EQ(rules::bytes_at(sizes, BP_VERSION(0, 2)), 24u);
  EXPECT_EQ(rules::bytes_at(sizes, BP_VERSION(0, 3)), 24u);
  EXPECT_EQ(rules::bytes_at(sizes, BP_VERSION(0, 4)), 32u);
  EXPECT_EQ(rules::bytes_at(sizes, BP_VERSION(0, 0xFFFF)), 32u);
  EXPECT_EQ(rules::bytes_at(sizes, BP_VERSION(1, 0)), 32u);
  EXPECT_EQ(rules::bytes_at(sizes, BP_VERSION(2, 0)), 56u);
}

// A table's struct_size may include private fields of a derived struct. Those fields are not slots,
// even if the table has the current ABI version.
TEST(Table, ASlotThatItsVersionHasNotIsNotThere) {
  const Loaded plugin("");
  struct Derived {
    bp_device_api table;
    const void* mine;
  } derived = {*plugin->own->device_api, &plugin};
  derived.table.struct_size = sizeof(derived);
  EXPECT_EQ(missing_slot(rules::known_part(derived.table, BP_ABI_VERSION)), nullptr);
  EXPECT_STREQ(missing_slot(rules::known_part(derived.table, BP_ABI_VERSION_OLDEST - 1)), "close")
      << "at a version before the table was, no slot counts, however long it is";
  EXPECT_TRUE(BP_HAS_SLOT(BP_VERSION(0, 3), sizeof(derived), Derived, mine, BP_VERSION(0, 3)));
  EXPECT_FALSE(BP_HAS_SLOT(BP_VERSION(0, 2), sizeof(derived), Derived, mine, BP_VERSION(0, 3)));
  EXPECT_FALSE(BP_HAS_SLOT(BP_VERSION(0, 3), sizeof(bp_device_api), Derived, mine, BP_VERSION(0, 3)));
}

TEST(Table, AShortTableLacksWhatIsBehindItsEnd) {
  const Loaded plugin("");
  bp_device_api cut = *plugin->own->device_api;
  EXPECT_EQ(missing_slot(cut), nullptr);
  cut.struct_size = offsetof(bp_device_api, plan_execute);
  EXPECT_STREQ(missing_slot(rules::known_part(cut, BP_ABI_VERSION)), "plan_execute");
}

TEST(Layers, AreFreeWhenOff) {
  const Loaded plugin("");
  EXPECT_EQ(plugin->instance, plugin->own);
  EXPECT_EQ(plugin->layer_count, 0u);
  const bp_device_api complete = complete_table(rules::known_part(*plugin->own->device_api, plugin->own->abi_version));
  EXPECT_EQ(std::memcmp(&plugin->api, &complete, sizeof(complete)), 0);
}

TEST(Layers, TakeEverySlotWhenOnAndLeaveEmptyOnesEmpty) {
  const Loaded plugin("validation");
  EXPECT_EQ(plugin->layer_count, 1u);
  const bp_device_api& own = *plugin->own->device_api;
  const bp_device_api& layered = *plugin->instance->device_api;
  ASSERT_NE(plugin->instance, plugin->own);
#define BP_SPLICED(slot)                                            \
  EXPECT_EQ(own.slot == nullptr, layered.slot == nullptr) << #slot; \
  EXPECT_TRUE(own.slot == nullptr || own.slot != layered.slot) << #slot
  BP_SPLICED(close);
  BP_SPLICED(buffer_destroy);
  BP_SPLICED(stream_destroy);
  BP_SPLICED(event_destroy);
  BP_SPLICED(plan_destroy);
#define BP_SPLICED_device(slot) BP_SPLICED(slot)
#define BP_SPLICED_plugin(slot)
#define BP_INTERFACE_SLOT(owner, name, statuses)
#define BP_SLOT(owner, name, statuses) BP_SPLICED_##owner(name);
#include "layers/slots.def"
#undef BP_SLOT
  EXPECT_FALSE(plugin->has_copy_in);
  EXPECT_STREQ(plugin->instance->name, plugin->own->name);
}

TEST(Layers, UnknownOnesAreNamedWithTheKnown) {
  EXPECT_TRUE(parse_layers(",").empty());
  EXPECT_EQ(parse_layers("validation,,validation").size(), 2u);
  try {
    parse_layers("validation,nothing");
    ADD_FAILURE() << "an unknown layer was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
    for (const Layer& layer : known_layers()) EXPECT_THAT(error.what(), HasSubstr(std::string(layer.name)));
    EXPECT_THAT(error.what(), HasSubstr("no layer is named \"nothing\""));
  }
}

}  // namespace

}  // namespace backplane::core::test
