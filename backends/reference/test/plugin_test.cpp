// SPDX-License-Identifier: Apache-2.0
// Tests the plugin itself: its exported symbol, device properties, plans and settings.
#include <cstdio>
#include <memory>

#include "fixture.hpp"

namespace backplane::reference::test {
namespace {

using testing::HasSubstr;

// Returns the lines of a command's output.
std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> out;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  char line[512];
  while (pipe != nullptr && std::fgets(line, sizeof(line), pipe.get()) != nullptr) out.emplace_back(line);
  return out;
}

TEST(Exports, OneSymbolAndNothingOfTheHosts) {
  const std::string path = std::getenv("REFERENCE_PLUGIN");
  const auto defined = lines_of("nm -D --defined-only '" + path + "'");
  ASSERT_EQ(defined.size(), 1u);
  EXPECT_THAT(defined[0], HasSubstr(" T bp_plugin_query"));
  const auto undefined = lines_of("nm -D --undefined-only '" + path + "'");
  EXPECT_GT(undefined.size(), 5u);
  for (const std::string& line : undefined) EXPECT_THAT(line, testing::Not(HasSubstr(" bp_")));
}

TEST(Device, DeclaresItsProperties) {
  bp_device_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(device().plugin->device_info(device().plugin, 0, &info, &device().error), BP_OK);
  EXPECT_STREQ(device().plugin->name, "reference");
  EXPECT_EQ(info.type, uint32_t{BP_DEVICE_CPU});
  EXPECT_EQ(info.memory_kinds, 7u);
  EXPECT_EQ(info.capabilities, BP_CAP_DETERMINISTIC | BP_CAP_TIMING | BP_CAP_HOST_OPERANDS | BP_CAP_UNIFIED_MEMORY |
                                   BP_CAP_PROCESS_ADDRESSES);
  EXPECT_EQ(device().plugin->device_info(device().plugin, 1, &info, &device().error), BP_INVALID_ARGUMENT);
}

TEST(Plans, CompositesAreReportedTruthfully) {
  bp_tensor_desc view{};
  view.dtype = BP_F32;
  for (const rules::OpInfo& row : rules::op_rows()) {
    if (row.kind != BP_KIND_COMPOSITE) continue;
    const std::vector<bp_tensor_desc> views(8, view);
    unsigned char attributes[256] = {};
    bp_plan* plan = nullptr;
    bp_plan_info info{};
    info.struct_size = sizeof(info);
    for (uint32_t inputs = 1; inputs < 6; ++inputs) {
      bp_op_desc desc{};
      desc.struct_size = sizeof(desc);
      desc.op = row.id, desc.inputs = views.data(), desc.outputs = views.data();
      desc.input_count = inputs, desc.output_count = 1;
      EXPECT_THAT(device().api->plan_create(device().handle, &desc, &plan, &info, &device().error),
                  testing::AnyOf(BP_UNSUPPORTED, BP_INVALID_ARGUMENT))
          << row.id;
      EXPECT_EQ(plan, nullptr);
      desc.attributes = attributes;
      EXPECT_NE(device().api->plan_create(device().handle, &desc, &plan, &info, &device().error), BP_OK) << row.id;
    }
  }
}

TEST(Plans, AnAliasedInputIsStagedUnlessElementwise) {
  bp_tensor_desc in[2] = {}, out{};
  for (bp_tensor_desc* view : {&in[0], &in[1], &out}) {
    view->dtype = BP_F32, view->rank = 2;
    view->shape[0] = view->shape[1] = 4, view->strides[0] = 4, view->strides[1] = 1;
  }
  out.alias = 2;
  const bp_matmul_attributes attributes{sizeof(attributes), 0};
  bp_op_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.inputs = in, desc.outputs = &out, desc.input_count = 2, desc.output_count = 1;
  for (const auto& [op, given, staged] :
       {std::tuple<uint32_t, const void*, uint32_t>{BP_OP_MATMUL, &attributes, 2}, {BP_OP_MUL, nullptr, 0}}) {
    desc.op = op, desc.attributes = given;
    bp_plan_info info{};
    info.struct_size = sizeof(info);
    ASSERT_EQ(device().api->plan_create(device().handle, &desc, nullptr, &info, &device().error), BP_OK);
    EXPECT_EQ(info.stage_inputs, staged);
    EXPECT_EQ(info.flags, BP_PLAN_ANY_SIZE | BP_PLAN_DETERMINISTIC);
  }
}

// A plugin instance that is created while the environment variable `name` has the value `value`.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    setenv(name, value, 1);
    EXPECT_EQ(library().query(&host_, &plugin, &error), BP_OK) << "a query never fails for a setting";
  }
  ~Setting() {
    plugin->shutdown(plugin);
    unsetenv(name_);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  const bp_plugin* plugin = nullptr;
  bp_error error = make_error();

 private:
  const char* name_;
  bp_host host_ = make_host();
};

TEST(Settings, DeviceCount) {
  Setting three("BACKPLANE_REFERENCE_DEVICES", "3");
  uint32_t count = 0;
  ASSERT_EQ(three.plugin->device_count(three.plugin, &count, &three.error), BP_OK);
  EXPECT_EQ(count, 3u);
  bp_device* opened = nullptr;
  ASSERT_EQ(three.plugin->device_open(three.plugin, 2, nullptr, &opened, &three.error), BP_OK);
  three.plugin->device_api->close(opened);
}

TEST(Settings, EachDeviceHasItsOwnMemory) {
  Setting two("BACKPLANE_REFERENCE_DEVICES", "2");
  const bp_device_api* api = two.plugin->device_api;
  bp_device* opened[2] = {};
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_EQ(two.plugin->device_open(two.plugin, i, nullptr, &opened[i], &two.error), BP_OK);
  }
  const bp_buffer_desc desc{sizeof(desc), BP_MEMORY_DEVICE, 4096, 0};
  bp_buffer* held = nullptr;
  ASSERT_EQ(api->buffer_create(opened[1], &desc, &held, &two.error), BP_OK);
  bp_memory_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(api->memory_info(opened[0], BP_MEMORY_DEVICE, &info, &two.error), BP_OK);
  EXPECT_EQ(info.free_bytes, info.total_bytes);
  api->buffer_destroy(opened[1], held);
  for (bp_device* each : opened) api->close(each);
}

TEST(Settings, MemoryLimit) {
  Setting small("BACKPLANE_REFERENCE_MEMORY_LIMIT", "4096");
  bp_device* opened = nullptr;
  ASSERT_EQ(small.plugin->device_open(small.plugin, 0, nullptr, &opened, &small.error), BP_OK);
  const bp_buffer_desc large{sizeof(large), BP_MEMORY_DEVICE, 4097, 0}, fits{sizeof(fits), BP_MEMORY_DEVICE, 4096, 0};
  bp_buffer* buffer = nullptr;
  EXPECT_EQ(small.plugin->device_api->buffer_create(opened, &large, &buffer, &small.error), BP_OUT_OF_MEMORY);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(small.plugin->device_api->buffer_create(opened, &fits, &buffer, &small.error), BP_OK);
    small.plugin->device_api->buffer_destroy(opened, buffer);
  }
  small.plugin->device_api->close(opened);
}

TEST(Settings, AnEmptyValueCountsAsUnset) {
  for (const char* name : {"BACKPLANE_REFERENCE_DEVICES", "BACKPLANE_REFERENCE_MEMORY_LIMIT"}) {
    Setting empty(name, "");
    uint32_t count = 0;
    EXPECT_EQ(empty.plugin->device_count(empty.plugin, &count, &empty.error), BP_OK) << empty.error.message;
    EXPECT_EQ(count, 1u);
    bp_device_info info{};
    info.struct_size = sizeof(info);
    EXPECT_EQ(empty.plugin->device_info(empty.plugin, 0, &info, &empty.error), BP_OK);
    EXPECT_GT(info.max_buffer_bytes, 1u << 20);
  }
}

TEST(Settings, ABadValueLeavesNoDeviceAndIsReported) {
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"BACKPLANE_REFERENCE_DEVICES", "0"},
                                                        {"BACKPLANE_REFERENCE_DEVICES", "9"},
                                                        {"BACKPLANE_REFERENCE_DEVICES", "two"},
                                                        {"BACKPLANE_REFERENCE_MEMORY_LIMIT", "1G"},
                                                        {"BACKPLANE_REFERENCE_MEMORY_LIMIT", "-1"},
                                                        {"BACKPLANE_REFERENCE_MEMORY_LIMIT", "99999999999999999999"}}) {
    Setting bad(name, value);
    uint32_t count = 5;
    EXPECT_EQ(bad.plugin->device_count(bad.plugin, &count, &bad.error), BP_UNAVAILABLE) << name << "=" << value;
    EXPECT_EQ(count, 0u);
    EXPECT_THAT(bad.error.message, HasSubstr(name));
    bp_device* opened = nullptr;
    EXPECT_EQ(bad.plugin->device_open(bad.plugin, 0, nullptr, &opened, &bad.error), BP_UNAVAILABLE);
    EXPECT_EQ(opened, nullptr);
  }
}

TEST(Process, ExitWithLiveObjectsIsSafe) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const Device live;
        const Placed x(live, small_numbers(BP_F32, {200, 200}, 1), Layout::kDense);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace backplane::reference::test
