// SPDX-License-Identifier: Apache-2.0
// Thread teams of the OpenMP runtime that oneDNN uses. In a process, only one team of several threads works at
// a time.
#pragma once

#include <cstdint>
#include <mutex>
#include <type_traits>

namespace backplane::onednn {

// Returns the number of processors that this process may run on.
int available_threads();

// Returns the size of the teams that the calling thread starts. The OpenMP runtime stores this size
// separately for each thread.
int team_size();
void set_team_size(int threads);

// Sets the calling thread's team size for a scope.
class TeamSize {
 public:
  explicit TeamSize(int threads) : before_(team_size()) {
    if (threads != before_) set_team_size(threads);
  }
  ~TeamSize() {
    if (team_size() != before_) set_team_size(before_);
  }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  int before_;
};

// Returns the mutex that a thread locks while its team of several threads works. Only one such team works at a
// time, so several streams never oversubscribe the processors.
std::mutex& team_mutex();

namespace detail {
void run_team(int threads, void (*body)(void*, int part, int parts), void* context);
}

// Calls body(part, parts) on the threads of a team, which has at most units / grain threads. The body selects
// its part of the work itself, and throws nothing. Work of less than two grains runs on the calling thread.
template <class Body>
void parallel(int64_t units, int64_t grain, const Body& body) {
  static_assert(std::is_nothrow_invocable_v<const Body&, int, int>);
  const int64_t wanted = units / grain;
  const int team = wanted < 2 ? 1 : team_size();
  const int threads = static_cast<int>(wanted < team ? wanted : team);
  if (threads <= 1) return body(0, 1);
  detail::run_team(
      threads, [](void* context, int part, int parts) { (*static_cast<const Body*>(context))(part, parts); },
      const_cast<Body*>(&body));
}

// The range [begin, end). range_of() divides [0, count) into `parts` contiguous ranges that begin
// at multiples of `step`, and returns range number `part`.
struct Range {
  int64_t begin;
  int64_t end;
};
inline Range range_of(int64_t count, int part, int parts, int64_t step = 1) {
  const int64_t blocks = (count + step - 1) / step;
  const auto at = [&](int64_t i) {
    const int64_t block = blocks / parts * i + (i < blocks % parts ? i : blocks % parts);
    return block * step < count ? block * step : count;
  };
  return {at(part), at(part + 1)};
}

}  // namespace backplane::onednn
