// SPDX-License-Identifier: Apache-2.0
// The parsed command line, and functions that add options to a subcommand.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>
#include <vector>

#include "subcommands.hpp"

namespace tool {

struct Options {
  Session session;
  bool version = false;
  std::string plugin_path;
  ListOptions list;
  InfoOptions info;
  DoctorOptions doctor;
  RunOptions run;
  BenchOptions bench;
  BenchOpsOptions bench_ops;
  BenchModelOptions bench_model;
  BenchMemoryOptions bench_memory;
  BenchCompareOptions bench_compare;
  CertifyOptions certify;
  VerifyOptions verify;
  NewOptions new_plugin;
};

// Adds an option that may be repeated and takes one value each time.
inline void add_each(CLI::App* subcommand, const std::string& name, std::vector<std::string>& values,
                     const std::string& help) {
  subcommand->add_option(name, values, help)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Adds the subcommand `bench` with its own subcommands, such as `bench ops`. Parsing sets `chosen` to a function that
// runs the subcommand of the command line.
void add_bench(CLI::App& app, Options& options, std::function<int()>& chosen);

}  // namespace tool
