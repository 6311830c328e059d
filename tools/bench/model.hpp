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
  double flops = 0;  // operations in the GEMMs and convolutions of a run
  uint64_t weight_bytes = 0;
  Performance device;  // as in `bench ops`, but a call is a run of the model
  std::vector<Performance> peers;
  uint64_t operators = 0;    // calls per run
  uint64_t plans_first = 0;  // plans that the plugin created in the first run
  uint64_t plans_after = 0;  // plans that the plugin created in all later runs
  double decomposed = 0;     // composites run as primitives, per run
  // Operands that core copied to or from dense temporaries, per run.
  double staged = 0;
  double heap_allocations = 0;  // calls of operator new in the process per run, in steady state
};

// A decode whose length grows by one per step. Each new length is compared with the
// same step at a known length.
struct DecodeReport {
  std::string description, reason;  // reason: why it was not measured; empty if it was
  int64_t steps = 0, warm_steps = 0;
  uint64_t plans_warm = 0;   // plans created in the warm-up steps
  uint64_t plans_after = 0;  // plans created in all later steps
  // Number of new descriptors after the warm-up steps that found an any-size plan.
  uint64_t class_hits = 0;
  double heap_allocations = 0;  // per step of a known length
  Figure growing_ns, known_ns;  // per step after the warm-up
  Figure ratio;                 // growing divided by known, step by step
};

struct ModelReport : Report {
  bool small = false;
  std::vector<ModelRow> rows;
  std::optional<DecodeReport> decode;
};

// The geometric mean of a peer's median ratios over the models that it ran.
// No value if it ran none.
std::optional<double> geometric_mean(const ModelReport& report, const std::string& peer);

Json model_json(const ModelReport& report);
std::string model_text(const ModelReport& report, bool colour);
std::string model_html(const ModelReport& report);

}  // namespace tool
