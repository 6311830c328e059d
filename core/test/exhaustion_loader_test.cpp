// SPDX-License-Identifier: Apache-2.0
// Injects a failure into each allocation and file call of the registry and plugin functions. The
// call under test must return an error without a leak, and must succeed when it is repeated.
#include "fault_points.hpp"
#include "loader_fixture.hpp"

namespace backplane::core::test {

namespace {

class LoaderExhaustion : public LoaderTest {
 protected:
  LoaderExhaustion() {
    std::filesystem::create_symlink(plugin_file("null_plugin"), folder + "/null.so");
    write("null.json", manifest_text("null", "null.so"));
    write("null2.json", manifest_text("null", "null.so", {{"extra", "1"}}));
    write("broken.json", "{");
    write("config.json", R"({"devices": ["absent:1", "null:0"]})");
    config = folder + "/config.json";
  }

  bp_status open_registry() {
    bph_registry_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
    desc.search_path = folder.c_str();
    desc.config_file = config.c_str();
    desc.log = [](void*, int32_t, const char*) {};
    return bph_registry_create(&desc, registry.out(), nullptr);
  }

  std::string config;
};

constexpr unsigned kMemoryOnly = fault_points::memory;

// Creation of a registry succeeds even if a manifest cannot be read, and fails only if memory is
// exhausted.
TEST_F(LoaderExhaustion, CreateRegistry) {
  const auto attempt = [&] {
    const bp_status status = open_registry();
    if (status == BP_OK) {
      registry.reset();
    } else {
      EXPECT_EQ(registry.get(), nullptr);
    }
    return status;
  };
  const auto memory = fault_points::sweep("bph_registry_create, memory", kMemoryOnly, attempt);
  EXPECT_EQ(memory.complaint, "");
  EXPECT_GT(memory.errors, 50u);
  const auto files = fault_points::sweep("bph_registry_create, files", fault_points::files, attempt);
  EXPECT_EQ(files.complaint, "");
  EXPECT_GT(files.points, 50u);
}

TEST_F(LoaderExhaustion, LoadByName) {
  ASSERT_EQ(open_registry(), BP_OK);
  // All fault points use one registry, because a failed load must not affect the next load.
  for (const unsigned kind : {fault_points::memory, fault_points::files, fault_points::dynamic_linker}) {
    const std::string what = "bph_plugin_load, kind " + std::to_string(kind);
    const auto result = fault_points::sweep(what.c_str(), kind, [&] {
      Owned<bph_plugin> loaded;
      const bp_status status = bph_plugin_load(registry, "null", loaded.out(), nullptr);
      EXPECT_EQ(loaded.get() == nullptr, status != BP_OK);
      return status;
    });
    EXPECT_EQ(result.complaint, "");
  }
}

TEST_F(LoaderExhaustion, CreateLoadAskRelease) {
  for (const unsigned kind : {fault_points::memory, fault_points::files, fault_points::dynamic_linker}) {
    const std::string what = "create, load, examine, count, info, kind " + std::to_string(kind);
    const auto result = fault_points::sweep(what.c_str(), kind, [&] {
      Owned<bph_plugin> loaded;
      bp_status status = open_registry();
      if (status == BP_OK) status = bph_plugin_load(registry, "null", loaded.out(), nullptr);
      if (status == BP_OK) status = bph_registry_examine(registry, nullptr);
      uint32_t devices = 0;
      if (status == BP_OK) status = bph_plugin_device_count(loaded, &devices, nullptr);
      bp_device_info info = {};
      info.struct_size = sizeof(info);
      if (status == BP_OK) status = bph_plugin_device_info(loaded, 0, &info, nullptr);
      bph_candidate candidate = {};
      candidate.struct_size = sizeof(candidate);
      if (status == BP_OK) status = bph_registry_candidate(registry, 0, &candidate, nullptr);
      loaded.reset();
      registry.reset();
      return status;
    });
    EXPECT_EQ(result.complaint, "");
    EXPECT_GT(result.errors, 0u);
  }
}

TEST_F(LoaderExhaustion, LoadByPath) {
  ASSERT_EQ(open_registry(), BP_OK);
  const std::string path = plugin_file("null_plugin");
  const auto result = fault_points::sweep("bph_plugin_load by path", fault_points::all, [&] {
    Owned<bph_plugin> loaded;
    return bph_plugin_load(registry, path.c_str(), loaded.out(), nullptr);
  });
  EXPECT_EQ(result.complaint, "");
}

}  // namespace

}  // namespace backplane::core::test
