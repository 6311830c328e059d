// SPDX-License-Identifier: Apache-2.0
// A plugin inside the test whose every answer the test decides: what a layer does is seen from both of its sides.
#pragma once

#include <backplane/plugin.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace backplane::core::test {

struct Puppet {
  Puppet();
  Puppet(const Puppet&) = delete;
  Puppet& operator=(const Puppet&) = delete;

  // What the next call of a slot does instead of succeeding. Cleared by that call.
  struct Answer {
    bp_status status = BP_OK;
    bool fill = true;           // the error record, on a failure
    bool touch = false;         // the error record, on OK
    bool null = false;          // OK without a result
    bool keep_out = false;      // a failure leaves *out alone
    bool same = false;          // a create gives the handle of the latest one again
    std::function<void()> act;  // before answering: throw, change the thread, call another slot
  };
  std::map<std::string, Answer> next;

  // Facts that the device states.
  uint64_t capabilities = BP_CAP_TIMING;
  bp_plan_info plan_info = {};
  uint64_t workspace = 0;  // what plan_workspace says
  bp_memory_info memory = {sizeof(bp_memory_info), 0, 1000, 500};
  uint32_t import_kind = BP_MEMORY_SHARED;
  std::optional<uint64_t> address;  // of every buffer, in place of its memory's
  uint64_t map_shift = 0;           // added to what buffer_map gives

  std::map<std::string, int> calls;
  std::mutex mutex;  // of `calls` and `next`, while slots run
  std::vector<std::string> log;
  int alive = 0;  // objects that the puppet made and were not destroyed
  bool ended = false;

  // The table that a host gets, and its puppet.
  struct Instance {
    bp_plugin table = {};
    Puppet* puppet = nullptr;
  } instance;
  bp_device_api api = {};
  bp_import_api import = {};
  bp_host host = {};  // logs to `log`
};

}  // namespace backplane::core::test
