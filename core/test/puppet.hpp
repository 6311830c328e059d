// SPDX-License-Identifier: Apache-2.0
// A plugin inside the test. The test sets the result of each slot, and the plugin counts the calls
// of each slot. A test therefore observes the results of a layer and the layer's calls.
#pragma once

#include <backplane/plugin.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "slot_failures.hpp"

namespace backplane::core::test {

struct Puppet : SlotFailures {
  Puppet();
  Puppet(const Puppet&) = delete;
  Puppet& operator=(const Puppet&) = delete;

  // The effects of the next call of a slot, in addition to its result. Each field except `act` makes the call break the
  // ABI unless the field has its default value. The call removes the entry from `next`.
  struct Effects {
    bool fill = true;       // fill the error record on a failure
    bool touch = false;     // write the error record although the call does not fail
    bool keep_out = false;  // leave *out unchanged on a failure
    bool same = false;      // return the previous handle again from a create slot
    // Function that is called before the slot returns. It may throw, change the thread's state, or
    // call another slot.
    std::function<void()> act;
  };
  std::map<std::string, Effects> next;

  // The properties that the device reports.
  uint64_t capabilities = BP_CAP_TIMING;
  bp_plan_info plan_info = {};
  uint64_t workspace = 0;  // result of plan_workspace
  bp_memory_info memory = {sizeof(bp_memory_info), 0, 1000, 500};
  uint32_t import_kind = BP_MEMORY_SHARED;
  // The handle that the slots of bp.native return.
  bp_native_handle handle = {sizeof(bp_native_handle), 0, 7, 0, 0, "puppet.handle"};
  uint64_t graph_nodes = 0;                  // number of nodes that graph_end states
  uint32_t wrapped_kind = BP_MEMORY_DEVICE;  // memory kind of wrapped, mapped and imported buffers
  // The handle that the slots of bp.external return.
  bp_external_handle exported = {sizeof(bp_external_handle), 0, -1, 0, 0, 0, {}, "puppet.file", {}};
  uint64_t packed_bytes = 2048;  // size of a packed operand, which pack_create states
  uint32_t peer_uses = BP_PEER_COPY | BP_PEER_OPERAND | BP_PEER_WAIT;  // result of peer_query
  std::optional<uint64_t> address;                                     // replaces the address of every buffer
  uint64_t map_shift = 0;                                              // added to the result of buffer_map

  std::map<std::string, int> calls;
  std::mutex mutex;  // guards `calls` and `next` while slots run
  std::vector<std::string> log;
  int alive = 0;  // number of live objects of the puppet
  bool ended = false;

  // The table that a host receives, and the puppet to which the table belongs.
  struct Instance {
    bp_plugin table = {};
    Puppet* puppet = nullptr;
  } instance;
  bp_device_api api = {};
  bp_import_api import = {};
  bp_native_api native = {};
  bp_graph_api graph = {};
  bp_peer_api peer = {};
  bp_external_api external = {};
  bp_pack_api pack = {};
  bp_host host = {};  // logs to `log`
};

}  // namespace backplane::core::test
