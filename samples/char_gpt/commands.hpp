// SPDX-License-Identifier: Apache-2.0
// What the program's verbs do. All throw std::exception with what is wrong and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generation.hpp"
#include "training.hpp"

namespace char_gpt {

struct Options {
  std::string plugin;             // name or path, ":INDEX" picks a device; empty: as the library chooses
  int threads = 1;                // of each stream, on plugins with that option
  bool native = true;             // composites natively, where the plugin has them
  std::vector<std::string> text;  // files and directories; empty: the repository's documents
  std::string html, json;         // reports to write; empty: none

  Config config;
  Schedule schedule;
  int64_t stop = 0;         // the step to end behind; 0: schedule.steps
  int64_t evaluations = 8;  // of the held-out text, spread over the training
  std::string load, save;   // checkpoints

  Writing writing;
  std::vector<std::string> contestants;  // of compare: PLUGIN or PLUGIN:decomposed
};

// Which numbers the command line gave, where a checkpoint has its own.
void run_train(Options options);
void run_write(const Options& options);
// False if the curves differ by more than their bound.
bool run_compare(const Options& options);

}  // namespace char_gpt
