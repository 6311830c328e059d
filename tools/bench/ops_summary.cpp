// SPDX-License-Identifier: Apache-2.0
// Summarises all cases of `bench ops`.
#include <algorithm>
#include <cmath>

#include "bench/ops.hpp"
#include "host.hpp"

namespace tool {
namespace {

constexpr double kLargeBytes = 64 << 20;  // in bytes; larger than most CPU caches

class Gathering {
 public:
  explicit Gathering(std::string what) { summary_.what = std::move(what); }
  void add(const OpRow& row, double value) {
    if (!(value > 0)) return;
    logarithms_ += std::log(value);
    if (summary_.cases++ == 0 || value < summary_.worst) {
      summary_.worst = value;
      summary_.worst_case = row.group + "/" + row.text;
    }
  }
  void give(std::vector<Summary>& all) {
    if (summary_.cases == 0) return;
    summary_.mean = std::exp(logarithms_ / static_cast<double>(summary_.cases));
    all.push_back(std::move(summary_));
  }

 private:
  Summary summary_;
  double logarithms_ = 0;
};

template <class Value>
void gather(const OpsReport& report, std::string what, std::vector<Summary>& all, Value&& value_of) {
  Gathering gathering(std::move(what));
  for (const OpRow& row : report.rows) {
    if (row.device.reason.empty()) gathering.add(row, value_of(row));
  }
  gathering.give(all);
}

}  // namespace

std::vector<Summary> summaries_of(const OpsReport& report) {
  std::vector<std::string> names;
  for (const OpRow& row : report.rows) {
    for (const Performance& peer : row.peers) {
      if (std::find(names.begin(), names.end(), peer.name) == names.end()) names.push_back(peer.name);
    }
  }
  std::vector<Summary> all;
  for (const std::string& name : names) {
    for (const bool heavy : {true, false}) {
      gather(report, fmt::format("{}/device, bound by {}", name, heavy ? "operations" : "memory"), all,
             [&](const OpRow& row) {
               for (const Performance& peer : row.peers) {
                 if (peer.name == name && peer.ratio && row.of_limit && row.memory_bound != heavy)
                   return peer.ratio->median;
               }
               return 0.0;
             });
    }
  }
  for (const bool dense : {true, false}) {
    gather(report, fmt::format("share of a copy, 64 MiB and more, {}", dense ? "dense" : "strided"), all,
           [&](const OpRow& row) {
             const bool counts = row.memory_bound && row.dense == dense && row.work.bytes >= kLargeBytes;
             return counts && row.of_limit ? row.of_limit->median : 0.0;
           });
  }
  return all;
}

}  // namespace tool
