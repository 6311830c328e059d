// SPDX-License-Identifier: Apache-2.0
// Samples contestants in turns, so that drift of the machine affects all alike.
// Figures keep their spread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tool {

// A figure has a median and the range of 80 % of the samples, never one number alone.
struct Figure {
  double p10 = 0, median = 0, p90 = 0;
  uint32_t samples = 0;
};
Figure figure_of(std::vector<double> samples);
// The figure of a_i / b_i, sample by sample. The ratio cancels the machine's drift.
Figure ratio_of(const std::vector<double>& a, const std::vector<double>& b);

// Does the work of one case. It is prepared at construction and used by one thread.
class Contestant {
 public:
  virtual ~Contestant() = default;
  // Returns the nanoseconds of `calls` calls until all work is done. With
  // `wait_each`, waits after every call.
  virtual double time(uint32_t calls, bool wait_each) = 0;
};

struct Samples {
  // Why a call failed; empty if none did. After a failure there are no
  // samples and no further turns.
  std::string reason;
  std::vector<double> latency;     // ns per call; each call is waited for
  std::vector<double> throughput;  // ns per call; one wait for all calls
};

struct SamplingPlan {
  double seconds = 0.5;     // the total for all contestants
  double sample_s = 0.002;  // minimum time of one sample
  // Idle time before each turn, because another contestant's threads may still spin.
  double rest_s = 0.003;
  // Untimed work before each sample, because another contestant used the caches.
  double warm_s = 0.0005;
  uint32_t least_rounds = 5;
  uint32_t most_rounds = 101;
};

// Returns one Samples per contestant, in order. Sample i of each comes from round i. If one round
// takes longer than 2 * plan.seconds, there is only one round.
std::vector<Samples> sample_in_turns(const std::vector<Contestant*>& contestants, const SamplingPlan& plan);

}  // namespace tool
