// SPDX-License-Identifier: Apache-2.0
// Failing on purpose: every allocation, file call, dlopen and thread creation of a test program is a numbered point,
// and a sweep runs a call once for each of them, failing there once or from there on.
//
// Link fault_points.cpp and fault_interpose.c into the test program. Points are met by the thread that armed them only.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace fault_points {

enum Kind : unsigned { memory = 1, files = 2, dynamic_linker = 4, threads = 8, all = 15 };

// From now on, on this thread: the point number `index` (from 0) of `kinds` fails, and with `forever` every later one
// too.
void arm(unsigned kinds, uint64_t index, bool forever) noexcept;
// No more failures. Returns whether there was one.
bool disarm() noexcept;
// Points met since they were armed.
uint64_t points_met() noexcept;
// Blocks of memory that are alive, of all threads.
int64_t live_blocks() noexcept;

struct Result {
  uint64_t points = 0;    // runs with a failure in them
  uint64_t errors = 0;    // of those, the calls that answered with an error
  std::string complaint;  // empty: all is well
};

// Runs `attempt`, which makes the calls under test, releases what it got, and returns the first status that is not OK
// (0). For each point: it may succeed or fail, but keeps no memory, and without the failure it then succeeds. `most`
// bounds the points (0: none); of more, an even selection is run.
template <class Attempt>
Result sweep(const char* what, unsigned kinds, Attempt&& attempt, uint64_t most = 0) {
  Result result;
  const auto complain = [&](uint64_t index, bool forever, const char* wrong, int64_t value) {
    if (!result.complaint.empty()) return;
    result.complaint = std::string(what) + ": point " + std::to_string(index) + (forever ? " and later" : "") + ": " +
                       wrong + " (" + std::to_string(value) + ")";
  };
  for (int i = 0; i < 3; ++i) {  // so that what is made once is there
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
      if (!disarm()) continue;  // this run took a shorter way
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
