// SPDX-License-Identifier: Apache-2.0
// The order in which workers run the cases of a selection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>

#include "channel.hpp"

namespace backplane::conformance {

// Returns the index in `queue`, which must not be empty, of the next range of a worker. A worker continues at
// `end`, where its last range ended. If no range begins there, the worker divides the longest run of adjacent ranges
// with the worker whose last range ends in front of the run; `busy_ends` contains the ends of the other workers'
// ranges. If it is empty, the worker takes the first range. Adjacent cases use the same kernels, so each kernel is
// compiled by few workers.
size_t next_range(const std::deque<Work>& queue, uint32_t end, const std::set<uint32_t>& busy_ends);

}  // namespace backplane::conformance
