// SPDX-License-Identifier: Apache-2.0
// What `backplane bench ops` finds out, and the forms in which it says so.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "bench/work.hpp"

namespace tool {

struct OpRow {
  std::string group, text, dtype;
  bool dense = true;  // every operand
  uint32_t path = 0;  // BPH_PATH_* of the device's call
  Work work;
  Performance device;
  std::vector<Performance> peers;
  std::vector<double> device_ns, copy_ns;  // a call, and a copy of as many bytes, sample by sample
  // Of what the machine can do, in this run. No call takes less than its operations at the peak of their dtype, nor than a copy
  // of as many bytes: the limit is the longer of the two.
  std::optional<Figure> of_limit;
  bool memory_bound = false;  // the limit is the copy

  bool counts_flops() const { return work.flops > 0; }
  // GFLOP/s, or GB/s.
  double rate(const Performance& one) const {
    return one.throughput.median > 0 ? (counts_flops() ? work.flops : work.bytes) / one.throughput.median : 0;
  }
};

// The most that any contestant reached with a dtype in this run.
struct Peak {
  double gflops = 0;
  std::string by, text;  // the contestant and the case
};

struct OpsReport : Report {
  std::map<std::string, Peak> peaks;  // by dtype
  std::vector<OpRow> rows;
};

// Many cases as one figure.
struct Summary {
  std::string what;
  size_t cases = 0;
  double mean = 0;  // geometric
  double worst = 0;
  std::string worst_case;
};
// Of each peer, its time over the device's where operations bound a case and where memory does; and the share of a copy's
// speed that the device reaches on 64 MiB and more, dense and not. Without cases, no line.
std::vector<Summary> summaries_of(const OpsReport& report);

Json ops_json(const OpsReport& report);
std::string ops_text(const OpsReport& report, bool colour);
std::string ops_html(const OpsReport& report);

std::string path_text(uint32_t path);  // of BPH_PATH_*: "native", ..
std::string rate_text(const OpRow& row, const Performance& one);
}  // namespace tool
