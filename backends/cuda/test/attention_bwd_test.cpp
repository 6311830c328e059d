// SPDX-License-Identifier: Apache-2.0
// Tests `attention_bwd` with the plugin's kernels for tensor cores: tiles of several steps, masks, heads, strides and
// small gradients. The conformance suite has more cases, all of which fit in one tile.
#include "runtime/attention_bwd.hpp"

#include <backplane/kit/half.hpp>
#include <cmath>
#include <random>

#include "gpu_host/test/device_test.hpp"
#include "runtime/stack.hpp"
#include "runtime/units.hpp"

namespace backplane::gpu_host::test {

Platform& platform() { return cuda::platform(); }

namespace {

constexpr uint64_t kBwdBytes = uint64_t{1} << 20;
enum Slot : uint32_t { kDy, kQ, kK, kV, kY, kSum, kMask, kDq, kDk, kDv, kWorkspace, kSlots };

struct BwdShape {
  int64_t batches, heads, groups, queries, keys, depth, columns;
  uint32_t causal = BP_CAUSAL_NONE;
  uint32_t mask = 0;        // a dtype, or 0
  int64_t pitch = 0;        // unused elements between rows
  float gradient = 1;       // standard deviation of dy
  bool has_outputs = true;  // whether the call has dk and dv
};

std::shared_ptr<const simt::Operator> backward_of(uint32_t dtype) {
  static auto* const operators = [] {
    auto* out = new simt::Operators;
    cuda::add_tensor_attention_bwd(*out);
    return out;
  }();
  return operators->find(BP_OP_ATTENTION_BWD, {dtype, dtype})->kernel;
}

// Forwards launches to a queue, as if the device had one multiprocessor, so that few tiles suffice for the choice of
// any kernel.
class OneUnit : public simt::Launcher {
 public:
  OneUnit(simt::Limits limits, simt::Launcher& queue) : Launcher(with_one_unit(limits)), queue_(queue) {}

 private:
  static simt::Limits with_one_unit(simt::Limits limits) {
    limits.compute_units = 1;
    return limits;
  }
  kit::Status enqueue(const simt::Launch& launch) override { return queue_.launch(launch); }
  simt::Launcher& queue_;
};

class AttentionBackwardTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    for (simt::Buffer*& each : buffers_) {
      each = context().allocate({sizeof(bp_buffer_desc), BP_MEMORY_HOST, kBwdBytes, 256}).value();
    }
  }
  void TearDown() override {
    for (simt::Buffer* each : buffers_) {
      if (each != nullptr) context().free(each);
    }
  }
  uint16_t* halves(uint32_t slot) const { return reinterpret_cast<uint16_t*>(buffers_[slot]->address); }
  float* sums() const { return reinterpret_cast<float*>(buffers_[kSum]->address); }
  simt::View view(uint32_t slot, uint32_t dtype, std::array<int64_t, 4> shape, int64_t gap) const {
    simt::View out;
    out.dtype = dtype;
    out.rank = 4;
    std::copy(shape.begin(), shape.end(), out.shape);
    const int64_t pitch = shape[3] + gap;
    const int64_t strides[] = {shape[1] * shape[2] * pitch, shape[2] * pitch, pitch, 1};
    std::copy(std::begin(strides), std::end(strides), out.strides);
    out.place = {buffers_[slot], 0};
    return out;
  }
  double get(const simt::View& of, uint32_t slot, int64_t b, int64_t h, int64_t row, int64_t i) const {
    const uint16_t x = halves(slot)[b * of.strides[0] + h * of.strides[1] + row * of.strides[2] + i * of.strides[3]];
    return of.dtype == BP_F16 ? kit::f16_to_f32(x) : kit::bf16_to_f32(x);
  }
  // Fills an operand with random numbers. All other memory contains NaN.
  void fill(const simt::View& of, uint32_t slot, float deviation) {
    std::normal_distribution<float> normal(0, deviation);
    for_rows(of, [&](int64_t b, int64_t h, int64_t row) {
      for (int64_t i = 0; i < of.shape[3]; ++i) {
        const int64_t at = b * of.strides[0] + h * of.strides[1] + row * of.strides[2] + i;
        if (of.dtype == BP_BOOL) {
          buffers_[slot]->address[at] = std::byte(random_() % 4 != 0);
        } else {
          halves(slot)[at] = of.dtype == BP_F16 ? kit::f32_to_f16(normal(random_)) : kit::f32_to_bf16(normal(random_));
        }
      }
    });
  }
  template <class Body>
  static void for_rows(const simt::View& of, const Body& body) {
    for (int64_t b = 0; b < of.shape[0]; ++b) {
      for (int64_t h = 0; h < of.shape[1]; ++h) {
        for (int64_t row = 0; row < of.shape[2]; ++row) body(b, h, row);
      }
    }
  }
  void expect_gradients(const BwdShape& s, uint32_t dtype);

 private:
  std::array<simt::Buffer*, kSlots> buffers_{};
  std::mt19937 random_{1};
};

// The expected values of a gradient, as sums in f64. `terms` contains the sums of the magnitudes of the terms.
struct Expected {
  explicit Expected(const simt::View& of)
      : values(of.shape[0] * of.shape[1] * of.shape[2] * of.shape[3]), terms(values) {}
  void add(const simt::View& of, int64_t b, int64_t h, int64_t row, int64_t i, double term) {
    const int64_t at = ((b * of.shape[1] + h) * of.shape[2] + row) * of.shape[3] + i;
    values[at] += term;
    terms[at] += std::abs(term);
  }
  std::vector<double> values, terms;
};

void AttentionBackwardTest::expect_gradients(const BwdShape& s, uint32_t dtype) {
  SCOPED_TRACE(kit::text(kit::dtype_name(dtype), ": ", s.heads, " heads, ", s.queries, " queries, ", s.keys,
                         " keys, depth ", s.depth, ", causal ", s.causal, ", mask ", s.mask));
  const simt::View dy = view(kDy, dtype, {s.batches, s.heads, s.queries, s.columns}, s.pitch);
  const simt::View q = view(kQ, dtype, {s.batches, s.heads, s.queries, s.depth}, s.pitch);
  const simt::View k = view(kK, dtype, {s.batches, s.groups, s.keys, s.depth}, s.pitch);
  const simt::View v = view(kV, dtype, {s.batches, s.groups, s.keys, s.columns}, s.pitch);
  const simt::View y = view(kY, dtype, {s.batches, s.heads, s.queries, s.columns}, s.pitch);
  const simt::View mask = view(kMask, s.mask, {s.batches, s.heads, s.queries, s.keys}, 0);
  const simt::View dq = view(kDq, dtype, {s.batches, s.heads, s.queries, s.depth}, s.pitch);
  const simt::View dk = view(kDk, dtype, {s.batches, s.groups, s.keys, s.depth}, s.pitch);
  const simt::View dv = view(kDv, dtype, {s.batches, s.groups, s.keys, s.columns}, s.pitch);
  for (const simt::Buffer* each : buffers_) std::memset(each->address, 0xFF, kBwdBytes);
  fill(dy, kDy, s.gradient), fill(q, kQ, 1), fill(k, kK, 1), fill(v, kV, 1), fill(y, kY, 0.1F);
  if (s.mask != 0) fill(mask, kMask, 1);
  const float scale = 0.125F;
  const int64_t repeats = s.heads / s.groups, ahead = s.causal == BP_CAUSAL_LOWER_RIGHT ? s.keys - s.queries : 0;

  Expected to_q(dq), to_k(dk), to_v(dv);
  for_rows(q, [&](int64_t b, int64_t h, int64_t row) {
    const int64_t g = h / repeats;
    std::vector<double> scores(s.keys, -HUGE_VAL);
    double most = -HUGE_VAL, sum = 0, mean = 0;
    for (int64_t key = 0; key < s.keys; ++key) {
      if (s.causal != BP_CAUSAL_NONE && key > row + ahead) continue;
      const int64_t mask_at = b * mask.strides[0] + h * mask.strides[1] + row * mask.strides[2] + key;
      if (s.mask == BP_BOOL && buffers_[kMask]->address[mask_at] == std::byte{0}) continue;
      scores[key] = 0;
      for (int64_t i = 0; i < s.depth; ++i) scores[key] += get(q, kQ, b, h, row, i) * get(k, kK, b, g, key, i) * scale;
      if (s.mask == dtype) scores[key] += get(mask, kMask, b, h, row, key);
      most = std::max(most, scores[key]);
    }
    for (const double score : scores) sum += score == -HUGE_VAL ? 0 : std::exp(score - most);
    const double logarithm = sum == 0 ? -HUGE_VAL : most + std::log(sum);
    sums()[(b * s.heads + h) * s.queries + row] = static_cast<float>(logarithm);
    for (int64_t i = 0; i < s.columns; ++i) mean += get(dy, kDy, b, h, row, i) * get(y, kY, b, h, row, i);
    for (int64_t key = 0; key < s.keys; ++key) {
      const double weight = scores[key] == -HUGE_VAL ? 0 : std::exp(scores[key] - logarithm);
      double slope = -mean;
      for (int64_t i = 0; i < s.columns; ++i) {
        slope += get(dy, kDy, b, h, row, i) * get(v, kV, b, g, key, i);
        to_v.add(dv, b, g, key, i, weight * get(dy, kDy, b, h, row, i));
      }
      for (int64_t i = 0; i < s.depth; ++i) {
        to_q.add(dq, b, h, row, i, scale * weight * slope * get(k, kK, b, g, key, i));
        to_k.add(dk, b, g, key, i, scale * weight * slope * get(q, kQ, b, h, row, i));
      }
    }
  });

  simt::View log_sums = view(kSum, BP_F32, {s.batches, s.heads, s.queries, 1}, 0);
  log_sums.rank = 3;
  const std::array<simt::View, 7> inputs{dy, q, k, v, y, log_sums, mask};
  std::array<simt::View, 3> outputs{dq, dk, dv};
  if (!s.has_outputs) outputs[1].dtype = 0;
  kit::Attributes attributes{};
  bp_attention_attributes given{};
  given.causal = s.causal, given.scale = scale;
  std::memcpy(attributes.bytes, &given, sizeof(given));
  simt::Call call;
  call.op = rules::find_op(BP_OP_ATTENTION_BWD);
  call.inputs = {inputs.data(), s.mask == 0 ? 6u : 7u};
  call.outputs = outputs;
  call.attribute_bytes = &attributes;
  call.workspace = {buffers_[kWorkspace], 0};
  call.workspace_bytes = kBwdBytes;
  kit::PlanForm form;
  form.op = call.op;
  auto program = simt::compile(backward_of(dtype), form, devices[0]->kernels, kit::Host(nullptr));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const auto queue = create_queue();
  OneUnit launcher(context().device().limits, *queue);
  const kit::Status status = simt::execute(launcher, program.value(), call);
  ASSERT_TRUE(status.ok()) << status.message();
  expect_passes(queue->mark(false).value());

  const double unit = dtype == BP_F16 ? 0x1p-12 : 0x1p-9;
  const auto compare = [&](const char* name, const simt::View& of, uint32_t slot, const Expected& expected) {
    std::size_t at = 0;
    for_rows(of, [&](int64_t b, int64_t h, int64_t row) {
      for (int64_t i = 0; i < of.shape[3]; ++i, ++at) {
        const double tolerance = (4 * unit + 2e-5) * expected.terms[at] + 2 * unit * std::abs(expected.values[at]) +
                                 (dtype == BP_F16 ? 0x1p-25 : 0);
        EXPECT_NEAR(get(of, slot, b, h, row, i), expected.values[at], tolerance) << name << " row " << row << ", " << i;
        if (HasFailure()) return;
      }
    });
    for_rows(of, [&](int64_t b, int64_t h, int64_t row) {
      const int64_t from = b * of.strides[0] + h * of.strides[1] + row * of.strides[2];
      std::fill_n(halves(slot) + from, of.shape[3], uint16_t{0xFFFF});
    });
  };
  compare("dq", dq, kDq, to_q);
  if (s.has_outputs) compare("dk", dk, kDk, to_k);
  compare("dv", dv, kDv, to_v);
  for (const uint32_t slot : {kDq, kDk, kDv}) {
    EXPECT_TRUE(std::all_of(halves(slot), halves(slot) + kBwdBytes / 2, [](uint16_t x) { return x == 0xFFFF; }))
        << "other memory changed";
  }
}

// Tiles and steps with tails, for rows of up to 64 and of up to 128 elements.
TEST_F(AttentionBackwardTest, ComputesSeveralTiles) {
  expect_gradients({1, 2, 1, 133, 97, 64, 64}, BP_F16);
  expect_gradients({1, 1, 1, 70, 140, 128, 128}, BP_BF16);
  expect_gradients({2, 1, 1, 65, 66, 40, 104}, BP_F16);
  expect_gradients({1, 1, 1, 150, 210, 128, 128}, BP_F16);
}

TEST_F(AttentionBackwardTest, MasksHideKeys) {
  expect_gradients({1, 2, 1, 150, 70, 64, 64, BP_CAUSAL_LOWER_RIGHT}, BP_F16);
  expect_gradients({1, 1, 1, 70, 150, 128, 128, BP_CAUSAL_LOWER_RIGHT}, BP_F16);
  expect_gradients({1, 1, 1, 150, 150, 64, 64, BP_CAUSAL_UPPER_LEFT}, BP_BF16);
  expect_gradients({1, 2, 2, 70, 90, 64, 64, BP_CAUSAL_LOWER_RIGHT, BP_F16}, BP_F16);
  expect_gradients({1, 2, 2, 70, 90, 64, 64, BP_CAUSAL_NONE, BP_BOOL}, BP_BF16);
}

// In the first case, rows begin at multiples of 16 bytes. In the second case, the kernels copy rows element by
// element.
TEST_F(AttentionBackwardTest, RowsHaveStrides) {
  expect_gradients({1, 4, 2, 70, 67, 64, 64, BP_CAUSAL_NONE, 0, 8}, BP_F16);
  expect_gradients({1, 4, 2, 70, 67, 61, 35, BP_CAUSAL_NONE, 0, 1}, BP_F16);
}

// The gradients of scores are below the least normal number of f16, and grow from step to step.
TEST_F(AttentionBackwardTest, GradientsOfScoresMayBeSmall) {
  expect_gradients({1, 1, 1, 100, 300, 64, 64, BP_CAUSAL_NONE, 0, 0, 0x1p-10F}, BP_F16);
}

TEST_F(AttentionBackwardTest, OutputsAreOptional) {
  expect_gradients({1, 1, 1, 20, 30, 64, 64, BP_CAUSAL_NONE, 0, 0, 1, false}, BP_F16);
}

TEST(AttentionBackwardPlans, OtherCallsAreUnsupported) {
  simt::Limits limits;
  limits.matrix_instructions = cuda::kTensorCores;
  limits.launch_bytes = 163 << 10;
  kit::CheckedDesc checked;
  checked.op = rules::find_op(BP_OP_ATTENTION_BWD);
  std::array<bp_tensor_desc, 6> inputs{};
  for (bp_tensor_desc& each : inputs) {
    each.dtype = BP_F16, each.rank = 4;
    each.shape[0] = 2, each.shape[1] = 3, each.shape[2] = 5, each.shape[3] = 64;
  }
  checked.desc.inputs = inputs.data();
  checked.desc.input_count = 6;
  kit::PlanNeeds needs;
  const auto prepare = [&] { return backward_of(BP_F16)->prepare_on(limits, checked, needs); };
  EXPECT_TRUE(prepare().ok());
  EXPECT_FALSE(needs.any_size);
  EXPECT_EQ(needs.workspace_bytes, 2u * 3 * 5 * 4);
  inputs[3].shape[3] = 136;
  EXPECT_EQ(prepare().message(), "attention_bwd: a row has more than 128 elements; let core decompose it");
  inputs[3].shape[3] = 64;
  limits.matrix_instructions = 0;
  EXPECT_EQ(prepare().message(), "attention_bwd: this device has no kernels for tensor cores; let core decompose it");
}

}  // namespace

}  // namespace backplane::gpu_host::test
