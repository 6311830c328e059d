// SPDX-License-Identifier: Apache-2.0
// A case: one property of a conforming plugin, and the code that checks it.
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
  crash,        // the case's process ended: by a signal, by exit, or by closing its report channel
  hang,         // the time limit was exceeded
  leak,         // memory, descriptors or threads were leaked, or the memory limit was exceeded
  not_claimed,  // the plugin declared that it lacks the feature, and returned a clean UNSUPPORTED
  suspect,      // the data were too uniform to prove anything: a defect of the suite, not a pass
  not_run,      // counts as a failure
};
inline constexpr int kOutcomeCount = 8;
std::string_view name_of(Outcome outcome);
// not_claimed is neither a pass nor a failure.
constexpr bool is_failure(Outcome outcome) { return outcome != Outcome::pass && outcome != Outcome::not_claimed; }

struct Case {
  // Unique and stable: words of [a-z0-9_+-] joined by dots, from general to specific, such as
  // `numeric.add.f32.tail.strided.special`. The first two words are the group, the unit of the
  // report.
  std::string id{};
  uint32_t profile = BP_PROFILE_CORE;  // BP_PROFILE_*: the first profile that requires it
  // The dtype or extension that the case needs. Empty for a mandatory case: not_claimed then denies
  // the profile to the plugin.
  std::string_view extension{};
  // BP_OP_* and a BP_* dtype, the case's cell in the matrix; 0 if the case has none
  uint32_t op = 0;
  uint32_t dtype = 0;
  std::vector<std::string_view> requirements{};  // ids of docs/requirements.md, at least one
  std::function<void(Context&)> run{};           // passes if it returns; otherwise throws CaseEnd
  // The ABI version that introduced the requirement. Plugins built for older versions skip the
  // case.
  uint32_t since = BP_VERSION(0, 2);
  // True for a case about a first use: it runs in a new process that has not loaded the plugin.
  // Such cases run last.
  bool fresh = false;
};

using Catalogue = std::vector<Case>;

// Ends a case early. Only end_case throws it.
struct CaseEnd {
  Outcome outcome;
  std::string message;
};
[[noreturn]] void end_case(Outcome outcome, std::string message);
// True after a failure. The plugin's work may then be pending, so the owners in plugin.hpp release
// nothing during unwinding; the plugin's objects end with the process.
bool abandoned();
void begin_case();

}  // namespace backplane::conformance
