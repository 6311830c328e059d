// SPDX-License-Identifier: Apache-2.0
// The command line of `backplane bench`.
#include "options.hpp"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace tool {
namespace {

constexpr const char* kBenchOpsExamples = R"(Examples:
  backplane bench ops --device reference:0 --filter tiny
  backplane bench ops -p ./libbackplane_acme.so --filter matmul --threads 1 --html acme.html
  backplane bench ops --shapes my_model.txt --json > before.json)";

void add_bench_ops(CLI::App& bench, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand = bench.add_subcommand(
      "ops", "measure a device's operators in the shapes of models, and compare them with other libraries");
  BenchOpsOptions& ops = options.bench_ops;
  subcommand->add_option("--plugin,-p", ops.plugin,
                         "path of a plugin's library, or the plugin's name; selects its first device");
  subcommand->add_option("--device,-d", ops.device, "plugin:index; by default, the library chooses");
  add_each(subcommand, "--shapes", ops.shapes, "file of cases (docs/benchmarks.md); by default, the built-in models");
  add_each(subcommand, "--filter,-f", ops.filters,
           "a group, an operator, a dtype, or a pattern of 'group/line' with *");
  subcommand
      ->add_option("--threads", ops.threads, "host threads of the plugin and the peers; by default, one per processor")
      ->check(CLI::Range(1, 4096));
  subcommand->add_option("--seconds", ops.seconds, "approximate seconds per case")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 3600.0));
  subcommand->add_option("--html", ops.html, "also write a page with charts to this file");
  subcommand->add_option("--peers", ops.peer_folder, "folder of the peers; by default, the installed peers")
      ->envname("BACKPLANE_BENCH_PEERS");
  subcommand->add_flag("!--no-peers", ops.peers, "measure only the device");
  subcommand->add_flag("--decomposed", ops.decomposed, "for native composites, also measure core's decomposition");
  subcommand->add_flag("--packed", ops.packed, "also measure the device's call with its input 1 packed (bp.pack)");
  subcommand->add_flag("--list", ops.list, "print the cases and exit");
  subcommand->add_flag("--quiet,-q", ops.quiet, "print no progress on standard error");
  subcommand->footer(kBenchOpsExamples);
  subcommand->callback([&] { chosen = [&] { return bench_ops(options.session, options.bench_ops); }; });
}

constexpr const char* kBenchModelExamples = R"(Examples:
  backplane bench model --device onednn:0 --threads 1 --html models.html
  backplane bench model --filter gpt_decode --json
  backplane bench model --device reference:0 --small --no-peers)";

void add_bench_model(CLI::App& bench, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand = bench.add_subcommand("model",
                                              "measure whole models with random weights, and a decode with a growing "
                                              "cache, and compare them with other libraries");
  BenchModelOptions& model = options.bench_model;
  subcommand->add_option("--plugin,-p", model.plugin,
                         "path of a plugin's library, or the plugin's name; selects its first device");
  subcommand->add_option("--device,-d", model.device, "plugin:index; by default, the library chooses");
  add_each(subcommand, "--filter,-f", model.filters, "name of a model, for example bert_layer; by default, all models");
  subcommand
      ->add_option("--threads", model.threads,
                   "host threads of the plugin and the peers; by default, one per processor")
      ->check(CLI::Range(1, 4096));
  subcommand->add_option("--seconds", model.seconds, "approximate seconds per model")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 3600.0));
  subcommand->add_option("--steps", model.steps, "number of steps of the decode")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{2}, int64_t{65536}));
  subcommand->add_option("--html", model.html, "also write a page with charts to this file");
  subcommand->add_option("--peers", model.peer_folder, "folder of the peers; by default, the installed peers")
      ->envname("BACKPLANE_BENCH_PEERS");
  subcommand->add_flag("!--no-peers", model.peers, "measure only the device");
  subcommand->add_flag("--packed", model.packed, "also measure the device with packed weights (bp.pack)");
  subcommand->add_flag("--graph", model.graph, "also measure the device with the model recorded as a graph");
  subcommand->add_flag("--small", model.small,
                       "use small sizes, to test that the models run rather than to measure their speed");
  subcommand->add_flag("--quiet,-q", model.quiet, "print no progress on standard error");
  subcommand->footer(kBenchModelExamples);
  subcommand->callback([&] { chosen = [&] { return bench_model(options.session, options.bench_model); }; });
}

void add_bench_memory(CLI::App& bench, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand =
      bench.add_subcommand("memory", "measure copies, transfers and allocations of a device, by size");
  BenchMemoryOptions& memory = options.bench_memory;
  subcommand->add_option("--plugin,-p", memory.plugin,
                         "path of a plugin's library, or the plugin's name; selects its first device");
  subcommand->add_option("--device,-d", memory.device, "plugin:index; by default, the library chooses");
  subcommand
      ->add_option("--most", memory.most_bytes,
                   "bytes of the largest size; sizes begin at 1 KiB, and each is 8 times the previous size")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1024}, uint64_t{1} << 36));
  subcommand->add_option("--seconds", memory.seconds, "approximate seconds per size")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 3600.0));
  subcommand->callback([&] { chosen = [&] { return bench_memory(options.session, options.bench_memory); }; });
}

void add_bench_compare(CLI::App& bench, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand =
      bench.add_subcommand("compare", "show the changes between two reports of bench --json that exceed the noise");
  BenchCompareOptions& compare = options.bench_compare;
  subcommand->add_option("BEFORE", compare.before, "report of `bench ops --json` or `bench memory --json`")->required();
  subcommand->add_option("AFTER", compare.after, "a later report of the same kind")->required();
  subcommand->add_option("--least", compare.least_percent, "percent; smaller changes of a median are ignored")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1000.0));
  subcommand->callback([&] { chosen = [&] { return bench_compare(options.session, options.bench_compare); }; });
}

void add_bench_dispatch(CLI::App& bench, Options& options, std::function<int()>& chosen) {
  CLI::App* subcommand =
      bench.add_subcommand("dispatch", "measure the SDK's share of a call's time, compared with the layers around it");
  subcommand
      ->add_option("--null-plugin", options.bench.null_plugin,
                   "library of the null plugin; by default, the installed library")
      ->envname("BACKPLANE_NULL_PLUGIN");
  subcommand->add_option("--device,-d", options.bench.device, "device for plan creation")->capture_default_str();
  subcommand->add_option("--batches", options.bench.batches, "number of batches; the output shows the median")
      ->capture_default_str()
      ->check(CLI::Range(1u, 100'000u));
  subcommand->add_option("--calls", options.bench.calls, "number of calls per batch")
      ->capture_default_str()
      ->check(CLI::Range(1u, 100'000'000u));
  subcommand->callback([&] { chosen = [&] { return bench_dispatch(options.session, options.bench); }; });
}

}  // namespace

void add_bench(CLI::App& app, Options& options, std::function<int()>& chosen) {
  CLI::App* bench = app.add_subcommand("bench", "measurements");
  bench->require_subcommand(1);
  bench->fallthrough();
  add_bench_ops(*bench, options, chosen);
  add_bench_model(*bench, options, chosen);
  add_bench_memory(*bench, options, chosen);
  add_bench_compare(*bench, options, chosen);
  add_bench_dispatch(*bench, options, chosen);
}

}  // namespace tool
