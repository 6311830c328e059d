// SPDX-License-Identifier: Apache-2.0
// Trains a classifier of handwritten digits on the plugin that the command line names.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <backplane/backplane.hpp>

#include <charconv>
#include <cstdio>
#include <filesystem>

#include "data.hpp"
#include "report.hpp"
#include "terminal.hpp"
#include "training.hpp"

namespace {

namespace bp = backplane;
namespace fs = std::filesystem;

struct Options {
  std::string plugin;
  int epochs = 100;
  uint64_t seed = 1;
  std::string html = "digits.html";
  std::string data;
  bool quick = false;
};

// Splits "NAME_OR_PATH" or "NAME_OR_PATH:INDEX" into name and index.
std::pair<std::string, uint32_t> split_spec(const std::string& spec) {
  const size_t colon = spec.rfind(':');
  uint32_t index = 0;
  if (colon != std::string::npos && colon > 0) {
    const char* end = spec.data() + spec.size();
    const auto [stop, error] = std::from_chars(spec.data() + colon + 1, end, index);
    if (error == std::errc() && stop == end) return {spec.substr(0, colon), index};
  }
  return {spec, 0};
}

// Returns the path of the data file. The build puts this file into the program's folder.
fs::path default_data() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path("digits.csv.gz") : program.parent_path() / "digits.csv.gz";
}

void run(const Options& options) {
  const digits::Images images = digits::read_images(options.data.empty() ? default_data() : fs::path(options.data));
  digits::check_writable(options.html);
  const digits::Split split = digits::split(images, options.seed);
  const int epochs = options.quick ? 2 : options.epochs;

  const auto [name, index] = split_spec(options.plugin);
  const bp::Registry registry;
  const bp::Plugin plugin = registry.load(name);
  const bp::Device device = plugin.open(index);
  bp::Stream stream(device);
  const bp_device_info info = device.info();
  const bool is_deterministic = (info.capabilities & BP_CAP_DETERMINISTIC) != 0;
  if (is_deterministic) stream.set_call_flags(BP_OP_FLAG_DETERMINISTIC);

  digits::Terminal terminal(epochs);
  terminal.line(fmt::format("{} digits to learn from, {} held out; {} ({})", split.train.count(), split.test.count(),
                            device.name(), info.name));
  const digits::Result result = digits::train(stream, split, options.seed, epochs, terminal.progress());

  const bph_plugin_info plugin_info = plugin.info();
  const std::string hash = fmt::format("{:016x}", result.hash);
  const digits::Facts facts = {
      {"Plugin", fmt::format("{} {}", plugin_info.name, plugin_info.version)},
      {"Device", fmt::format("{}: {}", device.name(), info.name)},
      {"Driver", info.driver},
      {"Backplane", bph_version()},
      {"Network", fmt::format("64, 256, 128, 10: {} parameters", result.parameter_count)},
      {"Seed", fmt::format("{}", options.seed)},
      {"Epochs", fmt::format("{}", epochs)},
      {"Time", fmt::format("{:.2f} s", result.seconds)},
      {"Operator calls", fmt::format("{}", device.stats().executions)},
      {"Weights, XXH3", is_deterministic ? hash : hash + " (the device promises no repetition)"},
  };
  digits::write_file(options.html, digits::html_report(split.test, result, facts));
  terminal.line(fmt::format("{} of {} held-out digits read correctly, {} epochs, {:.2f} s, {} {} on {}",
                            terminal.strong(fmt::format("{:.2f} %", result.accuracy() * 100)), split.test.count(),
                            epochs, result.seconds, plugin_info.name, plugin_info.version, device.name()));
  terminal.line(fmt::format("weights {}{}", hash, is_deterministic ? "" : " (the device promises no repetition)"));
  terminal.line(fmt::format("report  {}", options.html));
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Trains a classifier of handwritten digits on a plugin, with primitives only, and writes a report.",
               "digits");
  Options options;
  app.add_option("PLUGIN", options.plugin,
                 "Plugin by name, or path of its library or manifest; \":INDEX\" after it selects a device")
      ->required();
  app.add_option("--epochs", options.epochs, "Passes over the training data")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Draws the split, the weights, dropout and order")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--html", options.html, "Where to write the report")->capture_default_str();
  app.add_option("--data", options.data, "The digits, CSV or gzipped CSV (default: digits.csv.gz next to the program)");
  app.add_flag("--quick", options.quick, "Two epochs only: shows that it runs, not that it learns");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  run(options);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "digits: %s\n", error.what());
  return 1;
}
