// SPDX-License-Identifier: Apache-2.0
// The results of `bench ops` and their output formats.
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
  bool dense = true;  // whether every operand is dense
  uint32_t path = 0;  // BPH_PATH_* of the device's call
  Work work;
  Performance device;
  std::vector<Performance> peers;
  // Nanoseconds per call, one number per sample: for the operator on the device, and for a copy that transfers the same
  // number of bytes.
  std::vector<double> device_ns, copy_ns;
  // The roofline lower bound on the time of a call, divided by the measured time. The bound is the
  // longer of two times, which the same run measures. The first is the time of the call's
  // operations at the peak rate of their dtype. The second is the time of a copy that transfers as
  // many bytes as the call.
  std::optional<Figure> of_limit;
  bool memory_bound = false;  // whether the copy takes longer than the operations

  bool counts_flops() const { return work.flops > 0; }
  // Returns the rate in GFLOP/s, or in GB/s if operations are not counted.
  double rate(const Performance& one) const {
    return one.throughput.median > 0 ? (counts_flops() ? work.flops : work.bytes) / one.throughput.median : 0;
  }
};

// The highest rate of any contestant for a dtype in this run.
struct Peak {
  double gflops = 0;
  std::string by, text;  // names of the contestant and of the case
};

struct OpsReport : Report {
  std::map<std::string, Peak> peaks;  // the key is a dtype
  std::vector<OpRow> rows;
};

// One figure that summarizes many cases.
struct Summary {
  std::string what;
  size_t cases = 0;
  double mean = 0;  // geometric mean
  double worst = 0;
  std::string worst_case;
};
// Summarizes each peer by its time divided by the device's time. Compute-bound and memory-bound
// cases have separate lines. Further lines compare memory-bound cases of 64 MiB or more with a copy
// of equal size, separately for dense and for strided operands. Lines without cases are omitted.
std::vector<Summary> summaries_of(const OpsReport& report);

Json ops_json(const OpsReport& report);
std::string ops_text(const OpsReport& report, bool colour);
std::string ops_html(const OpsReport& report);

std::string path_text(uint32_t path);  // returns the name of BPH_PATH_*, such as "native"
std::string rate_text(const OpRow& row, const Performance& one);
}  // namespace tool
