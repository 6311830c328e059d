// SPDX-License-Identifier: Apache-2.0
// Takes samples of contestants alternately, so that changes of the machine's speed affect all contestants equally.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tool {

// The median of samples, together with the range of the middle 80 % of them.
struct Figure {
  double p10 = 0, median = 0, p90 = 0;
  uint32_t samples = 0;
};
Figure figure_of(std::vector<double> samples);
// Returns the figure of the ratios a[i] / b[i]. Sample i of both lists comes from the same round, so the ratio cancels
// changes of the machine's speed.
Figure ratio_of(const std::vector<double>& a, const std::vector<double>& b);

// A contestant does the work of one case. Its constructor prepares the case. Only one thread uses a contestant.
class Contestant {
 public:
  virtual ~Contestant() = default;
  // Returns the time of `calls` calls in nanoseconds, including the wait until all work is done. If
  // `wait_each` is true, waits after every call.
  virtual double time(uint32_t calls, bool wait_each) = 0;
};

struct Samples {
  // The reason why a call failed. The text is empty if no call failed. After a failure, the
  // contestant has no samples and is not called again.
  std::string reason;
  std::vector<double> latency;     // nanoseconds per call if every call is waited for
  std::vector<double> throughput;  // nanoseconds per call if all calls share one wait
};

struct SamplingPlan {
  double seconds = 0.5;     // measuring time for all contestants together
  double sample_s = 0.002;  // minimum time of one sample
  // Idle time before each contestant's samples, because threads of another contestant may still
  // spin.
  double pause_s = 0.003;
  // Time of unmeasured work before each sample. The work refills the CPU caches, which another
  // contestant has used.
  double warm_s = 0.0005;
  uint32_t least_rounds = 5;
  uint32_t most_rounds = 101;
};

// Returns one Samples per contestant, in the order of the contestants. Sample i of each contestant
// comes from round i. If one round takes longer than 2 * plan.seconds, there is only one round.
std::vector<Samples> sample_interleaved(const std::vector<Contestant*>& contestants, const SamplingPlan& plan);

}  // namespace tool
