// SPDX-License-Identifier: Apache-2.0
// Implements `backplane bench ops`, which measures a device's operators in the shapes of models. It
// also measures peers that run the same cases.
#include "bench/ops.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "bench/device_contestant.hpp"
#include "bench/peers.hpp"
#include "bench/process_memory.hpp"
#include "bench/shape_file.hpp"
#include "bench/target.hpp"
#include "measure.hpp"
#include "subcommands.hpp"

namespace tool {
namespace {

constexpr const char* kPeakShape = "512x512 512x512";
// The name under which a row's peers include core's decomposition of a composite.
constexpr const char* kDecomposedName = "decomposed";
// The name under which a row's peers include the device's call with a packed input. The packed input has the index
// kWeightInput, because input 1 is the weight in all cases that have weights.
constexpr const char* kPackedName = "packed";
constexpr uint32_t kWeightInput = 1;

bool is_dense(const OpCase& op) {
  const auto dense = [](const Operand& operand) { return operand.dense(); };
  return std::all_of(op.inputs.begin(), op.inputs.end(), dense) &&
         std::all_of(op.outputs.begin(), op.outputs.end(), dense);
}

std::vector<BenchCase> choose_cases(const BenchOpsOptions& options) {
  std::vector<BenchCase> all;
  if (options.shapes.empty()) all = built_in_shapes();
  for (const std::string& path : options.shapes) {
    std::vector<BenchCase> cases = read_shapes(path);
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  if (options.filters.empty()) return all;
  const size_t before = all.size();
  std::erase_if(all, [&](const BenchCase& one) {
    return std::none_of(options.filters.begin(), options.filters.end(),
                        [&](const std::string& filter) { return matches_filter(one.id(), filter); });
  });
  if (all.empty()) {
    fail_usage(
        "{} cases exist, but {} selects none of them; give a group, an operator, a dtype or a pattern of 'group/line'",
        before, fmt::join(options.filters, ", "));
  }
  return all;
}

// The progress line on standard error. On a terminal, each output overwrites the previous output.
class Progress {
 public:
  Progress(bool shown, size_t total) : shown_(shown), terminal_(isatty(STDERR_FILENO) != 0), total_(total) {}
  void next(const std::string& what) {
    ++done_;
    if (!shown_) return;
    fmt::print(stderr, "{}[{}/{}] {}{}", terminal_ ? "\r" : "", done_, total_, what, terminal_ ? "\x1b[K" : "\n");
    std::fflush(stderr);
  }
  ~Progress() {
    if (shown_ && terminal_) std::fputs("\r\x1b[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  const bool shown_, terminal_;
  const size_t total_;
  size_t done_ = 0;
};

class OpsBench {
 public:
  OpsBench(const Session& session, const BenchOpsOptions& options)
      : options_(options), target_(session, {options.plugin, options.device, options.threads}) {
    plan_.seconds = options.seconds;
    if (options.peers) {
      Peers found = find_peers(options.peer_folder.empty() ? peer_folder() : options.peer_folder,
                               target_.info().type == BP_DEVICE_GPU ? PeerKind::gpu : PeerKind::processor);
      peers_ = std::move(found.usable);
      report_.notes = std::move(found.faults);
    }
    for (const auto& peer : peers_) {
      peer->set_threads(target_.threads());
      report_.peers.emplace_back(peer->name(), peer->version());
    }
    describe_run(target_, report_);
    report_.seconds = options.seconds;
  }

  OpsReport run(const std::vector<BenchCase>& cases) {
    std::vector<uint32_t> dtypes;
    for (const BenchCase& one : cases) {
      const bool counts = work_of(one.op).flops > 0;
      if (counts && std::find(dtypes.begin(), dtypes.end(), one.op.dtype) == dtypes.end()) {
        dtypes.push_back(one.op.dtype);
      }
    }
    Progress progress(!options_.quiet, dtypes.size() + cases.size());
    for (const uint32_t dtype : dtypes) {
      progress.next(fmt::format("peak matmul {}", bph_dtype_name(dtype)));
      find_peak(bph_dtype_name(dtype));
    }
    for (const BenchCase& one : cases) {
      progress.next(one.id());
      report_.rows.push_back(measure_case(one));
      raise_peak(bph_dtype_name(one.op.dtype), report_.rows.back());
    }
    for (size_t i = 0; i < cases.size(); ++i) relate_to_limit(bph_dtype_name(cases[i].op.dtype), report_.rows[i]);
    return std::move(report_);
  }

 private:
  void find_peak(const std::string& dtype) {
    raise_peak(dtype, measure_case(parse_shapes(fmt::format("matmul {} {}", dtype, kPeakShape), "peak.txt").front()));
  }

  // Updates the peak of a dtype with the rates of a row. The peak is the highest rate of any contestant in any case so
  // far.
  void raise_peak(const std::string& dtype, const OpRow& row) {
    const auto offer = [&](const Performance& one) {
      if (!row.counts_flops() || !one.reason.empty()) return;
      Peak& peak = report_.peaks[dtype];
      if (row.rate(one) > peak.gflops) peak = {row.rate(one), one.name, row.text};
    };
    offer(row.device);
    for (const Performance& one : row.peers) offer(one);
  }
  void relate_to_limit(const std::string& dtype, OpRow& row) const {
    if (!row.device.reason.empty() || row.copy_ns.empty()) return;
    const auto peak = report_.peaks.find(dtype);
    const double compute_ns = row.counts_flops() ? row.work.flops / peak->second.gflops : 0;
    std::vector<double> limit_ns;
    for (const double copy_ns : row.copy_ns) limit_ns.push_back(std::max(copy_ns, compute_ns));
    row.of_limit = ratio_of(limit_ns, row.device_ns);
    row.memory_bound = figure_of(row.copy_ns).median > compute_ns;
  }

  // Creates the device's contestant and calls it once. Returns null if the device fails.
  std::unique_ptr<OperatorContestant> start_device(const Device& device, const BenchCase& one, const CaseData& data,
                                                   OpRow& row) {
    row.device.name = target_.name();
    try {
      PeakMemory memory;
      auto contestant = std::make_unique<OperatorContestant>(device, one.op, data);
      row.path = contestant->support().path;
      row.device.first_ns = contestant->time(1, true);
      row.device.host_bytes = memory.growth();
      row.device.device_bytes = device.stats().bytes_reserved_peak;
      return contestant;
    } catch (const backplane::Error& error) {
      row.device.reason = error.what();
      return nullptr;
    }
  }

  // Creates a contestant that runs core's decomposition of the case's composite, and calls it once.
  // If this fails, returns null and stores the reason in `result`.
  std::unique_ptr<Contestant> start_decomposed(const Device& device, const BenchCase& one, const CaseData& data,
                                               const std::vector<HostBlock>& expected, Performance& result) const {
    result.name = kDecomposedName;
    try {
      auto contestant = std::make_unique<OperatorContestant>(device, one.op, data, BPH_CALL_NO_NATIVE);
      result.first_ns = contestant->time(1, true);
      std::vector<HostBlock> made = make_outputs(one.op);
      contestant->read_outputs(made);
      return same_work(one.op, made, expected, result) ? std::move(contestant) : nullptr;
    } catch (const backplane::Error& error) {
      result.reason = error.what();
      return nullptr;
    }
  }

  // Creates a contestant whose weights are packed, and calls it once. If this fails, for example because
  // the plugin prefers plain weights, returns null and stores the reason in `result`.
  std::unique_ptr<Contestant> start_packed(const Device& device, const BenchCase& one, const CaseData& data,
                                           const std::vector<HostBlock>& expected, Performance& result) const {
    result.name = kPackedName;
    try {
      auto contestant = std::make_unique<OperatorContestant>(device, one.op, data);
      contestant->pack(kWeightInput);
      result.first_ns = contestant->time(1, true);
      std::vector<HostBlock> made = make_outputs(one.op);
      contestant->read_outputs(made);
      return same_work(one.op, made, expected, result) ? std::move(contestant) : nullptr;
    } catch (const backplane::Error& error) {
      result.reason = error.what();
      return nullptr;
    }
  }

  // Returns whether the outputs equal the device's outputs within rounding. If not, stores the
  // reason in `result`.
  static bool same_work(const OpCase& op, const std::vector<HostBlock>& made, const std::vector<HostBlock>& expected,
                        Performance& result) {
    if (made.empty()) {
      result.reason = "it gives no output: so its work cannot be compared";
      return false;
    }
    for (size_t i = 0; i < std::min(made.size(), expected.size()); ++i) {
      const auto apart = difference(op.outputs[i].dtype, made[i], expected[i]);
      if (!apart) continue;
      if (!result.difference || !(*apart <= *result.difference)) result.difference = apart;
      if (!(*apart <= most_difference(op.outputs[i].dtype))) {
        result.reason = fmt::format(
            "output {} differs from the device's by {:.2g} of its greatest value: it does not do the same work, so "
            "times are not comparable",
            i, *apart);
        return false;
      }
    }
    return true;
  }

  // Creates a peer's contestant and calls it once. If this fails, returns null and stores the
  // reason in `result`.
  std::unique_ptr<PeerContestant> start_peer(Peer& peer, const BenchCase& one, const CaseData& data,
                                             const std::vector<HostBlock>& expected, Performance& result) {
    result.name = peer.name();
    PeakMemory memory;
    std::unique_ptr<PeerContestant> contestant;
    try {
      const double prepare_ns = timed_ns([&] { contestant = peer.prepare(one.op, data, &result.reason); });
      if (contestant == nullptr) return nullptr;
      if (contestant->first_ns()) {
        result.first_ns = *contestant->first_ns();
      } else {
        result.first_ns = prepare_ns + contestant->time(1, true);
        result.host_bytes = memory.growth();
      }
    } catch (const Failure& failure) {
      result.reason = failure.what();
      return nullptr;
    }
    return same_work(one.op, contestant->outputs(), expected, result) ? std::move(contestant) : nullptr;
  }

  OpRow measure_case(const BenchCase& one) {
    OpRow row;
    row.group = one.group;
    row.text = one.text;
    row.dtype = bph_dtype_name(one.op.dtype);
    row.dense = is_dense(one.op);
    row.work = work_of(one.op);
    const Device device = target_.open();
    const CaseData data = make_data(one.op);
    const std::unique_ptr<OperatorContestant> ours = start_device(device, one, data, row);
    if (ours == nullptr) return row;
    std::vector<HostBlock> expected = make_outputs(one.op);
    try {
      ours->read_outputs(expected);
    } catch (const backplane::Error& error) {
      row.device.reason = error.what();
      return row;
    }

    std::vector<Contestant*> contestants = {ours.get()};
    std::vector<std::unique_ptr<Contestant>> started;
    std::vector<size_t> peer_at;  // the index in row.peers of each contestant except the device
    const auto enter = [&](std::unique_ptr<Contestant> contestant) {
      if (contestant == nullptr) return;
      contestants.push_back(contestant.get());
      peer_at.push_back(row.peers.size() - 1);
      started.push_back(std::move(contestant));
    };
    if (options_.decomposed && one.op.info.kind == BP_KIND_COMPOSITE && row.path == BPH_PATH_NATIVE) {
      row.peers.emplace_back();
      enter(start_decomposed(device, one, data, expected, row.peers.back()));
    }
    if (options_.packed && one.op.inputs.size() > kWeightInput) {
      row.peers.emplace_back();
      enter(start_packed(device, one, data, expected, row.peers.back()));
    }
    for (const auto& peer : peers_) {
      row.peers.emplace_back();
      enter(start_peer(*peer, one, data, expected, row.peers.back()));
    }
    std::unique_ptr<Contestant> copy;
    try {
      copy = make_copy(device, static_cast<uint64_t>(row.work.bytes));
      contestants.push_back(copy.get());
    } catch (const std::exception& failure) {
      note_no_copy(one, failure.what());
    }
    const std::vector<Samples> samples = sample_interleaved(contestants, plan_);
    take_samples(samples[0], row.device);
    for (size_t i = 0; i < peer_at.size(); ++i) {
      Performance& peer = row.peers[peer_at[i]];
      take_samples(samples[i + 1], peer);
      if (samples[0].reason.empty() && samples[i + 1].reason.empty()) {
        peer.ratio = ratio_of(samples[i + 1].throughput, samples[0].throughput);
      }
    }
    row.device_ns = samples.front().throughput;
    if (copy != nullptr) row.copy_ns = samples.back().throughput;
    if (copy != nullptr && !samples.back().reason.empty()) note_no_copy(one, samples.back().reason);
    return row;
  }

  std::unique_ptr<Contestant> make_copy(const Device& device, uint64_t bytes) const {
    if (target_.info().type == BP_DEVICE_CPU) return std::make_unique<MemcpyContestant>(bytes, target_.threads());
    return std::make_unique<CopyContestant>(device, bytes);
  }
  void note_no_copy(const BenchCase& one, const std::string& why) {
    report_.notes.push_back(fmt::format("{}: a copy of as many bytes was not measured: {}", one.id(), why));
  }

  const BenchOpsOptions& options_;
  Target target_;
  std::vector<std::unique_ptr<Peer>> peers_;
  SamplingPlan plan_;
  OpsReport report_;
};

}  // namespace

int bench_ops(Session& session, const BenchOpsOptions& options) {
  const std::vector<BenchCase> cases = choose_cases(options);
  if (options.list) {
    for (const BenchCase& one : cases) session.print("{}\n", one.id());
    return kExitOk;
  }
  std::ofstream page;
  if (!options.html.empty()) {  // opened before the long measurement, to report an error early
    page.open(options.html, std::ios::binary);
    if (!page) fail_usage("--html {}: it cannot be written; name a file in a directory of yours", options.html);
  }
  const OpsReport report = OpsBench(session, options).run(cases);
  if (session.json) {
    session.print(ops_json(report));
  } else {
    session.out += ops_text(report, session.colour);
  }
  if (!options.html.empty() && !(page << ops_html(report)).flush()) {
    throw Failure(kExitFinding, "INTERNAL", fmt::format("--html {}: it could not be written whole", options.html));
  }
  return kExitOk;
}

}  // namespace tool
