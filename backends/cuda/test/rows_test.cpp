// SPDX-License-Identifier: Apache-2.0
// Tests the kernels that keep rows in registers: their choice, and rows that are too long for the registers, which the
// conformance suite does not contain.
#include <backplane/kit/half.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "gpu_host/test/device_test.hpp"
#include "ops/operators.hpp"
#include "ops/tile.hpp"
#include "runtime/stack.hpp"

namespace backplane::gpu_host::test {

Platform& platform() { return cuda::platform(); }

namespace {

using Extents = std::vector<int64_t>;

simt::View view_of(simt::Buffer* buffer, uint32_t dtype, const Extents& shape, uint64_t first = 0) {
  simt::View out;
  out.dtype = dtype;
  out.rank = static_cast<uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), out.shape);
  int64_t stride = 1;
  for (uint32_t d = out.rank; d-- > 0; stride *= shape[d]) out.strides[d] = stride;
  out.place = {buffer, first * kit::dtype_bytes(dtype)};
  return out;
}

const simt::Operator& operator_of(uint32_t op, uint32_t dtype) {
  static auto* const operators = [] {
    auto* out = new simt::Operators;
    simt::add_softmax(*out);
    simt::add_norm(*out);
    simt::add_norm_bwd(*out);
    simt::add_loss(*out);
    return out;
  }();
  return *operators->find(op, {dtype, dtype})->kernel;
}

bp_axis_attributes along(uint32_t axis) {
  bp_axis_attributes out{};
  out.axis = axis;
  return out;
}

// A call, and the memory to which it refers.
struct RowCall {
  template <class Attributes>
  RowCall(uint32_t op, const Attributes& given, std::vector<simt::View> from, std::vector<simt::View> to,
          simt::Buffer* workspace)
      : inputs(std::move(from)), outputs(std::move(to)) {
    std::memcpy(attributes.bytes, &given, sizeof(given));
    call.op = rules::find_op(op);
    call.inputs = inputs;
    call.outputs = outputs;
    call.attribute_bytes = &attributes;
    call.workspace = {workspace, 0};
  }
  RowCall(const RowCall&) = delete;
  RowCall& operator=(const RowCall&) = delete;

  kit::PlanForm form() const {
    kit::PlanForm out;
    out.op = call.op;
    out.attributes = attributes;
    out.input_count = static_cast<uint32_t>(inputs.size());
    out.output_count = static_cast<uint32_t>(outputs.size());
    uint32_t i = 0;
    for (const auto* views : {&inputs, &outputs}) {
      for (const simt::View& each : *views) out.operands[i++].dtype = static_cast<uint16_t>(each.dtype);
    }
    return out;
  }

  std::vector<simt::View> inputs, outputs;
  kit::Attributes attributes{};
  simt::Call call;
};

// ---- the choice, without a device ----------------------------------------------------------------

class Recorder : public simt::Launcher {
 public:
  explicit Recorder(const simt::Limits& limits) : Launcher(limits) {}
  std::vector<uint32_t> kernels;
  uint32_t group_size = 0, groups = 0;

 private:
  kit::Status enqueue(const simt::Launch& launch) override {
    kernels.push_back(launch.kernel);
    group_size = launch.group_size;
    groups = launch.groups[0];
    return {};
  }
};

enum SoftmaxKernel : uint32_t { kTiles, kPacked, kUnaligned, kColumns };

class RowsChoice : public testing::Test {
 protected:
  RowsChoice() {
    buffer_.address = reinterpret_cast<std::byte*>(uintptr_t{4096});
    limits_.compute_units = 100;
    std::iota(program_.kernels.begin(), program_.kernels.end(), 0u);
  }
  // Returns the kernels of a softmax whose operands begin at element `first` of their memory.
  std::vector<uint32_t> choose(const Extents& shape, uint32_t axis, uint32_t dtype = BP_F32, uint64_t first = 0) {
    const RowCall softmax(BP_OP_SOFTMAX, along(axis), {view_of(&buffer_, dtype, shape, first)},
                          {view_of(&buffer_, dtype, shape, first)}, &buffer_);
    recorder_.emplace(limits_);
    EXPECT_TRUE(operator_of(BP_OP_SOFTMAX, dtype).enqueue(*recorder_, program_, softmax.call).ok());
    return recorder_->kernels;
  }
  using Kernels = std::vector<uint32_t>;

  simt::Buffer buffer_;
  simt::Program program_;
  simt::Limits limits_;
  std::optional<Recorder> recorder_;
};

TEST_F(RowsChoice, ContiguousRowsAreInPacksIfAllRowsAreAligned) {
  EXPECT_EQ(choose({4096, 4096}, 1), Kernels{kPacked});
  EXPECT_EQ(recorder_->group_size, 256u);
  EXPECT_EQ(recorder_->groups, 4096u);
  EXPECT_EQ(choose({4096, 4098}, 1), Kernels{kUnaligned}) << "the second row is not aligned";
  EXPECT_EQ(choose({4096, 4096}, 1, BP_F32, 1), Kernels{kUnaligned});
  EXPECT_EQ(choose({4096, 4096}, 1, BP_F32, 4), Kernels{kPacked});
  EXPECT_EQ(choose({4096, 4096}, 1, BP_BF16, 4), Kernels{kUnaligned});
}

TEST_F(RowsChoice, DeterministicPlansDoNotDependOnAddresses) {
  program_.deterministic = true;
  EXPECT_EQ(choose({4096, 4096}, 1), Kernels{kUnaligned});
  EXPECT_EQ(choose({4096, 4096}, 1, BP_F32, 1), Kernels{kUnaligned});
  EXPECT_EQ(choose({64, 512, 512}, 1), Kernels{kColumns});
  EXPECT_EQ(choose({64, 512, 512}, 1, BP_BF16), Kernels{kTiles}) << "words have boundaries";
}

TEST_F(RowsChoice, AGroupHasSeveralShortRowsButOneLongRow) {
  choose({1000, 64}, 1);
  EXPECT_EQ(recorder_->group_size, 128u);
  EXPECT_EQ(recorder_->groups, 32u) << "4 threads per row";
  choose({1000, 1020}, 1);
  EXPECT_EQ(recorder_->group_size, 64u);
  EXPECT_EQ(recorder_->groups, 1000u);
}

TEST_F(RowsChoice, InterleavedRowsShareAGroup) {
  EXPECT_EQ(choose({64, 512, 512}, 1), Kernels{kColumns});
  EXPECT_EQ(recorder_->groups, 64u * 512 / 16) << "16 threads with adjacent rows keep rows of 512 elements";
  choose({64, 256, 512}, 1);
  EXPECT_EQ(recorder_->groups, 64u * 512 / 32);
  choose({64, 5000, 512}, 1);
  EXPECT_EQ(recorder_->groups, 64u * 512 / 32) << "no group keeps these rows";
  EXPECT_EQ(choose({64, 512, 511}, 1, BP_BF16), Kernels{kTiles}) << "a word has elements of two rows";
  EXPECT_EQ(choose({64, 512, 4}, 1), Kernels{kTiles});
}

TEST_F(RowsChoice, FewLongRowsAndRowsOnCpusAreTiles) {
  EXPECT_EQ(choose({4, 1 << 20}, 1), (Kernels{kTiles, kTiles}));
  EXPECT_EQ(choose({100, 1 << 20}, 1), Kernels{kPacked});
  limits_.is_cpu = true;
  EXPECT_EQ(choose({4096, 4096}, 1), Kernels{kTiles});
  EXPECT_EQ(choose({64, 512, 512}, 1), Kernels{kTiles});
  const RowCall softmax(BP_OP_SOFTMAX, along(0), {view_of(&buffer_, BP_F32, {4, 4})},
                        {view_of(&buffer_, BP_F32, {4, 4})}, &buffer_);
  EXPECT_EQ(operator_of(BP_OP_SOFTMAX, BP_F32).kernels_on(limits_, softmax.form())[kPacked].module, "");
}

// ---- results, on the test driver -----------------------------------------------------------------

class RowsTest : public DeviceTest {
 protected:
  static constexpr uint64_t kOperandBytes = uint64_t{4} << 20;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    for (simt::Buffer*& each : buffers_) {
      each = context().allocate({sizeof(bp_buffer_desc), BP_MEMORY_HOST, kOperandBytes, 256}).value();
      std::memset(each->address, 0xFF, kOperandBytes);
    }
  }
  void TearDown() override {
    for (simt::Buffer* each : buffers_) {
      if (each != nullptr) context().free(each);
    }
  }
  static double value(const simt::View& view, int64_t i) {
    const std::byte* base = view.place.memory->address + view.place.offset;
    if (view.dtype == BP_F32) return reinterpret_cast<const float*>(base)[i];
    return static_cast<double>(kit::bf16_to_f32(reinterpret_cast<const uint16_t*>(base)[i]));
  }
  // Returns a dense operand of random numbers from `low` to `high`.
  simt::View operand(uint32_t buffer, const Extents& shape, float low = -4, float high = 4, uint32_t dtype = BP_F32,
                     uint64_t first = 0) {
    const simt::View out = view_of(buffers_[buffer], dtype, shape, first);
    std::uniform_real_distribution<float> random(low, high);
    std::byte* base = buffers_[buffer]->address + out.place.offset;
    for (int64_t i = 0; i < static_cast<int64_t>(out.elements()); ++i) {
      const float x = random(random_);
      if (dtype == BP_F32) {
        reinterpret_cast<float*>(base)[i] = x;
      } else {
        reinterpret_cast<uint16_t*>(base)[i] = kit::f32_to_bf16(x);
      }
    }
    return out;
  }
  void execute(const RowCall& call, uint32_t dtype) const {
    const simt::Operator& op = operator_of(call.call.op->id, dtype);
    auto program = simt::compile(std::shared_ptr<const simt::Operator>(&op, [](const auto*) {}), call.form(),
                                 devices[0]->kernels, kit::Host(nullptr));
    ASSERT_TRUE(program.ok()) << program.status().message();
    const auto queue = create_queue();
    const kit::Status status = simt::execute(*queue, program.value(), call.call);
    ASSERT_TRUE(status.ok()) << status.message();
    expect_passes(queue->mark(false).value());
  }
  simt::Buffer* workspace() const { return buffers_[kBuffers - 1]; }

  // Compares softmax, log_softmax and softmax_bwd of [outer, extent, inner] along the middle dimension with results
  // in f64.
  void expect_softmax(int64_t outer, int64_t extent, int64_t inner, uint32_t dtype = BP_F32, uint64_t first = 0) {
    SCOPED_TRACE(kit::text(kit::dtype_name(dtype), " ", outer, "x", extent, "x", inner, " from ", first));
    const Extents shape{outer, extent, inner};
    const simt::View x = operand(1, shape, -4, 4, dtype, first), dy = operand(2, shape, -1, 1, dtype, first),
                     y = view_of(buffers_[0], dtype, shape, first);
    bp_softmax_bwd_attributes gradient{};
    gradient.axis = 1;
    const double ulp = dtype == BP_F32 ? 0x1p-24 : 0x1p-9;
    for (const uint32_t op : {BP_OP_SOFTMAX, BP_OP_LOG_SOFTMAX, BP_OP_SOFTMAX_BWD}) {
      const bool backward = op == BP_OP_SOFTMAX_BWD;
      if (backward) {
        execute({op, gradient, {dy, x}, {y}, workspace()}, dtype);
      } else {
        execute({op, along(1), {x}, {y}, workspace()}, dtype);
      }
      for (int64_t row = 0; row < outer * inner; ++row) {
        const auto at = [&](int64_t i) { return (row / inner * extent + i) * inner + row % inner; };
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < extent; ++i) {
          sum += backward ? value(x, at(i)) * value(dy, at(i)) : std::exp(value(x, at(i)));
          magnitude += std::abs(value(x, at(i)) * value(dy, at(i)));
        }
        for (int64_t i = 0; i < extent; ++i) {
          const double in = value(x, at(i));
          const double expected = backward              ? in * (value(dy, at(i)) - sum)
                                  : op == BP_OP_SOFTMAX ? std::exp(in) / sum
                                                        : in - std::log(sum);
          const double scale = backward              ? std::abs(in) * (1 + magnitude)
                               : op == BP_OP_SOFTMAX ? expected
                                                     : std::abs(in) + std::abs(std::log(sum));
          ASSERT_NEAR(value(y, at(i)), expected, 16 * ulp * scale) << op << " of row " << row << ", element " << i;
        }
      }
    }
    // The elements before and after the result are unchanged.
    const int64_t size = outer * extent * inner;
    EXPECT_TRUE(std::isnan(value(y, size)));
    EXPECT_TRUE(first == 0 || std::isnan(value(y, -1)));
    std::memset(buffers_[0]->address, 0xFF, kOperandBytes);
  }

  static constexpr uint32_t kBuffers = 10;
  std::array<simt::Buffer*, kBuffers> buffers_{};
  std::mt19937 random_{1};
};

TEST_F(RowsTest, SoftmaxOfRowsOfAllLengths) {
  expect_softmax(37, 20, 1);
  expect_softmax(3, 1023, 1);
  expect_softmax(3, 4100, 1);
  expect_softmax(17, 8192 + 12, 1);  // three parts
  expect_softmax(3, 5000, 1, BP_F32, 1);
  expect_softmax(3, 4104, 1, BP_BF16);
  expect_softmax(3, 4099, 1, BP_BF16, 3);
}

TEST_F(RowsTest, SoftmaxOfInterleavedRows) {
  expect_softmax(2, 5, 40);
  expect_softmax(2, 300, 24);
  expect_softmax(1, 900, 33);
  expect_softmax(1, 1100, 40);  // five parts
  expect_softmax(2, 600, 36, BP_BF16);
  expect_softmax(2, 60, 36, BP_BF16, 1);
}

TEST_F(RowsTest, InfinitiesAndNanReachAllElements) {
  for (const int64_t inner : {1, 32}) {
    const Extents shape{3, 5000, inner};
    simt::View x = operand(1, shape), y = view_of(buffers_[0], BP_F32, shape);
    auto* from = reinterpret_cast<float*>(buffers_[1]->address);
    for (int64_t i = 0; i < 5000; ++i) from[i * inner] = -std::numeric_limits<float>::infinity();
    from[5000 * inner] = std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < 4500; ++i) from[(10000 + i) * inner] = -std::numeric_limits<float>::infinity();
    execute({BP_OP_SOFTMAX, along(1), {x}, {y}, workspace()}, BP_F32);
    for (int64_t i = 0; i < 5000; ++i) {
      ASSERT_TRUE(std::isnan(value(y, i * inner))) << "all elements are -inf";
      ASSERT_TRUE(std::isnan(value(y, (5000 + i) * inner))) << "an element is inf";
      ASSERT_EQ(value(y, (10000 + i) * inner) == 0, i < 4500) << "the result is 0 where the element is -inf";
    }
  }
}

// Tests layer_norm and its gradients with few and with many rows, and with rows of one part and of several parts.
TEST_F(RowsTest, NormsAndTheirGradients) {
  for (const auto& [rows, extent] : {std::pair<int64_t, int64_t>{5, 300}, {40, 4100}, {3, 5003}, {700, 64}}) {
    SCOPED_TRACE(kit::text(rows, "x", extent));
    bp_norm_attributes forward{};
    forward.axes = 2;
    forward.epsilon = 1e-5F;
    const Extents shape{rows, extent};
    const simt::View x = operand(1, shape, 2, 6), dy = operand(2, shape), gamma = operand(3, {extent}, 0.5F, 2),
                     beta = operand(4, {extent});
    const simt::View y = view_of(buffers_[0], BP_F32, shape), mean = view_of(buffers_[5], BP_F32, {rows, 1}),
                     rstd = view_of(buffers_[6], BP_F32, {rows, 1});
    execute({BP_OP_LAYER_NORM, forward, {x, gamma, beta}, {y, mean, rstd}, workspace()}, BP_F32);
    const auto count = static_cast<double>(extent);
    std::vector<double> centres, scales;
    for (int64_t row = 0; row < rows; ++row) {
      double centre = 0, squares = 0;
      for (int64_t i = 0; i < extent; ++i) centre += value(x, row * extent + i) / count;
      for (int64_t i = 0; i < extent; ++i) squares += std::pow(value(x, row * extent + i) - centre, 2) / count;
      centres.push_back(centre);
      scales.push_back(1 / std::sqrt(squares + 1e-5));
      ASSERT_NEAR(value(mean, row), centre, 1e-6 * centre);
      ASSERT_NEAR(value(rstd, row), scales.back(), 1e-6 * scales.back());
      for (int64_t i = 0; i < extent; ++i) {
        const double expected =
            (value(x, row * extent + i) - centre) * scales.back() * value(gamma, i) + value(beta, i);
        ASSERT_NEAR(value(y, row * extent + i), expected, 1e-5) << "row " << row << ", element " << i;
      }
    }
    const simt::View dx = view_of(buffers_[0], BP_F32, shape), dgamma = view_of(buffers_[7], BP_F32, {extent}),
                     dbeta = view_of(buffers_[8], BP_F32, {extent});
    bp_norm_bwd_attributes attributes{};
    attributes.norm = BP_NORM_LAYER;
    attributes.axes = 2;
    attributes.epsilon = 1e-5F;
    execute({BP_OP_NORM_BWD, attributes, {dy, x, gamma, mean, rstd}, {dx, dgamma, dbeta}, workspace()}, BP_F32);
    std::vector<double> of_gamma(extent), of_beta(extent);
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0, products = 0;
      const auto straight = [&](int64_t i) { return (value(x, row * extent + i) - centres[row]) * scales[row]; };
      const auto slope = [&](int64_t i) { return value(dy, row * extent + i) * value(gamma, i); };
      for (int64_t i = 0; i < extent; ++i) {
        sum += slope(i) / count;
        products += slope(i) * straight(i) / count;
        of_beta[i] += value(dy, row * extent + i);
        of_gamma[i] += value(dy, row * extent + i) * straight(i);
      }
      for (int64_t i = 0; i < extent; ++i) {
        ASSERT_NEAR(value(dx, row * extent + i), scales[row] * (slope(i) - sum - straight(i) * products), 2e-5);
      }
    }
    for (int64_t i = 0; i < extent; ++i) {
      ASSERT_NEAR(value(dgamma, i), of_gamma[i], 1e-5 * static_cast<double>(rows + 10)) << i;
      ASSERT_NEAR(value(dbeta, i), of_beta[i], 1e-6 * static_cast<double>(rows + 10)) << i;
    }
  }
}

TEST_F(RowsTest, CrossEntropyOfLongRows) {
  for (const auto& [rows, classes] : {std::pair<int64_t, int64_t>{5, 300}, {40, 4100}, {3, 5003}}) {
    SCOPED_TRACE(kit::text(rows, "x", classes));
    const simt::View x = operand(1, {rows, classes}), targets = view_of(buffers_[2], BP_I64, {rows});
    auto* target = reinterpret_cast<int64_t*>(buffers_[2]->address);
    for (int64_t row = 0; row < rows; ++row) target[row] = row == 1 ? -100 : (row * 997) % classes;
    simt::View loss;
    loss.dtype = BP_F32;
    loss.place = {buffers_[3], 0};
    const simt::View gradient = view_of(buffers_[0], BP_F32, {rows, classes});
    bp_cross_entropy_attributes attributes{};
    attributes.reduction = BP_REDUCTION_MEAN;
    attributes.ignore_index = -100;
    execute({BP_OP_CROSS_ENTROPY, attributes, {x, targets}, {loss, gradient}, workspace()}, BP_F32);
    double all = 0;
    const auto used = static_cast<double>(rows - 1);
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < classes; ++i) sum += std::exp(value(x, row * classes + i));
      if (row != 1) all += std::log(sum) - value(x, row * classes + target[row]);
      for (int64_t i = 0; i < classes; ++i) {
        const double power = std::exp(value(x, row * classes + i)) / sum;
        const double expected = row == 1 ? 0 : (power - (i == target[row] ? 1 : 0)) / used;
        ASSERT_NEAR(value(gradient, row * classes + i), expected, 1e-6 * (power + std::abs(expected)));
      }
    }
    EXPECT_NEAR(value(loss, 0), all / used, 1e-6 * all / used);
  }
}

}  // namespace

}  // namespace backplane::gpu_host::test
