// SPDX-License-Identifier: Apache-2.0
// Appends steps to a program, and decides when a step may write to its target directly.
#include "composite/builder.hpp"

#include <algorithm>
#include <backplane/rules/match.hpp>
#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "base/scalar.hpp"
#include "base/strided_view.hpp"

namespace backplane::core::composite {

namespace {

template <class Attributes>
void set_attributes(Draft& draft, Attributes attributes) {
  static_assert(sizeof(attributes) <= sizeof(draft.attributes));
  std::memcpy(&attributes.struct_size, draft.attributes.data(), sizeof(attributes.struct_size));
  std::memcpy(draft.attributes.data(), &attributes, sizeof(attributes));
}

// Returns the dtype in which the composite computes.
uint32_t number_of(const OpRow& row, const bp_op_desc& desc) {
  if (row.dtype_rule == BP_RULE_COMPOSITE) return rules::float_of(desc) == BP_F64 ? BP_F64 : BP_F32;
  for (uint32_t i = 0; i < desc.input_count + desc.output_count; ++i) {
    const uint32_t dtype = i < desc.input_count ? desc.inputs[i].dtype : desc.outputs[i - desc.input_count].dtype;
    if ((BP_DTYPE_BIT(dtype) & BP_SET_FLOATS) != 0) return dtype == BP_F64 ? BP_F64 : BP_F32;
  }
  return BP_F32;
}

// Returns the shape to which the operands broadcast.
Extents common_shape(std::initializer_list<Value> operands) {
  Extents shape;
  for (const Value& operand : operands) {
    if (operand.rank() == 0) continue;
    if (shape.empty()) shape.assign(operand.rank(), 1);
    for (uint32_t d = 0; d < operand.rank(); ++d) {
      if (operand.extent(d) != 1) shape[d] = operand.extent(d);
    }
  }
  return shape;
}

// Returns `operand` broadcast to `shape`.
Value repeated(const Value& operand, const Extents& shape) {
  if (operand.rank() == 0 && !shape.empty()) {
    Value made = operand;
    made.view.rank = static_cast<uint8_t>(shape.size());
    std::copy(shape.begin(), shape.end(), made.view.shape);
    return made;
  }
  return expand(operand, shape);
}

}  // namespace

Builder::Builder(const OpRow& row, const bp_op_desc& desc, uint32_t full_alignment_log2)
    : row_(row), desc_(desc), number_(number_of(row, desc)), full_alignment_log2_(full_alignment_log2) {
  for (uint32_t i = 0; i < desc.input_count; ++i) {
    inputs_.push_back(value_of(Location::Kind::input, i, desc.inputs[i]));
  }
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    outputs_.push_back(value_of(Location::Kind::output, i, desc.outputs[i]));
  }
}

Value Builder::value_of(Location::Kind kind, uint32_t index, const bp_tensor_desc& view) {
  Storage storage{.kind = kind, .index = index};
  storage.alignment_log2 = view.alignment_log2;
  storages_.push_back(storage);
  Value value;
  value.storage = static_cast<uint32_t>(storages_.size() - 1);
  value.view = view;
  value.view.alignment_log2 = 0;  // operands_of sets the alignment
  value.view.alias = 0;
  if (value.immediate()) std::memset(value.view.strides, 0, sizeof(value.view.strides));
  return value;
}

Value Builder::integer(uint32_t dtype, int64_t value) {
  bp_tensor_desc view = {};
  view.dtype = static_cast<uint16_t>(dtype);
  view.flags = BP_DESC_IMMEDIATE;
  Value made = value_of(Location::Kind::constant, 0, view);
  storages_[made.storage].bits = scalar_bits(dtype, value);
  return made;
}

Value Builder::constant(uint32_t dtype, double value) {
  Value made = integer(dtype, 0);
  storages_[made.storage].bits = scalar_bits(dtype, value);
  return made;
}

Value Builder::scalar(uint32_t index, uint32_t rank) {
  bp_tensor_desc view = {};
  view.dtype = static_cast<uint16_t>(rules::scalar_dtype(row_, desc_));
  if ((desc_.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0) {
    view.alignment_log2 = static_cast<uint8_t>(std::countr_zero(rules::natural_alignment(dtype_bytes(view.dtype))));
  } else {
    view.flags = BP_DESC_IMMEDIATE;
  }
  view.rank = static_cast<uint8_t>(rank);
  std::fill_n(view.shape, rank, 1);
  return value_of(Location::Kind::scalar, index, view);
}

Value Builder::temporary(uint32_t dtype, const Extents& shape) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count_of(shape), int64_t{dtype_bytes(dtype)}, &bytes)) {
    throw Error(BP_OUT_OF_MEMORY,
                "{}: its decomposition needs a temporary that exceeds the memory; use smaller operands", row_.name)
        .with_op(row_.id);
  }
  const Value made = value_of(Location::Kind::temporary, 0, dense_view(dtype, shape));
  storages_[made.storage].bytes = bytes;
  storages_[made.storage].alignment_log2 = full_alignment_log2_;
  return made;
}

Draft& Builder::append(uint32_t op, std::initializer_list<Value> inputs, const Value& output) {
  if (drafts_.size() >= kMaxSteps) {
    throw Error(BP_UNSUPPORTED, "{}: its decomposition has more than {} steps; use smaller operands, or split them",
                row_.name, kMaxSteps)
        .with_op(row_.id);
  }
  Draft draft{.row = op_row(op)};
  // Sets struct_size in every attribute struct, also in those of operators that had no attributes
  // in their first ABI version.
  const uint32_t attribute_bytes = draft.row->attributes->bytes;
  std::memcpy(draft.attributes.data(), &attribute_bytes, sizeof(attribute_bytes));
  draft.operands.assign(inputs);
  draft.inputs = static_cast<uint32_t>(inputs.size());
  draft.operands.push_back(output);
  for (const Value& input : inputs) ++storages_[input.storage].reads;
  ++storages_[output.storage].writes;
  drafts_.push_back(std::move(draft));
  return drafts_.back();
}

Value Builder::elementwise(uint32_t op, uint32_t dtype, std::initializer_list<Value> inputs, uint32_t predicate) {
  const Extents shape = common_shape(inputs);
  const Value result = temporary(dtype, shape);
  Draft& draft = append(op, inputs, result);
  for (uint32_t i = 0; i < draft.inputs; ++i) draft.operands[i] = repeated(draft.operands[i], shape);
  if (op == BP_OP_COMPARE) set_attributes(draft, bp_compare_attributes{0, predicate});
  return result;
}

Value Builder::unary(uint32_t op, const Value& x) { return elementwise(op, x.dtype(), {x}); }
Value Builder::binary(uint32_t op, const Value& a, const Value& b) { return elementwise(op, a.dtype(), {a, b}); }
Value Builder::compare(uint32_t predicate, const Value& a, const Value& b) {
  return elementwise(BP_OP_COMPARE, BP_BOOL, {a, b}, predicate);
}
Value Builder::select(const Value& condition, const Value& a, const Value& b) {
  return elementwise(BP_OP_SELECT, a.dtype(), {condition, a, b});
}
void Builder::accumulate(const Value& target, const Value& b) { append(BP_OP_ADD, {target, b}, target); }

Value Builder::cast(const Value& value, uint32_t dtype) {
  return value.dtype() == dtype ? value : elementwise(BP_OP_CAST, dtype, {value});
}

Value Builder::dense(const Value& value) {
  if (!value.immediate() && is_dense(value.view)) return value;
  return elementwise(BP_OP_COPY, value.dtype(), {value});
}

Value Builder::reshape(const Value& value, const Extents& shape) {
  if (const std::optional<Value> view = try_reshape(value, shape)) return *view;
  return *try_reshape(elementwise(BP_OP_COPY, value.dtype(), {value}), shape);
}

void Builder::fill(const Value& target, double value) {
  // A device of the profile INFER can `cast` to these dtypes, but may lack `fill` for them.
  if (target.dtype() == BP_F16 || target.dtype() == BP_BF16) {
    append(BP_OP_CAST, {repeated(constant(BP_F32, value), target.shape())}, target);
    return;
  }
  append(BP_OP_FILL, {}, target).scalars[0] = scalar_bits(target.dtype(), value);
}

Value Builder::iota(uint32_t dtype, const Extents& shape, uint32_t axis, int64_t start) {
  const Value result = temporary(dtype, shape);
  Draft& draft = append(BP_OP_IOTA, {}, result);
  set_attributes(draft, bp_axis_attributes{0, axis});
  draft.scalars[0] = scalar_bits(dtype, start);
  draft.scalars[1] = scalar_bits(dtype, int64_t{1});
  return result;
}

Value Builder::philox(int64_t count) {
  const Value result = temporary(BP_U32, {count});
  append(BP_OP_PHILOX, {}, result).scalars_of_call = true;
  return result;
}

Value Builder::gather(const Value& x, const Value& index, uint32_t axis) {
  const Value result = temporary(x.dtype(), index.shape());
  set_attributes(append(BP_OP_GATHER, {x, index}, result), bp_axis_attributes{0, axis});
  return result;
}

Value Builder::reduce(uint32_t op, const Value& x, uint32_t axes, uint32_t dtype) {
  Extents shape = x.shape();
  for (uint32_t d = 0; d < x.rank(); ++d) {
    if ((axes >> d & 1) != 0) shape[d] = 1;
  }
  const Value result = temporary(dtype == 0 ? x.dtype() : dtype, shape);
  set_attributes(append(op, {x}, result), bp_reduce_attributes{0, axes});
  return result;
}

Value Builder::matmul(const Value& a, const Value& b, uint32_t precision, uint32_t dtype) {
  Extents shape = a.shape();
  shape.back() = b.extent(b.rank() - 1);
  const Value result = temporary(dtype == 0 ? number_ : dtype, shape);
  // Precision-relaxation flags apply to the composite's dtype. If the inputs were cast to another
  // dtype, the flags would allow a different loss of accuracy.
  const uint32_t allowed = a.dtype() == outputs_[0].dtype() ? precision : uint32_t{BP_PRECISION_FULL};
  set_attributes(append(BP_OP_MATMUL, {a, b}, result), bp_matmul_attributes{0, allowed});
  return result;
}

Value Builder::arg(uint32_t op, const Value& x, uint32_t axis) {
  Extents shape = x.shape();
  shape[axis] = 1;
  const Value result = temporary(BP_I32, shape);
  set_attributes(append(op, {x}, result), bp_axis_attributes{0, axis});
  return result;
}

Builder::Sorted Builder::sort(const Value& x, uint32_t axis, bool descending) {
  const Sorted result{temporary(x.dtype(), x.shape()), temporary(BP_I32, x.shape())};
  Draft& draft = append(BP_OP_SORT, {x}, result.values);
  set_attributes(draft, bp_sort_attributes{0, axis, descending ? 1u : 0u, 0});
  draft.operands.push_back(result.indices);
  ++storages_[result.indices.storage].writes;
  return result;
}

Value Builder::store(const Value& target, const Value& value) {
  if (value.dtype() != target.dtype()) {
    append(BP_OP_CAST, {value}, target);
    return value;
  }
  if (redirect(target, value)) return target;
  append(BP_OP_COPY, {value}, target);
  return value;
}

// Makes the step that wrote `value` write to `target` instead. Returns false if this is not possible, for example
// because several steps wrote `value`, or because a step has read it.
bool Builder::redirect(const Value& target, const Value& value) {
  const Storage& storage = storages_[value.storage];
  if (storage.kind != Location::Kind::temporary || storage.writes != 1 || storage.reads != 0 || value.offset != 0 ||
      !is_dense(value.view) || elements_of(value) * dtype_bytes(value.dtype()) != storage.bytes) {
    return false;
  }
  const auto writes = [&](const Draft& draft) {
    return std::any_of(draft.operands.begin() + draft.inputs, draft.operands.end(),
                       [&](const Value& operand) { return operand.storage == value.storage; });
  };
  const auto step = std::find_if(drafts_.rbegin(), drafts_.rend(), writes);
  const auto touches = [&](const Draft& draft) {
    return std::any_of(draft.operands.begin(), draft.operands.end(),
                       [&](const Value& operand) { return operand.storage == target.storage; });
  };
  if (std::any_of(drafts_.rbegin(), step, touches))
    // Another step, after the step that computed `value`, uses the storage of `target`. A
    // redirected write would come before that use.
    return false;
  const Storage& written = storages_[target.storage];
  if (written.kind == Location::Kind::output && desc_.outputs[written.index].alias != 0) {
    // This output aliases an input, which the step would overwrite. That is safe only if the step
    // is the last step and elementwise, and the composite has no other input. A second input could
    // be the same memory.
    if (step != drafts_.rbegin() || desc_.input_count != 1 || step->row->shape_rule != BP_SHAPE_ELEMENTWISE)
      return false;
  }
  for (size_t i = step->inputs; i < step->operands.size(); ++i) {
    if (step->operands[i].storage != value.storage) continue;
    const std::optional<Value> view = try_reshape(target, step->operands[i].shape());
    if (!view) return false;
    step->operands[i] = *view;
    ++storages_[target.storage].writes;
    --storages_[value.storage].writes;
    return true;
  }
  return false;
}

}  // namespace backplane::core::composite
