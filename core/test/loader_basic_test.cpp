// SPDX-License-Identifier: Apache-2.0
// Tests loading of valid plugins: by name, by path, twice, and from two registries.
#include <thread>

#include "loader_fixture.hpp"

namespace backplane::core::test {

namespace {

using testing::HasSubstr;

class LoaderBasic : public LoaderTest {};

TEST_F(LoaderBasic, ByNameThroughAManifest) {
  install("null_plugin", "null");
  ASSERT_OK(create(nullptr, &error));
  ASSERT_EQ(count(), 1u);
  bph_candidate found = candidate(0);
  EXPECT_EQ(found.status, BP_OK);
  EXPECT_STREQ(found.name, "null");
  EXPECT_STREQ(found.origin, "search_path");
  EXPECT_EQ(found.manifest, folder + "/null_plugin.json");
  EXPECT_EQ(found.library, folder + "/libnull_plugin.so");
  EXPECT_EQ(found.loaded, 0u);

  ASSERT_OK(load("null", &error));
  uint32_t devices = 0;
  EXPECT_EQ(bph_plugin_device_count(plugin, &devices, &error), BP_OK);
  EXPECT_EQ(devices, 1u);
  bp_device_info info = {};
  info.struct_size = sizeof(info);
  EXPECT_OK(bph_plugin_device_info(plugin, 0, &info, &error));
  EXPECT_STREQ(info.name, "null device");
  EXPECT_EQ(bph_plugin_device_info(plugin, 1, &info, &error), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("null: device_info"));

  found = candidate(0);
  EXPECT_EQ(found.loaded, 1u);
  EXPECT_EQ(found.device_count, 1u);
  EXPECT_STREQ(found.version, "1");

  bph_plugin_info about = {};
  about.struct_size = sizeof(about);
  EXPECT_EQ(bph_plugin_get_info(plugin, &about, &error), BP_OK);
  EXPECT_EQ(about.abi_version, BP_ABI_VERSION);
  EXPECT_STREQ(about.name, "null");
  EXPECT_EQ(about.library, folder + "/libnull_plugin.so");
}

TEST_F(LoaderBasic, ByPathOfALibraryAndOfAManifest) {
  install("null_plugin", "null");
  ASSERT_EQ(create(""), BP_OK);
  EXPECT_EQ(count(), 0u);
  ASSERT_OK(load(plugin_file("null_plugin"), &error));
  ASSERT_EQ(count(), 1u);
  EXPECT_STREQ(candidate(0).origin, "explicit");
  EXPECT_STREQ(candidate(0).name, "null");
  EXPECT_EQ(load("null"), BP_OK) << "a plugin loaded by path is reached by its name";
  ASSERT_OK(load(folder + "/null_plugin.json", &error));
  EXPECT_EQ(count(), 2u);
  EXPECT_EQ(candidate(1).shadowed, 1u);
}

TEST_F(LoaderBasic, HandlesOutliveTheirRegistry) {
  ASSERT_EQ(create(""), BP_OK);
  ASSERT_EQ(load(plugin_file("null_plugin")), BP_OK);
  bph_registry* const released = registry;
  registry.reset();
  uint32_t devices = 0;
  EXPECT_EQ(bph_plugin_device_count(plugin, &devices, &error), BP_OK);
  EXPECT_EQ(devices, 1u);
  EXPECT_EQ(bph_registry_candidate_count(released, &devices, &error), BP_INVALID_ARGUMENT);
}

}  // namespace

}  // namespace backplane::core::test
