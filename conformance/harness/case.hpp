// SPDX-License-Identifier: Apache-2.0
// A case: one thing that is true of a conforming plugin, and the code that finds out.
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
  crash,        // the process of the case ended: a signal, exit, or its report channel closed
  hang,         // the time limit passed
  leak,         // memory, descriptors or threads stayed behind, or the memory limit passed
  not_claimed,  // a declared absence, itself tested: a clean UNSUPPORTED without side effects
  suspect,      // the data were too uniform to prove anything: a defect of the suite, and no pass
  not_run,      // counts as a failure
};
inline constexpr int kOutcomeCount = 8;
std::string_view name_of(Outcome outcome);
// not_claimed is neither.
constexpr bool is_failure(Outcome outcome) { return outcome != Outcome::pass && outcome != Outcome::not_claimed; }

struct Case {
  // Unique and stable: words of [a-z0-9_+-] joined by dots, from the general to the particular, as
  // `numeric.add.f32.tail.strided.special`. The first two words are its group, the unit of the report.
  std::string id{};
  uint32_t profile = BP_PROFILE_CORE;  // BP_PROFILE_*: the first that demands it
  // What the plugin must claim to be asked, "" for all: a dtype's name or an extension's. A mandatory case has none, and
  // not_claimed there keeps the profile from the plugin.
  std::string_view extension{};
  uint32_t op = 0;  // BP_OP_* and BP_* dtype: the cell of the matrix; 0 where it is about neither
  uint32_t dtype = 0;
  std::vector<std::string_view> requirements{};  // ids of docs/requirements.md, at least one
  std::function<void(Context&)> run{};           // returns: pass; throws CaseEnd: what it says
  // The ABI version that introduced the case's rule: the case is not run for a plugin that was built for an older one.
  uint32_t since = BP_VERSION(0, 2);
  // About the first use: the case has a process of its own, in which nobody has loaded the plugin. These run last.
  bool fresh = false;
};

using Catalogue = std::vector<Case>;

// How a case ends early: thrown by end_case alone.
struct CaseEnd {
  Outcome outcome;
  std::string message;
};
[[noreturn]] void end_case(Outcome outcome, std::string message);
// After a failure work may be pending, so that the owners of plugin.hpp end nothing while the case is left: what the
// plugin made goes with the process.
bool abandoned();
void begin_case();

}  // namespace backplane::conformance
