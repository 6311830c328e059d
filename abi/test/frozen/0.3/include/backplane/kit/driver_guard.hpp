// SPDX-License-Identifier: Apache-2.0
// Protects the host's threads and process from a vendor's driver. Drivers install crash handlers,
// start threads that receive signals, and change the locale or the floating-point mode.
#pragma once

#include <signal.h>

#include <array>
#include <cfenv>
#include <clocale>
#include <mutex>
#include <string>
#include <type_traits>

namespace backplane::kit {

// While a guard exists, its thread blocks all signals except those of faults, such as SIGSEGV, and has the default
// floating-point mode. Threads that the driver starts inherit this signal mask and this mode. The destructor restores
// the thread's mode and signal mask, and the process's signal handlers and locale. Guards of several threads may
// overlap, and the last guard to end restores the process's state. If the host installs a signal handler while a
// guard exists, the handler is lost. A guard costs about 20 µs, so use it in slots that start a driver or compile,
// and not in enqueue calls.
class DriverGuard {
 public:
  DriverGuard() {
    std::fegetenv(&environment_);
    std::fesetenv(FE_DFL_ENV);
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &mask_);
    std::lock_guard lock(process().mutex);
    if (process().guards++ == 0) process().save();
  }
  ~DriverGuard() {
    {
      std::lock_guard lock(process().mutex);
      if (--process().guards == 0) process().restore();
    }
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    std::fesetenv(&environment_);
  }
  DriverGuard(const DriverGuard&) = delete;
  DriverGuard& operator=(const DriverGuard&) = delete;

 private:
  struct Process {
    std::mutex mutex;
    int guards = 0;
    std::array<struct sigaction, NSIG> handlers{};
    std::string locale;

    void save() {
      for (int number = 1; number < NSIG; ++number) sigaction(number, nullptr, &handlers[number]);
      const char* now = std::setlocale(LC_ALL, nullptr);
      locale = now == nullptr ? "" : now;
    }
    void restore() const {
      for (int number = 1; number < NSIG; ++number) {
        struct sigaction now {};
        if (sigaction(number, nullptr, &now) != 0) continue;
        const auto& before = handlers[number];
        const bool same = now.sa_sigaction == before.sa_sigaction && now.sa_flags == before.sa_flags;
        if (!same) sigaction(number, &before, nullptr);
      }
      const char* now = std::setlocale(LC_ALL, nullptr);
      if (!locale.empty() && (now == nullptr || locale != now)) std::setlocale(LC_ALL, locale.c_str());
    }
  };
  static Process& process() {
    // Never destroyed, because slots may run while the process exits.
    static Process* const state = new Process;
    return *state;
  }

  std::fenv_t environment_;
  sigset_t mask_;
};

// A DriverGuard that only one thread at a time can hold, for slots that may start a driver. Some drivers crash or
// find no device if two threads start them at the same time.
class StartGuard {
 public:
  StartGuard() : lock_(mutex()) {}

 private:
  static std::mutex& mutex() {
    // Never destroyed, because slots may run during exit.
    static std::mutex* const one = new std::mutex;
    return *one;
  }

  std::lock_guard<std::mutex> lock_;
  DriverGuard guard_;
};

namespace detail {

struct NoGuard {
  NoGuard() {}  // not trivial, so that an unused object causes no warning
  ~NoGuard() {}
};
// The kit's guard of a call into a native device. A native device with `kGuardsDriver` makes its own guards.
template <class Native>
using GuardOf = std::conditional_t<requires { Native::kGuardsDriver; }, NoGuard, DriverGuard>;

}  // namespace detail

}  // namespace backplane::kit
