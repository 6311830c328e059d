// SPDX-License-Identifier: Apache-2.0
// Creates one case per rejection. Each case checks the status, the error record and the outputs,
// and that the device still works.
#include "cases/catalogue.hpp"
#include "cases/negative/refusals.hpp"
#include "cases/support/health_check.hpp"

namespace backplane::conformance {

namespace {

void expect_refused(Context& context, const Refusal& refusal) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    ErrorRecord error;
    const bp_status status = refusal.call(context, &error);
    bool found = false;
    for (const bp_status each : refusal.expected) found = found || status == each;
    context.require(found, "{} returned {}; expected {}{}", refusal.slot, error.text(status),
                    status_name(refusal.expected[0]), refusal.expected.size() > 1 ? " or its like" : "");
    expect_status(status, error, refusal.slot, {status});
    context.require(refusal.op == 0 || error.op == refusal.op,
                    "{} refused operator {} and named operator {} in the record", refusal.slot, refusal.op, error.op);
    context.require(is_text(error.message), "the message of {} is not UTF-8 text", refusal.slot);
  }
  require_healthy(context);
}

}  // namespace

void add_negative_cases(Catalogue& catalogue) {
  std::vector<Refusal> all = all_refusals();
  std::vector<Refusal> of_operators = operator_refusals();
  std::move(of_operators.begin(), of_operators.end(), std::back_inserter(all));
  for (Refusal& refusal : all) {
    std::string id = fmt::format("negative.{}.{}", refusal.slot, refusal.what);
    const std::string_view requirement = refusal.requirement;
    catalogue.push_back(
        {.id = std::move(id),
         .extension = refusal.extension,
         .requirements = {requirement, "BP-ERR-001", refusal.op == 0 ? "BP-ERR-006" : "BP-ERR-007"},
         .run = [refusal = std::move(refusal)](Context& context) { expect_refused(context, refusal); }});
  }
}

}  // namespace backplane::conformance
