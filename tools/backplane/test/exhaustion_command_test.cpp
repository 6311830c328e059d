// SPDX-License-Identifier: Apache-2.0
// Injects a failure into each allocation, file call, dlopen call and thread creation of each
// subcommand in turn. A run with a failure may return an error, but must not leak, and the next run
// must succeed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fault_points.hpp>

#include "command.hpp"
#include "measure.hpp"

// Replaces the command's counter of allocations. That counter's operator new would conflict with
// the operator new of the fault points.
uint64_t tool::allocation_count() { return 0; }

namespace {

std::string folder() {
  const char* path = std::getenv("BACKPLANE_TEST_PLUGIN_FOLDER");
  return path != nullptr ? path : ".";
}

void sweep(const char* what, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--plugin-path", folder()});
  const auto attempt = [&] {
    const tool::Answer answer = tool::command(arguments, false);
    return answer.exit_code;
  };
  const auto result = fault_points::sweep(what, fault_points::all, attempt, 200);
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 0u);
}

TEST(ExhaustionCommand, List) { sweep("list", {"list"}); }
TEST(ExhaustionCommand, ListJson) { sweep("list --json", {"list", "--json"}); }
TEST(ExhaustionCommand, Doctor) { sweep("doctor", {"doctor"}); }
TEST(ExhaustionCommand, DoctorJson) { sweep("doctor --json", {"doctor", "--json"}); }
TEST(ExhaustionCommand, Info) { sweep("info", {"info", "reference:0"}); }
TEST(ExhaustionCommand, InfoJson) { sweep("info --json", {"info", "reference:0", "--json"}); }
TEST(ExhaustionCommand, Run) { sweep("run", {"run", "add", "--device", "reference:0", "--repeat", "1"}); }
TEST(ExhaustionCommand, RunJson) {
  sweep("run --json", {"run", "matmul", "--device", "reference:0", "--repeat", "1", "--json"});
}

}  // namespace
