// SPDX-License-Identifier: Apache-2.0
// Two reports of `bench`, and what moved between them beyond the noise.
#pragma once

#include <string>
#include <vector>

#include "bench/sampling.hpp"

namespace tool {

// One figure of a report.
struct Metric {
  std::string key;  // what was measured: "bert_base/add f32 512x768 512x768 | device | latency"
  Figure ns;
};

struct Move {
  std::string key;
  Figure before, after;
  double factor;  // after over before
};

struct Comparison {
  std::vector<Move> moves;  // the greatest first
  std::vector<std::string> gone, added;
  size_t unmoved = 0;
};

// A figure moved if the spreads, p10 to p90, have nothing in common and the medians are further apart than `least`, a share.
Comparison compare_metrics(const std::vector<Metric>& before, const std::vector<Metric>& after, double least);

// The figures of a report as `bench ops --json` or `bench memory --json` wrote it, and the schema that it names. Throws Failure
// with `path` and what is wrong. The device is "device" in the keys, so that two plugins compare.
struct ReportFigures {
  std::string schema, device;
  std::vector<Metric> metrics;
};
ReportFigures read_figures(const std::string& text, const std::string& path);

}  // namespace tool
