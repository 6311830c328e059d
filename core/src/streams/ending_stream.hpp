// SPDX-License-Identifier: Apache-2.0
// The parts of a released stream that core keeps until the stream's work has completed.
#pragma once

#include <backplane/backplane.h>

#include <vector>

#include "base/ref.hpp"
#include "streams/semaphore.hpp"
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
  std::vector<Ref<PluginSemaphore>> semaphores;  // the semaphores that the stream's work uses
};

}  // namespace backplane::core
