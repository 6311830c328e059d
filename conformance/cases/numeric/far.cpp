// SPDX-License-Identifier: Apache-2.0
// Test cases for every primitive with offsets that exceed 31 or 32 bits. The large offset comes
// from a stride, from an index times a stride, or from the offset of an operand, scalar or
// workspace. The cases access only the elements and the bytes next to the elements.
#include <fmt/format.h>

#include <cstring>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/values.hpp"
#include "cases/support/large_buffer.hpp"
#include "cases/support/op_desc.hpp"
#include "oracle/comparison.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

constexpr uint64_t kGuard = 32;  // number of checked bytes before and after each element

std::vector<unsigned char> random_bytes(Random& random, uint64_t count) {
  std::vector<unsigned char> bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

// A view in its own buffer. Only the elements and the bytes next to the elements are accessed.
// `used` has one flag per element in row-major order, and is empty if all elements are used.
class Sparse {
 public:
  Sparse(Context& context, const bp_tensor_desc& view, uint64_t offset, const std::vector<bool>& used)
      : device_(context.device()),
        view_(view),
        offset_(offset + kGuard),
        size_(oracle::bytes_of(view.dtype)),
        buffer_(make_large(context, bytes_of(view, offset))) {
    std::vector<int64_t> index(view.rank, 0);
    const auto count = static_cast<size_t>(conformance::bytes_of(view) / size_);
    for (size_t i = 0; i < count; ++i) {
      uint64_t at = offset_;
      for (uint32_t d = 0; d < view.rank; ++d) at += static_cast<uint64_t>(index[d] * view.strides[d]) * size_;
      offsets_.push_back(used.empty() || used[i] ? at : kNowhere);
      for (uint32_t d = view.rank; d-- > 0 && ++index[d] == view.shape[d];) index[d] = 0;
    }
    std::vector<uint64_t> sorted = offsets_;
    std::erase(sorted, kNowhere);
    std::sort(sorted.begin(), sorted.end());
    for (const uint64_t at : sorted) {
      if (windows_.empty() || at - kGuard > windows_.back().begin + windows_.back().bytes.size())
        windows_.push_back({at - kGuard, {}});
      windows_.back().bytes.resize(at + size_ + kGuard - windows_.back().begin);
    }
  }

  void write(const oracle::Tensor& dense, Random& random) {
    for (Window& window : windows_) window.bytes = random_bytes(random, window.bytes.size());
    for (size_t i = 0; i < offsets_.size(); ++i)
      if (offsets_[i] != kNowhere) std::memcpy(byte_at(offsets_[i]), dense.bytes.data() + i * size_, size_);
    for (const Window& window : windows_)
      device_.write(buffer_.get(), window.begin, window.bytes.data(), window.bytes.size());
  }
  // Reads the elements of the view. Fails the case if a byte next to an element changed.
  oracle::Tensor read(Context& context, std::string_view label) {
    oracle::Tensor dense = make_tensor(view_.dtype, {view_.shape, view_.shape + view_.rank});
    std::vector<Window> before = windows_;
    for (Window& window : windows_) device_.read(buffer_.get(), window.begin, window.bytes.data(), window.bytes.size());
    for (size_t i = 0; i < offsets_.size(); ++i) {
      if (offsets_[i] == kNowhere) continue;
      std::memcpy(dense.bytes.data() + i * size_, byte_at(offsets_[i]), size_);
      std::memset(byte_at(offsets_[i]), 0, size_);
    }
    std::swap(before, windows_);
    for (const uint64_t at : offsets_)
      if (at != kNowhere) std::memset(byte_at(at), 0, size_);
    for (size_t i = 0; i < windows_.size(); ++i)
      context.require(before[i].bytes == windows_[i].bytes, "a byte between elements of {} changed, near byte {}",
                      label, windows_[i].begin);
    return dense;
  }
  bp_operand operand() const { return {buffer_.get(), offset_, 0}; }

 private:
  static constexpr uint64_t kNowhere = UINT64_MAX;
  struct Window {
    uint64_t begin;
    std::vector<unsigned char> bytes;
  };
  static uint64_t bytes_of(const bp_tensor_desc& view, uint64_t offset) {
    uint64_t reach = 1;
    for (uint32_t d = 0; d < view.rank; ++d) reach += static_cast<uint64_t>((view.shape[d] - 1) * view.strides[d]);
    return offset + 2 * kGuard + reach * oracle::bytes_of(view.dtype);
  }
  unsigned char* byte_at(uint64_t at) {
    for (Window& window : windows_)
      if (at >= window.begin && at < window.begin + window.bytes.size())
        return window.bytes.data() + (at - window.begin);
    throw std::logic_error("an element is in no window");
  }

  Device& device_;
  bp_tensor_desc view_;
  uint64_t offset_, size_;
  Buffer buffer_;
  std::vector<uint64_t> offsets_;
  std::vector<Window> windows_;
};

struct Far {
  OpDesc desc;                            // describes dense views
  std::vector<std::vector<bool>> used{};  // flags per operand, inputs first; empty if all elements are used
  oracle::Call call{};                    // the call with its attributes and data
};

oracle::Tensor small_numbers(const bp_tensor_desc& view, Random& random) {
  oracle::Tensor tensor = make_tensor(view.dtype, {view.shape, view.shape + view.rank});
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const auto number = static_cast<int64_t>(random() % 5 + 1);
    oracle::store(tensor, i,
                  view.dtype == BP_BOOL ? static_cast<uint64_t>(number % 2) : bph_scalar_from_i64(view.dtype, number));
  }
  return tensor;
}

void make_call(Far& far, Random& random) {
  oracle::Call& call = far.call;
  const bph_op_info& op = op_info(far.desc.op());
  call.op = far.desc.op();
  call.attributes = far.desc.attribute_bytes();
  for (const bp_tensor_desc& view : far.desc.inputs()) call.inputs.push_back(small_numbers(view, random));
  for (const bp_tensor_desc& view : far.desc.outputs()) call.outputs.push_back(small_numbers(view, random));
  for (uint32_t i = 0; i < op.scalars_max; ++i)
    call.scalars.push_back(
        bph_scalar_from_i64(op.scalar_dtype == 0 ? far.desc.outputs()[0].dtype : op.scalar_dtype, 3 + i));
}

// Sets the indices along `axis` if the operator has an index operand. The indices select each
// element once.
void set_indices(Far& far, uint32_t axis) {
  const bph_op_info& op = op_info(far.desc.op());
  if (op.dtype_rule != BP_RULE_GATHER && op.dtype_rule != BP_RULE_SCATTER) return;
  oracle::Tensor& index = far.call.inputs[op.dtype_rule == BP_RULE_GATHER ? 1 : 0];
  const int64_t columns = index.shape[1];
  for (int64_t i = 0; i < index.count(); ++i) {
    const int64_t coordinate = axis == 0 ? index.shape[0] - 1 - i / columns : columns - 1 - i % columns;
    oracle::store(index, i, oracle::encode_integer(index.dtype, coordinate));
  }
}

std::string strides_text(const bp_tensor_desc& view) {
  return fmt::format("[{}]", fmt::join(view.strides, view.strides + view.rank, ", "));
}

// Executes the operator on `views`, which contains the inputs and then the outputs. `offsets`
// contains the offset of each view in bytes.
void execute_over(Context& context, Far& far, const std::vector<bp_tensor_desc>& views,
                  const std::vector<uint64_t>& offsets, const std::vector<oracle::Expected>& expected) {
  Device& device = context.device();
  OpDesc desc = far.desc;
  const size_t inputs = desc.inputs().size();
  std::vector<Sparse> sparse;
  std::vector<bp_operand> operands;
  sparse.reserve(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    (i < inputs ? desc.inputs()[i] : desc.outputs()[i - inputs]) = views[i];
    sparse.emplace_back(context, views[i], offsets[i], far.used.empty() ? std::vector<bool>{} : far.used[i]);
    sparse[i].write(i < inputs ? far.call.inputs[i] : far.call.outputs[i - inputs], context.random());
    operands.push_back(sparse[i].operand());
  }
  Plan plan(device, desc.get());
  if ((plan.info.stage_inputs | plan.info.stage_outputs) != 0) context.not_claimed("the plan requests staged operands");
  std::vector<bp_operand> scalars;
  for (const uint64_t bits : far.call.scalars) scalars.push_back({nullptr, 0, bits});
  bp_execution execution = {};
  execution.struct_size = sizeof(execution);
  execution.desc = &desc.get();
  execution.inputs = operands.data();
  execution.outputs = operands.data() + inputs;
  execution.scalars = scalars.data();
  const Buffer workspace(device, std::max<uint64_t>(plan.info.workspace_bytes, 1));
  if (plan.info.workspace_bytes != 0) {
    execution.workspace = workspace.get();
    execution.workspace_bytes = plan.info.workspace_bytes;
  }
  Stream stream(device);
  plan.execute(stream.get(), execution);
  stream.wait();
  std::string where;
  for (size_t i = 0; i < views.size(); ++i)
    where += fmt::format("{}{} has strides {} from byte {}", i == 0 ? "" : ", ", i < inputs ? "input" : "output",
                         strides_text(views[i]), offsets[i] + kGuard);
  for (size_t i = 0; i < inputs; ++i) {
    const oracle::Tensor after = sparse[i].read(context, fmt::format("input {}", i));
    if (far.used.empty()) context.require(after.bytes == far.call.inputs[i].bytes, "input {} changed; {}", i, where);
  }
  for (size_t o = 0; o < expected.size(); ++o) {
    oracle::Tensor got = sparse[inputs + o].read(context, fmt::format("output {}", o));
    if (!far.used.empty() && !far.used[inputs + o].empty())
      for (int64_t i = 0; i < got.count(); ++i)  // an unused element is treated as unchanged
        if (!far.used[inputs + o][static_cast<size_t>(i)]) oracle::store(got, i, oracle::load(far.call.outputs[o], i));
    const oracle::Comparison result = oracle::compare(expected[o], got, false);
    context.require(result.bad == 0, "{}: element {}: {}; {}", oracle::operator_of(far.call.op)->name,
                    oracle::index_text(got.shape, result.first),
                    result.bad == 0 ? std::string() : oracle::difference_text(expected[o], got, result.first), where);
  }
}

std::vector<bp_tensor_desc> views_of(Far& far) {
  std::vector<bp_tensor_desc> views = far.desc.inputs();
  views.insert(views.end(), far.desc.outputs().begin(), far.desc.outputs().end());
  return views;
}

// Sets strides so that the first and last elements along `axis` are at least `distance` elements
// apart. The other dimensions are dense.
void spread(bp_tensor_desc& view, uint32_t axis, int64_t distance) {
  int64_t stride = 1;
  for (uint32_t d = view.rank; d-- > 0;) {
    if (d == axis) continue;
    view.strides[d] = stride;
    stride *= view.shape[d];
  }
  view.strides[axis] = distance / (view.shape[axis] - 1) + 5;
}

struct FarOffset {
  uint32_t dtype;
  int64_t distance;  // distance in elements
  std::string_view text;
};
constexpr FarOffset kFarOffsets[] = {{BP_U8, int64_t{1} << 31, "elements31"},
                                     {BP_F32, int64_t{1} << 29, "bytes31"},
                                     {BP_F32, int64_t{1} << 30, "bytes32"}};

// Returns a descriptor whose operands have few elements. An operator with an axis uses `axis`, and
// matmul has a batch dimension.
OpDesc few_elements(const bph_op_info& op, uint32_t dtype, uint32_t axis) {
  OpDesc made = sample(op, dtype);
  if (op.shape_rule == BP_SHAPE_MATMUL) {
    for (std::vector<bp_tensor_desc>* views : {&made.inputs(), &made.outputs()})
      for (bp_tensor_desc& view : *views) view = dense_view(view.dtype, {2, view.shape[0], view.shape[1]});
    return made;
  }
  if (axis == 0 || op.attribute_bytes == 0) return made;
  if (op.shape_rule == BP_SHAPE_REDUCE)
    made.attributes(bp_reduce_attributes{0, 2});
  else
    std::memcpy(made.attribute_bytes().data() + sizeof(uint32_t), &axis, sizeof(axis));
  if (op.shape_rule == BP_SHAPE_REDUCE || op.shape_rule == BP_SHAPE_ARG)
    for (bp_tensor_desc& view : made.outputs()) view = dense_view(view.dtype, {2, 1});
  return made;
}
bool has_axis(const bph_op_info& op) {
  switch (op.shape_rule) {
    case BP_SHAPE_REDUCE:
    case BP_SHAPE_ARG:
      return true;
    default:
      return op.op == BP_OP_IOTA || op.op == BP_OP_GATHER || op.op == BP_OP_SCATTER || op.op == BP_OP_CUMSUM ||
             op.op == BP_OP_SORT;
  }
}

// Executes the operator first on dense views and then on far views. Therefore the plugin already has a plan for dense
// views when it creates the plan for far views.
void reach_far(Context& context, const bph_op_info& op, const FarOffset& reach, uint32_t axis, size_t operand,
               uint32_t dimension) {
  Far far{few_elements(op, reach.dtype, axis)};
  make_call(far, context.random());
  set_indices(far, axis);
  const std::vector<oracle::Expected> expected = oracle::evaluate(far.call);
  std::vector<bp_tensor_desc> views = views_of(far);
  const std::vector<uint64_t> offsets(views.size(), 0);
  execute_over(context, far, views, offsets, expected);
  const uint64_t bytes = static_cast<uint64_t>(reach.distance) * oracle::bytes_of(reach.dtype);
  // An operand of another dtype spans the same number of bytes as an operand of reach.dtype.
  spread(views[operand], dimension, static_cast<int64_t>(bytes / oracle::bytes_of(views[operand].dtype)));
  execute_over(context, far, views, offsets, expected);
}

// Tests an index and a stride that each fit into 31 bits, but whose product exceeds 31 or 32 bits.
// The case does not access rows that no index selects.
void index_times_stride(Context& context, const bph_op_info& op, uint32_t dtype, bool bytes) {
  constexpr int64_t rows = 70001, row_columns = 3;
  const int64_t named[] = {0, 1, 40000, 70000};
  const bool gather = op.op == BP_OP_GATHER;
  Far far{sample(op, dtype)};
  const auto few = static_cast<int64_t>(std::size(named));
  const auto resize = [=](bp_tensor_desc& view, int64_t extent) {
    view = dense_view(view.dtype, {extent, row_columns});
  };
  for (bp_tensor_desc& view : far.desc.inputs()) resize(view, few);
  for (bp_tensor_desc& view : far.desc.outputs()) resize(view, few);
  bp_tensor_desc& table = gather ? far.desc.inputs()[0] : far.desc.outputs()[0];
  resize(table, rows);
  make_call(far, context.random());
  oracle::Tensor& index = far.call.inputs[gather ? 1 : 0];
  for (int64_t i = 0; i < index.count(); ++i)
    oracle::store(index, i, oracle::encode_integer(index.dtype, named[(i / row_columns + i % row_columns) % few]));
  std::vector<bp_tensor_desc> views = views_of(far);
  far.used.resize(views.size());
  std::vector<bool>& used = far.used[gather ? 0 : views.size() - 1];
  used.resize(rows * row_columns);
  for (const int64_t row : named)
    for (int64_t column = 0; column < row_columns; ++column)
      used[static_cast<size_t>(row * row_columns + column)] = true;
  const std::vector<oracle::Expected> expected = oracle::evaluate(far.call);
  const uint64_t wanted = (uint64_t{1} << (bytes ? 32 : 31)) + (1u << 20);
  views[gather ? 0 : views.size() - 1].strides[0] =
      static_cast<int64_t>(wanted / (rows - 1) / (bytes ? oracle::bytes_of(dtype) : 1) + 1);
  execute_over(context, far, views, std::vector<uint64_t>(views.size(), 0), expected);
}

constexpr uint64_t kFarOffset = (uint64_t{1} << 32) + 4096;

void behind_bytes(Context& context, const bph_op_info& op, size_t operand) {
  Far far{few_elements(op, usual_dtype(op), 0)};
  make_call(far, context.random());
  set_indices(far, 0);
  const std::vector<bp_tensor_desc> views = views_of(far);
  std::vector<uint64_t> offsets(views.size(), 0);
  offsets[operand] = kFarOffset;
  execute_over(context, far, views, offsets, oracle::evaluate(far.call));
}

// Tests a large offset of the workspace, for each primitive that needs a workspace.
void workspace_behind_bytes(Context& context) {
  Device& device = context.device();
  for (const bph_op_info& op : primitives()) {
    Far far{few_elements(op, usual_dtype(op), 0)};
    if (!claims(device, far.desc)) continue;
    make_call(far, context.random());
    set_indices(far, 0);
    Runner runner(device, far.desc);
    const uint64_t needed = runner.plan().info.workspace_bytes;
    if (needed == 0) continue;
    const uint64_t at = kFarOffset / 4096 * 4096;
    const Buffer workspace = make_large(context, at + needed + 4096);
    std::vector<Buffer> buffers;
    std::vector<bp_operand> operands, scalars;
    for (const oracle::Tensor& tensor : far.call.inputs) {
      buffers.emplace_back(device, tensor.bytes.size());
      device.write(buffers.back().get(), 0, tensor.bytes.data(), tensor.bytes.size());
      operands.push_back({buffers.back().get(), 0, 0});
    }
    for (const oracle::Tensor& tensor : far.call.outputs) {
      buffers.emplace_back(device, tensor.bytes.size());
      device.write(buffers.back().get(), 0, tensor.bytes.data(), tensor.bytes.size());
      operands.push_back({buffers.back().get(), 0, 0});
    }
    for (const uint64_t bits : far.call.scalars) scalars.push_back({nullptr, 0, bits});
    // A kernel that truncates the workspace's offset to 32 bits would overwrite these bytes.
    const std::vector<unsigned char> poison = random_bytes(context.random(), needed);
    device.write(workspace.get(), at & UINT32_MAX, poison.data(), needed);
    bp_execution execution = {};
    execution.struct_size = sizeof(execution);
    execution.desc = &runner.desc().get();
    execution.inputs = operands.data();
    execution.outputs = operands.data() + far.call.inputs.size();
    execution.scalars = scalars.data();
    execution.workspace = workspace.get();
    execution.workspace_offset = at;
    execution.workspace_bytes = needed;
    Stream stream(device);
    runner.plan().execute(stream.get(), execution);
    stream.wait();
    std::vector<unsigned char> after(needed);
    device.read(workspace.get(), at & UINT32_MAX, after.data(), needed);
    context.require(after == poison,
                    "{}: bytes at {} of the workspace's buffer changed, and the workspace begins at {}", op.name,
                    at & UINT32_MAX, at);
    const std::vector<oracle::Expected> expected = oracle::evaluate(far.call);
    for (size_t o = 0; o < expected.size(); ++o) {
      oracle::Tensor got = far.call.outputs[o];
      device.read(operands[far.call.inputs.size() + o].buffer, 0, got.bytes.data(), got.bytes.size());
      const oracle::Comparison result = oracle::compare(expected[o], got, false);
      context.require(result.bad == 0, "{} with its workspace at byte {}: {} elements are wrong", op.name, at,
                      result.bad);
    }
  }
}

void scalar_behind_bytes(Context& context) {
  Device& device = context.device();
  OpDesc desc = elementwise(BP_OP_FILL, BP_F32, 16);
  desc.flags(BP_OP_FLAG_DEVICE_SCALARS);
  Runner runner(device, desc);
  const Buffer scalars = make_large(context, kFarOffset + 4096), out(device, 64);
  const float right = 7.5F, wrong = 0.25F;
  device.write(scalars.get(), kFarOffset, &right, sizeof(right));
  device.write(scalars.get(), kFarOffset & UINT32_MAX, &wrong, sizeof(wrong));
  const bp_operand scalar = {scalars.get(), kFarOffset, 0}, output = {out.get(), 0, 0};
  bp_execution execution = {};
  execution.struct_size = sizeof(execution);
  execution.desc = &runner.desc().get();
  execution.outputs = &output;
  execution.scalars = &scalar;
  const uint64_t needed = runner.plan().info.workspace_bytes;
  execution.workspace = runner.workspace();
  execution.workspace_bytes = needed;
  Stream stream(device);
  runner.plan().execute(stream.get(), execution);
  stream.wait();
  float got[16];
  device.read(out.get(), 0, got, sizeof(got));
  for (const float value : got)
    context.require(value == right, "fill with a scalar at byte {} gave {}, the scalar is {}", kFarOffset, value,
                    right);
}

}  // namespace

void add_far(Catalogue& catalogue) {
  const auto add = [&](std::string id, const bph_op_info& op, uint32_t dtype, std::function<void(Context&)> run) {
    catalogue.push_back({.id = std::move(id),
                         .profile = op.profile,
                         .extension = "LARGE",
                         .op = op.op,
                         .dtype = dtype,
                         .requirements = {"BP-NUM-016"},
                         .run = std::move(run),
                         .large = true});
  };
  for (const bph_op_info& op : primitives()) {
    for (const FarOffset& reach : kFarOffsets) {
      if ((op.dtypes >> reach.dtype & 1) == 0) continue;
      for (uint32_t axis = 0; axis < (has_axis(op) ? 2u : 1u); ++axis) {
        OpDesc desc = few_elements(op, reach.dtype, axis);
        std::vector<bp_tensor_desc> views = desc.inputs();
        const size_t inputs = views.size();
        views.insert(views.end(), desc.outputs().begin(), desc.outputs().end());
        for (size_t operand = 0; operand < views.size(); ++operand)
          for (uint32_t dimension = 0; dimension < views[operand].rank; ++dimension) {
            if (views[operand].shape[dimension] < 2) continue;
            const bool output = operand >= inputs;
            add(fmt::format("numeric.{}.{}.far.{}{}_{}_apart_along_{}.{}", op.name, oracle::format_of(reach.dtype).name,
                            has_axis(op) ? fmt::format("axis_{}.", axis) : "", output ? "output" : "input",
                            output ? operand - inputs : operand, dimension, reach.text),
                op, reach.dtype, [=](Context& context) { reach_far(context, op, reach, axis, operand, dimension); });
          }
      }
    }
    OpDesc desc = few_elements(op, usual_dtype(op), 0);
    const size_t inputs = desc.inputs().size();
    for (size_t operand = 0; operand < inputs + desc.outputs().size(); ++operand)
      add(fmt::format("numeric.{}.{}.far.{}_{}_behind_2_to_32_bytes", op.name, oracle::format_of(usual_dtype(op)).name,
                      operand < inputs ? "input" : "output", operand < inputs ? operand : operand - inputs),
          op, usual_dtype(op), [=](Context& context) { behind_bytes(context, op, operand); });
  }
  for (const uint32_t id : {BP_OP_GATHER, BP_OP_SCATTER})
    for (const auto& [dtype, bytes] : {std::pair{BP_F32, true}, std::pair{BP_F32, false}, std::pair{BP_I32, true}}) {
      const bph_op_info& op = op_info(id);
      if ((op.dtypes >> dtype & 1) == 0) continue;
      add(fmt::format("numeric.{}.{}.far.index_times_stride.{}", op.name, oracle::format_of(dtype).name,
                      bytes ? "bytes32" : "elements31"),
          op, dtype, [=](Context& context) { index_times_stride(context, op, dtype, bytes); });
    }
  add("numeric.primitives.any.far.workspace_behind_2_to_32_bytes", op_info(BP_OP_SORT), BP_F32, workspace_behind_bytes);
  catalogue.push_back({.id = "numeric.fill.f32.far.scalar_behind_2_to_32_bytes",
                       .extension = "DEVICE_SCALARS",
                       .op = BP_OP_FILL,
                       .dtype = BP_F32,
                       .requirements = {"BP-NUM-016", "BP-NUM-032"},
                       .run = scalar_behind_bytes,
                       .large = true});
}

}  // namespace backplane::conformance::numeric
