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
  bool dense = true;  // every operand is dense
  uint32_t path = 0;  // BPH_PATH_* of the device's call
  Work work;
  Performance device;
  std::vector<Performance> peers;
  // Nanoseconds of the device's call, and of a copy of as many bytes, sample by sample.
  std::vector<double> device_ns, copy_ns;
  // The device's share of the machine's limit, measured in this run. The limit of a
  // call is the longer of two times: its operations at the peak rate of their dtype,
  // and a copy of as many bytes.
  std::optional<Figure> of_limit;
  bool memory_bound = false;  // the copy is the limit

  bool counts_flops() const { return work.flops > 0; }
  // In GFLOP/s, or GB/s if operations are not counted.
  double rate(const Performance& one) const {
    return one.throughput.median > 0 ? (counts_flops() ? work.flops : work.bytes) / one.throughput.median : 0;
  }
};

// The highest rate of any contestant for a dtype in this run.
struct Peak {
  double gflops = 0;
  std::string by, text;  // the contestant and the case
};

struct OpsReport : Report {
  std::map<std::string, Peak> peaks;  // by dtype
  std::vector<OpRow> rows;
};

// One figure for many cases.
struct Summary {
  std::string what;
  size_t cases = 0;
  double mean = 0;  // geometric mean
  double worst = 0;
  std::string worst_case;
};
// Summarizes each peer by its time divided by the device's, for cases bound by operations and for
// cases bound by memory. Then follows the device's share of a copy's speed on 64 MiB and more,
// dense and strided. Lines without cases are omitted.
std::vector<Summary> summaries_of(const OpsReport& report);

Json ops_json(const OpsReport& report);
std::string ops_text(const OpsReport& report, bool colour);
std::string ops_html(const OpsReport& report);

std::string path_text(uint32_t path);  // name of BPH_PATH_*: "native", ..
std::string rate_text(const OpRow& row, const Performance& one);
}  // namespace tool
