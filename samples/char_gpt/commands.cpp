// SPDX-License-Identifier: Apache-2.0
// The commands `train`, `write` and `compare` of the program.
#include "commands.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <numbers>
#include <stdexcept>

#include "checkpoint.hpp"
#include "corpus.hpp"
#include "evaluation.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "target.hpp"

namespace char_gpt {

namespace bp = backplane;
namespace fs = std::filesystem;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Corpus corpus_of(const Options& options) {
  std::error_code ignored;
  const std::vector<fs::path> named(options.text.begin(), options.text.end());
  return read_corpus(named.empty() ? repository_documents(fs::read_symlink("/proc/self/exe", ignored)) : named,
                     options.config.context);
}

// Converts the compressed size of `count` characters to bits per character.
double per_character(size_t gzip_bytes, size_t count) {
  return 8 * static_cast<double>(gzip_bytes) / static_cast<double>(count);
}

std::string weight_hash(const State& state) {
  return fmt::format("{:016x}", XXH3_64bits(state.parameters.data(), state.parameters.size() * sizeof(float)));
}

// The training curve, and the bits per character of the held-out text (`known`) after some of the steps.
struct Course {
  Curve curve;
  std::vector<std::pair<int64_t, double>> known;
  double processor_seconds = 0;  // processor time of all threads; without the time of evaluations, like curve.seconds
};

Course run_steps(Trainer& trainer, const Options& options, int64_t stop, const std::string& held_out,
                 Progress& progress) {
  Course course;
  const int64_t begin = trainer.steps_done();
  const int64_t every = std::max<int64_t>(1, (stop - begin) / std::max<int64_t>(1, options.evaluations));
  while (trainer.steps_done() < stop) {
    const auto start = std::chrono::steady_clock::now();
    const double processor = processor_seconds();
    const double loss = trainer.step();
    course.curve.seconds += seconds_since(start);
    course.processor_seconds += processor_seconds() - processor;
    course.curve.losses.push_back(loss);
    const int64_t done = trainer.steps_done();
    progress.show(static_cast<double>(done - begin) / static_cast<double>(stop - begin),
                  fmt::format("{:.3f} bits per character", loss * std::numbers::log2e));
    const bool is_last = done == stop;
    if (!is_last && (done % every != 0 || stop - done < every)) continue;
    const double known = bits(trainer.stream(), trainer.model(), held_out) / static_cast<double>(held_out.size());
    course.known.emplace_back(done, known);
    progress.line(
        fmt::format("step {:5}/{}   bits per character: {:.4f} of the batch, {:.4f} of the held-out text   {:.1f} s",
                    done, options.schedule.steps, loss * std::numbers::log2e, known, course.curve.seconds));
  }
  return course;
}

void load_training(Trainer& trainer, const Checkpoint& checkpoint, uint64_t text_hash, const std::string& file) {
  if (checkpoint.text_hash != text_hash)
    throw std::runtime_error(fmt::format(
        "checkpoint: {} has learned from another text, which may contain the held-out part; name that text with --text",
        file));
  trainer.set_state(checkpoint.state);
}

std::string print_written(const std::string& prompt, const std::string& text) {
  std::string shown = prompt + text;
  std::ranges::replace_if(
      shown, [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; }, '?');
  return shown;
}

}  // namespace

void run_train(Options options) {
  check_writable(options.html), check_writable(options.json), check_writable(options.save);
  Checkpoint checkpoint;
  if (!options.load.empty()) {
    checkpoint = load_checkpoint(options.load);
    options.config = checkpoint.config;
    options.schedule = checkpoint.schedule;
  }
  check(options.config), check(options.schedule);
  const int64_t stop = options.stop > 0 ? std::min(options.stop, options.schedule.steps) : options.schedule.steps;
  if (checkpoint.state.steps_done >= stop)
    throw std::runtime_error(fmt::format("training: {} is at step {} already; this training ends after step {}",
                                         options.load, checkpoint.state.steps_done, stop));
  const Corpus corpus = corpus_of(options);
  const uint64_t text_hash = XXH3_64bits(corpus.train.data(), corpus.train.size());
  const double gzip = per_character(gzip_bytes(corpus.held_out), corpus.held_out.size());
  const double gzip_behind =
      per_character(gzip_bytes(corpus.train + corpus.held_out) - gzip_bytes(corpus.train), corpus.held_out.size());

  const bp::Registry registry;
  const Target target(registry, options.plugin, options.threads, options.native);
  Progress progress;
  progress.line(fmt::format("{} characters of {} documents to learn from, {} held out; {} parameters; {}",
                            corpus.train.size(), corpus.documents, corpus.held_out.size(),
                            count_parameters(options.config).all, target.name));
  Trainer trainer(target.device, options.config, options.schedule, corpus.train, target.call_flags);
  if (!options.load.empty()) load_training(trainer, checkpoint, text_hash, options.load);
  Course course = run_steps(trainer, options, stop, corpus.held_out, progress);
  course.curve.name = "text learned from";
  const State state = trainer.state();
  const std::string hash = weight_hash(state);
  if (!options.save.empty()) {
    save_checkpoint(options.save, {options.config, options.schedule, text_hash, state});
    progress.line(fmt::format("checkpoint {}", options.save));
  }

  const double known = course.known.back().second;
  progress.line(
      fmt::format("held-out text: {:.4f} bits per character; gzip -9 {:.4f}; gzip -9 after the training text {:.4f}",
                  known, gzip, gzip_behind));
  progress.line(fmt::format("{} steps, {:.1f} s, {:.1f} s of processors", course.curve.losses.size(),
                            course.curve.seconds, course.processor_seconds));
  progress.line(fmt::format("weights {}{}", hash, target.repeats ? "" : " (the device promises no repetition)"));
  TrainingReport report;
  report.gzip = gzip, report.gzip_behind_training = gzip_behind;
  report.known = course.known;
  if (options.writing.count > 0) {
    report.prompt = options.writing.prompt;
    report.written = write(trainer.stream(), trainer.model(), options.writing);
    progress.line("\n" + print_written(report.prompt, report.written));
  }
  const Config& config = options.config;
  const Schedule& schedule = options.schedule;
  const bph_stats stats = target.device.stats();
  report.facts = {
      {"Device", fmt::format("{}: {}", target.name, target.device.info().name)},
      {"Backplane", bph_version()},
      {"Model", fmt::format("{} blocks of width {}, {} heads, context {}: {} parameters", config.blocks, config.width,
                            config.heads, config.context, count_parameters(config).all)},
      {"Training",
       fmt::format("{} of {} steps of {} texts on {} streams, learning rate {:g}, seed {}", state.steps_done,
                   schedule.steps, schedule.batch, schedule.streams, schedule.peak_rate, schedule.seed)},
      {"Text", fmt::format("{} documents: {} characters, {} held out", corpus.documents, corpus.train.size(),
                           corpus.held_out.size())},
      {"Time", fmt::format("{:.1f} s, {:.1f} s of processors", course.curve.seconds, course.processor_seconds)},
      {"Operator calls",
       fmt::format("{}, {} of them composites run as primitives", stats.executions, stats.decomposed_executions)},
      {"Weights, XXH3", hash},
  };
  report.curve = std::move(course.curve);
  write_file(options.html, to_html(report));
  write_file(options.json, to_json(report));
}

void run_write(const Options& options) {
  const Checkpoint checkpoint = load_checkpoint(options.load);
  const bp::Registry registry;
  const Target target(registry, options.plugin, options.threads, options.native);
  bp::Stream stream(target.device);
  stream.set_call_flags(target.call_flags);
  const bp::Tensor parameters = bp::Tensor::empty(stream, BP_F32, {count_parameters(checkpoint.config).all});
  bp::copy_in<float>(stream, parameters, checkpoint.state.parameters);
  const Model model(stream, checkpoint.config, parameters);
  fmt::print("{}\n", print_written(options.writing.prompt, write(stream, model, options.writing)));
}

bool run_compare(const Options& options) {
  check_writable(options.html), check_writable(options.json);
  check(options.config), check(options.schedule);
  if (options.contestants.size() < 2)
    throw std::runtime_error("compare: only one variant; name at least two in --plugins");
  const Corpus corpus = corpus_of(options);
  const bp::Registry registry;
  Progress progress;
  ComparisonReport report;
  for (const std::string& contestant : options.contestants) {
    constexpr std::string_view suffix = ":decomposed";
    const bool native = !contestant.ends_with(suffix);
    const std::string plugin = native ? contestant : contestant.substr(0, contestant.size() - suffix.size());
    const Target target(registry, plugin, options.threads, native);
    Trainer trainer(target.device, options.config, options.schedule, corpus.train, target.call_flags);
    Curve& curve = report.curves.emplace_back(Curve{target.name, {}, 0});
    const auto start = std::chrono::steady_clock::now();
    while (trainer.steps_done() < options.schedule.steps) {
      curve.losses.push_back(trainer.step());
      progress.show(static_cast<double>(trainer.steps_done()) / static_cast<double>(options.schedule.steps),
                    target.name);
    }
    curve.seconds = seconds_since(start);
    progress.line(fmt::format("{}: {:.6f} to {:.6f} bits per character in {} steps, {:.1f} s", curve.name,
                              curve.losses.front() * std::numbers::log2e, curve.losses.back() * std::numbers::log2e,
                              curve.losses.size(), curve.seconds));
    if (report.curves.size() == 1) continue;
    const Difference worst = report.differences.emplace_back(compare(report.curves.front(), curve));
    progress.line(fmt::format("  against {}: {} by {:.1e} of the loss at step {}, where {:.1e} are allowed",
                              report.curves.front().name, worst.share <= 1 ? "agrees, differs" : "DIFFERS",
                              worst.relative, worst.step + 1, loss_bound(worst.step)));
  }
  report.facts = {
      {"Backplane", bph_version()},
      {"Model", fmt::format("{} parameters", count_parameters(options.config).all)},
      {"Training", fmt::format("{} steps of {} texts of {} characters, seed {}", options.schedule.steps,
                               options.schedule.batch, options.config.context, options.schedule.seed)},
  };
  write_file(options.html, to_html(report));
  write_file(options.json, to_json(report));
  return report.agrees();
}

}  // namespace char_gpt
