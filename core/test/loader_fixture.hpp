// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of the loader: a private folder for manifests, a registry that searches only
// this folder, and the registry's log.
#pragma once

#include <backplane/backplane.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "expect.hpp"
#include "owned.hpp"

namespace backplane::core::test {

// Returns the path of a test plugin. The build sets BACKPLANE_TEST_PLUGINS to the plugins' folder.
inline std::string plugin_file(const std::string& name) {
  const char* folder = std::getenv("BACKPLANE_TEST_PLUGINS");
  return std::string(folder != nullptr ? folder : "plugins") + "/" + name + ".so";
}

class LoaderTest : public testing::Test {
 protected:
  LoaderTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "backplane-XXXXXX").string();
    folder = mkdtemp(pattern.data());
    error.struct_size = sizeof(error);
  }
  ~LoaderTest() override {
    plugin.reset();
    registry.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  void write(const std::string& file, const std::string& text) { std::ofstream(folder + "/" + file) << text; }

  // Returns a valid manifest with `changes`, which maps keys to JSON text. An empty text removes
  // the key.
  static std::string manifest_text(const std::string& name, const std::string& library,
                                   std::map<std::string, std::string> changes = {}) {
    std::map<std::string, std::string> keys = {
        {"manifest_version", "1"},
        {"name", '"' + name + '"'},
        {"library", '"' + library + '"'},
        {"abi", R"({"min": "0.2", "max": "0.2"})"},
        {"architectures", R"(["x86_64", "aarch64", "riscv64", "ppc64le", "s390x"])"}};
    for (auto& [key, value] : changes) keys[key] = value;
    std::string text = "{";
    for (const auto& [key, value] : keys) {
      if (!value.empty()) text += (text.size() > 1 ? ", \"" : "\"") + key + "\": " + value;
    }
    return text + "}\n";
  }
  // Installs a test plugin with a manifest.
  void install(const std::string& file, const std::string& name) {
    std::filesystem::copy_file(plugin_file(file), folder + "/lib" + file + ".so");
    write(file + ".json", manifest_text(name, "lib" + file + ".so"));
  }

  // Creates the registry. If `record` is null, `error` receives the failure.
  bp_status create(const char* path = nullptr, bp_error* record = nullptr) {
    bph_registry_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
    desc.search_path = path != nullptr ? path : folder.c_str();
    desc.log = [](void* context, int32_t level, const char* message) {
      auto* self = static_cast<LoaderTest*>(context);
      const std::lock_guard lock(self->log_mutex);
      self->log.push_back(std::to_string(level) + " " + message);
    };
    desc.log_context = this;
    return bph_registry_create(&desc, registry.out(), record != nullptr ? record : &error);
  }

  bph_candidate candidate(uint32_t index) {
    bph_candidate result = {};
    result.struct_size = sizeof(result);
    EXPECT_OK(bph_registry_candidate(registry, index, &result, &error));
    return result;
  }
  uint32_t count() {
    uint32_t result = 0;
    EXPECT_EQ(bph_registry_candidate_count(registry, &result, &error), BP_OK);
    return result;
  }
  bp_status load(const std::string& name, bp_error* record = nullptr) {
    return bph_plugin_load(registry, name.c_str(), plugin.out(), record != nullptr ? record : &error);
  }
  // Returns the rule that refuses the plugin at `path`, or "loaded".
  std::string rule_of(const std::string& path) {
    if (load(path) == BP_OK) return "loaded";
    return candidate(count() - 1).rule;
  }

  std::string folder;
  bp_error error = {};
  Owned<bph_registry> registry;
  Owned<bph_plugin> plugin;
  std::mutex log_mutex;
  std::vector<std::string> log;
};

}  // namespace backplane::core::test
