// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/test_driver/streams.hpp"

#include <unordered_map>

#include "gpu_host/test_driver/memory.hpp"

namespace backplane::gpu_host::test_driver {

namespace {

template <class T>
using Table = std::unordered_map<const void*, std::shared_ptr<T>>;

Table<Stream>& streams() {
  static auto* const all = new Table<Stream>;
  return *all;
}
Table<Event>& events() {
  static auto* const all = new Table<Event>;
  return *all;
}

template <class T>
std::shared_ptr<T> find(const Table<T>& table, const void* handle, const char* rule) {
  const auto found = table.find(handle);
  if (found != table.end()) return found->second;
  (void)violate(Result::kInvalidHandle, rule);
  return nullptr;
}

// Points to which no event refers any longer, but which commands may still use.
std::deque<std::shared_ptr<Point>>& released_points() {
  static auto* const all = new std::deque<std::shared_ptr<Point>>;
  return *all;
}

void release(std::shared_ptr<Point> point) {
  auto& all = released_points();
  if (point != nullptr) all.push_back(std::move(point));
  while (!all.empty() && !all.front()->signal.is_pending()) all.pop_front();
}

bool has_delays() {
  static const bool value = setting("TEST_DRIVER_DELAY_US", "0") != "0";
  return value;
}

}  // namespace

Stream::Stream(Context& of) : context_(of), number_(Clock::create_stream()), work_(machine(), Work::Order::kSequence) {}

Stream::~Stream() { Clock::destroy_stream(number_); }

Clock Stream::end() const {
  Clock out = waited_;
  out.reach(number_, commands_);
  return out;
}

Result Stream::mark(std::shared_ptr<Point>& out) {
  out = std::make_shared<Point>();
  out->reached = end();
  Signal* const signal = &out->signal;
  return result_of(work_.set({&signal, 1}));
}

Result Stream::wait_for(const std::shared_ptr<Point>& point) {
  waited_.join(point->reached);
  Signal* const signal = &point->signal;
  return result_of(work_.barrier({&signal, 1}));
}

Result Stream::delay() {
  if (!has_delays()) return Result::kSuccess;
  std::shared_ptr<Point> point;
  Result result = mark(point);
  if (result == Result::kSuccess) result = wait_for(point);
  release(std::move(point));
  return result;
}

void Stream::finish(Call& call) {
  const Clock reached = end();
  call.unlock();
  work_.finish();
  call.lock();
  observed().join(reached);
}

bool Stream::follows(uint64_t stream, uint64_t command) const {
  return stream == number_ || waited_.has(stream, command) || observed().has(stream, command);
}

void* add_stream(Context& context) {
  auto made = std::make_shared<Stream>(context);
  void* const handle = made.get();
  streams()[handle] = std::move(made);
  return handle;
}

std::shared_ptr<Stream> find_stream(const void* handle) {
  return find(
      streams(), handle,
      handle == nullptr ? "the default stream is used" : "a stream is used that was destroyed, or never existed");
}

std::shared_ptr<Stream> find_stream(const Call& call, const void* handle) {
  auto out = find_stream(handle);
  if (out == nullptr || &out->context() == &call.context()) return out;
  (void)violate(Result::kInvalidHandle, "the stream has another context");
  return nullptr;
}

Result remove_stream(Call& call, const void* handle) {
  std::shared_ptr<Stream> stream = find_stream(call, handle);
  if (stream == nullptr) return Result::kInvalidHandle;
  streams().erase(handle);
  call.unlock();
  stream.reset();
  call.lock();
  return Result::kSuccess;
}

void* add_event(Context& context, bool is_timed) {
  auto made = std::make_shared<Event>(Event{context, is_timed, nullptr});
  void* const handle = made.get();
  events()[handle] = std::move(made);
  return handle;
}

std::shared_ptr<Event> find_event(const void* handle) {
  return find(events(), handle, "an event is used that was destroyed, or never existed");
}

Result remove_event(const void* handle) {
  const std::shared_ptr<Event> event = find_event(handle);
  if (event == nullptr) return Result::kInvalidHandle;
  release(std::move(event->point));
  events().erase(handle);
  return Result::kSuccess;
}

Result record(const Call& call, const void* event_handle, const void* stream_handle) {
  const auto event = find_event(event_handle);
  const auto stream = find_stream(call, stream_handle);
  if (event == nullptr || stream == nullptr) return Result::kInvalidHandle;
  if (&event->context != &stream->context()) {
    return violate(Result::kInvalidHandle, "the event and the stream have different contexts");
  }
  release(std::move(event->point));
  return stream->mark(event->point);
}

Result wait_event(const Call& call, const void* stream_handle, const void* event_handle) {
  const auto stream = find_stream(call, stream_handle);
  const auto event = find_event(event_handle);
  if (stream == nullptr || event == nullptr) return Result::kInvalidHandle;
  return event->point == nullptr ? Result::kSuccess : stream->wait_for(event->point);
}

Result query(const void* handle) {
  const auto event = find_event(handle);
  if (event == nullptr) return Result::kInvalidHandle;
  if (event->point == nullptr) return Result::kSuccess;
  if (!event->point->signal.is_set()) return Result::kNotReady;
  observed().join(event->point->reached);
  return Result::kSuccess;
}

Result await_event(Call& call, const void* handle) {
  const auto event = find_event(handle);
  if (event == nullptr) return Result::kInvalidHandle;
  const std::shared_ptr<Point> point = event->point;
  if (point == nullptr) return Result::kSuccess;
  call.unlock();
  point->signal.wait(UINT64_MAX);
  call.lock();
  observed().join(point->reached);
  return event->context.fault;
}

Result synchronize(Call& call, const void* handle) {
  const auto stream = find_stream(call, handle);
  if (stream == nullptr) return Result::kInvalidHandle;
  stream->finish(call);
  trim_pools(stream->context());
  return stream->context().fault;
}

Result elapsed(const void* begin, const void* end, float& milliseconds) {
  const auto first = find_event(begin), last = find_event(end);
  if (first == nullptr || last == nullptr) return Result::kInvalidHandle;
  for (const auto& each : {first, last}) {
    if (!each->is_timed) return violate(Result::kInvalidHandle, "an event has no time");
    if (each->point == nullptr) return violate(Result::kInvalidHandle, "an event was not recorded");
    if (!each->point->signal.is_set()) return Result::kNotReady;
  }
  if (&first->context != &last->context) {
    return violate(Result::kInvalidHandle, "the two events have different contexts");
  }
  const auto difference = static_cast<int64_t>(last->point->signal.time() - first->point->signal.time());
  milliseconds = static_cast<float>(difference) * 1e-6f;
  return Result::kSuccess;
}

}  // namespace backplane::gpu_host::test_driver
