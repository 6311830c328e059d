// SPDX-License-Identifier: Apache-2.0
// The one file that speaks to the OpenMP runtime. It calls libgomp by its entry points, because a compiler's own OpenMP
// may bring another runtime, and with it a second pool beside oneDNN's.
#include "runtime/threads.hpp"

// Of libgomp's stable interface.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming)
void GOMP_parallel(void (*body)(void*), void* context, unsigned threads, unsigned flags);
int omp_get_max_threads();
int omp_get_num_procs();
int omp_get_num_threads();
int omp_get_thread_num();
void omp_set_num_threads(int threads);
}

namespace backplane::onednn {

int available_threads() { return omp_get_num_procs(); }
int team_size() { return omp_get_max_threads(); }
void set_team_size(int threads) { omp_set_num_threads(threads); }

std::mutex& team_turn() {
  static std::mutex mutex;
  return mutex;
}

void detail::run_team(int threads, void (*body)(void*, int, int), void* context) {
  struct Work {
    void (*body)(void*, int, int);
    void* context;
  } work{body, context};
  const std::lock_guard turn(team_turn());
  GOMP_parallel(
      [](void* given) {
        const auto& [run, with] = *static_cast<Work*>(given);
        run(with, omp_get_thread_num(), omp_get_num_threads());
      },
      &work, static_cast<unsigned>(threads), 0);
}

}  // namespace backplane::onednn
