// SPDX-License-Identifier: Apache-2.0
#include "thread_state.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cfenv>
#include <climits>
#include <clocale>
#include <cstring>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace backplane::conformance {

namespace {

unsigned float_control() {
#if defined(__SSE__)
  return _mm_getcsr() & ~0x3fu;  // without the sticky exception flags
#else
  return 0;
#endif
}

std::string current_directory() {
  char path[PATH_MAX];
  return getcwd(path, sizeof(path)) == nullptr ? std::string() : std::string(path);
}

}  // namespace

ThreadState ThreadState::now() {
  ThreadState state;
  state.rounding_ = std::fegetround();
  state.control_ = float_control();
  pthread_sigmask(SIG_SETMASK, nullptr, &state.signals_);
  for (int signal = 1; signal < 32; ++signal) sigaction(signal, nullptr, &state.handlers_[static_cast<size_t>(signal)]);
  state.locale_ = setlocale(LC_ALL, nullptr);
  state.thread_locale_ = uselocale(nullptr);
  state.directory_ = current_directory();
  return state;
}

std::string ThreadState::changed_since() const {
  const ThreadState state = now();
  if (state.rounding_ != rounding_)
    return fmt::format("the rounding mode was {:#x} and is {:#x}", rounding_, state.rounding_);
  if (state.control_ != control_)
    return fmt::format("floating-point control was {:#x} and is {:#x}", control_, state.control_);
  for (int signal = 1; signal < 32; ++signal) {
    if (!same_handler(signal, state)) return fmt::format("signal {} has another handler now", signal);
    if (sigismember(&state.signals_, signal) != sigismember(&signals_, signal))
      return fmt::format("signal {} is {} now", signal,
                         sigismember(&state.signals_, signal) == 1 ? "blocked" : "no longer blocked");
  }
  if (state.locale_ != locale_) return fmt::format("the locale was {} and is {}", locale_, state.locale_);
  if (state.thread_locale_ != thread_locale_) return "the thread has another locale now (uselocale)";
  if (state.directory_ != directory_)
    return fmt::format("the working directory was {} and is {}", directory_, state.directory_);
  return {};
}

bool ThreadState::same_handler(int signal, const ThreadState& other) const {
  // The C library may add flags, so only these flags are compared.
  constexpr int compared = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESETHAND;
  const struct sigaction &a = handlers_[static_cast<size_t>(signal)], &b = other.handlers_[static_cast<size_t>(signal)];
  return a.sa_handler == b.sa_handler && (a.sa_flags & compared) == (b.sa_flags & compared);
}

void ThreadState::restore() const {
  const ThreadState state = now();
  for (int signal = 1; signal < 32; ++signal) {
    if (!same_handler(signal, state)) sigaction(signal, &handlers_[static_cast<size_t>(signal)], nullptr);
  }
  std::fesetround(rounding_);
#if defined(__SSE__)
  _mm_setcsr(control_);
#endif
  pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  setlocale(LC_ALL, locale_.c_str());
  uselocale(thread_locale_);
  if (!directory_.empty() && chdir(directory_.c_str()) != 0) return;
}

}  // namespace backplane::conformance
