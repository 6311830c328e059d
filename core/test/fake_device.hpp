// SPDX-License-Identifier: Apache-2.0
// A plugin inside the test, which uses host memory. The test decides when the work of streams runs,
// so tests of ordering need no timing. The plugin records each violation of the ABI by its caller.
#pragma once

#include <backplane/backplane.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/ref.hpp"
#include "loading/device.hpp"
#include "loading/plugin.hpp"
#include "loading/registry.hpp"
#include "slot_failures.hpp"

namespace backplane::core::test {

struct FakeOptions {
  uint64_t capabilities = BP_CAP_TIMING;
  uint64_t kinds = 7;
  uint64_t alignment = 256;
  uint64_t max_buffer_bytes = uint64_t{1} << 40;
  uint64_t limit = UINT64_MAX;  // maximum total size of all buffers in bytes
  bool copy_in = false, copy_out = false;
  bool import = true;
  uint32_t import_kind = BP_MEMORY_SHARED;
  // The DLPack device type of DEVICE memory, and the DLPack device id. The type of other memory is
  // 1 (kDLCPU).
  int32_t dlpack_type = 0, dlpack_id = 0;
  bool addresses = true;
  uint64_t address = 0;  // if not 0, replaces the address of every buffer
};

class FakeDevice : public SlotFailures {
 public:
  explicit FakeDevice(FakeOptions options = {});
  ~FakeDevice();
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  // Opens the device as the host API does. The caller releases the result.
  bph_device* open(const bph_device_desc* desc = nullptr);

  // While the device is held, enqueued work remains pending. A wait without a timeout still runs
  // the work for which it waits.
  void hold() { held_ = true; }
  void release();               // ends the hold and runs all work in order
  void run(bp_stream* stream);  // runs all work of one stream
  bool pending(bp_stream* stream);
  // Makes the next call of `slot` submit its work and then fail its stream.
  void submit_part(const std::string& slot);
  // Fails a stream and drops its pending work.
  void break_stream(bp_stream* stream);
  // Function that decides the result of plan_create. `info` is zeroed before the call. If the
  // function is empty, plan_create returns OK.
  std::function<bp_status(const bp_op_desc& desc, bp_plan_info& info)> on_plan;
  // Function that is called for each execution. An execution has no other effect.
  std::function<void(const bp_execution& execution)> on_execute;
  // Function that is called inside every slot.
  std::function<void(const char* slot)> hook;

  std::vector<std::string> violations();
  uint64_t buffers() const { return live_buffers_; }
  uint64_t streams() const { return live_streams_; }
  uint64_t events() const { return live_events_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t calls(const std::string& slot);
  bool is_closed() const { return closed_; }
  bool has_ended() const { return ended_; }
  uint64_t limit = 0;
  FakeOptions options;

 private:
  friend struct FakeSlots;
  bool enter(const char* slot, bp_error* error, bp_status* answer);
  bool run_one(bp_stream* stream, bool run_others);
  void run_all(bp_stream* stream, bool run_others);

  std::recursive_mutex mutex_;
  std::atomic<bool> held_{false};
  std::set<bp_stream*> streams_;
  std::map<std::string, uint64_t> calls_;
  std::set<std::string> parts_;
  std::vector<std::string> violations_;
  std::atomic<uint64_t> live_buffers_{0}, live_streams_{0}, live_events_{0}, live_plans_{0}, bytes_{0};
  std::atomic<bool> closed_{false}, ended_{false};
  int64_t clock_ = 0;
  struct Instance;
  Instance* instance_;
};

// Each function returns the plugin's handle for an object of the host API.
bp_stream* plugin_stream(bph_stream* stream);
bp_buffer* plugin_buffer(bph_buffer* buffer);

}  // namespace backplane::core::test
