// SPDX-License-Identifier: Apache-2.0
#include "driver_call.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace backplane::simt {

namespace {

std::atomic<int> calls_in_driver{0};
std::atomic<bool> exiting{false};

void stop_calls() {
  using namespace std::chrono_literals;
  exiting = true;
  const auto end = std::chrono::steady_clock::now() + 1s;
  while (calls_in_driver != 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(100us);
}

bool enter() {
  ++calls_in_driver;
  return !exiting;
}

}  // namespace

DriverCall::DriverCall() : permitted_(enter()) {}

DriverCall::~DriverCall() { --calls_in_driver; }

void DriverCall::stop_at_exit() { std::atexit(stop_calls); }

}  // namespace backplane::simt
