// SPDX-License-Identifier: Apache-2.0
// The command line of char_gpt.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "commands.hpp"

namespace {

using char_gpt::Options;

void add_device(CLI::App* subcommand, Options* options) {
  subcommand->add_option("--threads", options->threads, "Threads of each stream, on plugins with that option")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

void add_plugin(CLI::App* subcommand, Options* options) {
  subcommand->add_option(
      "--plugin", options->plugin,
      "Plugin by name, or path of its library or manifest; \":INDEX\" after it selects a device (default: as "
      "BACKPLANE_DEVICE and the configuration say)");
  subcommand
      ->add_option("--native", options->native, "on, or off: composites as primitives, even where the plugin has them")
      ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"on", true}, {"off", false}}))
      ->default_str("on");
}

void add_training(CLI::App* subcommand, Options* options) {
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 40);
  subcommand->add_option("--text", options->text,
                         "Documents, and directories of *.md (default: LICENSE, README.md and docs of the repository)");
  subcommand->add_option("--steps", options->schedule.steps, "Steps of the training")
      ->check(positive)
      ->capture_default_str();
  subcommand->add_option("--batch", options->schedule.batch, "Texts a step")->check(positive)->capture_default_str();
  subcommand->add_option("--streams", options->schedule.streams, "Streams that share a batch")
      ->check(positive)
      ->capture_default_str();
  subcommand->add_option("--rate", options->schedule.peak_rate, "Learning rate after the warm-up")
      ->check(CLI::Range(1e-9, 1.0))
      ->capture_default_str();
  subcommand->add_option("--seed", options->schedule.seed, "Draws the weights, and what each step reads")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  subcommand->add_option("--context", options->config.context, "Most characters that a prediction sees")
      ->capture_default_str();
  subcommand->add_option("--width", options->config.width, "Of the residual stream")->capture_default_str();
  subcommand->add_option("--heads", options->config.heads, "Of attention")->capture_default_str();
  subcommand->add_option("--blocks", options->config.blocks, "Of attention and perceptron")->capture_default_str();
  subcommand->add_option("--html", options->html, "Where to write the report as a page");
  subcommand->add_option("--json", options->json, "Where to write the report as JSON");
}

void add_writing(CLI::App* subcommand, Options* options) {
  subcommand->add_option("--write", options->writing.count, "Characters to write")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str();
  subcommand->add_option("--prompt", options->writing.prompt, "What to continue");
  subcommand->add_option("--temperature", options->writing.temperature, "0: the likeliest character each time")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  subcommand->add_option("--write-seed", options->writing.seed, "Draws the characters")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("A small GPT that learns the documents of this repository on any plugin, and writes like them.",
               "char_gpt");
  app.require_subcommand(1);
  Options training, writing, comparison;

  CLI::App* train =
      app.add_subcommand("train", "Trains, says how well the model knows text that it has not seen, writes");
  add_plugin(train, &training);
  add_device(train, &training);
  add_training(train, &training);
  train->add_option("--save", training.save, "Where to write a checkpoint at the end");
  train->add_option("--load", training.load,
                    "Checkpoint to go on from: its model and schedule count, not the command line's");
  train->add_option("--stop", training.stop, "Ends after this step, to continue later")->check(CLI::PositiveNumber);
  train->add_option("--evaluations", training.evaluations, "How often the held-out text is measured")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_writing(train, &training);

  CLI::App* write = app.add_subcommand("write", "Writes with the model of a checkpoint");
  add_plugin(write, &writing);
  add_device(write, &writing);
  write->add_option("--load", writing.load, "The checkpoint")->required();
  add_writing(write, &writing);

  CLI::App* compare = app.add_subcommand(
      "compare", "The same training on several plugins and paths; exit status 1 if the losses part beyond their bound");
  compare->add_option("--plugins", comparison.contestants, "PLUGIN or PLUGIN:decomposed, ',' between them")
      ->delimiter(',')
      ->required();
  comparison.schedule.steps = 20;
  add_device(compare, &comparison);
  add_training(compare, &comparison);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (*train) char_gpt::run_train(training);
  if (*write) char_gpt::run_write(writing);
  return *compare && !char_gpt::run_compare(comparison) ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "char_gpt: %s\n", error.what());
  return 1;
}
