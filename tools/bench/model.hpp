// SPDX-License-Identifier: Apache-2.0
// What `backplane bench model` finds out, and the forms in which it says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/report.hpp"

namespace tool {

struct ModelRow {
  std::string name, description;
  double flops = 0;  // a run's, of products of matrices
  uint64_t weight_bytes = 0;
  Performance device;  // as of `bench ops`, a call being a run of the model
  std::vector<Performance> peers;
  uint64_t operators = 0;       // called in a run
  uint64_t plans_first = 0;     // made by the plugin in the first run
  uint64_t plans_after = 0;     // and in all others
  double decomposed = 0;        // composites run as primitives, a run
  double staged = 0;            // operands that core copied to or from dense temporaries, a run
  double heap_allocations = 0;  // calls of operator new in the process, a run, in steady state
};

// A decode whose length grows by one a step, each length new, beside the same step at a length that is known.
struct DecodeReport {
  std::string description, reason;  // why it was not measured; empty: it was
  int64_t steps = 0, warm_steps = 0;
  uint64_t plans_warm = 0;      // made in the warm steps
  uint64_t plans_after = 0;     // made in all steps behind them
  uint64_t class_hits = 0;      // descriptors that were new and found an any-size plan, behind the warm steps
  double heap_allocations = 0;  // a step of a known length
  Figure growing_ns, known_ns;  // a step, behind the warm ones
  Figure ratio;                 // growing over known, step by step
};

struct ModelReport : Report {
  bool small = false;
  std::vector<ModelRow> rows;
  std::optional<DecodeReport> decode;
};

// Of the medians of a peer's ratios over the models that it ran; none if it ran none.
std::optional<double> geometric_mean(const ModelReport& report, const std::string& peer);

Json model_json(const ModelReport& report);
std::string model_text(const ModelReport& report, bool colour);
std::string model_html(const ModelReport& report);

}  // namespace tool
