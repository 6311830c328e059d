// SPDX-License-Identifier: Apache-2.0
// Locks SHARED streams, and does the work that was deferred until the locks are released.
#include "streams/stream_lock.hpp"

#include <memory>
#include <string>
#include <utility>

#include "loading/registry.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

namespace {

struct LogLine {
  Ref<Registry> registry;
  int32_t level;
  std::string message;
  LogLine* next = nullptr;
};

// The log lines that this thread has deferred, oldest first.
constinit thread_local LogLine* first_line = nullptr;
constinit thread_local LogLine* last_line = nullptr;

void deliver_log() noexcept {
  last_line = nullptr;
  for (LogLine* line = std::exchange(first_line, nullptr); line != nullptr;) {
    const std::unique_ptr<LogLine> own(std::exchange(line, line->next));
    own->registry->log(own->level, own->message.c_str());
  }
}

}  // namespace

bool StreamLock::defer_log(const Registry& registry, int32_t level, const char* message) noexcept {
  try {
    auto line = std::make_unique<LogLine>(Ref<Registry>(const_cast<Registry*>(&registry)), level, message);
    LogLine*& end = last_line == nullptr ? first_line : last_line->next;
    last_line = end = line.release();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void StreamLock::enter(const char* function, Purpose purpose) {
  const auto inside = [&] {
    return Error(BP_INVALID_ARGUMENT,
                 "{}: called inside an enqueue callback of the same stream, which holds its lock; enqueue through the "
                 "plugin's stream there, and call this after bph_stream_enqueue",
                 function);
  };
  const auto gate = [&] { return stream_.gate.load(std::memory_order_relaxed); };
  if (Stream::Shared* const shared = stream_.shared_.get()) {
    if (stream_.holds_lock()) {
      if ((gate() & Stream::kGateCallback) != 0) throw inside();
    } else {
      shared->mutex.lock();
      shared->owner.store(thread(), std::memory_order_relaxed);
      ++locks_held;
    }
    ++shared->depth;
    held_ = true;
  } else if ((gate() & Stream::kGateCallback) != 0) {
    throw inside();
  }
  const auto refuse = [&](const Error& failure) {
    if (held_) leave();
    throw Error(failure);
  };
  if ((gate() & Stream::kGateFailed) != 0 && purpose != Purpose::wait) refuse(*stream_.failure_);
  if ((gate() & Stream::kGateRecording) != 0 && purpose != Purpose::record) {
    refuse(Error(BP_INVALID_ARGUMENT,
                 "{}: the stream records a graph, which cannot contain this call; call bph_graph_end first, or use "
                 "another stream (bph_graph_begin lists the calls)",
                 function));
  }
}

void StreamLock::leave() noexcept {
  Stream::Shared& shared = *stream_.shared_;
  if (--shared.depth != 0) return;
  shared.owner.store(nullptr, std::memory_order_relaxed);
  shared.mutex.unlock();
  if (--locks_held != 0) return;
  if (first_line != nullptr) deliver_log();
  if (std::exchange(releases_due, false)) stream_.device->allocator.poll_pending();
}

}  // namespace backplane::core
