// SPDX-License-Identifier: Apache-2.0
// Statistics of samples, and alternate sampling of contestants.
#include "bench/sampling.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace tool {
namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Returns the quantile `share` of sorted samples, with linear interpolation.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

uint32_t calls_in(double seconds, double call_ns) {
  return static_cast<uint32_t>(std::clamp(std::ceil(seconds * 1e9 / std::max(call_ns, 1.0)), 1.0, 100'000.0));
}

}  // namespace

Figure figure_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {quantile(samples, 0.1), quantile(samples, 0.5), quantile(samples, 0.9),
          static_cast<uint32_t>(samples.size())};
}

Figure ratio_of(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (b[i] > 0) ratios.push_back(a[i] / b[i]);
  }
  return figure_of(std::move(ratios));
}

std::vector<Samples> sample_interleaved(const std::vector<Contestant*>& contestants, const SamplingPlan& plan) {
  const size_t count = contestants.size();
  std::vector<Samples> samples(count);
  std::vector<double> call_ns(count);
  double round_ns = 0;
  const auto attempt = [&](size_t i, const auto& turn) {
    if (!samples[i].reason.empty()) return;
    try {
      turn(*contestants[i]);
    } catch (const std::exception& failure) {
      samples[i] = {failure.what(), {}, {}};
    }
  };
  for (size_t i = 0; i < count; ++i) {
    attempt(i, [&](Contestant& one) {
      // The time of a warm call determines the number of calls per sample.
      call_ns[i] = one.time(1, true);
      const uint32_t few = calls_in(plan.sample_s / 4, call_ns[i]);
      if (few > 1) call_ns[i] = one.time(few, true) / few;
      round_ns += call_ns[i];
    });
  }
  const bool slow = round_ns > 2e9 * plan.seconds;
  const uint32_t least = slow ? 1 : plan.least_rounds;
  const uint32_t most = slow ? 1 : plan.most_rounds;
  const double begin = now_s();
  for (uint32_t round = 0; round < most; ++round) {
    if (round >= least && now_s() - begin > plan.seconds) break;
    for (size_t turn = 0; turn < count; ++turn) {
      const size_t i = (turn + round) % count;
      attempt(i, [&](Contestant& one) {
        if (count > 1) std::this_thread::sleep_for(std::chrono::duration<double>(plan.pause_s));
        const uint32_t calls = calls_in(plan.sample_s, call_ns[i]);
        if (call_ns[i] < plan.sample_s * 1e9) one.time(calls_in(plan.warm_s, call_ns[i]), false);
        samples[i].latency.push_back(one.time(calls, true) / calls);
        // With one call per sample, the latency and the throughput are equal.
        samples[i].throughput.push_back(calls == 1 ? samples[i].latency.back() : one.time(calls, false) / calls);
      });
    }
  }
  return samples;
}

}  // namespace tool
