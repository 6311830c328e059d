// SPDX-License-Identifier: Apache-2.0
// Loads one faulty plugin per defect. The refusal must state the rule, the side that must fix the
// defect, and a remedy. Other plugins must still load.
#include <algorithm>

#include "loader_fixture.hpp"

namespace backplane::core::test {

namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class LoaderFault : public LoaderTest {
 protected:
  LoaderFault() { EXPECT_EQ(create(""), BP_OK); }

  // Expects that loading by path fails with `status`, and returns the candidate.
  bph_candidate refused(const std::string& path, bp_status status) {
    EXPECT_EQ(load(path), status) << error.message;
    EXPECT_EQ(plugin, nullptr);
    const bph_candidate result = candidate(count() - 1);
    EXPECT_EQ(result.status, status);
    EXPECT_STREQ(result.message, error.message);
    EXPECT_EQ(result.loaded, 0u);
    return result;
  }
  bool logged_shutdown() const {
    return std::any_of(log.begin(), log.end(), [](const std::string& line) { return line.ends_with("shut down"); });
  }
};

struct Fault {
  const char* plugin;
  bp_status status;
  const char* rule;
  const char* side;
  const char* says;
  bool shut_down;  // whether the instance was shut down
};

constexpr Fault kFaults[] = {
    {"throwing_plugin", BP_INTERNAL, "query.threw", "plugin", "threw an exception", false},
    {"faulty_status", BP_UNAVAILABLE, "query.status", "plugin", "no licence", false},
    {"faulty_odd_status", BP_INTERNAL, "query.status", "plugin", "xxxx", false},
    {"faulty_null_table", BP_INTERNAL, "query.null", "plugin", "null table", false},
    {"faulty_tiny_table", BP_INVALID_ARGUMENT, "table.size", "plugin", "struct_size is 8, at least 80", false},
    {"faulty_short_table", BP_INVALID_ARGUMENT, "table.size", "plugin", "struct_size is 72, at least 80", false},
    {"faulty_short_api", BP_INVALID_ARGUMENT, "table.size", "plugin", "bp_device_api.struct_size is 168", true},
    {"faulty_null_slot", BP_INVALID_ARGUMENT, "table.required_slot", "plugin", "bp_device_api.plan_execute", true},
    {"faulty_null_open", BP_INVALID_ARGUMENT, "table.required_slot", "plugin", "bp_plugin.device_open", true},
    {"faulty_null_api", BP_INVALID_ARGUMENT, "table.required_slot", "plugin", "bp_plugin.device_api", true},
    {"faulty_null_shutdown", BP_INVALID_ARGUMENT, "table.required_slot", "plugin", "bp_plugin.shutdown", false},
    {"faulty_major", BP_ABI_MISMATCH, "abi.range", "host", "built for ABI 1.0", false},
    {"faulty_future", BP_ABI_MISMATCH, "abi.range", "host", "this host speaks 0.2 to 0.3;", false},
    {"faulty_past", BP_ABI_MISMATCH, "abi.range", "plugin", "built for ABI 0.1", false},
    {"faulty_min_above", BP_ABI_MISMATCH, "abi.range", "host", "works with hosts from 0.4 on", false},
    {"faulty_null_name", BP_INVALID_ARGUMENT, "name.form", "plugin", "(null)", true},
    {"faulty_bad_name", BP_INVALID_ARGUMENT, "name.form", "plugin", "\"F\" is not [a-z0-9_]{1,63}", true},
    {"faulty_long_name", BP_INVALID_ARGUMENT, "name.form", "plugin", "aaaa", true},
    {"faulty_null_version", BP_INVALID_ARGUMENT, "table.version", "plugin", "version is null", true},
    {"no_symbol", BP_INVALID_ARGUMENT, "query.symbol", "plugin", "exports no bp_plugin_query", false},
    {"missing_symbol", BP_UNAVAILABLE, "library.open", "system", "nowhere_to_be_found", false},
};

TEST_F(LoaderFault, EachHasItsRuleAndRemedy) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.plugin);
    log.clear();
    const bph_candidate result = refused(plugin_file(fault.plugin), fault.status);
    EXPECT_STREQ(result.rule, fault.rule);
    EXPECT_STREQ(result.side, fault.side);
    EXPECT_THAT(result.message, AllOf(HasSubstr(fault.says), HasSubstr(std::string(fault.plugin) + ".so")));
    EXPECT_EQ(logged_shutdown(), fault.shut_down);
  }
}

TEST_F(LoaderFault, FiveBadPluginsBesideAGoodOne) {
  install("faulty_null_slot", "bad_slot");
  install("throwing_plugin", "bad_throw");
  install("faulty_null_table", "bad_null");
  install("faulty_major", "bad_abi");
  write("libtext.so", "no library at all\n");
  write("text.json", manifest_text("bad_text", "libtext.so"));
  install("null_plugin", "null");
  ASSERT_EQ(create(), BP_OK);
  ASSERT_OK(bph_registry_examine(registry, &error));
  ASSERT_EQ(count(), 6u);
  for (uint32_t i = 0; i < 6; ++i) {
    const bph_candidate found = candidate(i);
    const bool good = found.name == std::string("null");
    EXPECT_EQ(found.status == BP_OK, good) << found.name << ": " << found.message;
    EXPECT_EQ(found.loaded, good ? 1u : 0u);
    if (!good) {
      EXPECT_THAT(log, Contains(HasSubstr(found.message)));
    }
  }
  EXPECT_OK(load("null", &error));
}

TEST_F(LoaderFault, ManifestAndLibraryMustAgree) {
  install("faulty_other_name", "faulty");
  write("range.json", manifest_text("other", "libfaulty_other_name.so", {{"abi", R"({"min": "0.0", "max": "0.9"})"}}));
  ASSERT_EQ(create(), BP_OK);
  ASSERT_EQ(load("faulty"), BP_INVALID_ARGUMENT);
  EXPECT_STREQ(candidate(0).rule, "name.mismatch");
  EXPECT_THAT(error.message, AllOf(HasSubstr("\"other\""), HasSubstr("\"faulty\"")));
  EXPECT_TRUE(logged_shutdown());
  EXPECT_OK(load("other", &error));
  EXPECT_EQ(load("faulty"), BP_INVALID_ARGUMENT) << "also when the library is loaded already";
}

TEST_F(LoaderFault, LongerTablesAreFine) {
  EXPECT_OK(load(plugin_file("faulty_long_tables"), &error));
  uint32_t devices = 0;
  EXPECT_EQ(bph_plugin_device_count(plugin, &devices, &error), BP_OK);
  EXPECT_EQ(devices, 1u);
}

TEST_F(LoaderFault, SleepingPluginIsNamedAndDelaysNobodyElse) {
  install("faulty_sleep", "faulty");
  install("null_plugin", "null");
  ASSERT_EQ(create(), BP_OK);
  EXPECT_EQ(load("faulty"), BP_OK);
  EXPECT_THAT(log,
              Contains(AllOf(HasSubstr("2 faulty: loading"), HasSubstr(" ms; a plugin's query starts no driver"))));
}

TEST_F(LoaderFault, FloatingPointControlIsRestored) {
#if defined(__x86_64__)
  const unsigned before = __builtin_ia32_stmxcsr();
  EXPECT_OK(load(plugin_file("faulty_float"), &error));
  EXPECT_EQ(__builtin_ia32_stmxcsr() & ~0x3Fu, before & ~0x3Fu);
  EXPECT_THAT(log, Contains(HasSubstr("floating-point control")));
#endif
}

TEST_F(LoaderFault, MissingDriverIsTheReasonForNoDevices) {
  ASSERT_EQ(load(plugin_file("faulty_no_devices")), BP_OK);
  uint32_t devices = 7;
  EXPECT_EQ(bph_plugin_device_count(plugin, &devices, &error), BP_UNAVAILABLE);
  EXPECT_EQ(devices, 0u);
  EXPECT_THAT(error.message, HasSubstr("faulty: device_count: null: the driver library is missing; install it"));
  EXPECT_EQ(bph_registry_examine(registry, &error), BP_OK);
  const bph_candidate found = candidate(0);
  EXPECT_EQ(found.loaded, 1u);
  EXPECT_STREQ(found.rule, "device.count");
}

TEST_F(LoaderFault, SlotsThatThrowAreStopped) {
  ASSERT_OK(load(plugin_file("late_throwing_plugin"), &error));
  uint32_t devices = 0;
  EXPECT_EQ(bph_plugin_device_count(plugin, &devices, &error), BP_INTERNAL);
  EXPECT_THAT(error.message, HasSubstr("faulty: device_count threw an exception"));
  bp_device_info info = {};
  info.struct_size = sizeof(info);
  EXPECT_EQ(bph_plugin_device_info(plugin, 0, &info, &error), BP_INTERNAL);
  plugin.reset();
  registry.reset();
  EXPECT_THAT(log, Contains(HasSubstr("shutdown threw an exception")));
}

TEST_F(LoaderFault, AFrozenPluginLoads) {
  ASSERT_OK(load(plugin_file("frozen_0_2"), &error));
  bp_device_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_OK(bph_plugin_device_info(plugin, 0, &info, &error));
  EXPECT_STREQ(info.name, "frozen");
  EXPECT_EQ(info.alignment, 64u);
}

}  // namespace

}  // namespace backplane::core::test
