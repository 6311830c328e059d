// SPDX-License-Identifier: Apache-2.0
// Table of messages that the harness generates, each with the violated requirement and advice for
// the plugin's author.
#include "causes.hpp"

namespace backplane::conformance {

namespace {

constexpr std::string_view kRulesPage = "docs/writing_a_backend.md#rules-that-bite";
constexpr std::string_view kOutcomesPage = "docs/writing_a_backend.md#to-core";
constexpr std::string_view kFailurePage = "docs/certification.md#reading-a-failure";

constexpr Advice kRows[] = {
    {"has another handler now", "BP-THR-008",
     "Save the process's signal handlers before the call into the driver, and restore them before the slot returns.",
     kRulesPage},
    {"the locale was", "BP-THR-001",
     "Call the driver under a locale of its own (uselocale), or restore the locale before the slot returns.",
     kRulesPage},
    {"the rounding mode was", "BP-THR-001",
     "Save the floating-point environment before the call into the driver, and restore it before the slot returns.",
     kRulesPage},
    {"floating-point control was", "BP-THR-001",
     "Save the floating-point environment before the call into the driver, and restore it before the slot returns.",
     kRulesPage},
    {"did not restore the state of the thread", "BP-THR-001",
     "Save the state that the reason names before the call into the driver, and restore it before the slot returns.",
     kRulesPage},
    {"to standard output or error", "BP-CERT-005",
     "Write through the host's log slot, and keep the driver's own output off both streams.", kRulesPage},
    {"the plugin forked", "BP-CERT-004", "If a slot forks, the child process must not return from the slot.",
     kRulesPage},
    {"a child process remains", "BP-CERT-004", "Wait for each process that a slot starts.", kRulesPage},
    {"closes descriptors that are not its own", "BP-CERT-005", "Close only descriptors that the plugin opened.",
     kRulesPage},
    {"a descriptor that is not its own", "BP-CERT-005", "Write only to descriptors that the plugin opened.",
     kRulesPage},
    {"it did not end within", "",
     "Look for a wait for work that was never submitted. If the driver needs more time in the slot, raise --timeout.",
     kOutcomesPage},
    {"the process grew to", "BP-CERT-003",
     "Free all memory in the destroy slots. If the plugin needs this much memory by design, raise --memory-limit.",
     kOutcomesPage},
    {"signal ", "", "Run the line below with --in-process under a debugger: it stops where the plugin crashes.",
     kFailurePage},
    {"the process exited with status", "",
     "Return a status instead of ending the process. A breakpoint on exit, with --in-process, shows the call.",
     kFailurePage},
    {"an exception", "", "Catch every exception in the slot, and return INTERNAL with its text.", kOutcomesPage},
    {"without a message", "", "Fill the error record whenever a slot returns a failure.", kOutcomesPage},
    {"the library cannot be opened", "",
     "Run `backplane doctor`: it names the missing library or symbol, and which side must change.", kRulesPage},
};

}  // namespace

Advice advice_for(std::string_view reason) {
  for (const Advice& row : kRows) {
    if (reason.find(row.words) != std::string_view::npos) return row;
  }
  return {};
}

std::span<const Advice> advice_rows() { return kRows; }

}  // namespace backplane::conformance
