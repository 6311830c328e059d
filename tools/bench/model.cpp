// SPDX-License-Identifier: Apache-2.0
// Implements `backplane bench model`, which measures whole models with random weights on a device
// and on its peers.
#include "bench/model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "bench/decode.hpp"
#include "bench/device_model.hpp"
#include "bench/models.hpp"
#include "bench/peers.hpp"
#include "bench/process_memory.hpp"
#include "bench/target.hpp"
#include "measure.hpp"
#include "subcommands.hpp"

namespace tool {
namespace {

constexpr const char* kDecodeName = "gpt_decode";

class ModelBench {
 public:
  ModelBench(const Session& session, const BenchModelOptions& options)
      : options_(options),
        size_(options.small ? ModelSize::small : ModelSize::full),
        target_(session, {options.plugin, options.device, options.threads}) {
    plan_.seconds = options.seconds;
    plan_.sample_s = 0.02;  // longer than the default for operators, because a run of a model takes milliseconds
    if (options.peers) {
      const PeerKind on_gpu = options.graph ? PeerKind::gpu_and_graphs : PeerKind::gpu;
      Peers found = find_peers(options.peer_folder.empty() ? peer_folder() : options.peer_folder,
                               target_.info().type == BP_DEVICE_GPU ? on_gpu : PeerKind::processor);
      peers_ = std::move(found.usable);
      std::erase_if(peers_, [](const auto& peer) { return !peer->runs_models(); });
      report_.notes = std::move(found.faults);
    }
    for (const auto& peer : peers_) {
      peer->set_threads(target_.threads());
      report_.peers.emplace_back(peer->name(), peer->version());
    }
    describe_run(target_, report_);
    report_.small = options.small;
    report_.seconds = options.seconds;
  }

  ModelReport run() {
    const std::vector<ModelGraph> graphs = all_models(size_);
    std::vector<std::string> names;
    for (const ModelGraph& graph : graphs) names.push_back(graph.name());
    names.push_back(kDecodeName);
    for (const std::string& filter : options_.filters) {
      if (std::find(names.begin(), names.end(), filter) != names.end()) continue;
      fail_usage("none of the models is {}; there are {}", filter, fmt::join(names, ", "));
    }
    for (const ModelGraph& graph : graphs) {
      if (!is_chosen(graph.name())) continue;
      say(graph.name());
      report_.rows.push_back(measure(graph));
    }
    if (is_chosen(kDecodeName)) {
      say(kDecodeName);
      report_.decode = measure_decode(target_.open(), size_, options_.steps);
    }
    return std::move(report_);
  }

 private:
  bool is_chosen(const std::string& name) const {
    return options_.filters.empty() ||
           std::find(options_.filters.begin(), options_.filters.end(), name) != options_.filters.end();
  }
  void say(const std::string& name) const {
    if (options_.quiet) return;
    fmt::print(stderr, "{}\n", name);
  }

  // Creates the device's contestant and runs it once. Returns null if the device fails.
  std::unique_ptr<DeviceModel> start_device(const Device& device, const ModelGraph& graph,
                                            const std::vector<HostBlock>& data, ModelRow& row) {
    row.device.name = target_.name();
    try {
      PeakMemory memory;
      auto model = std::make_unique<DeviceModel>(device, graph, data);
      row.device.first_ns = model->time(1, true);
      row.device.host_bytes = memory.growth();
      row.plans_first = device.stats().plans_created;
      return model;
    } catch (const backplane::Error& error) {
      row.device.reason = error.what();
      return nullptr;
    }
  }

  // Creates a contestant with packed weights and runs it once. If this fails, or if the plugin prefers all
  // weights plain, returns null and stores the reason in `result`.
  static std::unique_ptr<DeviceModel> start_packed(const Device& device, const ModelGraph& graph,
                                                   const std::vector<HostBlock>& data,
                                                   const std::vector<HostBlock>& expected, Performance& result) {
    result.name = "packed";
    try {
      auto model = std::make_unique<DeviceModel>(device, graph, data);
      if (model->pack_weights() == 0) {
        result.reason = "the plugin prefers all weights plain";
        return nullptr;
      }
      result.first_ns = model->time(1, true);
      return same_outputs(model->outputs(), expected, result) ? std::move(model) : nullptr;
    } catch (const backplane::Error& error) {
      result.reason = error.what();
      return nullptr;
    }
  }

  // Creates a contestant that records the model as a graph, and launches the graph once. If this fails, returns null
  // and stores the reason in `result`.
  static std::unique_ptr<DeviceModel> start_graph(const Device& device, const ModelGraph& graph,
                                                  const std::vector<HostBlock>& data,
                                                  const std::vector<HostBlock>& expected, Performance& result) {
    result.name = "graph";
    try {
      auto model = std::make_unique<DeviceModel>(device, graph, data);
      bool is_native = false;
      result.first_ns = timed_ns([&] { is_native = model->record(); });
      result.first_ns += model->time(1, true);
      if (!is_native) result.name += " (core)";
      return same_outputs(model->outputs(), expected, result) ? std::move(model) : nullptr;
    } catch (const backplane::Error& error) {
      result.reason = error.what();
      return nullptr;
    }
  }

  // Returns whether the outputs equal the device's outputs within rounding. If not, stores the reason in
  // `result`.
  static bool same_outputs(const std::vector<HostBlock>& outputs, const std::vector<HostBlock>& expected,
                           Performance& result) {
    if (outputs.size() != expected.size()) {
      result.reason =
          fmt::format("it returned {} of {} outputs, so its work cannot be compared", outputs.size(), expected.size());
      return false;
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto apart = difference(BP_F32, outputs[i], expected[i]);
      if (apart && (!result.difference || !(*apart <= *result.difference))) result.difference = apart;
    }
    if (result.difference && *result.difference <= most_difference(BP_F32)) return true;
    result.reason = fmt::format(
        "its output differs from the device's by {:.2g} of the greatest value: it does not do the same work, so "
        "times are not comparable",
        result.difference.value_or(NAN));
    return false;
  }

  // Creates a peer's contestant and runs it once. If this fails, returns null and stores the reason
  // in `result`.
  static std::unique_ptr<PeerContestant> start_peer(Peer& peer, const ModelGraph& graph,
                                                    const std::vector<HostBlock>& data,
                                                    const std::vector<HostBlock>& expected, Performance& result) {
    result.name = peer.name();
    std::unique_ptr<PeerContestant> contestant;
    try {
      contestant = peer.prepare_model(graph, data, &result.reason);
    } catch (const Failure& failure) {
      result.reason = failure.what();
    }
    if (contestant == nullptr) return nullptr;
    result.first_ns = contestant->first_ns().value_or(0);
    return same_outputs(contestant->outputs(), expected, result) ? std::move(contestant) : nullptr;
  }

  ModelRow measure(const ModelGraph& graph) {
    ModelRow row;
    row.name = graph.name();
    row.description = graph.description();
    row.flops = graph.flops();
    row.weight_bytes = graph.weight_bytes();
    row.operators = graph.nodes().size();
    const Device device = target_.open();
    const std::vector<HostBlock> data = graph.make_data();
    const std::unique_ptr<DeviceModel> ours = start_device(device, graph, data, row);
    if (ours == nullptr) return row;
    const std::vector<HostBlock> expected = ours->outputs();

    std::vector<Contestant*> contestants = {ours.get()};
    std::vector<std::unique_ptr<Contestant>> started;
    std::vector<size_t> peer_at;  // the index in row.peers of each contestant except the device
    const auto enter = [&](std::unique_ptr<Contestant> contestant) {
      if (contestant == nullptr) return;
      contestants.push_back(contestant.get());
      peer_at.push_back(row.peers.size() - 1);
      started.push_back(std::move(contestant));
    };
    if (options_.packed) enter(start_packed(device, graph, data, expected, row.peers.emplace_back()));
    if (options_.graph) enter(start_graph(device, graph, data, expected, row.peers.emplace_back()));
    for (const auto& peer : peers_) enter(start_peer(*peer, graph, data, expected, row.peers.emplace_back()));
    const std::vector<Samples> samples = sample_interleaved(contestants, plan_);
    take_samples(samples[0], row.device);
    for (size_t i = 0; i < peer_at.size(); ++i) {
      Performance& peer = row.peers[peer_at[i]];
      take_samples(samples[i + 1], peer);
      if (samples[0].reason.empty() && samples[i + 1].reason.empty()) {
        peer.ratio = ratio_of(samples[i + 1].latency, samples[0].latency);
      }
    }
    if (!row.device.reason.empty()) return row;
    count_calls(device, *ours, row);
    const bph_stats stats = device.stats();
    row.plans_after = stats.plans_created - row.plans_first;
    row.device.device_bytes = stats.bytes_reserved_peak;
    return row;
  }

  // Counts the allocations, decomposed composites and staged operands of a run. Call this function after
  // sampling, when core has specialised the plans of recurring sizes.
  static void count_calls(const Device& device, DeviceModel& model, ModelRow& row) {
    constexpr uint32_t runs = 3;
    const bph_stats before = device.stats();
    const uint64_t allocations = allocation_count();
    model.time(runs, true);
    row.heap_allocations = static_cast<double>(allocation_count() - allocations) / runs;
    const bph_stats after = device.stats();
    row.decomposed = static_cast<double>(after.decomposed_executions - before.decomposed_executions) / runs;
    row.staged = static_cast<double>(after.staged_operands - before.staged_operands) / runs;
  }

  const BenchModelOptions& options_;
  ModelSize size_;
  Target target_;
  std::vector<std::unique_ptr<Peer>> peers_;
  SamplingPlan plan_;
  ModelReport report_;
};

}  // namespace

std::optional<double> geometric_mean(const ModelReport& report, const std::string& peer) {
  double sum = 0;
  int count = 0;
  for (const ModelRow& row : report.rows) {
    for (const Performance& one : row.peers) {
      if (one.name != peer || !one.ratio) continue;
      sum += std::log(one.ratio->median);
      ++count;
    }
  }
  if (count == 0) return {};
  return std::exp(sum / count);
}

int bench_model(Session& session, const BenchModelOptions& options) {
  std::ofstream page;
  if (!options.html.empty()) {  // opened before the long measurement, to report an error early
    page.open(options.html, std::ios::binary);
    if (!page) fail_usage("--html {}: it cannot be written; name a file in a directory of yours", options.html);
  }
  const ModelReport report = ModelBench(session, options).run();
  if (session.json) {
    session.print(model_json(report));
  } else {
    session.out += model_text(report, session.colour);
  }
  if (!options.html.empty() && !(page << model_html(report)).flush()) {
    throw Failure(kExitFinding, "INTERNAL", fmt::format("--html {}: it could not be written whole", options.html));
  }
  return kExitOk;
}

}  // namespace tool
