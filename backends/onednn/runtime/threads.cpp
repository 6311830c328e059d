// SPDX-License-Identifier: Apache-2.0
// The only file that calls the OpenMP runtime. It calls libgomp's entry points directly. `#pragma omp` could
// link another runtime, which would have a second thread pool.
#include "runtime/threads.hpp"

// libgomp's stable interface.
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

std::mutex& team_mutex() {
  static std::mutex mutex;
  return mutex;
}

void detail::run_team(int threads, void (*body)(void*, int, int), void* context) {
  struct Work {
    void (*body)(void*, int, int);
    void* context;
  } work{body, context};
  const std::lock_guard lock(team_mutex());
  GOMP_parallel(
      [](void* given) {
        const auto& [run, with] = *static_cast<Work*>(given);
        run(with, omp_get_thread_num(), omp_get_num_threads());
      },
      &work, static_cast<unsigned>(threads), 0);
}

}  // namespace backplane::onednn
