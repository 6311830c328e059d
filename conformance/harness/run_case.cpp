// SPDX-License-Identifier: Apache-2.0
#include "run_case.hpp"

#include <malloc.h>

#include <chrono>
#include <exception>

#include "clock.hpp"
#include "plan_support.hpp"
#include "reason.hpp"
#include "slot_watch.hpp"

namespace backplane::conformance {

Result run_case(Session& session, const Case& which) {
  const ThreadState before = ThreadState::now();
  const uint64_t start = now_ns();
  Result result;
  begin_case();
  PlanSupport::begin(which);
  Context context(session, which);
  const SlotWatch watch(before);
  try {
    which.run(context);
    result.outcome = Outcome::pass;
  } catch (const CaseEnd& end) {
    result = {end.outcome, end.message};
    // Adds the steps only if this thread failed, because `watch` records only the calls of this
    // thread.
    if (is_failure(end.outcome) && abandoned() && which.id.starts_with("runtime.")) result.message += watch.steps();
  } catch (const std::exception& exception) {
    result = {Outcome::fail, fmt::format("an exception came out: {}", exception.what())};
  } catch (...) {
    result = {Outcome::fail, "an exception of an unknown type came out"};
  }
  result.nanoseconds = now_ns() - start;
  result.error_ratio = context.error_ratio();
  // Calls plan_create before the check of the thread's state, so that the check covers this call.
  if (!is_failure(result.outcome) && session.device != nullptr) {
    const InSlot in(Slot::plan_create);
    PlanSupport::query_one(session.device->get(), context.random()());
  }
  if (const std::string change = before.changed_since(); !change.empty()) {
    before.restore();
    if (!is_failure(result.outcome))
      result = {Outcome::fail,
                fmt::format("a slot did not restore the state of the thread: {}{}{}", change,
                            watch.changer() == Slot::none ? "" : kChangerMark, name_of(watch.changer()))};
  }
  if (is_failure(result.outcome)) return result;
  if (const std::string broken = PlanSupport::broken(); !broken.empty()) result = {Outcome::fail, broken};
  return result;
}

void keep_pages_untouched() { mallopt(M_PERTURB, 0); }

}  // namespace backplane::conformance
