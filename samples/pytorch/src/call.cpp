// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>

#include "allocator.hpp"
#include "devices.hpp"

namespace backplane_torch {

uint16_t dtype_of(at::ScalarType type) noexcept {
  switch (type) {
    case at::kBool:
      return BP_BOOL;
    case at::kByte:
      return BP_U8;
    case at::kChar:
      return BP_I8;
    case at::kInt:
      return BP_I32;
    case at::kUInt32:
      return BP_U32;
    case at::kLong:
      return BP_I64;
    case at::kHalf:
      return BP_F16;
    case at::kBFloat16:
      return BP_BF16;
    case at::kFloat:
      return BP_F32;
    case at::kDouble:
      return BP_F64;
    default:
      return 0;
  }
}

uint16_t require_dtype(at::ScalarType type) {
  const uint16_t dtype = dtype_of(type);
  if (dtype == 0) {
    raise(BP_UNSUPPORTED, std::string("Backplane has no operators for the dtype ") + c10::toString(type) +
                              "; convert the tensor on the CPU, for example with .float() or .int()");
  }
  return dtype;
}

Call::Call(uint32_t op, const at::Tensor& on) : device_(on.device()), call_{} {
  call_.struct_size = sizeof(call_);
  call_.op = op;
  if (at::globalContext().deterministicAlgorithms()) call_.flags = BP_OP_FLAG_DETERMINISTIC;
}

namespace {

// Makes `view` an absent operand. Does not set the extents and strides, because the library reads none
// beyond the rank.
bph_tensor& cleared(bph_tensor& view) {
  std::memset(&view, 0, offsetof(bph_tensor, shape));
  return view;
}

void make_matrix(bph_tensor& view, const at::Tensor& tensor, int64_t rows, int64_t cols) {
  TORCH_INTERNAL_ASSERT(tensor.is_contiguous() && tensor.numel() == rows * cols);
  view.rank = 2;
  view.shape[0] = rows;
  view.shape[1] = cols;
  view.strides[0] = cols;
  view.strides[1] = 1;
}

}  // namespace

bph_tensor& Call::next_input() {
  TORCH_INTERNAL_ASSERT(call_.input_count < inputs_.size());
  return cleared(inputs_[call_.input_count++]);
}

bph_tensor& Call::next_output() {
  TORCH_INTERNAL_ASSERT(call_.output_count < outputs_.size());
  return cleared(outputs_[call_.output_count++]);
}

// [view]
void Call::fill_view(bph_tensor& view, const at::Tensor& tensor, const char* role, uint32_t position) const {
  TORCH_CHECK(tensor.device() == device_, message_prefix(), role, ' ', position, " is on ", tensor.device(),
              ", and the call runs on ", device_, " (", device_name(device_.index()), "); move it with .to(\"", device_,
              "\")");
  TORCH_CHECK(tensor.dim() <= BP_MAX_RANK, message_prefix(), role, ' ', position, " has ", tensor.dim(),
              " dimensions, and Backplane has at most ", BP_MAX_RANK, "; merge dimensions with .flatten()");
  view.dtype = require_dtype(tensor.scalar_type());
  view.rank = static_cast<uint8_t>(tensor.dim());
  if (tensor.numel() > 0) {
    const Memory memory = memory_of(tensor);
    view.buffer = memory.buffer;
    view.offset = memory.offset;
  }
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), view.shape);
  std::copy(tensor.strides().begin(), tensor.strides().end(), view.strides);
}
// [/view]

Call& Call::in(const at::Tensor& tensor) {
  const uint32_t position = call_.input_count;
  fill_view(next_input(), tensor, "input", position);
  return *this;
}

Call& Call::in(const at::Tensor& tensor, at::IntArrayRef shape) {
  if (tensor.sizes() == shape) return in(tensor);
  return in(tensor.expand(shape));
}

Call& Call::in(const at::Tensor& tensor, at::ScalarType type, at::IntArrayRef shape) {
  if (is_number(tensor)) return in(value_of(tensor), type, shape);
  if (tensor.scalar_type() == type) return in(tensor, shape);
  return in(converted_.emplace_back(as_type(tensor, type)), shape);
}

Call& Call::in(const at::Scalar& number, at::ScalarType type, at::IntArrayRef shape) {
  TORCH_CHECK(shape.size() <= BP_MAX_RANK, message_prefix(), "the result has ", shape.size(),
              " dimensions, and Backplane has at most ", BP_MAX_RANK, "; merge dimensions with .flatten()");
  bph_tensor& view = next_input();
  view.dtype = require_dtype(type);
  view.flags = BPH_TENSOR_IMMEDIATE;
  view.immediate = number.isFloatingPoint() ? bph_scalar_from_f64(view.dtype, number.toDouble())
                                            : bph_scalar_from_i64(view.dtype, number.toLong());
  view.rank = static_cast<uint8_t>(shape.size());
  std::copy(shape.begin(), shape.end(), view.shape);
  return *this;
}

Call& Call::in_matrix(const at::Tensor& tensor, int64_t rows, int64_t cols) {
  in(tensor);
  make_matrix(inputs_[call_.input_count - 1], tensor, rows, cols);
  return *this;
}

Call& Call::in_transposed(const at::Tensor& tensor, int64_t rows, int64_t cols) {
  in_matrix(tensor, rows, cols);
  bph_tensor& view = inputs_[call_.input_count - 1];
  std::swap(view.shape[0], view.shape[1]);
  std::swap(view.strides[0], view.strides[1]);
  return *this;
}

Call& Call::out_matrix(const at::Tensor& tensor, int64_t rows, int64_t cols) {
  out(tensor);
  make_matrix(outputs_[call_.output_count - 1], tensor, rows, cols);
  return *this;
}

Call& Call::in_flipped(const at::Tensor& tensor, uint32_t mask) {
  in(tensor);
  bph_tensor& view = inputs_[call_.input_count - 1];
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if ((mask >> dim & 1u) == 0 || tensor.numel() == 0) continue;
    view.offset += static_cast<uint64_t>((tensor.size(dim) - 1) * tensor.stride(dim)) * tensor.itemsize();
    view.strides[dim] = -tensor.stride(dim);
  }
  return *this;
}

Call& Call::in_optional(const at::Tensor& tensor) {
  if (tensor.defined()) return in(tensor);
  next_input();
  return *this;
}

Call& Call::out(const at::Tensor& tensor) {
  const uint32_t position = call_.output_count;
  fill_view(next_output(), tensor, "output", position);
  return *this;
}

Call& Call::out_optional(const at::Tensor& tensor) {
  if (tensor.defined()) return out(tensor);
  next_output();
  return *this;
}

Call& Call::scalar(uint16_t dtype, const at::Scalar& number) {
  return scalar_bits(number.isFloatingPoint() ? bph_scalar_from_f64(dtype, number.toDouble())
                                              : bph_scalar_from_i64(dtype, number.toLong()));
}

Call& Call::scalar(const at::Tensor& tensor) {
  TORCH_INTERNAL_ASSERT(call_.scalar_count < scalar_tensors_.size());
  bph_tensor& view = cleared(scalar_tensors_[call_.scalar_count]);
  fill_view(view, tensor, "scalar", call_.scalar_count++);
  call_.flags |= BP_OP_FLAG_DEVICE_SCALARS;
  return *this;
}

Call& Call::scalar_bits(uint64_t bits) {
  TORCH_INTERNAL_ASSERT(call_.scalar_count < scalars_.size());
  scalars_[call_.scalar_count++] = bits;
  return *this;
}

// [run]
void Call::run() {
  call_.inputs = inputs_.data();
  call_.outputs = outputs_.data();
  if ((call_.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0) {
    call_.scalar_tensors = scalar_tensors_.data();
  } else {
    call_.scalars = scalars_.data();
  }
  try {
    backplane::detail::call(bph_execute, current_stream_handle(device_.index()), &std::as_const(call_));
  } catch (const backplane::Error& error) {
    raise(error.status(), std::string(error.what()) + "; the call runs on " + device_.str() + ", which is " +
                              device_name(device_.index()));
  }
}
// [/run]

uint32_t axes_mask(at::OptionalIntArrayRef dims, int64_t rank) {
  if (rank == 0) return 0;
  if (!dims.has_value() || dims->empty()) return (1u << rank) - 1u;
  uint32_t mask = 0;
  for (const int64_t dim : *dims) mask |= 1u << axis(dim, rank);
  return mask;
}

uint32_t axis(int64_t dim, int64_t rank) { return static_cast<uint32_t>(at::maybe_wrap_dim(dim, rank)); }

void fit(const at::Tensor& out, at::IntArrayRef shape) {
  if (out.sizes() != shape) [[unlikely]]
    at::native::resize_output(out, shape);
}

void fit(const at::Tensor& out, std::initializer_list<at::Tensor> inputs) {
  bool fits = true;
  for (const at::Tensor& input : inputs) fits = fits && (is_number(input) || input.sizes() == out.sizes());
  if (fits) [[likely]]
    return;
  c10::DimVector shape;
  for (const at::Tensor& input : inputs) shape = at::infer_size_dimvector(shape, input.sizes());
  fit(out, shape);
}

void check_conversion(at::ScalarType type, const at::Tensor& out) {
  TORCH_CHECK(c10::canCast(type, out.scalar_type()), message_prefix(), "result type ", type,
              " can't be cast to the desired output type ", out.scalar_type(), "; pass an output of dtype ", type);
}

at::Scalar value_of(const at::Tensor& number) {
  switch (number.scalar_type()) {
    case at::kDouble:
      return *number.const_data_ptr<double>();
    case at::kLong:
      return *number.const_data_ptr<int64_t>();
    default:
      return number.item();
  }
}

at::Tensor as_type(const at::Tensor& tensor, at::ScalarType type) {
  if (tensor.scalar_type() == type) return tensor;
  const at::Tensor cast = at::empty_like(tensor, tensor.options().dtype(type));
  Call(BP_OP_CAST, cast).in(tensor).out(cast).run();
  return cast;
}

}  // namespace backplane_torch
