// SPDX-License-Identifier: Apache-2.0
// Tests lifetimes of plugins: one instance per registry, any order of release, threads, forks, and
// many cycles.
#include <malloc.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "loader_fixture.hpp"

namespace backplane::core::test {

namespace {

using testing::HasSubstr;

class LoaderLifetime : public LoaderTest {
 protected:
  int64_t shutdowns() {
    const std::lock_guard lock(log_mutex);
    return std::count_if(log.begin(), log.end(), [](const std::string& line) { return line.ends_with("shut down"); });
  }
};

// Name of a valid library that logs its shutdown.
constexpr const char* kLoggingPlugin = "faulty_long_tables";

TEST_F(LoaderLifetime, OneInstanceForEveryLoad) {
  install(kLoggingPlugin, "faulty");
  std::filesystem::create_symlink(folder + "/libfaulty_long_tables.so", folder + "/link.so");
  ASSERT_EQ(create(), BP_OK);
  std::vector<Owned<bph_plugin>> loaded(4);
  const std::string names[] = {"faulty", folder + "/libfaulty_long_tables.so", folder + "/link.so",
                               folder + "/faulty_long_tables.json"};
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_OK(bph_plugin_load(registry, names[i].c_str(), loaded[i].out(), &error));
  }
  EXPECT_EQ(count(), 1u);
  loaded.clear();
  EXPECT_EQ(shutdowns(), 0) << "the registry keeps it";
  registry.reset();
  EXPECT_EQ(shutdowns(), 1);
}

TEST_F(LoaderLifetime, TheLastReferenceEndsIt) {
  ASSERT_EQ(create(""), BP_OK);
  ASSERT_EQ(load(plugin_file(kLoggingPlugin)), BP_OK);
  registry.reset();
  EXPECT_EQ(shutdowns(), 0);
  bph_plugin* const released = plugin;
  plugin.reset();
  EXPECT_EQ(shutdowns(), 1);
  uint32_t devices = 0;
  EXPECT_EQ(bph_plugin_device_count(released, &devices, &error), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("not a live plugin"));
  bph_plugin_release(released);
}

TEST_F(LoaderLifetime, ADeviceKeepsItsPlugin) {
  ASSERT_EQ(create(""), BP_OK);
  ASSERT_EQ(load(plugin_file(kLoggingPlugin)), BP_OK);
  Owned<bph_device> device;
  ASSERT_OK(bph_plugin_device_open(plugin, 0, nullptr, device.out(), &error));
  registry.reset();
  plugin.reset();
  EXPECT_EQ(shutdowns(), 0);
  device.reset();
  EXPECT_EQ(shutdowns(), 1);
}

TEST_F(LoaderLifetime, TwoRegistriesAreTwoInstances) {
  ASSERT_EQ(create(""), BP_OK);
  ASSERT_EQ(load(plugin_file(kLoggingPlugin)), BP_OK);
  Owned<bph_registry> first = std::move(registry);
  Owned<bph_plugin> first_plugin = std::move(plugin);
  ASSERT_EQ(create(""), BP_OK);
  ASSERT_EQ(load(plugin_file(kLoggingPlugin)), BP_OK);
  first_plugin.reset();
  first.reset();
  EXPECT_EQ(shutdowns(), 1);
  uint32_t devices = 0;
  EXPECT_EQ(bph_plugin_device_count(plugin, &devices, &error), BP_OK);
  EXPECT_EQ(devices, 1u);
}

TEST_F(LoaderLifetime, ManyThreadsLoadAtOnce) {
  install(kLoggingPlugin, "faulty");
  install("null_plugin", "null");
  install("throwing_plugin", "bad");
  ASSERT_EQ(create(), BP_OK);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 20; ++round) {
        for (const char* name : {"faulty", "null", "bad"}) {
          Owned<bph_plugin> loaded;
          const bp_status status = bph_plugin_load(registry, name, loaded.out(), nullptr);
          EXPECT_EQ(status, name == std::string("bad") ? BP_INTERNAL : BP_OK);
        }
        bph_candidate found = {};
        found.struct_size = sizeof(found);
        EXPECT_EQ(bph_registry_candidate(registry, 1, &found, nullptr), BP_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  registry.reset();
  EXPECT_EQ(shutdowns(), 1);
}

TEST_F(LoaderLifetime, ASleepingPluginDelaysOnlyItself) {
  install("faulty_sleep", "faulty");
  install("null_plugin", "null");
  ASSERT_EQ(create(), BP_OK);
  std::atomic<bool> slept{false};
  std::thread sleeper([&] {
    Owned<bph_plugin> loaded;
    EXPECT_EQ(bph_plugin_load(registry, "faulty", loaded.out(), nullptr), BP_OK);
    slept = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const bool asleep_before = !slept;
  EXPECT_OK(load("null", &error));
  EXPECT_TRUE(!asleep_before || !slept) << "loading null waited for the sleeper";
  sleeper.join();
}

TEST_F(LoaderLifetime, AChildMayUseNothingOfItsParents) {
  ASSERT_EQ(create(""), BP_OK);
  ASSERT_EQ(load(plugin_file(kLoggingPlugin)), BP_OK);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    uint32_t devices = 0;
    int wrong = bph_plugin_device_count(plugin, &devices, &error) == BP_UNAVAILABLE ? 0 : 1;
    bph_plugin* again = nullptr;
    if (bph_plugin_load(registry, "null", &again, &error) != BP_UNAVAILABLE) wrong |= 2;
    plugin.reset();
    registry.reset();
    if (shutdowns() != 0) wrong |= 4;
    if (create("") != BP_OK || load(plugin_file(kLoggingPlugin)) != BP_OK) wrong |= 8;
    if (bph_plugin_device_count(plugin, &devices, &error) != BP_OK) wrong |= 16;
    bph_plugin* const released = plugin;
    plugin.reset();
    if (bph_plugin_device_count(released, &devices, &error) != BP_INVALID_ARGUMENT)
      wrong |= 64;  // the child must have released its own handle
    registry.reset();
    if (shutdowns() != 1) wrong |= 32;
    _exit(wrong);
  }
  int result = -1;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_EQ(WIFEXITED(result) ? WEXITSTATUS(result) : -1, 0);
  uint32_t devices = 0;
  EXPECT_EQ(bph_plugin_device_count(plugin, &devices, &error), BP_OK) << "the parent goes on";
}

TEST_F(LoaderLifetime, AThousandCycles) {
  install(kLoggingPlugin, "faulty");
  const auto cycle = [&] {
    EXPECT_EQ(create(), BP_OK);
    EXPECT_EQ(load("faulty"), BP_OK);
    uint32_t devices = 0;
    EXPECT_EQ(bph_plugin_device_count(plugin, &devices, &error), BP_OK);
    plugin.reset();
    registry.reset();
    log.clear();
  };
  for (int i = 0; i < 10; ++i) cycle();
  const size_t before = mallinfo2().uordblks;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) cycle();
  const double us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 1000.0;
  const size_t after = mallinfo2().uordblks;
  std::printf("search, load, probe and shutdown: %.0f us a cycle (budget 5000)\n", us);
  EXPECT_LE(after, before + 4096) << "a cycle keeps memory";
}

class ChooseDevice : public LoaderTest {
 protected:
  ~ChooseDevice() override { unsetenv("BACKPLANE_DEVICE"); }

  std::string chosen(const char* name) {
    Owned<bph_device> device;
    if (bph_device_open(registry, name, nullptr, device.out(), &error) != BP_OK) return error.message;
    char text[128] = "";
    EXPECT_EQ(bph_device_name(device, text, sizeof(text), &error), BP_OK);
    return text;
  }
  bp_status create_with(const std::string& config) {
    write("config", config);
    bph_registry_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
    desc.search_path = folder.c_str();
    const std::string file = folder + "/config";
    desc.config_file = file.c_str();
    desc.log = [](void*, int32_t, const char*) {};
    return bph_registry_create(&desc, registry.out(), &error);
  }
};

TEST_F(ChooseDevice, TheUsersWordThenTheAlphabet) {
  install("null_plugin", "null");
  install("frozen_0_2", "frozen");
  install("faulty_no_devices", "faulty");
  ASSERT_EQ(create(), BP_OK);
  EXPECT_EQ(chosen(nullptr), "frozen:0") << "faulty comes first, but has no device";
  EXPECT_EQ(chosen("null"), "null:0");
  EXPECT_EQ(chosen("null:0"), "null:0");
  EXPECT_EQ(chosen((plugin_file("null_plugin") + ":0").c_str()), "null:0");
  EXPECT_THAT(chosen("null:3"), HasSubstr("null:3: there is no device 3; null has 1"));
  EXPECT_THAT(chosen("nothing:0"), HasSubstr("found: faulty, frozen, null; searched: " + folder));
  for (const char* bad : {"", ":", ":0", "null:", "null:x", "null:-1", "null:0x", "null:99999999999"}) {
    EXPECT_THAT(chosen(bad), HasSubstr("is not \"plugin\" or \"plugin:index\"")) << bad;
  }
  setenv("BACKPLANE_DEVICE", "null:0", 1);
  EXPECT_EQ(chosen(nullptr), "null:0");
  EXPECT_EQ(chosen("frozen"), "frozen:0") << "what the call says wins";
  setenv("BACKPLANE_DEVICE", "absent", 1);
  EXPECT_THAT(chosen(nullptr), HasSubstr("BACKPLANE_DEVICE: no plugin is named \"absent\""));
}

TEST_F(ChooseDevice, TheConfigFile) {
  install("null_plugin", "null");
  install("frozen_0_2", "frozen");
  ASSERT_EQ(create_with(R"({"devices": ["absent:0", "null:7", "null:0", "frozen"], "other": 1})"), BP_OK)
      << error.message;
  EXPECT_EQ(chosen(nullptr), "null:0");
  ASSERT_EQ(create_with(R"({"devices": ["absent:0", "null:7"]})"), BP_OK);
  EXPECT_THAT(chosen(nullptr), HasSubstr("none of its devices is available; absent:0: no plugin is named"));
  for (const char* bad :
       {"", "{", "[]", R"({"devices": "null:0"})", R"({"devices": [1]})", R"({"devices": ["/tmp/x.so:0"]})",
        R"({"devices": ["Null:0"]})", R"({"devices": ["null:"]})", R"({"devices": [], "devices": []})"}) {
    EXPECT_EQ(create_with(bad), BP_INVALID_ARGUMENT) << bad;
    EXPECT_THAT(error.message, HasSubstr("/config: "));
  }
}

TEST_F(ChooseDevice, NoPluginAtAll) {
  ASSERT_EQ(create(), BP_OK);
  EXPECT_THAT(chosen(nullptr), HasSubstr("no plugin has a device; found: none; searched: " + folder));
}

TEST_F(ChooseDevice, WhatARegistryIsGivenIsChecked) {
  bph_registry_desc desc = {};
  bph_registry* made = nullptr;
  EXPECT_EQ(bph_registry_create(&desc, &made, &error), BP_INVALID_ARGUMENT);
  desc.struct_size = sizeof(desc);
  desc.flags = 4;
  EXPECT_EQ(bph_registry_create(&desc, &made, &error), BP_INVALID_ARGUMENT);
  desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
  desc.layers = "validation_of_nothing";
  EXPECT_EQ(bph_registry_create(&desc, &made, &error), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("no layer is named \"validation_of_nothing\""));
  desc.layers = ",";
  EXPECT_EQ(bph_registry_create(&desc, nullptr, &error), BP_INVALID_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  EXPECT_OK(bph_registry_create(&desc, &made, &error));
  const Owned<bph_registry> owner(made);
  EXPECT_EQ(bph_plugin_load(made, nullptr, nullptr, &error), BP_INVALID_ARGUMENT);
  bph_plugin* loaded = nullptr;
  EXPECT_EQ(bph_plugin_load(made, "", &loaded, &error), BP_INVALID_ARGUMENT);
  EXPECT_EQ(bph_plugin_load(reinterpret_cast<bph_registry*>(&desc), "x", &loaded, &error), BP_INVALID_ARGUMENT);
  bph_candidate found = {};
  EXPECT_EQ(bph_registry_candidate(made, 0, &found, &error), BP_INVALID_ARGUMENT);
}

}  // namespace

}  // namespace backplane::core::test
