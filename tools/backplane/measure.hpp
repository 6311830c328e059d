// SPDX-License-Identifier: Apache-2.0
// Measures the time of short calls: the median over many batches, and the spread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace tool {

struct Spread {
  double median = 0, least = 0, most = 0;  // nanoseconds per call
};

inline Spread spread_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

// Returns the nanoseconds that `body` takes.
template <class Body>
double timed_ns(Body&& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

// Times `batches` batches of `calls` calls of body(index). The index increases over all batches.
// After each batch, calls between(), which is not timed.
template <class Body, class Between>
Spread measure(uint32_t batches, uint32_t calls, Body&& body, Between&& between) {
  std::vector<double> samples;
  uint64_t index = 0;
  for (uint32_t batch = 0; batch < batches; ++batch) {
    const double ns = timed_ns([&] {
      for (uint32_t i = 0; i < calls; ++i) body(index++);
    });
    samples.push_back(ns / calls);
    between();
  }
  return spread_of(std::move(samples));
}

template <class Body>
Spread measure(uint32_t batches, uint32_t calls, Body&& body) {
  return measure(batches, calls, body, [] {});
}

// Returns the number of calls of operator new in this process so far, including calls by the
// library.
uint64_t allocation_count();

}  // namespace tool
