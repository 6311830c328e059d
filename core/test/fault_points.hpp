// SPDX-License-Identifier: Apache-2.0
// Failure injection. Every allocation, file call, dlopen call and thread creation of a test program
// is a fault point, and the fault points of a run are numbered. A sweep repeats a call. Each
// repetition makes another point fail, either alone or with all later points.
//
// Link fault_points.cpp and fault_interpose.c into the test program. Only calls by the thread that
// called `arm` are points.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace fault_points {

enum Kind : unsigned { memory = 1, files = 2, dynamic_linker = 4, threads = 8, all = 15 };

// Makes point `index` of `kinds` fail on this thread, counted from 0 after this call. If `forever`
// is true, all later points fail too.
void arm(unsigned kinds, uint64_t index, bool forever) noexcept;
// Stops the failures. Returns true if at least one point failed.
bool disarm() noexcept;
// Returns the number of points that were reached since `arm`.
uint64_t points_met() noexcept;
// Returns the number of live heap blocks of all threads.
int64_t live_blocks() noexcept;

struct Result {
  uint64_t points = 0;    // number of runs with an injected failure
  uint64_t errors = 0;    // number of runs with an injected failure that returned an error
  std::string complaint;  // empty on success
};

// Runs `attempt` once per point and failure mode. `attempt` makes the calls under test, releases
// all that it received, and returns the first status that is not OK.
//
// A run with an injected failure may succeed or fail, but must not leak, and the next run must
// succeed. `most` limits the number of points, and 0 means no limit. If there are more points, the
// sweep selects evenly spaced points.
template <class Attempt>
Result sweep(const char* what, unsigned kinds, Attempt&& attempt, uint64_t most = 0) {
  Result result;
  const auto complain = [&](uint64_t index, bool forever, const char* wrong, int64_t value) {
    if (!result.complaint.empty()) return;
    result.complaint = std::string(what) + ": point " + std::to_string(index) + (forever ? " and later" : "") + ": " +
                       wrong + " (" + std::to_string(value) + ")";
  };
  for (int i = 0; i < 3; ++i) {  // the first runs create objects that all later runs reuse
    if (const auto status = attempt(); status != 0) complain(0, false, "fails without a failure", status);
  }
  arm(kinds, UINT64_MAX, false);
  (void)attempt();
  const uint64_t total = points_met();
  disarm();
  const uint64_t step = most == 0 || total <= most ? 1 : (total + most - 1) / most;
  for (int forever = 0; forever < 2; ++forever) {
    for (uint64_t index = 0; index < total; index += step) {
      const int64_t before = live_blocks();
      arm(kinds, index, forever != 0);
      const auto status = attempt();
      if (!disarm()) continue;  // this run did not reach the point
      ++result.points;
      result.errors += status != 0;
      if (const int64_t kept = live_blocks() - before; kept > 0)
        complain(index, forever != 0, "memory is kept, blocks", kept);
      if (const auto again = attempt(); again != 0) complain(index, forever != 0, "the next call fails too", again);
    }
  }
  std::printf("%s: %llu points, %llu errors\n", what, static_cast<unsigned long long>(result.points),
              static_cast<unsigned long long>(result.errors));
  return result;
}

}  // namespace fault_points
