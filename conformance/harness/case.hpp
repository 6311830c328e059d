// SPDX-License-Identifier: Apache-2.0
// Defines cases. Each case checks one property of a conforming plugin.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <backplane/plugin.h>

namespace backplane::conformance {

class Context;

enum class Outcome : uint8_t {
  pass,
  fail,
  crash,        // the case's process died or exited, or closed its report channel
  hang,         // the case exceeded its time limit
  leak,         // the case leaked memory, file descriptors or threads, or exceeded the memory limit
  not_claimed,  // the plugin does not claim the feature that the case tests
  suspect,      // the case could not detect an error, for example because its data were too uniform
  not_run,      // the case was skipped, which the verdict treats as a failure
};
inline constexpr int kOutcomeCount = 8;
std::string_view name_of(Outcome outcome);
// not_claimed is neither a pass nor a failure.
constexpr bool is_failure(Outcome outcome) { return outcome != Outcome::pass && outcome != Outcome::not_claimed; }

struct Case {
  // Unique, stable identifier, for example `numeric.add.f32.tail.strided.special`. Dots join words
  // of [a-z0-9_+-], from general to specific. The first two words name the case's group.
  std::string id{};
  // Lowest profile (BP_PROFILE_*) that requires the case. BP_PROFILE_COMPOSITE means a native composite, which no
  // profile requires. INFER and higher profiles include such a case.
  uint32_t profile = BP_PROFILE_CORE;
  // Name of the dtype or extension that the case needs; empty for a mandatory case. A plugin that
  // does not claim a mandatory case does not reach the profile.
  std::string_view extension{};
  // Operator (BP_OP_*) and dtype (BP_*) of the case's cell in the report's matrix. Both are 0 if
  // the case has no cell.
  uint32_t op = 0;
  uint32_t dtype = 0;
  std::vector<std::string_view> requirements{};  // at least one id from docs/requirements.md
  // Runs the case. Returns normally if the case passes, and otherwise throws CaseEnd.
  std::function<void(Context&)> run{};
  // The ABI version that introduced the requirement that the case tests. The suite skips the case for plugins that were
  // built for an older version.
  uint32_t since = BP_VERSION(0, 2);
  // Whether the case tests the first use of the plugin in a process. Such a case runs in a new
  // process that has not loaded the plugin. Fresh cases run after the usual cases.
  bool fresh = false;
  // Whether the case allocates several GiB of the device's memory. The supervisor runs only a few such cases at once,
  // because the other workers need memory too.
  bool large = false;
  // Whether the case may allocate nearly all of the device's memory. Such a case runs after all other cases, and no
  // other case runs at the same time, because that case would find too little memory.
  bool alone = false;
};

using Catalogue = std::vector<Case>;

// Exception that ends a case early. Only end_case throws this exception.
struct CaseEnd {
  Outcome outcome;
  std::string message;
};
[[noreturn]] void end_case(Outcome outcome, std::string message);
// Returns whether the current case has failed on this thread. The plugin may then have pending
// work, so the owners in plugin.hpp release nothing during unwinding. The plugin's objects then live
// until the process exits.
bool abandoned();
void begin_case();

}  // namespace backplane::conformance
