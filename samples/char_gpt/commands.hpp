// SPDX-License-Identifier: Apache-2.0
// The program's commands. A command that fails throws std::exception with the reason and a remedy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generation.hpp"
#include "training.hpp"

namespace char_gpt {

struct Options {
  std::string plugin;             // name or path, with an optional suffix ":INDEX"; if empty, the library chooses
  int threads = 1;                // threads per stream; only for plugins with the option `threads`
  bool native = true;             // whether composites run natively if the plugin implements them
  std::vector<std::string> text;  // files and directories; if empty, the repository's documents
  std::string html, json;         // files for the reports; no report if empty

  Config config;
  Schedule schedule;
  int64_t stop = 0;         // step after which training stops; 0 means schedule.steps
  int64_t evaluations = 8;  // number of evaluations on the held-out text, at equal distances in steps
  std::string load, save;   // checkpoint files; no checkpoint if empty

  Writing writing;
  std::vector<std::string> contestants;  // contestants of `compare`: PLUGIN or PLUGIN:decomposed
};

// If `options.load` names a checkpoint, continues its training run. The checkpoint's model and
// schedule then replace those in `options`.
void run_train(Options options);
void run_write(const Options& options);
// Returns false if the curves differ by more than loss_bound allows.
bool run_compare(const Options& options);

}  // namespace char_gpt
