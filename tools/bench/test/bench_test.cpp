// SPDX-License-Identifier: Apache-2.0
// Tests `backplane bench`: parsing of shape files, statistics of samples, and comparison of
// reports. No test depends on how long an operation takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "bench/compare.hpp"
#include "bench/data.hpp"
#include "bench/device_contestant.hpp"
#include "bench/model.hpp"
#include "bench/models.hpp"
#include "bench/ops.hpp"
#include "bench/peers.hpp"
#include "bench/sampling.hpp"
#include "bench/shape_file.hpp"
#include "bench/work.hpp"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string complaint(const std::string& content) {
  try {
    tool::parse_shapes(content, "dir/model.txt");
  } catch (const tool::Failure& failure) {
    EXPECT_EQ(failure.exit_code(), tool::kExitUsage);
    return failure.what();
  }
  return "no error";
}

TEST(ShapeFile, CasesAreRead) {
  const auto cases = tool::parse_shapes(
      "# a model\n\nmatmul bf16:f32 2x3 3x4   # comment\n reduce_sum\tf32 5x6 axes=2\r\ntopk f32 4x9 -> 4x3 axis=1\n",
      "dir/model.txt");
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0].id(), "model/matmul bf16:f32 2x3 3x4");
  EXPECT_EQ(cases[0].op.inputs[0].dtype, uint32_t{BP_BF16});
  EXPECT_EQ(cases[0].op.outputs[0].dtype, uint32_t{BP_F32});
  EXPECT_EQ(cases[0].op.outputs[0].shape, (tool::Extents{2, 4}));
  EXPECT_EQ(cases[1].text, "reduce_sum f32 5x6 axes=2");
  EXPECT_EQ(cases[1].op.outputs[0].shape, (tool::Extents{5, 1}));
  EXPECT_EQ(cases[2].op.outputs[0].shape, (tool::Extents{4, 3}));
}

TEST(ShapeFile, AShapeMayStateItsLayout) {
  const auto cases = tool::parse_shapes("add f32 2x3x4@2,0,1 2x3x4/5\nsort f32 4x9 -> 4x9@1,0/2 4x9 axis=1\n", "l.txt");
  const tool::Operand &permuted = cases[0].op.inputs[0], &stepped = cases[0].op.inputs[1];
  EXPECT_EQ(permuted.strides(), (tool::Extents{3, 1, 6}));
  EXPECT_EQ(permuted.bytes(), 4u * 24);
  EXPECT_EQ(stepped.strides(), (tool::Extents{60, 20, 5}));
  EXPECT_EQ(stepped.bytes(), 4u * 24 * 5);
  EXPECT_TRUE(cases[0].op.outputs[0].dense());
  EXPECT_EQ(cases[1].op.outputs[0].strides(), (tool::Extents{2, 8}));
  EXPECT_TRUE(cases[1].op.outputs[1].dense());
  for (const char* word : {"2x3@1", "2x3@1,1", "2x3@2,0", "2x3@0,1,2", "2x3/0", "2x3/x", "2x3/2000", "2x3/2@0,1"}) {
    const std::string said = complaint(std::string("copy f32 ") + word);
    EXPECT_THAT(said, HasSubstr("model.txt:1")) << word;
    EXPECT_THAT(said, HasSubstr(word));
  }
}

TEST(ShapeFile, ErrorsNameTheLineAndLegalValues) {
  EXPECT_THAT(complaint("add f32 4 4\nmatmull f32 2x2 2x2\n"), StartsWith("dir/model.txt:2: "));
  EXPECT_THAT(complaint("matmull f32 2x2"), HasSubstr("matmul"));
  EXPECT_THAT(complaint("add"), HasSubstr(":1: 'add' has no dtype; write: OP DTYPE[:OUT_DTYPE] SHAPE.. [-> SHAPE..]"));
  EXPECT_THAT(complaint("add f33 4"), HasSubstr("there is no dtype 'f33'"));
  EXPECT_THAT(complaint("add f32"), HasSubstr("'add' has no shape"));
  EXPECT_THAT(complaint("add f32 4xx"), HasSubstr("4xx"));
  EXPECT_THAT(complaint("add f32 4 4 4"), HasSubstr("2 operand(s)"));
  EXPECT_THAT(complaint("exp i32 4"), HasSubstr("exp takes no i32"));
  EXPECT_THAT(complaint("add f32 4 axis=1"), HasSubstr("there is no attribute 'axis'"));
  EXPECT_THAT(complaint("add f32 4 -> 4 -> 4"), HasSubstr("'->' appears twice"));
  EXPECT_THAT(complaint("add f32 100000x100000"), HasSubstr("more than 4294967296 elements"));
  EXPECT_THAT(complaint("matmul f32 100000x1 1x100000"), HasSubstr("more than 2^32 elements"));
  EXPECT_THAT(complaint("add f32 4\n\nadd  f32 4 # again"), HasSubstr(":3: 'add f32 4' appears in the file already"));
  EXPECT_THAT(complaint("# nothing\n"), HasSubstr("dir/model.txt: there is no case in it"));
  EXPECT_THROW(tool::read_shapes("/nowhere/shapes.txt"), tool::Failure);
  EXPECT_THROW(tool::read_shapes("/"), tool::Failure);
}

TEST(ShapeFile, TheBuiltInOnesAreOfModelsAndSizesOfAllKinds) {
  std::vector<std::string> groups;
  for (const tool::BenchCase& one : tool::built_in_shapes()) {
    if (groups.empty() || groups.back() != one.group) groups.push_back(one.group);
  }
  EXPECT_THAT(groups, ElementsAre("resnet50", "bert_base", "llama_7b_prefill", "llama_7b_decode", "unet", "tails",
                                  "tiny", "composites", "large"));
}

TEST(ShapeFile, AFilterIsABeginningAWordOrAPattern) {
  const std::string id = "tiny/matmul f32 4x4 4x4";
  for (const char* filter : {"tiny", "tiny/mat", "matmul", "f32", "4x4", "*mul f32*", "tiny/*"}) {
    EXPECT_TRUE(tool::matches_filter(id, filter)) << filter;
  }
  for (const char* filter : {"mat", "f3", "tiny/add", "*bf16*", "4x"}) {
    EXPECT_FALSE(tool::matches_filter(id, filter)) << filter;
  }
}

TEST(Work, IsCountedByDefinition) {
  const auto work = [](const char* line) { return tool::work_of(tool::parse_shapes(line, "w.txt").front().op); };
  EXPECT_EQ(work("matmul f32 5x2x3 5x3x4").flops, 2.0 * 5 * 2 * 3 * 4);
  EXPECT_EQ(work("matmul bf16:f32 2x3 3x4").bytes, 2.0 * 6 + 2.0 * 12 + 4.0 * 8);
  EXPECT_EQ(work("linear f32 7x3 4x3").flops, 2.0 * 7 * 3 * 4);
  EXPECT_EQ(work("quantized_matmul f32 5x64 3x64").flops, 2.0 * 5 * 64 * 3);
  EXPECT_EQ(work("quantized_matmul f32 5x64 3x32 weight_bits=4").flops, 2.0 * 5 * 64 * 3) << "two weights to a byte";
  EXPECT_EQ(work("conv f32 1x3x8x8 5x3x3x3 pad_begin=1,1,0 pad_end=1,1,0").flops, 2.0 * 5 * 64 * 27);
  EXPECT_EQ(work("attention f32 1x2x5x8 1x2x7x8 1x2x7x8").flops, 2.0 * 2 * 5 * 7 * 16);
  EXPECT_EQ(work("add f32 10 10").flops, 0);
  EXPECT_EQ(work("add f32 10 10").bytes, 120);
  EXPECT_EQ(work("gather f32 100x4 2x4 axis=0").bytes, 32.0 + 32 + 32);
  EXPECT_EQ(work("gather f32 2x4 100x4 axis=0").bytes, 32.0 + 1600 + 1600);
  EXPECT_EQ(work("scatter f32 2x4 2x4 -> 6x4 axis=0").bytes, 32.0 + 32 + 2 * 96);
}

// Users may write shapes that no device accepts.
TEST(Work, OfShapesThatAreNoneIsAFigureToo) {
  for (const char* line : {"matmul f32 2x3 3x4", "linear f32 7x3 4x3", "conv f32 1x3x8x8 5x3x3x3",
                           "attention f32 1x2x5x8 1x2x7x8 1x2x7x8"}) {
    tool::OpCase op = tool::parse_shapes(line, "w.txt").front().op;
    for (const tool::Extents& shape : {tool::Extents{}, tool::Extents{0}, tool::Extents{0, 0, 0, 0}}) {
      for (auto* side : {&op.inputs, &op.outputs}) {
        for (tool::Operand& operand : *side) operand.shape = shape;
      }
      EXPECT_TRUE(std::isfinite(tool::work_of(op).flops)) << line;
    }
  }
}

TEST(Sampling, AFigureKeepsItsSpread) {
  std::vector<double> samples;
  for (int i = 100; i >= 0; --i) samples.push_back(i);
  const tool::Figure figure = tool::figure_of(samples);
  EXPECT_DOUBLE_EQ(figure.p10, 10);
  EXPECT_DOUBLE_EQ(figure.median, 50);
  EXPECT_DOUBLE_EQ(figure.p90, 90);
  EXPECT_EQ(figure.samples, 101u);
  EXPECT_EQ(tool::figure_of({}).samples, 0u);
  EXPECT_DOUBLE_EQ(tool::figure_of({1, 2}).median, 1.5);
}

// Both contestants slow down by the same factor, so the ratio stays constant.
TEST(Sampling, ARatioIsOfPairsSoThatDriftCancels) {
  std::vector<double> a, b;
  for (int i = 1; i <= 20; ++i) {
    a.push_back(30.0 * i);
    b.push_back(10.0 * i);
  }
  const tool::Figure ratio = tool::ratio_of(a, b);
  EXPECT_DOUBLE_EQ(ratio.p10, 3);
  EXPECT_DOUBLE_EQ(ratio.p90, 3);
}

// A contestant with fixed times that records the order of its calls.
class Pretender final : public tool::Contestant {
 public:
  Pretender(char name, double call_ns, std::string& order) : name_(name), call_ns_(call_ns), order_(order) {}
  double time(uint32_t calls, bool wait_each) override {
    order_ += wait_each ? static_cast<char>(std::toupper(name_)) : name_;
    return call_ns_ * calls * (wait_each ? 2 : 1);
  }

 private:
  const char name_;
  const double call_ns_;
  std::string& order_;
};

TEST(Sampling, ContestantsAlternateAndStartEquallyOften) {
  std::string order;
  Pretender a('a', 1e6, order), b('b', 2e6, order);
  tool::SamplingPlan plan;
  plan.seconds = 1;
  plan.sample_s = 0.004;
  plan.warm_s = 0.001;
  plan.most_rounds = 4;
  const auto samples = tool::sample_interleaved({&a, &b}, plan);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_THAT(samples[0].latency, ElementsAre(2e6, 2e6, 2e6, 2e6));
  EXPECT_THAT(samples[0].throughput, ElementsAre(1e6, 1e6, 1e6, 1e6));
  EXPECT_EQ(samples[1].throughput.size(), 4u);
  std::string begins;
  std::copy_if(order.begin(), order.end(), std::back_inserter(begins), [](unsigned char c) { return std::isupper(c); });
  EXPECT_THAT(begins, HasSubstr("ABBAABBA"));
}

// A contestant that fails after `calls` calls.
class Failing final : public tool::Contestant {
 public:
  explicit Failing(int calls) : left_(calls) {}
  double time(uint32_t calls, bool) override {
    if (left_-- == 0) throw std::runtime_error("out of memory");
    return 1e6 * calls;
  }

 private:
  int left_;
};

TEST(Sampling, AFailingContestantIsDroppedAndOthersContinue) {
  tool::SamplingPlan plan;
  plan.sample_s = 0.001;
  plan.most_rounds = 4;
  plan.pause_s = 0;
  for (const int calls : {0, 1, 3}) {
    std::string order;
    Pretender good('g', 1e6, order), other('o', 1e6, order);
    Failing bad(calls);
    const auto samples = tool::sample_interleaved({&good, &bad, &other}, plan);
    EXPECT_EQ(samples[1].reason, "out of memory");
    EXPECT_TRUE(samples[1].latency.empty());
    EXPECT_TRUE(samples[1].throughput.empty());
    for (const size_t i : {0u, 2u}) {
      EXPECT_EQ(samples[i].reason, "");
      EXPECT_EQ(samples[i].latency.size(), 4u);
    }
  }
}

TEST(Sampling, AVerySlowContestantIsMeasuredOnce) {
  std::string order;
  Pretender slow('s', 60e9, order);
  const auto samples = tool::sample_interleaved({&slow}, {});
  EXPECT_EQ(samples[0].latency.size(), 1u);
  EXPECT_EQ(order, "SS");
}

TEST(Data, DifferencesAreSeen) {
  tool::HostBlock a(8), b(8);
  const auto put = [](tool::HostBlock& block, float x, float y) {
    std::memcpy(block.data(), &x, 4);
    std::memcpy(block.data() + 4, &y, 4);
  };
  put(a, 1, 100);
  put(b, 2, 100);
  EXPECT_DOUBLE_EQ(*tool::difference(BP_F32, a, b), 0.01);
  put(a, NAN, INFINITY);
  put(b, NAN, INFINITY);
  EXPECT_EQ(tool::difference(BP_F32, a, b), 0);
  put(b, 1, INFINITY);
  EXPECT_TRUE(std::isnan(*tool::difference(BP_F32, a, b)));
  EXPECT_EQ(tool::difference(BP_I64, a, b), std::nullopt);
}

tool::Metric metric(const char* key, double p10, double median, double p90) { return {key, {p10, median, p90, 9}}; }

TEST(Compare, OnlyChangesBeyondTheNoiseCount) {
  const std::vector<tool::Metric> before = {metric("same", 9, 10, 11),         metric("noisy", 5, 10, 30),
                                            metric("slower", 9, 10, 11),       metric("faster", 9, 10, 11),
                                            metric("little", 9.99, 10, 10.01), metric("gone", 1, 1, 1)};
  const std::vector<tool::Metric> after = {metric("same", 9.5, 10.5, 12),       metric("noisy", 20, 25, 40),
                                           metric("slower", 14, 15, 16),        metric("faster", 1, 2, 3),
                                           metric("little", 10.19, 10.2, 10.3), metric("new", 1, 1, 1)};
  const tool::Comparison found = tool::compare_metrics(before, after, 0.03);
  ASSERT_EQ(found.moves.size(), 2u);
  EXPECT_EQ(found.moves[0].key, "faster");
  EXPECT_DOUBLE_EQ(found.moves[0].factor, 0.2);
  EXPECT_EQ(found.moves[1].key, "slower");
  EXPECT_EQ(found.unmoved, 3u);
  EXPECT_THAT(found.gone, ElementsAre("gone"));
  EXPECT_THAT(found.added, ElementsAre("new"));
  EXPECT_EQ(tool::compare_metrics(before, after, 0.01).moves.size(), 3u);
}

TEST(Compare, AFileThatIsNoReportIsRefused) {
  const auto complaint_of = [](const char* text) -> std::string {
    try {
      tool::read_figures(text, "a.json");
    } catch (const tool::Failure& failure) {
      return failure.what();
    }
    return "no error";
  };
  EXPECT_THAT(complaint_of("{"), StartsWith("a.json: "));
  EXPECT_THAT(complaint_of("{}"), HasSubstr("give a report as `bench ops`, `model`"));
  EXPECT_THAT(complaint_of(R"({"schema":"backplane.bench_model"})"), HasSubstr("device"));
  EXPECT_THAT(complaint_of(R"({"schema":"backplane.list"})"), HasSubstr("it is a document of backplane.list"));
  EXPECT_THAT(
      complaint_of(R"({"schema":"backplane.bench_memory","device":"d","rows":[{"what":"w","bytes":1,"measured":true,
    "latency_ns":{"p10":3,"median":2,"p90":4,"samples":1},"throughput_ns":{}}]})"),
      HasSubstr("0 < p10 <= median <= p90"));
}

TEST(Summary, IsTheGeometricMeanAndTheWorstOfMeasuredRatios) {
  tool::OpsReport report;
  const auto add = [&](const char* text, double flops, double ratio, bool dense, double share) {
    tool::OpRow& row = report.rows.emplace_back();
    row.group = "g";
    row.text = text;
    row.dense = dense;
    row.work = {flops, 128 << 20};
    row.memory_bound = flops == 0;
    row.of_limit = tool::Figure{share, share, share, 1};
    tool::Performance& peer = row.peers.emplace_back();
    peer.name = "peer";
    if (ratio > 0) peer.ratio = tool::Figure{ratio, ratio, ratio, 1};
  };
  add("a", 1, 0.5, true, 0.9);
  add("b", 1, 2, true, 0.9);
  add("c", 0, 3, true, 0.8);
  add("d", 0, 0, false, 0.4);
  add("skinny", 1, 3, false, 0.5);  // the operations take less time than a copy
  report.rows.back().memory_bound = true;
  add("failed", 1, 0.1, true, 0.1);
  report.rows.back().device.reason = "it cannot";
  const std::vector<tool::Summary> all = tool::summaries_of(report);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].what, "peer/device, bound by operations");
  EXPECT_EQ(all[0].cases, 2u);
  EXPECT_DOUBLE_EQ(all[0].mean, 1);
  EXPECT_DOUBLE_EQ(all[0].worst, 0.5);
  EXPECT_EQ(all[0].worst_case, "g/a");
  EXPECT_EQ(all[1].what, "peer/device, bound by memory");
  EXPECT_EQ(all[1].cases, 2u);
  EXPECT_DOUBLE_EQ(all[1].mean, 3);
  EXPECT_EQ(all[2].what, "share of a copy, 64 MiB and more, dense");
  EXPECT_DOUBLE_EQ(all[2].worst, 0.8);
  EXPECT_EQ(all[3].what, "share of a copy, 64 MiB and more, strided");
  EXPECT_EQ(all[3].worst_case, "g/d");
}

TEST(Contestants, ACopyOnThreadsEnds) {
  tool::MemcpyContestant copy(3 << 20, 3);
  EXPECT_GT(copy.time(5, false), 0);
}

// Returns the size of the process's address space in bytes, as RLIMIT_AS counts it.
rlim_t address_space() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

// Limits the address space so that none or one of the contestant's threads can start. The constructor
// throws, after it has joined the thread that has started.
TEST(Contestants, ACopyWithTooFewThreadsReportsThem) {
  constexpr size_t kStack = size_t{1} << 30;
  pthread_attr_t before, large;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_init(&large);
  ASSERT_EQ(pthread_attr_setstacksize(&large, kStack), 0);
  ASSERT_EQ(pthread_setattr_default_np(&large), 0);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &limit), 0);
  for (const size_t begun : {0, 1}) {
    const rlimit room{address_space() + begun * kStack + kStack / 2, limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &room), 0);
    EXPECT_THROW(tool::MemcpyContestant(3 << 20, 3), std::system_error);
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  }
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&large);
  pthread_attr_destroy(&before);
}

// Returns the names of the peers that find_peers() finds in a folder with only a peer.py. This script prints `hello`, a
// Python expression that may contain the variable `kind`, the script's argument.
std::vector<std::string> peers_of(tool::PeerKind kind, const std::string& hello, std::vector<std::string>* faults) {
  const std::string folder = testing::TempDir() + "bench_peers_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/peer.py") << "import json, sys\nkind = sys.argv[1]\nprint(json.dumps(" << hello
                                     << "), flush=True)\nsys.stdin.read()\n";
  tool::Peers found = tool::find_peers(folder, kind);
  std::filesystem::remove_all(folder);
  std::vector<std::string> names;
  for (const auto& peer : found.usable) names.push_back(peer->name());
  if (faults != nullptr) *faults = found.faults;
  return names;
}

TEST(Peers, UseTheHardwareOfTheDevice) {
  const std::string hello = R"({"name": kind, "version": "1"})";
  EXPECT_THAT(peers_of(tool::PeerKind::processor, hello, nullptr), ElementsAre("torch", "onnxruntime"));
  EXPECT_THAT(peers_of(tool::PeerKind::gpu, hello, nullptr), ElementsAre("torch_gpu"));
  EXPECT_THAT(peers_of(tool::PeerKind::gpu_and_graphs, hello, nullptr), ElementsAre("torch_gpu", "torch_gpu_graph"));
}

TEST(Peers, TheReportSaysWhyNoPeerUsesTheGpu) {
  const std::string hello = R"({"error": "PyTorch finds no GPU"})";
  std::vector<std::string> faults;
  EXPECT_THAT(peers_of(tool::PeerKind::gpu, hello, &faults), ElementsAre());
  EXPECT_THAT(faults, ElementsAre("no peer uses the GPU: PyTorch finds no GPU"));
  EXPECT_THAT(peers_of(tool::PeerKind::processor, hello, &faults), ElementsAre());
  EXPECT_THAT(faults, ElementsAre());
}

TEST(Report, ThePageEscapesItsData) {
  tool::OpsReport report;
  report.device = "<b>:0";
  report.notes = {"<script>"};
  tool::OpRow row;
  row.group = "g<";
  row.text = "add f32 4 & 4";
  row.device.reason = "no \"add\" <here>";
  report.rows.push_back(row);
  const std::string page = tool::ops_html(report);
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;:0"));
  EXPECT_THAT(page, HasSubstr("no &quot;add&quot; &lt;here&gt;"));
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
}

tool::Performance peer_with(const std::string& name, double ratio) {
  tool::Performance peer;
  peer.name = name;
  if (ratio > 0) peer.ratio = tool::Figure{ratio, ratio, ratio, 1};
  return peer;
}

TEST(Model, GeometricMeanIsOfTheModelsThatAPeerRan) {
  tool::ModelReport report;
  report.rows.resize(3);
  report.rows[0].peers = {peer_with("a", 2), peer_with("b", 0)};
  report.rows[1].peers = {peer_with("a", 8), peer_with("b", 0)};
  report.rows[2].peers = {peer_with("a", 0), peer_with("c", 3)};
  ASSERT_TRUE(tool::geometric_mean(report, "a"));
  EXPECT_NEAR(*tool::geometric_mean(report, "a"), 4, 1e-12);
  EXPECT_NEAR(*tool::geometric_mean(report, "c"), 3, 1e-12);
  EXPECT_FALSE(tool::geometric_mean(report, "b"));
}

TEST(Model, AStepWritesItsSlotOfTheCacheAndReadsEarlierSlots) {
  const tool::ModelGraph graph = tool::gpt_step(tool::ModelSize::small, 4, 9);
  int writes = 0, reads = 0;
  for (const tool::Node& node : graph.nodes()) {
    for (const tool::View& view : node.outputs) {
      if (!view.slice) continue;
      ++writes;
      EXPECT_EQ(view.slice->begin, 4);
      EXPECT_EQ(view.slice->end, 5);
    }
    for (const tool::View& view : node.inputs) {
      if (!view.slice) continue;
      ++reads;
      EXPECT_EQ(view.slice->begin, 0);
      EXPECT_EQ(view.slice->end, 5);
    }
  }
  EXPECT_EQ(writes, 4);  // keys and values of two blocks
  EXPECT_EQ(reads, 4);
}

TEST(Model, FlopsAndWeightsAreThoseOfTheModel) {
  const tool::ModelGraph bert = tool::bert_layer(tool::ModelSize::full);
  // Each token needs four GEMMs of 768 x 768 and two GEMMs of 768 x 3072. Attention needs 128 x 128
  // x 768 multiply-adds for scores, and as many for weighted sums.
  EXPECT_DOUBLE_EQ(bert.flops(), 2.0 * 128 * (4 * 768 * 768 + 2 * 768 * 3072) + 4.0 * 128 * 128 * 768);
  EXPECT_EQ(bert.weight_bytes(), 4u * (4 * 768 * 768 + 2 * 768 * 3072 + 4 * 768 + 3072 + 768 + 4 * 768));
  const tool::ModelGraph resnet = tool::resnet_block(tool::ModelSize::full);
  EXPECT_DOUBLE_EQ(resnet.flops(), 2.0 * 56 * 56 * (256 * 64 + 64 * 64 * 9 + 64 * 256));
}

}  // namespace
