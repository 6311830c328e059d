// SPDX-License-Identifier: Apache-2.0
// Tests that DriverGuard restores the process state that a driver changes while it starts.
#include <gtest/gtest.h>

#include <backplane/kit/driver_guard.hpp>
#include <cfenv>
#include <future>
#include <thread>

namespace backplane::kit::test {
namespace {

void on_signal(int) {}

void set_handler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(number, &action, nullptr);
}
void (*handler_of(int number))(int) {
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  return action.sa_handler;
}
bool is_blocked(int number) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, number) != 0;
}

TEST(DriverGuard, RestoresTheThreadAndTheProcess) {
  const std::string locale = std::setlocale(LC_ALL, nullptr);
  std::fesetround(FE_UPWARD);
  set_handler(SIGUSR1, on_signal);
  {
    const DriverGuard guard;
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    EXPECT_TRUE(is_blocked(SIGUSR1));
    std::fesetround(FE_DOWNWARD);
    set_handler(SIGUSR1, SIG_IGN);
    set_handler(SIGUSR2, on_signal);
    std::setlocale(LC_ALL, locale == "C" ? "C.UTF-8" : "C");
    // Threads that start while the guard exists inherit its signal mask.
    std::thread([] { EXPECT_TRUE(is_blocked(SIGUSR1)); }).join();
  }
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  EXPECT_FALSE(is_blocked(SIGUSR1));
  EXPECT_EQ(handler_of(SIGUSR1), on_signal);
  EXPECT_EQ(handler_of(SIGUSR2), SIG_DFL);
  EXPECT_EQ(std::setlocale(LC_ALL, nullptr), locale);
  std::fesetround(FE_TONEAREST);
  set_handler(SIGUSR1, SIG_DFL);
}

struct PlainNative {};
struct NativeWithGuards {
  static constexpr bool kGuardsDriver = true;
};
TEST(DriverGuard, TheKitUsesNoneForADeviceThatHasItsOwn) {
  {
    const detail::GuardOf<PlainNative> guard;
    EXPECT_TRUE(is_blocked(SIGUSR1));
  }
  const detail::GuardOf<NativeWithGuards> guard;
  EXPECT_FALSE(is_blocked(SIGUSR1));
}

// The second guard begins after the first driver has changed a handler, and ends after the first
// guard.
TEST(DriverGuard, OverlappingGuardsRestoreTheFirstState) {
  std::promise<void> begun, ended;
  std::thread second;
  {
    const DriverGuard first;
    set_handler(SIGUSR1, on_signal);
    second = std::thread([&] {
      const DriverGuard guard;
      begun.set_value();
      ended.get_future().wait();
    });
    begun.get_future().wait();
  }
  EXPECT_EQ(handler_of(SIGUSR1), on_signal) << "the second guard lives";
  ended.set_value();
  second.join();
  EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
}

}  // namespace
}  // namespace backplane::kit::test
