// SPDX-License-Identifier: Apache-2.0
// Tests that the table of mutants is complete, that every mutant loads, and that the plugin without
// a defect behaves like the reference plugin.
#include <backplane/plugin.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace backplane::conformance::mutants::test {
namespace {

struct Row {
  int number;
  const char* name;
};
constexpr Row kRows[] = {
#define MUTANT(number, name, kind, filter, text) {number, #name},
#include "mutants.def"
#undef MUTANT
};

bp_host make_host() {
  return {sizeof(bp_host), BP_ABI_VERSION, nullptr, [](void*, int32_t, const char*) {},
          [](void*, const char*, uint32_t) -> const void* { return nullptr; }};
}
bp_error make_error() {
  bp_error error{};
  error.struct_size = sizeof(error);
  return error;
}
bp_plugin_query_fn query_of(const char* variable) {
  const char* path = std::getenv(variable);
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<bp_plugin_query_fn>(dlsym(library, BP_PLUGIN_QUERY_SYMBOL));
}

// Returns the status of the query with the mutant `name`. The query runs in a new process, because
// a process has one defect.
int query_in_child(const char* name) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("BACKPLANE_MUTANT", name, 1);
    static bp_host host = make_host();
    bp_error error = make_error();
    const bp_plugin* plugin = nullptr;
    const bp_plugin_query_fn query = query_of("MUTANT_PLUGIN");
    const bp_status status = query == nullptr ? BP_INTERNAL : query(&host, &plugin, &error);
    _exit(status == BP_OK && plugin == nullptr ? 100 : status);
  }
  int ended = 0;
  waitpid(child, &ended, 0);
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

TEST(Mutants, NamesAreUniqueAndNumbersAreComplete) {
  std::set<std::string> names;
  std::set<int> numbers;
  int last = 0;
  for (const Row& row : kRows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.number == last || row.number == last + 1) << row.name << ": numbers are in order, without a gap";
    last = row.number;
    numbers.insert(row.number);
  }
  for (int number = 1; number <= 60; ++number) EXPECT_THAT(numbers, testing::Contains(number));
  EXPECT_GE(last, 100) << "at least 40 defects are this project's own";
}

TEST(Mutants, EveryOneLoads) {
  for (const Row& row : kRows) EXPECT_EQ(query_in_child(row.name), BP_OK) << row.name;
}

TEST(Mutants, AnUnknownNameIsRefused) { EXPECT_EQ(query_in_child("no_such_defect"), BP_UNAVAILABLE); }

// The results of a plugin: its name, version and device info, and the status of plan_create for
// each operator and dtype with operands of two elements.
struct Results {
  std::string name, version;
  bp_device_info info{};
  std::vector<bp_status> plans;

  explicit Results(const char* variable) {
    static bp_host host = make_host();
    bp_error error = make_error();
    const bp_plugin* plugin = nullptr;
    bp_device* device = nullptr;
    const bp_plugin_query_fn query = query_of(variable);
    if (query == nullptr || query(&host, &plugin, &error) != BP_OK) return;
    name = plugin->name, version = plugin->version;
    info.struct_size = sizeof(info);
    plugin->device_info(plugin, 0, &info, &error);
    plugin->device_open(plugin, 0, nullptr, &device, &error);
    for (uint32_t op = 0; op < BP_OP_LIMIT; ++op) {
      for (uint16_t dtype = 0; dtype < BP_DTYPE_LIMIT; ++dtype)
        plans.push_back(plan_status(*plugin->device_api, device, op, dtype));
    }
    plugin->device_api->close(device);
    plugin->shutdown(plugin);
  }

 private:
  static bp_status plan_status(const bp_device_api& api, bp_device* device, uint32_t op, uint16_t dtype) {
    bp_tensor_desc view{};
    view.dtype = dtype;
    view.rank = 1;
    view.shape[0] = 2;
    view.strides[0] = 1;
    const bp_tensor_desc views[] = {view, view, view};
    bp_status status = BP_INVALID_ARGUMENT;
    for (uint32_t inputs = 0; inputs <= 3 && status == BP_INVALID_ARGUMENT; ++inputs) {
      bp_op_desc desc{};
      desc.struct_size = sizeof(desc);
      desc.op = op;
      desc.inputs = desc.outputs = views;
      desc.input_count = inputs;
      desc.output_count = 1;
      bp_plan_info plan{};
      plan.struct_size = sizeof(plan);
      status = api.plan_create(device, &desc, nullptr, &plan, nullptr);
    }
    return status;
  }
};

TEST(Mutants, WithoutAChoiceThePluginBehavesLikeTheReference) {
  unsetenv("BACKPLANE_MUTANT");
  const Results mutant("MUTANT_PLUGIN"), reference("REFERENCE_PLUGIN");
  EXPECT_EQ(mutant.name, "reference");
  EXPECT_EQ(mutant.name, reference.name);
  EXPECT_EQ(mutant.version, reference.version);
  EXPECT_EQ(std::memcmp(&mutant.info, &reference.info, sizeof(bp_device_info)), 0);
  EXPECT_EQ(mutant.plans, reference.plans);
  EXPECT_THAT(mutant.plans, testing::Contains(BP_OK));
}

}  // namespace
}  // namespace backplane::conformance::mutants::test
