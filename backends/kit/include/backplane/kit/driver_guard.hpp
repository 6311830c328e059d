// SPDX-License-Identifier: Apache-2.0
// Keeps a vendor's driver from changing the host's thread or process where it starts: drivers that compile install handlers for
// crashes, start threads that take signals, change the locale or the floating-point mode.
#pragma once

#include <signal.h>

#include <array>
#include <cfenv>
#include <clocale>
#include <mutex>
#include <string>

namespace backplane::kit {

// While a guard lives, signals are blocked on its thread and the floating-point mode is the default one: threads that the driver starts
// take no signals, and compute alike whoever started them. At its end the thread has its own mode and mask again, and the process its
// signal handlers and its locale. Guards of several threads may overlap: the last to end restores the process's state. A handler that
// the host sets meanwhile is lost. A guard costs some 20 µs: it is for slots that start or compile, not for enqueues.
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
    static Process* const state = new Process;  // never destroyed: slots may run while the process exits
    return *state;
  }

  std::fenv_t environment_;
  sigset_t mask_;
};

// A guard that lets one thread at a time through: around slots that may start a driver. Some crash, or find no device, where two threads
// use them first.
class StartGuard {
 public:
  StartGuard() : lock_(mutex()) {}

 private:
  static std::mutex& mutex() {
    static std::mutex* const one = new std::mutex;  // never destroyed, as above
    return *one;
  }

  std::lock_guard<std::mutex> lock_;
  DriverGuard guard_;
};

}  // namespace backplane::kit
