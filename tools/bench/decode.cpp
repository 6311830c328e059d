// SPDX-License-Identifier: Apache-2.0
#include "bench/decode.hpp"

#include <algorithm>

#include "bench/device_model.hpp"
#include "measure.hpp"

namespace tool {

DecodeReport measure_decode(const Device& device, ModelSize size, int64_t steps) {
  constexpr int64_t warm_steps = 8;
  DecodeReport report;
  report.steps = steps;
  report.warm_steps = std::min(warm_steps, steps - 1);
  // The cache has room for one more token than there are steps, so it is never full. A view of a full cache would be
  // dense, so the last step would need a plan of another class.
  const int64_t capacity = steps + 1;
  const ModelGraph first = gpt_step(size, 0, capacity);
  report.description = fmt::format("{} steps of a GPT decode, the cache growing from 1 token to {}", steps, steps);
  try {
    DeviceModel model(device, first, first.make_data());
    std::vector<double> growing, known;
    uint64_t allocations = 0;
    bph_stats warm = device.stats();
    for (int64_t step = 0; step < steps; ++step) {
      model.use_nodes(gpt_step(size, step, capacity));
      const double new_ns = model.time(1, true);
      const uint64_t before = allocation_count();
      const double known_ns = model.time(1, true);
      if (step < report.warm_steps) {
        warm = device.stats();
        continue;
      }
      allocations += allocation_count() - before;
      growing.push_back(new_ns);
      known.push_back(known_ns);
    }
    const bph_stats end = device.stats();
    report.plans_warm = warm.plans_created;
    report.plans_after = end.plans_created - warm.plans_created;
    report.class_hits = end.plan_class_hits - warm.plan_class_hits;
    report.heap_allocations = static_cast<double>(allocations) / static_cast<double>(known.size());
    report.ratio = ratio_of(growing, known);
    report.growing_ns = figure_of(std::move(growing));
    report.known_ns = figure_of(std::move(known));
  } catch (const backplane::Error& error) {
    report.reason = error.what();
  }
  return report;
}

}  // namespace tool
