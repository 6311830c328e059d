// SPDX-License-Identifier: Apache-2.0
// The results of `bench model` and their output formats.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/report.hpp"

namespace tool {

struct ModelRow {
  std::string name, description;
  double flops = 0;  // number of operations in the GEMMs and convolutions of a run
  uint64_t weight_bytes = 0;
  Performance device;  // results as in `bench ops`, but a call is a run of the model
  std::vector<Performance> peers;
  uint64_t operators = 0;    // number of operator calls per run
  uint64_t plans_first = 0;  // number of plans that the plugin created in the first run
  uint64_t plans_after = 0;  // number of plans that the plugin created in all runs after the first
  double decomposed = 0;     // number of composites per run that ran as primitives
  // Number of operands per run that core copied to or from dense temporaries.
  double staged = 0;
  double heap_allocations = 0;  // calls of operator new per run in the whole process, counted after sampling
};

// A decode loop whose cache grows by one token per step. The time of a step with a new cache length
// is compared with the time of the same step with a known length.
struct DecodeReport {
  std::string description, reason;  // `reason` says why the decode was not measured; it is empty otherwise
  int64_t steps = 0, warm_steps = 0;
  uint64_t plans_warm = 0;   // number of plans created in the warm-up steps
  uint64_t plans_after = 0;  // number of plans created in all steps after the warm-up
  // Number of descriptors that were new after the warm-up steps and found an any-size plan.
  uint64_t class_hits = 0;
  double heap_allocations = 0;  // calls of operator new per step with a known length
  Figure growing_ns, known_ns;  // time per step after the warm-up
  Figure ratio;                 // growing_ns divided by known_ns, step by step
};

struct ModelReport : Report {
  bool small = false;
  std::vector<ModelRow> rows;
  std::optional<DecodeReport> decode;
};

// Returns the geometric mean of a peer's median ratios over the models that the peer ran. Returns
// no value if the peer ran no model.
std::optional<double> geometric_mean(const ModelReport& report, const std::string& peer);

Json model_json(const ModelReport& report);
std::string model_text(const ModelReport& report, bool colour);
std::string model_html(const ModelReport& report);

}  // namespace tool
