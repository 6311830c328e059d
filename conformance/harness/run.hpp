// SPDX-License-Identifier: Apache-2.0
// Runs cases in child processes under a supervisor, or in this process for a debugger.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "case.hpp"

namespace backplane::conformance {

struct Target {
  std::string path;  // the library's absolute path
  uint32_t device_index = 0;
};

// The permitted values of Limits::case_ns in seconds, and of Limits::resident_bytes in MiB.
inline constexpr double kLeastCaseSeconds = 0.1, kMostCaseSeconds = 86400;
inline constexpr uint64_t kLeastResidentMib = 64, kMostResidentMib = uint64_t{1} << 24;

struct Limits {
  // Time limit of a case. A case that exceeds the limit is a hang. Only a quarter of the time in
  // plan_create counts towards the limit, since plan_create may compile kernels.
  uint64_t case_ns = 30'000'000'000;
  // Limit on a worker's resident memory. A case that exceeds this limit is a leak.
  uint64_t resident_bytes = uint64_t{4} << 30;
  // Limit on the total size of a case's standard output and standard error.
  uint64_t output_bytes = 64u << 10;
  // Maximum number of hangs per group. After that many hangs, the remaining cases of the group are
  // not run, because each hang costs the whole time limit.
  int hangs_per_group = 3;
  // Maximum number of failures with equal messages per group. After that many failures, the
  // remaining cases of the group are not run, because each failure costs a new process. 0 means no
  // limit.
  int alike_per_group = 8;
};

struct Result {
  Outcome outcome = Outcome::not_run;
  std::string message{};
  uint64_t nanoseconds = 0;
  double error_ratio = -1;  // maximum ratio of an error to its bound; negative if not measured
};

// A case that has been running for several seconds, and the slot that the case is calling.
struct SlowCase {
  size_t index = 0;
  uint64_t nanoseconds = 0;
  std::string_view slot{};        // empty if the case is not calling a watched slot
  uint64_t slot_nanoseconds = 0;  // duration of the current call
};

struct RunOptions {
  Target target;
  uint64_t seed = 0;
  unsigned jobs = 1;
  Limits limits{};
  bool fail_fast = false;   // stop at the first failure; the remaining cases become not_run
  bool in_process = false;  // use no child processes and no limits, for a debugger
  // The run stops soon after this value becomes true, and the remaining cases become not_run. May be null.
  const std::atomic<bool>* stop = nullptr;
  // Called in the supervisor process for each finished case. Also called about ten times per second
  // with the index SIZE_MAX.
  std::function<void(size_t index, const Result& result)> progress{};
  // Called about ten times per second with the case that has been running longest, if that case is
  // slow.
  std::function<void(const SlowCase&)> slow{};
};

// Runs the cases of `selection`, which contains indices into `catalogue`. Returns one result per
// case, in the order of `selection`.
std::vector<Result> run(const Catalogue& catalogue, const std::vector<size_t>& selection, const RunOptions& options);

// Properties that the plugin and the device report.
struct Facts {
  // Reason why some of the properties below are missing, for example that the plugin did not load
  // or has no such device. Empty if no property is missing.
  std::string error{};
  std::string plugin, version, device, driver;
  uint32_t abi_version = 0, abi_version_min = 0, build_flags = 0, device_count = 0, device_type = 0;
  uint64_t alignment = 0, max_buffer_bytes = 0, memory_kinds = 0, capabilities = 0;
};
// Queries the properties in a child process.
Facts query_facts(const Target& target);

}  // namespace backplane::conformance
