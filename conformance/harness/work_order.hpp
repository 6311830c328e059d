// SPDX-License-Identifier: Apache-2.0
// The order in which workers run the cases of a selection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>

#include "channel.hpp"

namespace backplane::conformance {

// Returns the index in `queue` of the range that a worker runs next. `queue` must not be empty. `end` is the end of the
// worker's last range, and `busy_ends` contains the ends of the other workers' ranges. Adjacent cases use the same
// kernels. A worker that runs adjacent ranges therefore compiles few kernels that other workers compile too.
//
// If a range begins at `end`, the function returns this range. Otherwise, if `busy_ends` is empty, the function returns
// the first range. In all other cases, the function searches for the longest run of adjacent ranges. If this run begins
// at an end in `busy_ends`, another worker will continue there, so the function returns the middle of the run.
// Otherwise the function returns the start of the run.
size_t next_range(const std::deque<Work>& queue, uint32_t end, const std::set<uint32_t>& busy_ends);

}  // namespace backplane::conformance
