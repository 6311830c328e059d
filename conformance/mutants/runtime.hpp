// SPDX-License-Identifier: Apache-2.0
// Helpers for defects in the runtime: a private stream, the latest stream, and late work.
#pragma once

#include <functional>

#include "mutation.hpp"

namespace backplane::conformance::mutants {

// Returns a stream that the mutant owns and never destroys.
inline bp_stream* side_stream() {
  static auto* stream = new HostStream;
  return reinterpret_cast<bp_stream*>(stream);
}

// Runs `work` a millisecond after `stream` has completed its current work.
void later(HostStream& stream, std::function<void()> work);
// Makes buffer_destroy wait for the work of later(), so that the defect writes only to live
// buffers.
void wait_for_later(bp_device_api& api);

// Returns the stream that was created last, or null if it was destroyed. keep_last_stream changes
// stream_create and stream_destroy to track this stream.
HostStream* last_stream();
void keep_last_stream(bp_device_api& api);

}  // namespace backplane::conformance::mutants
