// SPDX-License-Identifier: Apache-2.0
// Sampling: contestants measured in turns, so that drift of the machine hits them alike, and figures that keep their spread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tool {

// Never one number alone: the median, and where 80 % of the samples lie.
struct Figure {
  double p10 = 0, median = 0, p90 = 0;
  uint32_t samples = 0;
};
Figure figure_of(std::vector<double> samples);
// Of a_i / b_i, sample by sample: what varies with the machine cancels.
Figure ratio_of(const std::vector<double>& a, const std::vector<double>& b);

// Something that does one case's work. Made ready; used by one thread.
class Contestant {
 public:
  virtual ~Contestant() = default;
  // Nanoseconds that `calls` calls take, until all their work is done; with `wait_each` the caller waits after every call.
  virtual double time(uint32_t calls, bool wait_each) = 0;
};

struct Samples {
  std::string reason;  // why a call failed; empty: none did. What failed takes no more turns, and has no samples
  std::vector<double> latency;     // ns a call, each waited for
  std::vector<double> throughput;  // ns a call, one wait behind all
};

struct SamplingPlan {
  double seconds = 0.5;     // for all contestants together
  double sample_s = 0.002;  // what one sample should take at least
  double rest_s = 0.003;  // idle before each turn: another contestant's threads may wait for work in a loop for so long
  double warm_s = 0.0005;  // untimed work before each sample: another contestant had the caches
  uint32_t least_rounds = 5;
  uint32_t most_rounds = 101;
};

// One Samples each, in order; sample i of all comes from round i. Where one round takes more than twice plan.seconds there is
// one.
std::vector<Samples> sample_in_turns(const std::vector<Contestant*>& contestants, const SamplingPlan& plan);

}  // namespace tool
