// SPDX-License-Identifier: Apache-2.0
// Tensors: views of buffers. Functions that return a view change only metadata. Part of
// backplane.hpp.
#pragma once

#include <backplane/objects.hpp>

#include <array>
#include <concepts>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

namespace backplane {

namespace detail {

template <class... Numbers>
[[noreturn]] void invalid(const char* format, Numbers... numbers) {
  char message[256];
  std::snprintf(message, sizeof(message), format, numbers...);
  throw Error(BP_INVALID_ARGUMENT, message);
}

}  // namespace detail

// Returns the bytes of one element, or 0 for an unknown dtype.
constexpr int64_t dtype_bytes(uint32_t dtype) noexcept {
  switch (dtype) {
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) \
  case id:                                                \
    return bytes;
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
    default:
      return 0;
  }
}

// Returns the dtype of the C++ type `Number`, for copies from and to host memory.
template <class Number>
constexpr uint16_t dtype_of() noexcept {
  if constexpr (std::same_as<Number, bool>)
    return BP_BOOL;
  else if constexpr (std::same_as<Number, uint8_t>)
    return BP_U8;
  else if constexpr (std::same_as<Number, int8_t>)
    return BP_I8;
  else if constexpr (std::same_as<Number, int32_t>)
    return BP_I32;
  else if constexpr (std::same_as<Number, uint32_t>)
    return BP_U32;
  else if constexpr (std::same_as<Number, int64_t>)
    return BP_I64;
  else if constexpr (std::same_as<Number, float>)
    return BP_F32;
  else if constexpr (std::same_as<Number, double>)
    return BP_F64;
  else
    static_assert(!sizeof(Number), "no dtype is laid out like this type");
}

// Converts a number to the bits of `dtype`, by the rules of the operator cast.
template <class Number>
  requires std::is_arithmetic_v<Number>
uint64_t scalar_bits(uint32_t dtype, Number value) noexcept {
  if constexpr (std::integral<Number>)
    return bph_scalar_from_i64(dtype, static_cast<int64_t>(value));
  else
    return bph_scalar_from_f64(dtype, static_cast<double>(value));
}

// A shape, or strides in elements. Stores up to BP_MAX_RANK numbers without heap memory.
class Dims {
 public:
  constexpr Dims() noexcept = default;
  constexpr Dims(std::initializer_list<int64_t> values)
      : Dims(std::span<const int64_t>(values.begin(), values.size())) {}
  constexpr explicit Dims(std::span<const int64_t> values) {
    if (values.size() > BP_MAX_RANK)
      detail::invalid("shape: rank %zu is above the %d that there are", values.size(), BP_MAX_RANK);
    for (const int64_t value : values) values_[size_++] = value;
  }

  constexpr size_t size() const noexcept { return size_; }
  constexpr const int64_t* data() const noexcept { return values_.data(); }
  constexpr const int64_t* begin() const noexcept { return data(); }
  constexpr const int64_t* end() const noexcept { return data() + size_; }
  constexpr int64_t operator[](size_t index) const noexcept { return values_[index]; }
  constexpr int64_t& operator[](size_t index) noexcept { return values_[index]; }
  constexpr bool operator==(const Dims&) const noexcept = default;

  constexpr int64_t product() const noexcept {
    uint64_t product = 1;
    for (const int64_t value : *this) product *= static_cast<uint64_t>(value);
    return static_cast<int64_t>(product);
  }
  // Returns the strides of a dense row-major tensor of this shape.
  constexpr Dims dense_strides() const noexcept {
    Dims strides = *this;
    uint64_t stride = 1;  // may wrap modulo 2^64, but allocation refuses such a shape
    for (size_t i = size_; i-- > 0;) {
      strides[i] = static_cast<int64_t>(stride);
      stride *= values_[i] > 1 ? static_cast<uint64_t>(values_[i]) : 1;
    }
    return strides;
  }

 private:
  std::array<int64_t, BP_MAX_RANK> values_{};
  size_t size_ = 0;
};

// A view with value semantics. Copying a tensor copies 160 bytes and increments a reference count.
// The copy shares the elements.
class Tensor {
 public:
  // Creates an absent optional operand.
  Tensor() noexcept : view_{} {}
  Tensor(std::shared_ptr<const Buffer> buffer, uint64_t offset, uint32_t dtype, const Dims& shape, const Dims& strides)
      : buffer_(std::move(buffer)), view_{} {
    if (shape.size() != strides.size())
      detail::invalid("tensor: %zu extents but %zu strides", shape.size(), strides.size());
    if (!dtype_bytes(dtype)) detail::invalid("tensor: dtype %u is unknown", dtype);
    view_.buffer = buffer_ ? buffer_->get() : nullptr;
    view_.offset = offset;
    view_.dtype = static_cast<uint16_t>(dtype);
    view_.rank = static_cast<uint8_t>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) set(i, shape[i], strides[i]);
  }

  // Allocates a dense row-major tensor with undefined contents for use by `stream`.
  static Tensor empty(const Stream& stream, uint32_t dtype, const Dims& shape, uint32_t kind = BP_MEMORY_DEVICE) {
    return allocate(stream.device(), stream.get(), dtype, shape, kind);
  }
  // Overload without a stream. The memory is reused only after all streams have completed the work
  // that was pending when the tensor's buffer was released.
  static Tensor empty(const Device& device, uint32_t dtype, const Dims& shape, uint32_t kind = BP_MEMORY_DEVICE) {
    return allocate(device.get(), nullptr, dtype, shape, kind);
  }
  // Creates a value of rank 0 without memory. broadcast_to returns the value with another shape.
  template <class Number>
  static Tensor scalar(uint32_t dtype, Number value) {
    Tensor tensor(nullptr, 0, dtype, {}, {});
    tensor.view_.immediate = scalar_bits(dtype, value);
    tensor.view_.flags = BPH_TENSOR_IMMEDIATE;
    return tensor;
  }

  // Creates a packed operand from the view that bph_pack returned for `buffer`.
  Tensor(std::shared_ptr<const Buffer> buffer, const bph_tensor& packed) noexcept
      : buffer_(std::move(buffer)), view_(packed) {}

  // Returns the view for the C API.
  const bph_tensor& view() const noexcept { return view_; }
  operator const bph_tensor&() const noexcept { return view_; }
  const std::shared_ptr<const Buffer>& buffer() const noexcept { return buffer_; }
  uint64_t offset() const noexcept { return view_.offset; }
  uint32_t dtype() const noexcept { return view_.dtype; }
  size_t rank() const noexcept { return view_.rank; }
  Dims shape() const { return Dims(std::span<const int64_t>(view_.shape, rank())); }
  Dims strides() const { return Dims(std::span<const int64_t>(view_.strides, rank())); }
  int64_t extent(size_t axis) const { return view_.shape[checked(axis)]; }
  int64_t stride(size_t axis) const { return view_.strides[checked(axis)]; }
  int64_t elements() const { return shape().product(); }
  uint64_t bytes() const { return static_cast<uint64_t>(elements()) * dtype_bytes(dtype()); }
  bool is_immediate() const noexcept { return (view_.flags & BPH_TENSOR_IMMEDIATE) != 0; }
  // Returns whether this is a packed operand, which only plans that read its layout accept. No plan
  // accepts a view that another function derives from the packed operand.
  bool is_packed() const noexcept { return (view_.flags & BPH_TENSOR_PACKED) != 0; }
  // True if the view is dense in row-major order. The strides of dimensions of extent 0 or 1 do not
  // matter.
  bool is_contiguous() const noexcept {
    if (is_packed()) return false;
    int64_t packed = 1;
    for (size_t i = rank(); i-- > 0;) {
      if (view_.shape[i] == 0) return true;
      if (view_.shape[i] > 1 && view_.strides[i] != packed) return false;
      packed *= view_.shape[i];
    }
    return true;
  }

  // Returns the same elements in row-major order with another shape. Requires a contiguous or
  // immediate tensor, because any other tensor would need a copy.
  Tensor reshape(const Dims& shape) const {
    if (shape.product() != elements())
      detail::invalid("reshape: %lld elements do not make a shape of %lld", wide(elements()), wide(shape.product()));
    if (!is_contiguous() && !is_immediate())
      throw Error(BP_INVALID_ARGUMENT, "reshape: the tensor is not contiguous; copy it into Tensor::empty first");
    return with(offset(), shape, shape.dense_strides());
  }
  // Dimension i of the result is dimension order[i] of this tensor.
  Tensor permute(const Dims& order) const {
    if (order.size() != rank()) detail::invalid("permute: %zu axes for rank %zu", order.size(), rank());
    Dims shape = order, strides = order;
    uint32_t seen = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t axis = checked(static_cast<size_t>(order[i]));
      if (seen & (1u << axis)) detail::invalid("permute: axis %zu stands twice", axis);
      seen |= 1u << axis;
      shape[i] = view_.shape[axis];
      strides[i] = view_.strides[axis];
    }
    return with(offset(), shape, strides);
  }
  Tensor transpose(size_t a, size_t b) const {
    Tensor result = *this;
    result.set(checked(a), view_.shape[checked(b)], view_.strides[b]);
    result.set(b, view_.shape[a], view_.strides[a]);
    return result;
  }
  // Exchanges the last two dimensions.
  Tensor transpose() const { return transpose(checked(rank() - 1), checked(rank() - 2)); }
  // Selects every `step`-th element of begin..end-1 along `axis`.
  Tensor slice(size_t axis, int64_t begin, int64_t end, int64_t step = 1) const {
    const int64_t extent = this->extent(axis);
    if (begin < 0 || end < begin || end > extent || step < 1)
      detail::invalid("slice: [%lld, %lld) by %lld does not lie in the extent %lld of axis %zu", wide(begin), wide(end),
                      wide(step), wide(extent), axis);
    Tensor result = moved(end > begin ? begin * stride(axis) : 0);
    result.set(axis, (end - begin) / step + ((end - begin) % step != 0), stride(axis) * step);
    return result;
  }
  // Selects the element `index` along `axis`, and removes that dimension.
  Tensor select_at(size_t axis, int64_t index) const { return slice(axis, index, index + 1).squeeze(axis); }
  // Removes a dimension of extent 1.
  Tensor squeeze(size_t axis) const {
    if (extent(axis) != 1) detail::invalid("squeeze: axis %zu has extent %lld, not 1", axis, wide(extent(axis)));
    Tensor result = *this;
    for (size_t i = axis + 1; i < rank(); ++i) result.set(i - 1, view_.shape[i], view_.strides[i]);
    result.set(rank() - 1, 0, 0);
    --result.view_.rank;
    return result;
  }
  // Inserts a dimension of extent 1 before `axis`.
  Tensor unsqueeze(size_t axis) const { return inserted(axis, 1, 0); }
  // Adds leading dimensions, and repeats extents of 1 with stride 0.
  Tensor broadcast_to(const Dims& shape) const {
    if (shape.size() < rank()) detail::invalid("broadcast_to: rank %zu cannot become %zu", rank(), shape.size());
    Dims strides = shape;
    const size_t lead = shape.size() - rank();
    for (size_t i = 0; i < shape.size(); ++i) {
      const int64_t have = i < lead ? 1 : view_.shape[i - lead];
      if (have != shape[i] && have != 1)
        detail::invalid("broadcast_to: axis %zu has extent %lld, which cannot become %lld", i, wide(have),
                        wide(shape[i]));
      strides[i] = i >= lead && have == shape[i] ? view_.strides[i - lead] : 0;
    }
    return with(offset(), shape, strides);
  }
  // Reverses the order of elements along `axis`.
  Tensor flip(size_t axis) const {
    Tensor result = extent(axis) > 0 ? moved((extent(axis) - 1) * stride(axis)) : *this;
    result.set(axis, extent(axis), -stride(axis));
    return result;
  }
  // Returns windows of `size` elements along `axis`. Adjacent windows begin `step` elements apart.
  // The position in the window becomes a new last dimension.
  Tensor unfold(size_t axis, int64_t size, int64_t step) const {
    if (size < 1 || size > extent(axis) || step < 1)
      detail::invalid("unfold: windows of %lld by %lld do not fit the extent %lld of axis %zu", wide(size), wide(step),
                      wide(extent(axis)), axis);
    Tensor result = inserted(rank(), size, stride(axis));
    result.set(axis, (extent(axis) - size) / step + 1, stride(axis) * step);
    return result;
  }
  // Returns a view that reads each element as another dtype of the same size.
  Tensor bitcast(uint32_t dtype) const {
    if (dtype_bytes(dtype) != dtype_bytes(this->dtype()))
      detail::invalid("bitcast: dtype %u has %lld bytes and dtype %u has %lld", this->dtype(),
                      wide(dtype_bytes(this->dtype())), dtype, wide(dtype_bytes(dtype)));
    Tensor result = *this;
    result.view_.dtype = static_cast<uint16_t>(dtype);
    return result;
  }

 private:
  static long long wide(int64_t value) noexcept { return value; }
  static Tensor allocate(bph_device* device, bph_stream* stream, uint32_t dtype, const Dims& shape, uint32_t kind) {
    Tensor tensor(nullptr, 0, dtype, shape, shape.dense_strides());
    int64_t bytes = dtype_bytes(dtype);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0 || (shape[i] > 0 && bytes > INT64_MAX / shape[i]))
        detail::invalid("empty: extent %lld of axis %zu is negative, or the bytes pass 63 bits", wide(shape[i]), i);
      bytes *= shape[i];
    }
    auto desc = detail::sized<bph_buffer_desc>();
    desc.kind = kind;
    desc.bytes = static_cast<uint64_t>(bytes);
    desc.stream = stream;
    tensor.buffer_ = std::make_shared<const Buffer>(device, desc);
    tensor.view_.buffer = tensor.buffer_->get();
    return tensor;
  }
  size_t checked(size_t axis) const {
    if (axis >= rank()) detail::invalid("tensor: axis %zu of rank %zu", axis, rank());
    return axis;
  }
  void set(size_t axis, int64_t extent, int64_t stride) noexcept {
    view_.shape[axis] = extent;
    view_.strides[axis] = stride;
  }
  Tensor moved(int64_t elements) const {
    Tensor result = *this;
    result.view_.offset += static_cast<uint64_t>(elements * dtype_bytes(dtype()));
    return result;
  }
  Tensor with(uint64_t offset, const Dims& shape, const Dims& strides) const {
    Tensor result(buffer_, offset, dtype(), shape, strides);
    result.view_.immediate = view_.immediate;
    result.view_.flags = view_.flags;
    return result;
  }
  Tensor inserted(size_t axis, int64_t extent, int64_t stride) const {
    if (rank() == BP_MAX_RANK || axis > rank())
      detail::invalid("tensor: no room for axis %zu at rank %zu", axis, rank());
    Tensor result = *this;
    for (size_t i = rank(); i > axis; --i) result.set(i, view_.shape[i - 1], view_.strides[i - 1]);
    result.set(axis, extent, stride);
    ++result.view_.rank;
    return result;
  }

  std::shared_ptr<const Buffer> buffer_;
  bph_tensor view_;
};

// Enqueues a copy of host memory to a contiguous tensor. bph_copy_in states how long `source` is
// borrowed, and explains `flags`.
template <class Number>
void copy_in(const Stream& stream, const Tensor& tensor, std::span<const Number> source, uint32_t flags = 0) {
  if (tensor.dtype() != dtype_of<Number>() || !tensor.is_contiguous() || source.size_bytes() != tensor.bytes())
    detail::invalid(
        "copy_in: %zu bytes of host memory for a tensor of dtype %u with %zu; it takes its own dtype, contiguous",
        source.size_bytes(), tensor.dtype(), static_cast<size_t>(tensor.bytes()));
  detail::call(bph_copy_in, stream.get(), tensor.view().buffer, tensor.offset(),
               static_cast<const void*>(source.data()), uint64_t{source.size_bytes()}, flags);
}

// Copies a contiguous tensor to host memory, and waits for the copy unless `flags` has
// BPH_COPY_ENQUEUE; see bph_copy_out.
template <class Number>
void copy_out(const Stream& stream, std::span<Number> target, const Tensor& tensor, uint32_t flags = 0) {
  if (tensor.dtype() != dtype_of<Number>() || !tensor.is_contiguous() || target.size_bytes() != tensor.bytes())
    detail::invalid(
        "copy_out: a tensor of dtype %u with %zu bytes into %zu of host memory; it takes its own dtype, contiguous",
        tensor.dtype(), static_cast<size_t>(tensor.bytes()), target.size_bytes());
  detail::call(bph_copy_out, stream.get(), static_cast<void*>(target.data()), tensor.view().buffer, tensor.offset(),
               uint64_t{target.size_bytes()}, flags);
}

}  // namespace backplane
