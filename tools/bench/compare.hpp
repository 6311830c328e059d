// SPDX-License-Identifier: Apache-2.0
// Compares two reports of `bench` and finds differences that exceed the noise.
#pragma once

#include <string>
#include <vector>

#include "bench/sampling.hpp"

namespace tool {

// One measured time of a report.
struct Metric {
  std::string key;  // names the measured value: "bert_base/add f32 512x768 512x768 | device | latency"
  Figure ns;
};

struct Move {
  std::string key;
  Figure before, after;
  double factor;  // `after` divided by `before`
};

struct Comparison {
  std::vector<Move> moves;  // sorted by the size of the change, largest first
  std::vector<std::string> gone, added;
  size_t unmoved = 0;
};

// Compares two lists of metrics. A metric has changed if its ranges from p10 to p90 are disjoint
// and its medians differ by more than the fraction `least`.
Comparison compare_metrics(const std::vector<Metric>& before, const std::vector<Metric>& after, double least);

// The schema, the device and the metrics of a JSON report of `bench ops`, `bench model` or `bench memory`. The keys of
// the metrics call the measured device "device", so that reports of two plugins have the same keys.
struct ReportFigures {
  std::string schema, device;
  std::vector<Metric> metrics;
};
// Parses the content of a report. Throws Failure with `path` and the reason if `text` is not such a report.
ReportFigures read_figures(const std::string& text, const std::string& path);

}  // namespace tool
