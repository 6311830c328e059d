// SPDX-License-Identifier: Apache-2.0
// Tests attention with the plugin's kernels for tensor cores: the choice of kernels, tiles, masks, heads and strides.
// The test driver emulates the instructions of these kernels.
#include "runtime/attention.hpp"

#include <backplane/kit/half.hpp>
#include <cmath>
#include <random>

#include "gpu_host/test/device_test.hpp"
#include "ops/attention.hpp"
#include "runtime/stack.hpp"
#include "runtime/units.hpp"

namespace backplane::gpu_host::test {

Platform& platform() { return cuda::platform(); }

namespace {

using simt::AttentionParams;
using simt::u32;
#include "kernels/attention_mma_params.h"

constexpr uint64_t kOperandBytes = uint64_t{1} << 20;
constexpr uint32_t kOperands = 7;  // y, logsumexp, q, k, v, mask, workspace
// Indices of a plan's kernels: tiles of 64 rows, tiles of 128 rows, parts of the keys, the sum of the parts, and
// tiles of warpgroups. Except for kJoin and kLongTurns, index + 1 is the kernel for rows of more than 64 elements.
enum Kernel : uint32_t {
  kTiles = simt::kSharedAttentionKernels,
  kLongTiles = kTiles + 2,
  kParts = kTiles + 4,
  kJoin = kTiles + 6,
  kGroupTiles,
  kLongTurns = kGroupTiles + 2
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Layout {
  kHeads,    // [batch, head, row, element]
  kRows,     // [batch, row, head, element]
  kPadded,   // as kHeads, with 8 unused elements between rows
  kShifted,  // as kHeads, but element 0 is not at a multiple of 16 bytes
  kOdd,      // as kHeads, with one unused element between rows
};

struct Shape {
  int64_t batches, heads, groups, queries, keys, depth, columns;
  uint32_t causal = BP_CAUSAL_NONE;
  uint32_t mask = 0;  // a dtype, or 0
  Layout layout = Layout::kHeads;
  float scale = 0.125F;
};

// A call, and the memory to which it refers.
struct Attend {
  Attend(const Shape& given, uint32_t dtype, const std::array<simt::Buffer*, kOperands>& buffers) : shape(given) {
    const Shape& s = shape;
    outputs[0] = view(buffers[0], dtype, {s.batches, s.heads, s.queries, s.columns});
    outputs[1] = view(buffers[1], BP_F32, {s.batches, s.heads, s.queries});
    outputs[1].strides[0] = s.heads * s.queries, outputs[1].strides[1] = s.queries, outputs[1].strides[2] = 1;
    outputs[1].place.offset = 0;
    inputs[0] = view(buffers[2], dtype, {s.batches, s.heads, s.queries, s.depth});
    inputs[1] = view(buffers[3], dtype, {s.batches, s.groups, s.keys, s.depth});
    inputs[2] = view(buffers[4], dtype, {s.batches, s.groups, s.keys, s.columns});
    // All heads of a batch have the same mask.
    inputs[3] = view(buffers[5], s.mask, {s.batches, s.heads, s.queries, s.keys});
    inputs[3].strides[0] = s.queries * s.keys, inputs[3].strides[1] = 0, inputs[3].strides[2] = s.keys;
    inputs[3].strides[3] = 1;
    inputs[3].place.offset = 0;
    bp_attention_attributes given_attributes{};
    given_attributes.causal = s.causal;
    given_attributes.scale = s.scale;
    std::memcpy(attributes.bytes, &given_attributes, sizeof(given_attributes));
    call.op = rules::find_op(BP_OP_ATTENTION);
    call.inputs = {inputs.data(), s.mask == 0 ? 3u : 4u};
    call.outputs = outputs;
    call.attribute_bytes = &attributes;
    call.workspace = {buffers[6], 0};
    call.workspace_bytes = kOperandBytes;
  }
  Attend(const Attend&) = delete;
  Attend& operator=(const Attend&) = delete;

  kit::PlanForm form() const {
    kit::PlanForm out;
    out.op = call.op;
    out.input_count = static_cast<uint32_t>(call.inputs.size());
    for (uint32_t i = 0; i < out.input_count; ++i) out.operands[i].dtype = static_cast<uint16_t>(inputs[i].dtype);
    return out;
  }

  Shape shape;
  std::array<simt::View, 4> inputs;
  std::array<simt::View, 2> outputs;
  kit::Attributes attributes{};
  simt::Call call;

 private:
  simt::View view(simt::Buffer* buffer, uint32_t dtype, std::array<int64_t, 4> extents) const {
    simt::View out;
    out.dtype = dtype;
    out.rank = 4;
    std::copy(extents.begin(), extents.end(), out.shape);
    const auto [batches, heads, rows, elements] = extents;
    const int64_t gap = shape.layout == Layout::kPadded ? 8 : shape.layout == Layout::kOdd ? 1 : 0;
    const int64_t pitch = elements + gap;
    const bool by_rows = shape.layout == Layout::kRows;
    const int64_t strides[] = {heads * rows * pitch, by_rows ? pitch : rows * pitch, by_rows ? heads * pitch : pitch,
                               1};
    std::copy(std::begin(strides), std::end(strides), out.strides);
    out.place = {buffer, shape.layout == Layout::kShifted ? 2u : 0u};
    return out;
  }
};

int64_t position(const simt::View& view, int64_t batch, int64_t head, int64_t row, int64_t element) {
  return batch * view.strides[0] + head * view.strides[1] + row * view.strides[2] + element * view.strides[3];
}

const simt::Operator& attention_of(uint32_t dtype) {
  static auto* const operators = [] {
    auto* out = new simt::Operators;
    cuda::add_tensor_attention(*out);
    return out;
  }();
  return *operators->find(BP_OP_ATTENTION, {dtype, dtype})->kernel;
}

simt::Limits limits_with(uint32_t instructions) {
  simt::Limits out;
  out.compute_units = 132;
  out.matrix_instructions = instructions;
  out.launch_bytes = 163 << 10;
  return out;
}

// ---- the choice of kernels: launches are recorded, without a device -----------------------------

class Recorder : public simt::Launcher {
 public:
  explicit Recorder(const simt::Limits& limits) : Launcher(limits) {}
  std::vector<uint32_t> kernels;
  std::optional<simt::Launch> last;
  AttentionMmaParams params{};

 private:
  kit::Status enqueue(const simt::Launch& launch) override {
    last = launch;
    kernels.push_back(launch.kernel - 10);
    if (launch.params_bytes == sizeof(params)) std::memcpy(&params, launch.params, sizeof(params));
    return {};
  }
};

class AttentionChoice : public testing::Test {
 protected:
  AttentionChoice() {
    for (simt::Buffer& each : buffers_) each.address = reinterpret_cast<std::byte*>(uintptr_t{4096});
    for (uint32_t i = 0; i < program_.kernels.size(); ++i) program_.kernels[i] = 10 + i;
  }
  // Returns the index of the kernel that a device with these instructions launches.
  uint32_t choose(const Shape& shape, uint32_t instructions = cuda::kTensorCores, uint32_t launch_bytes = 163 << 10) {
    std::array<simt::Buffer*, kOperands> operands{};
    for (uint32_t i = 0; i < kOperands; ++i) operands[i] = &buffers_[i];
    const Attend attend(shape, BP_F16, operands);
    limits_ = limits_with(instructions);
    limits_.launch_bytes = launch_bytes;
    recorder_.emplace(limits_);
    EXPECT_TRUE(attention_of(BP_F16).enqueue(*recorder_, program_, attend.call).ok());
    return recorder_->kernels.empty() ? UINT32_MAX : recorder_->kernels[0];
  }
  bool uses_tensor_cores(const Shape& shape, uint32_t instructions = cuda::kTensorCores) {
    return choose(shape, instructions) >= simt::kSharedAttentionKernels;
  }

  std::array<simt::Buffer, kOperands> buffers_;
  simt::Program program_;
  simt::Limits limits_;
  std::optional<Recorder> recorder_;
};

TEST_F(AttentionChoice, TheKernelDependsOnTheWidestRow) {
  EXPECT_EQ(choose({2, 4, 4, 200, 100, 64, 64}), kTiles);
  EXPECT_EQ(recorder_->last->groups[0], 2u * 4 * 4);
  EXPECT_EQ(recorder_->last->group_size, 128u);
  EXPECT_EQ(recorder_->last->local_bytes, 40960u);
  EXPECT_EQ(choose({2, 4, 4, 200, 100, 72, 64}), kTiles + 1);
  EXPECT_EQ(choose({2, 4, 4, 200, 100, 64, 128}), kTiles + 1);
}

TEST_F(AttentionChoice, TilesAreLongIfThereAreMany) {
  EXPECT_EQ(choose({4, 16, 16, 1024, 64, 64, 64}), kTiles) << "512 tiles of 128 rows, and 132 multiprocessors";
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 64, 64}), kLongTiles);
  EXPECT_EQ(recorder_->last->groups[0], 4u * 16 * 16);
  EXPECT_EQ(recorder_->last->local_bytes, 49152u);
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 64, 64, BP_CAUSAL_LOWER_RIGHT}), kLongTiles);
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 128, 128}), kLongTiles + 1);
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 128, 128, BP_CAUSAL_LOWER_RIGHT}), kTiles + 1);
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 64, 64, BP_CAUSAL_NONE, BP_BOOL}), kTiles);
}

TEST_F(AttentionChoice, ManyTilesUseWarpgroups) {
  constexpr uint32_t kBoth = cuda::kTensorCores | cuda::kWarpgroups;
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 64, 64, BP_CAUSAL_LOWER_RIGHT}, kBoth), kGroupTiles);
  EXPECT_EQ(recorder_->last->groups[0], 4u * 16 * 16);
  EXPECT_EQ(recorder_->last->group_size, 256u);
  EXPECT_EQ(recorder_->last->local_bytes, 50176u);
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 128, 128}, kBoth), kGroupTiles + 1);
  EXPECT_EQ(recorder_->last->local_bytes, 164864u);
  EXPECT_EQ(choose({1, 12, 12, 1024, 64, 64, 64}, kBoth), kTiles) << "96 tiles, and 132 multiprocessors";
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 64, 64, BP_CAUSAL_NONE, BP_BOOL}, kBoth), kTiles);
  EXPECT_EQ(choose({1, 32, 8, 1, 4096, 128, 128}, kBoth), kParts + 1);
}

TEST_F(AttentionChoice, TrialKernelsTakeTurns) {
  constexpr uint32_t kAll = cuda::kTensorCores | cuda::kWarpgroups | cuda::kTrial;
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 64, 64, BP_CAUSAL_LOWER_RIGHT}, kAll, 227 << 10), kGroupTiles);
  EXPECT_EQ(recorder_->last->groups[0], 4u * 16 * 16);
  EXPECT_EQ(recorder_->last->group_size, 256u);
  EXPECT_EQ(recorder_->last->local_bytes, 82944u);
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 64, 64}, kAll, 227 << 10), kLongTurns);
  EXPECT_EQ(recorder_->last->groups[0], 4u * 16 * 8);
  EXPECT_EQ(recorder_->last->group_size, 512u);
  EXPECT_EQ(choose({1, 16, 16, 1056, 64, 64, 64}, kAll, 227 << 10), kGroupTiles) << "80 tiles of 256 rows, 144 of 128";
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 128, 128}, kAll, 227 << 10), kGroupTiles + 1);
  EXPECT_EQ(recorder_->last->local_bytes, 230400u);
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 64, 64, BP_CAUSAL_NONE, BP_BOOL}, kAll, 227 << 10), kGroupTiles);
  EXPECT_EQ(choose({1, 12, 12, 1024, 64, 64, 64}, kAll, 227 << 10), kTiles) << "96 tiles, and 132 multiprocessors";
  EXPECT_EQ(choose({4, 16, 16, 2048, 64, 64, 64}, kAll), kGroupTiles) << "163 KiB per group";
  EXPECT_EQ(choose({1, 32, 8, 1, 4096, 128, 128}, kAll, 227 << 10), kParts + 1);
}

TEST_F(AttentionChoice, FewQueriesOfHeadsThatShareKeysAreInOneTile) {
  choose({2, 8, 2, 9, 100, 64, 64});
  EXPECT_EQ(recorder_->params.unit_heads, 4u);
  EXPECT_EQ(recorder_->params.units, 4u);
  EXPECT_EQ(recorder_->params.unit_tiles, 1u);
  choose({2, 8, 2, 65, 100, 64, 64});
  EXPECT_EQ(recorder_->params.unit_heads, 1u);
  EXPECT_EQ(recorder_->params.units, 16u);
}

TEST_F(AttentionChoice, GroupsDivideTheKeysOfFewRows) {
  // 8 units of 4 rows, and 64 steps. 264 groups fill the device, so a unit may have up to 33 parts; 32 parts have 2
  // steps each.
  EXPECT_EQ(choose({1, 32, 8, 1, 4096, 128, 128}), kParts + 1);
  EXPECT_EQ(recorder_->kernels, (std::vector<uint32_t>{kParts + 1, kJoin}));
  EXPECT_EQ(recorder_->params.part_steps, 2u);
  EXPECT_EQ(recorder_->params.parts, 32u);
  EXPECT_EQ(recorder_->params.part_depth, 128u);
  EXPECT_EQ(recorder_->last->groups[0], 32u) << "a group adds the parts of a row";
  EXPECT_EQ(choose({1, 1, 1, 64, 256, 64, 64}), kParts);
  EXPECT_EQ(recorder_->params.unit_tiles, 4u);
  EXPECT_EQ(choose({1, 1, 1, 64, 192, 64, 64}), kTiles) << "one part of 2 steps would remain";
  EXPECT_EQ(choose({1, 1, 1, 65, 4096, 64, 64}), kTiles) << "more than 64 rows";
  EXPECT_EQ(choose({264, 1, 1, 1, 4096, 64, 64}), kTiles) << "the units suffice for all multiprocessors";
  // 512 rows of 66 numbers occupy 132 KiB per part.
  EXPECT_EQ(choose({8, 1, 1, 64, 4096, 64, 64}), kParts);
  EXPECT_EQ(recorder_->params.parts, 7u) << "the workspace has 1 MiB";
}

TEST_F(AttentionChoice, OnlyCausalTilesOfSeveralUnitsRunTogether) {
  choose({1, 4, 4, 4096, 4096, 128, 128});
  EXPECT_EQ(recorder_->params.section, 1u);
  choose({1, 64, 64, 4096, 4096, 128, 128, BP_CAUSAL_LOWER_RIGHT});
  EXPECT_EQ(recorder_->params.section, 11u) << "2 MiB per unit";
  choose({1, 4, 4, 100, 100, 128, 128, BP_CAUSAL_UPPER_LEFT});
  EXPECT_EQ(recorder_->params.section, 4u);
}

TEST_F(AttentionChoice, SharedKernelsComputeOtherCalls) {
  const Shape suitable{2, 4, 4, 100, 100, 64, 64};
  EXPECT_TRUE(uses_tensor_cores(suitable));
  EXPECT_FALSE(uses_tensor_cores(suitable, 0)) << "a device without tensor cores";
  const auto with = [&](auto change) {
    Shape out = suitable;
    change(out);
    return out;
  };
  EXPECT_FALSE(uses_tensor_cores(with([](Shape& s) { s.layout = Layout::kShifted; })));
  EXPECT_FALSE(uses_tensor_cores(with([](Shape& s) { s.layout = Layout::kOdd; })));
  EXPECT_FALSE(uses_tensor_cores(with([](Shape& s) { s.depth = 60; })));
  EXPECT_FALSE(uses_tensor_cores(with([](Shape& s) { s.columns = 60; })));
  EXPECT_FALSE(uses_tensor_cores(with([](Shape& s) { s.depth = 136; })));
  EXPECT_FALSE(uses_tensor_cores(with([](Shape& s) { s.columns = 136; })));
  EXPECT_FALSE(uses_tensor_cores(with([](Shape& s) { s.keys = 0; })));
  EXPECT_FALSE(uses_tensor_cores(with([](Shape& s) { s.scale = 0; })));
  EXPECT_FALSE(uses_tensor_cores(with([](Shape& s) { s.scale = 1e20F; })));
  EXPECT_TRUE(uses_tensor_cores(with([](Shape& s) { s.queries = 8, s.keys = 4096; })));
  EXPECT_EQ(choose(with([](Shape& s) { s.queries = 0; })), UINT32_MAX);
}

TEST_F(AttentionChoice, DeterministicPlansUseSharedKernels) {
  program_.deterministic = true;
  EXPECT_FALSE(uses_tensor_cores({2, 4, 4, 100, 100, 64, 64}));
}

TEST_F(AttentionChoice, AMaskIsContiguousAlongTheKeys) {
  std::array<simt::Buffer*, kOperands> operands{};
  for (uint32_t i = 0; i < kOperands; ++i) operands[i] = &buffers_[i];
  limits_ = limits_with(cuda::kTensorCores);
  const auto enqueue = [&](const Attend& attend) {
    recorder_.emplace(limits_);
    ASSERT_TRUE(attention_of(BP_F16).enqueue(*recorder_, program_, attend.call).ok());
  };
  Attend attend({2, 4, 4, 100, 112, 64, 64, BP_CAUSAL_NONE, BP_BOOL}, BP_F16, operands);
  enqueue(attend);
  EXPECT_EQ(recorder_->kernels[0], kTiles);
  EXPECT_EQ(recorder_->params.mask_words, 1u);
  attend.inputs[3].place.offset = 8;
  enqueue(attend);
  EXPECT_EQ(recorder_->params.mask_words, 0u) << "8 bytes past a multiple of 16";
  attend.inputs[3].place.offset = 0;
  attend.inputs[3].strides[2] = 104;
  enqueue(attend);
  EXPECT_EQ(recorder_->params.mask_words, 0u) << "104 bytes per row";
  attend.inputs[3].dtype = BP_F16;
  enqueue(attend);
  EXPECT_EQ(recorder_->params.mask_words, 1u) << "208 bytes per row";
  attend.inputs[3].strides[3] = 0;
  enqueue(attend);
  EXPECT_LT(recorder_->kernels[0], kTiles);
}

TEST_F(AttentionChoice, OnlyDevicesWithTensorCoresLoadTheirKernels) {
  kit::PlanForm form;
  form.op = rules::find_op(BP_OP_ATTENTION);
  form.input_count = 3;
  form.operands[3].dtype = BP_F16;  // the first output
  const simt::Operator& op = attention_of(BP_BF16);
  EXPECT_EQ(op.kernels_on(limits_with(0), form)[2].module, "");
  EXPECT_EQ(op.kernels_on(limits_with(cuda::kTensorCores), form)[2].module, "attention_mma_bf16");
  simt::KernelNames names = op.kernels_on(limits_with(cuda::kTensorCores), form);
  EXPECT_EQ(names[kTiles].function, "attention_mma_64");
  EXPECT_EQ(names[kLongTiles + 1].function, "attention_mma_128_long");
  EXPECT_EQ(names[kParts].function, "attention_part_64");
  EXPECT_EQ(names[kJoin].function, "attention_join");
  EXPECT_EQ(names[kGroupTiles].module, "");
  names = op.kernels_on(limits_with(cuda::kTensorCores | cuda::kWarpgroups), form);
  EXPECT_EQ(names[kGroupTiles + 1].module, "attention_warpgroup_bf16");
  EXPECT_EQ(names[kGroupTiles + 1].function, "attention_warpgroup_128");
  simt::Limits all = limits_with(cuda::kTensorCores | cuda::kWarpgroups | cuda::kTrial);
  all.launch_bytes = 227 << 10;
  names = op.kernels_on(all, form);
  EXPECT_EQ(names[kGroupTiles + 1].module, "attention_turns_bf16");
  EXPECT_EQ(names[kGroupTiles + 1].function, "attention_turns_128");
  EXPECT_EQ(names[kLongTurns].function, "attention_turns_64_long");
  EXPECT_EQ(names[kJoin].function, "attention_join_steps");
  form.input_count = 4;
  EXPECT_EQ(op.kernels_on(all, form)[kGroupTiles].function, "attention_turns_64_masked");
  names = op.kernels_on(limits_with(cuda::kTensorCores), form);
  EXPECT_EQ(names[kTiles + 1].function, "attention_mma_128_masked");
  EXPECT_EQ(names[kLongTiles].module, "");
  EXPECT_EQ(names[kParts].function, "attention_part_64_masked");
  simt::Limits small = limits_with(cuda::kTensorCores);
  small.launch_bytes = 40 << 10;
  EXPECT_EQ(op.kernels_on(small, form)[2].module, "");
}

// ---- results, on the test driver -----------------------------------------------------------------

class AttentionTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    for (simt::Buffer*& each : buffers_) {
      each = context().allocate({sizeof(bp_buffer_desc), BP_MEMORY_HOST, kOperandBytes, 256}).value();
    }
  }
  void TearDown() override {
    for (simt::Buffer* each : buffers_) {
      if (each != nullptr) context().free(each);
    }
  }
  std::array<simt::Buffer*, kOperands> buffers_{};
  uint16_t* halves(uint32_t i) const { return reinterpret_cast<uint16_t*>(buffers_[i]->address); }
  const float* logarithms() const { return reinterpret_cast<const float*>(buffers_[1]->address); }

  // Fills the operands with random numbers. All other memory contains NaN.
  void fill(const Attend& attend, uint32_t dtype) {
    for (const simt::Buffer* each : buffers_) std::memset(each->address, 0xFF, kOperandBytes);
    std::normal_distribution<float> normal;
    for (uint32_t i = 0; i < attend.call.inputs.size(); ++i) {
      for_elements(attend.inputs[i], [&](int64_t at) {
        if (attend.inputs[i].dtype == BP_BOOL) {
          buffers_[2 + i]->address[at] = std::byte(random_() % 4 != 0);
        } else {
          halves(2 + i)[at] = half(dtype, normal(random_));
        }
      });
    }
  }
  template <class Body>
  static void for_elements(const simt::View& view, const Body& body) {
    for (int64_t batch = 0; batch < view.shape[0]; ++batch) {
      for (int64_t head = 0; head < view.shape[1]; ++head) {
        for (int64_t row = 0; row < view.shape[2]; ++row) {
          for (int64_t element = 0; element < view.shape[3]; ++element) body(position(view, batch, head, row, element));
        }
      }
    }
  }
  static uint16_t half(uint32_t dtype, float x) { return dtype == BP_F16 ? kit::f32_to_f16(x) : kit::f32_to_bf16(x); }
  static double value(uint32_t dtype, uint16_t x) { return dtype == BP_F16 ? kit::f16_to_f32(x) : kit::bf16_to_f32(x); }

  // Forwards launches to a queue, as if the device had other limits.
  class Forwarder : public simt::Launcher {
   public:
    Forwarder(const simt::Limits& limits, simt::Launcher& queue) : Launcher(limits), queue_(queue) {}
    std::vector<uint32_t> kernels;

   private:
    kit::Status enqueue(const simt::Launch& launch) override {
      kernels.push_back(launch.kernel);
      return queue_.launch(launch);
    }
    simt::Launcher& queue_;
  };
  // Executes attention, and expects that the first launch uses the plan's kernel with the index `expected`.
  void execute(const Attend& attend, uint32_t dtype, uint32_t expected, uint32_t compute_units) const {
    auto names = attention_of(dtype).kernels_on(context().device().limits, attend.form());
    ASSERT_NE(names[2].module, "") << "the device has no tensor cores";
    auto program = simt::compile(std::shared_ptr<const simt::Operator>(&attention_of(dtype), [](const auto*) {}),
                                 attend.form(), devices[0]->kernels, kit::Host(nullptr));
    ASSERT_TRUE(program.ok()) << program.status().message();
    const auto queue = create_queue();
    simt::Limits limits = context().device().limits;
    limits.compute_units = compute_units;
    Forwarder launcher(limits, *queue);
    const kit::Status status = simt::execute(launcher, program.value(), attend.call);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(launcher.kernels[0], program.value().kernels[expected]);
    expect_passes(queue->mark(false).value());
  }
  // Executes attention, and compares the results with results in f64, within the bounds of the specification.
  void expect_attention(const Shape& shape, uint32_t dtype, Kernel kernel = kTiles, uint32_t compute_units = 132) {
    SCOPED_TRACE(kit::text(kit::dtype_name(dtype), ": ", shape.heads, " heads, ", shape.queries, " queries, ",
                           shape.keys, " keys, depth ", shape.depth, ", causal ", shape.causal, ", mask ", shape.mask));
    const Attend attend(shape, dtype, buffers_);
    fill(attend, dtype);
    execute(attend, dtype, kernel + (shape.depth > 64 || shape.columns > 64 ? 1 : 0), compute_units);
    for (int64_t batch = 0; batch < shape.batches; ++batch) {
      for (int64_t head = 0; head < shape.heads; ++head) {
        for (int64_t query = 0; query < shape.queries; ++query) expect_row(attend, dtype, batch, head, query);
      }
    }
    for_elements(attend.outputs[0], [&](int64_t at) { halves(0)[at] = 0xFFFF; });
    EXPECT_TRUE(std::all_of(halves(0), halves(0) + kOperandBytes / 2, [](uint16_t x) { return x == 0xFFFF; }))
        << "memory outside of y changed";
  }

  uint32_t instructions() const { return context().device().limits.matrix_instructions; }

 private:
  double score(const Attend& attend, uint32_t dtype, int64_t batch, int64_t head, int64_t query, int64_t key) const {
    const Shape& s = attend.shape;
    if (s.causal == BP_CAUSAL_LOWER_RIGHT && key > query + s.keys - s.queries) return -kInfinity;
    if (s.causal == BP_CAUSAL_UPPER_LEFT && key > query) return -kInfinity;
    const int64_t group = head / (s.heads / s.groups);
    double out = 0;
    for (int64_t d = 0; d < s.depth; ++d) {
      out += value(dtype, at(attend.inputs[0], 2, batch, head, query, d)) *
             value(dtype, at(attend.inputs[1], 3, batch, group, key, d));
    }
    out *= static_cast<double>(s.scale);
    const int64_t mask_at = position(attend.inputs[3], batch, head, query, key);
    if (s.mask == BP_BOOL) return buffers_[5]->address[mask_at] != std::byte{0} ? out : -kInfinity;
    return s.mask == 0 ? out : out + value(dtype, halves(5)[mask_at]);
  }
  uint16_t at(const simt::View& view, uint32_t operand, int64_t batch, int64_t head, int64_t row,
              int64_t element) const {
    return halves(operand)[position(view, batch, head, row, element)];
  }
  void expect_row(const Attend& attend, uint32_t dtype, int64_t batch, int64_t head, int64_t query) const {
    const Shape& s = attend.shape;
    std::vector<double> weights(static_cast<std::size_t>(s.keys));
    double most = -kInfinity, sum = 0;
    for (int64_t key = 0; key < s.keys; ++key) {
      weights[key] = score(attend, dtype, batch, head, query, key);
      most = std::max(most, weights[key]);
    }
    for (double& weight : weights) {
      weight = most == -kInfinity ? 0 : std::exp(weight - most);
      sum += weight;
    }
    const double logarithm = sum == 0 ? -kInfinity : most + std::log(sum);
    const double got_logarithm = logarithms()[position(attend.outputs[1], batch, head, query, 0)];
    if (sum == 0) {
      ASSERT_EQ(got_logarithm, -kInfinity);
    } else {
      ASSERT_NEAR(got_logarithm, logarithm, 1e-5 * (1 + std::abs(logarithm)));
    }
    const double half_ulp = dtype == BP_F16 ? 0x1p-12 : 0x1p-9;
    for (int64_t column = 0; column < s.columns; ++column) {
      double expected = 0, magnitude = 0;
      for (int64_t key = 0; key < s.keys; ++key) {
        const double term =
            weights[key] * value(dtype, at(attend.inputs[2], 4, batch, head / (s.heads / s.groups), key, column));
        expected += term;
        magnitude += std::abs(term);
      }
      if (sum != 0) expected /= sum, magnitude /= sum;
      const double got = value(dtype, at(attend.outputs[0], 0, batch, head, query, column));
      const double tolerance = 4 * half_ulp * magnitude + 2 * half_ulp * std::abs(expected) + 1e-5 * magnitude;
      ASSERT_NEAR(got, expected, tolerance) << "query " << query << ", column " << column;
    }
  }

  std::mt19937 random_{1};
};

// The number of queries is not a multiple of a tile, and the number of keys is not a multiple of a step.
TEST_F(AttentionTest, ComputesTails) {
  for (const uint32_t dtype : {BP_F16, BP_BF16}) {
    expect_attention({1, 2, 2, 133, 97, 64, 64}, dtype);
    expect_attention({1, 2, 2, 133, 97, 128, 128}, dtype);
  }
  expect_attention({2, 1, 1, 5, 1, 8, 16}, BP_F16);
  expect_attention({1, 1, 1, 128, 64, 64, 128}, BP_F16);
  expect_attention({1, 1, 1, 9, 180, 40, 104}, BP_F16);
}

TEST_F(AttentionTest, CausalMasksHideKeys) {
  for (const int64_t depth : {64, 128}) {
    expect_attention({1, 2, 2, 150, 70, depth, depth, BP_CAUSAL_LOWER_RIGHT}, BP_F16);
    expect_attention({1, 2, 2, 70, 150, depth, depth, BP_CAUSAL_LOWER_RIGHT}, BP_F16);
    expect_attention({1, 2, 2, 150, 150, depth, depth, BP_CAUSAL_UPPER_LEFT}, BP_F16);
  }
}

TEST_F(AttentionTest, AppliesMasks) {
  for (const uint32_t mask : {BP_BOOL, BP_F16}) {
    for (const int64_t depth : {64, 128}) {
      expect_attention({2, 2, 2, 40, 97, depth, depth, BP_CAUSAL_LOWER_RIGHT, mask}, BP_F16);
    }
  }
  expect_attention({1, 2, 1, 20, 70, 64, 64, BP_CAUSAL_NONE, BP_BF16}, BP_BF16);
}

// Some masks have rows that begin at multiples of 16 bytes, and other masks do not. Some rows end within the 16 keys
// of a lane.
TEST_F(AttentionTest, LoadsMasksByWords) {
  for (const int64_t keys : {80, 72, 136, 137}) {
    expect_attention({1, 2, 1, 70, keys, 64, 64, BP_CAUSAL_UPPER_LEFT, BP_BOOL}, BP_F16);
    expect_attention({1, 1, 1, 33, keys, 64, 64, BP_CAUSAL_NONE, BP_BF16}, BP_BF16);
    expect_attention({1, 1, 1, 33, keys, 128, 128, BP_CAUSAL_NONE, BP_F16}, BP_F16);
  }
}

TEST_F(AttentionTest, ComputesLongTiles) {
  expect_attention({2, 2, 1, 200, 97, 64, 64}, BP_F16, kLongTiles, 1);
  expect_attention({1, 4, 4, 133, 150, 64, 64, BP_CAUSAL_LOWER_RIGHT}, BP_BF16, kLongTiles, 1);
  expect_attention({1, 4, 4, 133, 97, 128, 104}, BP_F16, kLongTiles, 1);
}

constexpr const char* kOtherSetting =
    "BACKPLANE_CUDA_TENSOR_KERNELS selects other kernels, or the device cannot run these; another test of the build "
    "runs this one with their setting";

// Tails of rows, keys and elements, causal masks that hide all keys of a row, shared heads, and several uses of each
// place in shared memory.
TEST_F(AttentionTest, ComputesTilesOfWarpgroups) {
  constexpr uint32_t kBits = cuda::kWarpgroups | cuda::kTrial;
  if ((instructions() & kBits) != cuda::kWarpgroups) GTEST_SKIP() << kOtherSetting;
  expect_attention({1, 2, 1, 133, 333, 64, 64}, BP_F16, kGroupTiles, 1);
  expect_attention({1, 2, 2, 150, 150, 64, 40, BP_CAUSAL_UPPER_LEFT, 0, Layout::kRows}, BP_BF16, kGroupTiles, 1);
  expect_attention({1, 1, 1, 130, 600, 128, 128}, BP_F16, kGroupTiles, 1);
  expect_attention({1, 2, 1, 200, 70, 128, 128, BP_CAUSAL_LOWER_RIGHT}, BP_BF16, kGroupTiles, 1);
  expect_attention({1, 4, 1, 40, 280, 72, 104, BP_CAUSAL_LOWER_RIGHT, 0, Layout::kPadded}, BP_F16, kGroupTiles, 1);
}

// Tests tails, causal masks and shared heads with several tiles per head, and with 2 and 4 warpgroups per group.
TEST_F(AttentionTest, WarpgroupsTakeTurns) {
  if ((instructions() & cuda::kTrial) == 0) GTEST_SKIP() << kOtherSetting;
  expect_attention({1, 2, 1, 133, 333, 64, 64}, BP_F16, kLongTurns, 1);
  expect_attention({1, 1, 1, 300, 700, 56, 64}, BP_F16, kLongTurns, 2);
  expect_attention({1, 1, 1, 150, 40, 64, 64}, BP_F16, kGroupTiles, 2);
  expect_attention({1, 2, 2, 150, 150, 64, 40, BP_CAUSAL_UPPER_LEFT, 0, Layout::kRows}, BP_BF16, kGroupTiles, 1);
  expect_attention({1, 1, 1, 140, 500, 64, 64, BP_CAUSAL_LOWER_RIGHT}, BP_F16, kGroupTiles, 1);
  expect_attention({1, 1, 1, 130, 600, 128, 128}, BP_F16, kGroupTiles, 1);
  expect_attention({1, 2, 1, 200, 70, 128, 128, BP_CAUSAL_LOWER_RIGHT}, BP_F16, kGroupTiles, 1);
  expect_attention({1, 4, 1, 40, 280, 72, 104, BP_CAUSAL_LOWER_RIGHT, 0, Layout::kPadded}, BP_F16, kGroupTiles, 1);
}
// Some masks have rows that begin at multiples of 16 bytes, and other masks do not. Some rows end within the 32 keys
// of a lane.
TEST_F(AttentionTest, WarpgroupsTakeTurnsWithMasks) {
  if ((instructions() & cuda::kTrial) == 0) GTEST_SKIP() << kOtherSetting;
  for (const int64_t depth : {64, 128}) {
    expect_attention({1, 2, 1, 70, 400, depth, depth, BP_CAUSAL_NONE, BP_F16}, BP_F16, kGroupTiles, 1);
    expect_attention({1, 1, 1, 133, 333, depth, depth, BP_CAUSAL_LOWER_RIGHT, BP_BOOL}, BP_F16, kGroupTiles, 1);
  }
  expect_attention({2, 2, 2, 40, 137, 64, 40, BP_CAUSAL_UPPER_LEFT, BP_F16, Layout::kRows}, BP_F16, kGroupTiles, 1);
  expect_attention({1, 2, 1, 130, 144, 104, 128, BP_CAUSAL_NONE, BP_BOOL}, BP_F16, kGroupTiles, 1);
}

// The parts of the keys have several steps, and the last part may have fewer or no keys.
TEST_F(AttentionTest, AddsPartsOfTheKeys) {
  expect_attention({1, 8, 2, 1, 700, 128, 128}, BP_F16, kParts);
  expect_attention({1, 8, 2, 1, 700, 128, 128}, BP_F16, kParts, 4);
  expect_attention({1, 1, 1, 1, 4200, 64, 64}, BP_F16, kParts);  // 33 parts
  expect_attention({1, 4, 4, 3, 600, 64, 40, BP_CAUSAL_UPPER_LEFT}, BP_BF16, kParts, 5);
  expect_attention({1, 8, 2, 7, 333, 64, 64, BP_CAUSAL_LOWER_RIGHT, 0, Layout::kRows}, BP_F16, kParts);
  expect_attention({1, 4, 1, 5, 300, 128, 128, BP_CAUSAL_NONE, BP_BOOL}, BP_F16, kParts);
  expect_attention({1, 2, 1, 2, 290, 64, 64, BP_CAUSAL_LOWER_RIGHT, BP_F16}, BP_F16, kParts);
}

TEST_F(AttentionTest, HeadsShareKeys) {
  for (const int64_t queries : {1, 37, 66}) {
    expect_attention({1, 8, 2, queries, 130, 64, 64, BP_CAUSAL_LOWER_RIGHT}, BP_F16);
    expect_attention({1, 4, 1, queries, 70, 128, 128, BP_CAUSAL_LOWER_RIGHT}, BP_F16);
  }
}

TEST_F(AttentionTest, RowsHaveStrides) {
  for (const Layout layout : {Layout::kRows, Layout::kPadded}) {
    expect_attention({2, 4, 2, 33, 66, 64, 64, BP_CAUSAL_LOWER_RIGHT, 0, layout}, BP_F16);
    expect_attention({2, 2, 2, 33, 66, 128, 128, BP_CAUSAL_NONE, BP_BOOL, layout}, BP_F16);
  }
}

// A NaN or an infinite score makes its row NaN, and no other row.
TEST_F(AttentionTest, ScoresMayBeNanOrInfinite) {
  for (const int64_t depth : {64, 128}) {
    const Attend attend({1, 1, 1, 40, 70, depth, depth}, BP_F16, buffers_);
    fill(attend, BP_F16);
    for (int64_t d = 0; d < depth; ++d) halves(3)[5 * depth + d] = half(BP_F16, 100);
    halves(2)[3 * depth] = half(BP_F16, NAN);
    halves(2)[4 * depth] = half(BP_F16, INFINITY);
    execute(attend, BP_F16, kTiles + (depth > 64 ? 1 : 0), 132);
    for (int64_t query = 0; query < 40; ++query) {
      const bool is_nan = query == 3 || query == 4;
      EXPECT_EQ(std::isnan(logarithms()[query]), is_nan) << query;
      for (int64_t column = 0; column < depth; ++column)
        EXPECT_EQ(std::isnan(value(BP_F16, halves(0)[query * depth + column])), is_nan) << query << ", " << column;
    }
  }
}

}  // namespace

}  // namespace backplane::gpu_host::test
