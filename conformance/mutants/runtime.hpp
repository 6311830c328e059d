// SPDX-License-Identifier: Apache-2.0
// What defects of the runtime need: a stream beside those of the host, the host's latest, and work that comes too late.
#pragma once

#include <functional>

#include "mutation.hpp"

namespace backplane::conformance::mutants {

// A stream of the mutant's own, which outlives everything.
inline bp_stream* side_stream() {
  static auto* stream = new HostStream;
  return reinterpret_cast<bp_stream*>(stream);
}

// Does `work` a millisecond after `stream` has passed what is enqueued now.
void later(HostStream& stream, std::function<void()> work);
// Lets a buffer's destroy wait for such work, so that the defect writes only to what lives.
void wait_for_later(bp_device_api& api);

// The stream that was created last and lives, or null; kept by the changed stream_create and stream_destroy.
HostStream* last_stream();
void keep_last_stream(bp_device_api& api);

}  // namespace backplane::conformance::mutants
