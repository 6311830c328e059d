// SPDX-License-Identifier: Apache-2.0
// Test cases for views that extend past 2^31 elements or bytes. The cases access only the elements
// of a view and the guard bytes around each row.
#include <fmt/format.h>

#include <cstring>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/values.hpp"
#include "cases/support/large_buffer.hpp"
#include "oracle/comparison.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

constexpr uint64_t kGuardBytes = 64;
constexpr int64_t kRows = 2, kColumns = 3;
// With this stride, the guards of adjacent rows do not overlap.
constexpr int64_t kNearStride = kColumns + 2 * static_cast<int64_t>(kGuardBytes);

struct LargeStride {
  uint32_t op;
  uint32_t dtype;
  int64_t stride;  // distance between rows in elements
  bool output;     // true if the output has the large stride; otherwise the first input has it
};

// A view in its own buffer. Its rows are `stride` elements apart, with guard bytes around each row.
class FarTensor {
 public:
  FarTensor(Context& context, uint32_t dtype, int64_t stride)
      : device_(context.device()),
        dtype_(dtype),
        size_(oracle::bytes_of(dtype)),
        stride_(stride),
        buffer_(
            make_large(context, 2 * kGuardBytes + (static_cast<uint64_t>((kRows - 1) * stride + kColumns)) * size_)) {}

  void write(const oracle::Tensor& dense, Random& random) {
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<unsigned char>& window = windows_[row];
      window.resize(2 * kGuardBytes + row_bytes());
      for (unsigned char& byte : window) byte = static_cast<unsigned char>(random());
      std::memcpy(window.data() + kGuardBytes, dense.bytes.data() + static_cast<uint64_t>(row) * row_bytes(),
                  row_bytes());
      device_.write(buffer_.get(), window_at(row), window.data(), window.size());
    }
  }
  // Reads the elements of the view. Fails the case if a byte around a row changed.
  oracle::Tensor read(Context& context, std::string_view label) {
    oracle::Tensor dense = make_tensor(dtype_, {kRows, kColumns});
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<unsigned char> got(windows_[row].size());
      device_.read(buffer_.get(), window_at(row), got.data(), got.size());
      std::memcpy(dense.bytes.data() + static_cast<uint64_t>(row) * row_bytes(), got.data() + kGuardBytes, row_bytes());
      std::memcpy(got.data() + kGuardBytes, windows_[row].data() + kGuardBytes, row_bytes());
      context.require(got == windows_[row], "a byte outside row {} of {} changed, {} elements from the start", row,
                      label, row * stride_);
    }
    return dense;
  }
  bp_tensor_desc view() const {
    bp_tensor_desc view = {};
    view.dtype = static_cast<uint16_t>(dtype_);
    view.rank = 2;
    view.shape[0] = kRows;
    view.shape[1] = kColumns;
    view.strides[0] = stride_;
    view.strides[1] = 1;
    return view;
  }
  bp_operand operand() const { return {buffer_.get(), kGuardBytes, 0}; }

 private:
  uint64_t row_bytes() const { return kColumns * size_; }
  uint64_t window_at(int64_t row) const { return static_cast<uint64_t>(row * stride_) * size_; }

  Device& device_;
  uint32_t dtype_;
  uint64_t size_;
  int64_t stride_;
  Buffer buffer_;
  std::vector<unsigned char> windows_[kRows];
};

void execute_at(Context& context, const LargeStride& reach, const oracle::Call& call,
                const oracle::Expected& expected) {
  std::vector<FarTensor> inputs;
  inputs.reserve(call.inputs.size());
  std::vector<bp_tensor_desc> views;
  std::vector<bp_operand> operands;
  for (const oracle::Tensor& tensor : call.inputs) {
    // To save memory, at most one input has the large stride.
    inputs.emplace_back(context, reach.dtype, !reach.output && inputs.empty() ? reach.stride : kNearStride);
    inputs.back().write(tensor, context.random());
    views.push_back(inputs.back().view());
    operands.push_back(inputs.back().operand());
  }
  FarTensor output(context, reach.dtype, reach.output ? reach.stride : kNearStride);
  oracle::Tensor poison = make_tensor(reach.dtype, {kRows, kColumns});
  for (int64_t i = 0; i < poison.count(); ++i) {
    oracle::store(poison, i, ~expected.elements[static_cast<size_t>(i)].bits & oracle::mask_of(reach.dtype));
  }
  output.write(poison, context.random());
  views.push_back(output.view());
  operands.push_back(output.operand());

  bp_op_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.op = reach.op;
  desc.inputs = views.data();
  desc.outputs = &views.back();
  desc.input_count = static_cast<uint32_t>(inputs.size());
  desc.output_count = 1;
  Plan plan(context.device(), desc);
  if ((plan.info.stage_inputs | plan.info.stage_outputs) != 0) context.not_claimed("the plan requests staged operands");
  bp_execution execution = {};
  execution.struct_size = sizeof(execution);
  execution.desc = &desc;
  execution.inputs = operands.data();
  execution.outputs = &operands.back();
  Buffer workspace(context.device(), std::max<uint64_t>(plan.info.workspace_bytes, 1));
  if (plan.info.workspace_bytes != 0) {
    execution.workspace = workspace.get();
    execution.workspace_bytes = plan.info.workspace_bytes;
  }
  plan.execute(context.device().stream(), execution);
  ErrorRecord error;
  Device& device = context.device();
  expect_ok(device->stream_wait(device.get(), device.stream(), BP_WAIT_FOREVER, &error), error, "stream_wait");

  for (size_t i = 0; i < inputs.size(); ++i) {
    const oracle::Tensor after = inputs[i].read(context, fmt::format("input {}", i));
    context.require(after.bytes == call.inputs[i].bytes, "input {} changed", i);
  }
  const oracle::Tensor got = output.read(context, "the output");
  const oracle::Comparison result = oracle::compare(expected, got, false);
  context.require(result.bad == 0, "{}: element {}: {}; rows are {} elements apart",
                  oracle::operator_of(reach.op)->name, oracle::index_text(got.shape, result.first),
                  result.bad == 0 ? std::string() : oracle::difference_text(expected, got, result.first), reach.stride);
}

// Executes the operator first on near views and then on far views. Therefore the plugin already has a plan for near
// views when it creates the plan for far views.
void reach_far(Context& context, const LargeStride& reach) {
  const Problem problem{.op = reach.op, .dtype = reach.dtype};
  oracle::Call call;
  call.op = reach.op;
  for (uint32_t i = 0; i < oracle::operator_of(reach.op)->inputs_max; ++i) {
    call.inputs.push_back(make_tensor(reach.dtype, {kRows, kColumns}));
  }
  fill_inputs(call.inputs, problem, reach.dtype, context.random());
  call.outputs.push_back({reach.dtype, {kRows, kColumns}, {}});
  const oracle::Expected expected = std::move(oracle::evaluate(call).front());
  LargeStride near = reach;
  near.stride = kNearStride;
  execute_at(context, near, call, expected);
  execute_at(context, reach, call, expected);
}

std::string_view requirement_of(uint32_t op) { return op == BP_OP_COPY ? "BP-OPR-002" : "BP-OPR-020"; }

}  // namespace

void add_large(Catalogue& catalogue) {
  struct Stride {
    uint32_t dtype;
    int64_t stride;
    std::string_view text;
  };
  // The rows are more than 2^31 elements, 2^31 bytes or 2^32 bytes apart.
  constexpr Stride strides[] = {{BP_U8, (int64_t{1} << 31) + 5, "elements"},
                                {BP_F32, (int64_t{1} << 29) + 3, "bytes31"},
                                {BP_F32, (int64_t{1} << 30) + 3, "bytes32"}};
  for (const uint32_t op : {uint32_t{BP_OP_COPY}, uint32_t{BP_OP_ADD}}) {
    for (const Stride& each : strides) {
      for (const bool output : {false, true}) {
        const LargeStride reach{op, each.dtype, each.stride, output};
        catalogue.push_back(
            {.id = fmt::format("numeric.{}.{}.2x3.far.{}.{}", oracle::operator_of(op)->name,
                               oracle::format_of(each.dtype).name, output ? "output" : "input", each.text),
             .profile = BP_PROFILE_CORE,
             .extension = "LARGE",
             .op = op,
             .dtype = each.dtype,
             .requirements = {requirement_of(op), "BP-NUM-016"},
             .run = [reach](Context& context) { reach_far(context, reach); },
             .large = true});
      }
    }
  }
}

}  // namespace backplane::conformance::numeric
