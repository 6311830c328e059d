// SPDX-License-Identifier: Apache-2.0
// Tests the kernels of `attention` for GPUs, and the choice of kernels. The threads of a group are coroutines, so the
// tests need no device, and can choose the width of sub-groups.
#include "ops/attention.hpp"

#include <gtest/gtest.h>
#include <ucontext.h>

#include <cmath>
#include <functional>
#include <random>

// Kernels are outside of namespaces.
using namespace backplane::simt;
#define SIMT_HOST 1
#include "device/attention_blocks.h"

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Element element(float x) { return bits_of_float(x); }
double value(Element x) { return float_of_bits(x); }

// ---- threads -------------------------------------------------------------------------------------

// Runs the threads of a group. All lanes of a sub-group must reach the same shuffle, and all threads the same number of
// barriers.
class Group {
 public:
  static void run(const HostThread& thread, const std::function<void()>& kernel) {
    Group group(thread, kernel);
    current_ = &group;
    group.begin();
    group.run();
  }
  static void barrier() { current_->stop(kBarrier); }
  static u32 shuffled(u32 x, u32 mask) { return current_->shuffle(x, mask); }

 private:
  enum State { kReady, kShuffle, kBarrier, kDone };
  struct Thread {
    ucontext_t context{};
    std::vector<char> stack = std::vector<char>(1 << 16);
    State state = kReady;
    u32 given = 0, mask = 0, received = 0;
  };

  Group(const HostThread& thread, const std::function<void()>& kernel)
      : first_(thread), kernel_(kernel), threads_(thread.group_size) {}
  // Not inlined, because getcontext returns twice.
  [[gnu::noinline]] void begin() {
    for (Thread& each : threads_) {
      getcontext(&each.context);
      each.context.uc_stack.ss_sp = each.stack.data();
      each.context.uc_stack.ss_size = each.stack.size();
      each.context.uc_link = &scheduler_;
      makecontext(&each.context, &Group::enter, 0);
    }
  }
  static void enter() {
    current_->kernel_();
    current_->threads_[host_thread.local_id].state = kDone;
  }
  void stop(State state) {
    Thread& own = threads_[host_thread.local_id];
    own.state = state;
    swapcontext(&own.context, &scheduler_);
  }
  u32 shuffle(u32 x, u32 mask) {
    const u32 own = host_thread.local_id;
    threads_[own].given = x, threads_[own].mask = mask;
    stop(kShuffle);
    return threads_[own].received;
  }
  // Runs the threads of a sub-group until each of them stops, and returns where they stopped.
  State advance(u32 first) {
    for (u32 i = first; i < first + first_.width; ++i) {
      host_thread = first_;
      host_thread.local_id = i;
      swapcontext(&scheduler_, &threads_[i].context);
    }
    const State out = threads_[first].state;
    for (u32 i = first; i < first + first_.width; ++i) {
      EXPECT_EQ(threads_[i].state, out) << "the lanes of a sub-group diverge";
      EXPECT_TRUE(out != kShuffle || threads_[i].mask == threads_[first].mask) << "lanes are at different shuffles";
    }
    return out;
  }
  void run() {
    for (State stopped = kReady; stopped != kDone && !testing::Test::HasFailure();) {
      for (u32 first = 0; first < first_.group_size; first += first_.width) {
        State own = advance(first);
        while (own == kShuffle) {
          for (u32 i = first; i < first + first_.width; ++i)
            threads_[i].received = threads_[i ^ threads_[i].mask].given;
          own = advance(first);
        }
        EXPECT_TRUE(first == 0 || own == stopped) << "a sub-group skips a barrier";
        stopped = own;
      }
    }
  }

  static inline Group* current_ = nullptr;
  HostThread first_;
  const std::function<void()>& kernel_;
  std::vector<Thread> threads_;
  ucontext_t scheduler_{};
};

}  // namespace

void host_barrier() { Group::barrier(); }
u32 host_shuffle(u32 x, u32 from) { return Group::shuffled(x, lane() ^ from); }

namespace {

// Executes a kernel on the host when it is launched.
class HostLauncher : public Launcher {
 public:
  HostLauncher(const Limits& limits, KernelNames names) : Launcher(limits), names_(std::move(names)) {}
  std::vector<std::string> functions;  // the kernels that were launched
  std::vector<Launch> launches;
  bool executes = true;

 private:
  backplane::kit::Status enqueue(const Launch& launch) override {
    const std::string& function = names_[launch.kernel].function;
    functions.push_back(function);
    launches.push_back(launch);
    if (!executes) return {};
    AttentionBlockParams p{};
    std::memcpy(&p, launch.params, std::min<std::size_t>(sizeof(p), launch.params_bytes));
    std::array<Pointer, 7> at{};
    for (std::size_t i = 0; i < launch.places.size(); ++i) {
      p.offsets[i] = 0;
      const Place& place = launch.places[i];
      if (place.memory != nullptr) at[i] = reinterpret_cast<Pointer>(place.memory->address) + place.offset;
    }
    const auto call = [&](auto kernel) { kernel(at[0], at[1], at[2], at[3], at[4], at[5], at[6], p); };
    for (u32 group = 0; group < launch.groups[0]; ++group) {
      Group::run({group, launch.groups[0], launch.group_size, 0, limits().width}, [&] {
        if (function == "attention_split_1") call(attention_split_1);
        if (function == "attention_split_4") call(attention_split_4);
        if (function == "attention_blocks_2") call(attention_blocks_2);
        if (function == "attention_blocks_4") call(attention_blocks_4);
        if (function == "attention_combine") attention_combine(at[0], at[1], at[2], p);
      });
    }
    return {};
  }
  const KernelNames names_;
};

// ---- calls ---------------------------------------------------------------------------------------

struct Shape {
  int64_t batches, heads, groups, queries, keys, depth, columns;
  uint32_t causal = BP_CAUSAL_NONE;
  uint32_t mask = 0;        // the dtype of the mask, or 0 without a mask
  int64_t gap = 0;          // elements between rows
  uint64_t shift = 0;       // bytes from an aligned address to element 0
  bool transposed = false;  // k is contiguous along the keys
};
constexpr uint64_t kWorkspace = uint64_t{2} << 20;

// Operands: y, logsumexp, q, k, v, mask. All memory outside of them is NaN.
struct Attend {
  explicit Attend(const Shape& given) : shape(given), names{} {
    const Shape& s = shape;
    set(0, BP_F32, {s.batches, s.heads, s.queries, s.columns});
    set(1, BP_F32, {s.batches, s.heads, s.queries, 1});
    views[1].rank = 3;
    set(2, BP_F32, {s.batches, s.heads, s.queries, s.depth});
    set(3, BP_F32, {s.batches, s.groups, s.keys, s.depth});
    if (s.transposed) std::swap(views[3].strides[2], views[3].strides[3]), views[3].strides[3] = s.keys;
    set(4, BP_F32, {s.batches, s.groups, s.keys, s.columns});
    if (s.mask != 0) set(5, s.mask, {s.batches, s.heads, s.queries, s.keys});
    workspace.address = memory[6].data();
    memory[6].assign(kWorkspace, std::byte{0xFF});
    workspace.address = memory[6].data();
    std::normal_distribution<float> normal;
    for (uint32_t i = 2; i < 6; ++i) {
      if (views[i].dtype == 0) continue;
      for_elements(i, [&](int64_t at) {
        if (views[i].dtype == BP_BOOL) {
          bytes(i)[at] = random() % 4 != 0;
        } else {
          elements(i)[at] = element(normal(random));
        }
      });
    }
    bp_attention_attributes attributes_given{};
    attributes_given.causal = s.causal;
    attributes_given.scale = 0.25F;
    std::memcpy(attributes.bytes, &attributes_given, sizeof(attributes_given));
    call.op = backplane::rules::find_op(BP_OP_ATTENTION);
    call.inputs = {&views[2], s.mask == 0 ? 3u : 4u};
    call.outputs = {&views[0], 2u};
    call.attribute_bytes = &attributes;
    call.workspace = {&workspace, 0};
    call.workspace_bytes = kWorkspace;
  }
  Attend(const Attend&) = delete;
  Attend& operator=(const Attend&) = delete;

  Element* elements(uint32_t i) { return reinterpret_cast<Element*>(buffers[i].address + shape.shift); }
  uint8_t* bytes(uint32_t i) { return reinterpret_cast<uint8_t*>(buffers[i].address + shape.shift); }
  float logarithm(int64_t batch, int64_t head, int64_t query) {
    return reinterpret_cast<float*>(bytes(1))[position(1, batch, head, query, 0)];
  }
  int64_t position(uint32_t i, int64_t batch, int64_t head, int64_t row, int64_t at) const {
    const View& v = views[i];
    return batch * v.strides[0] + head * v.strides[1] + row * v.strides[2] + at * v.strides[3];
  }
  double at(uint32_t i, int64_t batch, int64_t head, int64_t row, int64_t e) {
    return value(elements(i)[position(i, batch, head, row, e)]);
  }
  template <class Body>
  void for_elements(uint32_t i, const Body& body) {
    const View& v = views[i];
    for (int64_t b = 0; b < v.shape[0]; ++b) {
      for (int64_t h = 0; h < v.shape[1]; ++h) {
        for (int64_t r = 0; r < v.shape[2]; ++r) {
          for (int64_t e = 0; e < v.shape[3]; ++e) body(position(i, b, h, r, e));
        }
      }
    }
  }

  Shape shape;
  std::array<View, 6> views;
  std::array<backplane::simt::Buffer, 6> buffers;
  backplane::simt::Buffer workspace;
  std::array<std::vector<std::byte>, 7> memory;
  backplane::kit::Attributes attributes{};
  Call call;
  KernelNames names;
  std::mt19937 random{1};

 private:
  void set(uint32_t i, uint32_t dtype, std::array<int64_t, 4> extents) {
    View& v = views[i];
    v.dtype = dtype;
    v.rank = 4;
    std::copy(extents.begin(), extents.end(), v.shape);
    const int64_t pitch = extents[3] + (i == 1 || i == 5 ? 0 : shape.gap);
    v.strides[3] = 1, v.strides[2] = pitch, v.strides[1] = extents[2] * pitch;
    v.strides[0] = extents[1] * extents[2] * pitch;
    const auto bytes = static_cast<std::size_t>(extents[0] * v.strides[0]) * backplane::kit::dtype_bytes(dtype);
    memory[i].assign(bytes + 64, std::byte{0xFF});
    const auto address = reinterpret_cast<uintptr_t>(memory[i].data());
    buffers[i].address = memory[i].data() + (16 - address % 16) % 16;
    v.place = {&buffers[i], shape.shift};
  }
};

Limits limits_of(uint32_t width, uint32_t compute_units = 2) {
  Limits out;
  out.width = width;
  out.local_bytes = 64 << 10;
  out.compute_units = compute_units;
  return out;
}

// Executes a call, and returns the functions that it launched.
std::vector<std::string> execute(Attend& attend, const Limits& limits) {
  const auto op = shared_attention(BP_F32);
  HostLauncher launcher(limits, op->kernels_on(limits, {}));
  Program program;
  for (uint32_t i = 0; i < program.kernels.size(); ++i) program.kernels[i] = i;
  const backplane::kit::Status status = op->enqueue(launcher, program, attend.call);
  EXPECT_TRUE(status.ok()) << status.message();
  return launcher.functions;
}

void expect_row(Attend& attend, int64_t batch, int64_t head, int64_t query) {
  const Shape& s = attend.shape;
  const int64_t group = head / (s.heads / s.groups);
  std::vector<double> weights(static_cast<std::size_t>(s.keys));
  double most = -kInfinity, sum = 0;
  for (int64_t key = 0; key < s.keys; ++key) {
    double score = 0;
    for (int64_t d = 0; d < s.depth; ++d)
      score += attend.at(2, batch, head, query, d) * attend.at(3, batch, group, key, d);
    score *= 0.25;
    if (s.mask == BP_BOOL && attend.bytes(5)[attend.position(5, batch, head, query, key)] == 0) score = -kInfinity;
    if (s.mask == BP_F32) score += attend.at(5, batch, head, query, key);
    const int64_t ahead = s.causal == BP_CAUSAL_LOWER_RIGHT ? s.keys - s.queries : 0;
    if (s.causal != BP_CAUSAL_NONE && key > query + ahead) score = -kInfinity;
    weights[key] = score;
    most = std::max(most, score);
  }
  for (double& weight : weights) {
    weight = most == -kInfinity ? 0 : std::exp(weight - most);
    sum += weight;
  }
  if (sum == 0) {
    EXPECT_EQ(attend.logarithm(batch, head, query), -kInfinity);
  } else {
    EXPECT_NEAR(attend.logarithm(batch, head, query), most + std::log(sum), 1e-5 * (1 + std::abs(most)));
  }
  for (int64_t column = 0; column < s.columns; ++column) {
    double expected = 0, magnitude = 0;
    for (int64_t key = 0; key < s.keys; ++key) {
      const double term = weights[key] * attend.at(4, batch, group, key, column);
      expected += term, magnitude += std::abs(term);
    }
    if (sum != 0) expected /= sum, magnitude /= sum;
    ASSERT_NEAR(attend.at(0, batch, head, query, column), expected, 1e-5 * magnitude)
        << "query " << query << ", column " << column;
  }
}

// Executes a call on a device with sub-groups of 32 lanes and on one with 64 lanes, and compares the results with those
// of f64. Returns the functions that the device with 32 lanes launched.
std::vector<std::string> expect_attention(const Shape& s, uint32_t compute_units = 2) {
  std::vector<std::string> out;
  for (const uint32_t width : {32u, 64u}) {
    SCOPED_TRACE(backplane::kit::text("width ", width, ", ", s.heads, " heads, ", s.queries, " queries, ", s.keys,
                                      " keys, depth ", s.depth, ", ", s.columns, " columns"));
    Attend attend(s);
    auto functions = execute(attend, limits_of(width, compute_units));
    if (width == 32) out = std::move(functions);
    for (int64_t batch = 0; batch < s.batches && !testing::Test::HasFailure(); ++batch) {
      for (int64_t head = 0; head < s.heads; ++head) {
        for (int64_t query = 0; query < s.queries; ++query) expect_row(attend, batch, head, query);
      }
    }
    attend.for_elements(0, [&](int64_t at) { std::memset(attend.elements(0) + at, 0xFF, sizeof(Element)); });
    for (const std::byte each : attend.memory[0]) EXPECT_EQ(each, std::byte{0xFF}) << "memory outside of y changed";
    if (testing::Test::HasFailure()) break;
  }
  return out;
}

using Functions = std::vector<std::string>;

TEST(AttentionSplit, OneRow) {
  EXPECT_EQ(expect_attention({1, 1, 1, 1, 300, 64, 64}), Functions({"attention_split_1", "attention_combine"}));
  EXPECT_EQ(expect_attention({2, 2, 2, 1, 60, 128, 128}), Functions({"attention_split_1"}));
  expect_attention({1, 1, 1, 1, 1, 8, 8});
  expect_attention({1, 1, 1, 1, 130, 256, 40});
  expect_attention({1, 1, 1, 1, 130, 40, 256});
}
TEST(AttentionSplit, RowsShareKeys) {
  EXPECT_EQ(expect_attention({1, 8, 2, 1, 500, 128, 128}), Functions({"attention_split_4", "attention_combine"}));
  EXPECT_EQ(expect_attention({1, 4, 2, 3, 200, 64, 64, BP_CAUSAL_LOWER_RIGHT}),
            Functions({"attention_split_4", "attention_combine"}));
  expect_attention({1, 1, 1, 5, 3, 64, 64, BP_CAUSAL_LOWER_RIGHT});
}
TEST(AttentionSplit, MasksAndAddresses) {
  for (const uint32_t mask : {uint32_t{BP_BOOL}, uint32_t{BP_F32}}) {
    expect_attention({1, 2, 1, 2, 130, 64, 64, BP_CAUSAL_UPPER_LEFT, mask});
  }
  expect_attention({1, 2, 1, 1, 130, 64, 64, BP_CAUSAL_NONE, 0, 3});
  expect_attention({1, 2, 1, 2, 130, 64, 64, BP_CAUSAL_NONE, 0, 0, sizeof(Element)});
}
TEST(AttentionSplit, OtherCallsUseOtherKernels) {
  const auto functions = [](const Shape& shape, Limits limits) {
    Attend attend(shape);
    const auto op = shared_attention(BP_F32);
    HostLauncher launcher(limits, op->kernels_on(limits, {}));
    launcher.executes = false;
    Program program;
    for (uint32_t i = 0; i < program.kernels.size(); ++i) program.kernels[i] = i;
    EXPECT_TRUE(op->enqueue(launcher, program, attend.call).ok());
    return launcher.functions;
  };
  Limits cpu = limits_of(16);
  cpu.is_cpu = true;
  EXPECT_EQ(functions({1, 1, 1, 1, 300, 64, 64}, cpu), Functions({"attention_rows"}));
  EXPECT_EQ(functions({1, 1, 1, 100, 300, 64, 64}, cpu), Functions({"attention_tiles"}));
  EXPECT_EQ(functions({1, 1, 1, 1, 300, 64, 64}, limits_of(8)), Functions({"attention_rows"}));
  EXPECT_EQ(functions({1, 1, 1, 1, 300, 33, 64}, limits_of(32)), Functions({"attention_rows"}));
  EXPECT_EQ(functions({1, 1, 1, 1, 300, 512, 64}, limits_of(32)), Functions({"attention_rows"}));
  Limits small = limits_of(32);
  small.local_bytes = 48 * 1024 - 1;
  EXPECT_EQ(functions({1, 1, 1, 100, 300, 64, 64}, small), Functions({"attention_tiles"}));
  EXPECT_EQ(functions({1, 1, 1, 100, 300, 64, 257}, limits_of(32)), Functions({"attention_tiles"}));
  EXPECT_EQ(functions({1, 1, 1, 100, 300, 64, 64}, limits_of(32)), Functions({"attention_blocks_4"}));
}

TEST(AttentionBlocks, TheTileDependsOnTheShapeAndTheDevice) {
  EXPECT_EQ(expect_attention({1, 2, 2, 133, 97, 64, 64}, 1), Functions({"attention_blocks_4"}));
  EXPECT_EQ(expect_attention({1, 1, 1, 70, 70, 64, 64}, 3), Functions({"attention_blocks_4"}));
  EXPECT_EQ(expect_attention({1, 1, 1, 70, 70, 64, 64}, 5), Functions({"attention_blocks_2"}));
  EXPECT_EQ(expect_attention({1, 1, 1, 50, 70, 128, 128}), Functions({"attention_blocks_4"}));
  EXPECT_EQ(expect_attention({1, 1, 1, 40, 70, 200, 200}), Functions({"attention_blocks_2"}));
}
TEST(AttentionBlocks, KeysAreDivided) {
  EXPECT_EQ(expect_attention({1, 1, 1, 20, 600, 64, 64}, 16), Functions({"attention_blocks_2", "attention_combine"}));
  EXPECT_EQ(expect_attention({1, 1, 1, 20, 600, 64, 64, BP_CAUSAL_UPPER_LEFT}, 16),
            Functions({"attention_blocks_2", "attention_combine"}));
}
TEST(AttentionBlocks, CausalMasks) {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{150, 70}, {70, 150}, {130, 130}}) {
    expect_attention({1, 2, 2, queries, keys, 64, 64, BP_CAUSAL_LOWER_RIGHT}, 1);
    expect_attention({1, 1, 1, queries, keys, 64, 64, BP_CAUSAL_UPPER_LEFT}, 1);
  }
  expect_attention({1, 4, 2, 40, 130, 64, 64, BP_CAUSAL_LOWER_RIGHT}, 1);
}
TEST(AttentionBlocks, Masks) {
  for (const uint32_t mask : {uint32_t{BP_BOOL}, uint32_t{BP_F32}}) {
    expect_attention({2, 2, 1, 40, 97, 64, 64, BP_CAUSAL_LOWER_RIGHT, mask}, 1);
    expect_attention({1, 1, 1, 40, 96, 64, 64, BP_CAUSAL_NONE, mask}, 1);
  }
}
TEST(AttentionBlocks, StridesAndAddresses) {
  expect_attention({1, 1, 1, 70, 70, 64, 64, BP_CAUSAL_NONE, 0, 3}, 1);
  expect_attention({1, 1, 1, 70, 70, 64, 64, BP_CAUSAL_NONE, 0, 0, sizeof(Element)}, 1);
  expect_attention({1, 1, 1, 70, 70, 33, 35}, 1);
  expect_attention({1, 1, 1, 70, 70, 64, 64, BP_CAUSAL_NONE, 0, 0, 0, true}, 1);
}

// A NaN or an infinite score makes its row NaN, and no other row.
TEST(AttentionBlocks, ScoresMayBeNanOrInfinite) {
  for (const int64_t queries : {6, 40}) {
    Attend attend({1, 1, 1, queries, 70, 64, 64});
    for (int64_t d = 0; d < 64; ++d) attend.elements(3)[5 * 64 + d] = element(1);
    attend.elements(2)[3 * 64] = element(NAN);
    attend.elements(2)[4 * 64] = element(kInfinity);
    execute(attend, limits_of(32));
    for (int64_t query = 0; query < queries; ++query) {
      const bool is_nan = query == 3 || query == 4;
      EXPECT_EQ(std::isnan(attend.logarithm(0, 0, query)), is_nan) << query;
      for (int64_t column = 0; column < 64; ++column)
        EXPECT_EQ(std::isnan(attend.at(0, 0, 0, query, column)), is_nan) << query << ", " << column;
    }
  }
}

}  // namespace
