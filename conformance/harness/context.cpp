// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <xxhash.h>

namespace backplane::conformance {

std::string_view name_of(Outcome outcome) {
  constexpr std::string_view names[kOutcomeCount] = {"pass", "fail",        "crash",   "hang",
                                                     "leak", "not_claimed", "suspect", "not_run"};
  return names[static_cast<size_t>(outcome)];
}

namespace {
thread_local bool failure_seen = false;
}

void end_case(Outcome outcome, std::string message) {
  failure_seen = failure_seen || is_failure(outcome);
  throw CaseEnd{outcome, std::move(message)};
}

bool abandoned() { return failure_seen; }

void begin_case() { failure_seen = false; }

void Session::close() noexcept {
  device.reset();
  plugin.reset();
}

void Session::abandon() noexcept {
  static_cast<void>(device.release());
  static_cast<void>(plugin.release());
}

Context::Context(Session& session, const Case& which)
    : session_(session), case_(which), random_(XXH3_64bits_withSeed(which.id.data(), which.id.size(), session.seed)) {}

Plugin& Context::plugin() {
  if (session_.plugin == nullptr) session_.plugin = std::make_unique<Plugin>(session_.path);
  return *session_.plugin;
}

Device& Context::device() {
  if (session_.device == nullptr) session_.device = std::make_unique<Device>(plugin(), session_.device_index);
  return *session_.device;
}

}  // namespace backplane::conformance
