// SPDX-License-Identifier: Apache-2.0
// The parts of a released stream that core keeps until the stream's work has completed.
#pragma once

#include <backplane/backplane.h>

#include "base/ref.hpp"
#include "streams/timeline.hpp"

namespace backplane::core {

struct Pool;

struct EndingStream {
  bp_stream* handle = nullptr;
  Ref<Timeline> timeline;
  Pool* pool = nullptr;
  EndingStream* next = nullptr;
  void (*release)(void*) = nullptr;  // callback of a native stream; its argument is `context`
  void* context = nullptr;
};

}  // namespace backplane::core
