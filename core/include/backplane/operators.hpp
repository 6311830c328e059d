// SPDX-License-Identifier: Apache-2.0
// Operator calls: the generic `execute`, and a function for each primitive. Part of backplane.hpp.
//
// Output parameters come first. The caller allocates the outputs; no function except `pack`
// allocates memory. Every function enqueues the work and returns. The elementwise functions
// broadcast their inputs to the output's shape, which changes only metadata. All other functions
// pass operands unchanged.
#pragma once

#include <backplane/tensor.hpp>

namespace backplane {

// Compile-time properties from the row of operator `op` in ops.def.
template <uint32_t op>
struct OpRow;
#define BP_OP_ROW(id, symbol, name_, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, \
                  i64, acc, prof, since, family, doc)                                                              \
  template <>                                                                                                      \
  struct OpRow<id> {                                                                                               \
    using Attributes = bp_##attrs##_attributes;                                                                    \
    static constexpr const char* name = name_;                                                                     \
    static constexpr uint32_t inputs_min = imin, inputs_max = imax, outputs_min = omin, outputs_max = omax;        \
    static constexpr uint32_t scalars = smax;                                                                      \
    static constexpr bool is_elementwise = BP_SHAPE_##shape == BP_SHAPE_ELEMENTWISE;                               \
  };
#include <backplane/ops.def>
#undef BP_OP_ROW

// Returns the attributes of operator `op`. Only struct_size is set; all other fields are zero.
template <uint32_t op>
typename OpRow<op>::Attributes attributes() noexcept {
  return detail::sized<typename OpRow<op>::Attributes>();
}

namespace detail {

// Returns a call that refers to the given operands, attributes and scalars.
inline bph_call make_call(const Stream& stream, uint32_t op, std::span<const bph_tensor> inputs,
                          std::span<const bph_tensor> outputs, const void* attributes,
                          std::span<const uint64_t> scalars, uint64_t flags) noexcept {
  return {.struct_size = sizeof(bph_call),
          .op = op,
          .flags = flags | stream.call_flags(),
          .attributes = attributes,
          .inputs = inputs.data(),
          .outputs = outputs.data(),
          .scalars = scalars.data(),
          .input_count = static_cast<uint32_t>(inputs.size()),
          .output_count = static_cast<uint32_t>(outputs.size()),
          .scalar_count = static_cast<uint32_t>(scalars.size()),
          .hints = 0,
          .scalar_tensors = nullptr};
}

}  // namespace detail

// Executes any operator. The numbers of operands need not be known at compile time.
inline void execute(const Stream& stream, uint32_t op, std::span<const bph_tensor> inputs,
                    std::span<const bph_tensor> outputs, const void* attributes = nullptr,
                    std::span<const uint64_t> scalars = {}, uint64_t flags = 0) {
  const bph_call call = detail::make_call(stream, op, inputs, outputs, attributes, scalars, flags);
  detail::call(bph_execute, stream.get(), &call);
}

// Like execute, but the device reads the scalars when the work runs. Each scalar is a tensor of
// rank 0; see bph_call.scalar_tensors.
inline void execute_with_device_scalars(const Stream& stream, uint32_t op, std::initializer_list<bph_tensor> inputs,
                                        std::initializer_list<bph_tensor> outputs, const void* attributes,
                                        std::initializer_list<bph_tensor> scalars, uint64_t flags = 0) {
  bph_call call =
      detail::make_call(stream, op, {std::data(inputs), inputs.size()}, {std::data(outputs), outputs.size()},
                        attributes, {}, flags | BP_OP_FLAG_DEVICE_SCALARS);
  call.scalar_count = static_cast<uint32_t>(scalars.size());
  call.scalar_tensors = std::data(scalars);
  detail::call(bph_execute, stream.get(), &call);
}

// Executes the calls in their order. Throws the error of the first call that fails. `done` receives
// the number of calls that succeeded, even after a failure; see bph_execute_many.
inline void execute_many(const Stream& stream, std::span<const bph_call* const> calls, uint32_t* done = nullptr) {
  detail::call_later<decltype(bph_execute_many)>("bph_execute_many", stream.get(), calls.data(),
                                                 static_cast<uint32_t>(calls.size()), done);
}

// Overload for operands in braces: execute(stream, BP_OP_ADD, {a, b}, {out}).
inline void execute(const Stream& stream, uint32_t op, std::initializer_list<bph_tensor> inputs,
                    std::initializer_list<bph_tensor> outputs, const void* attributes = nullptr,
                    std::initializer_list<uint64_t> scalars = {}, uint64_t flags = 0) {
  execute(stream, op, std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()), attributes,
          std::span(scalars.begin(), scalars.size()), flags);
}

// Packs input `index` of a call of operator `op` into a new buffer, and returns the operand to pass
// instead of that input; see bph_pack. Other operands need no buffers. The returned tensor owns the
// new buffer. Throws UNSUPPORTED if the plugin prefers the plain input.
inline Tensor pack(const Stream& stream, uint32_t op, uint32_t index, std::span<const bph_tensor> inputs,
                   std::span<const bph_tensor> outputs, const void* attributes = nullptr, uint64_t flags = 0) {
  bph_call call = detail::make_call(stream, op, inputs, outputs, attributes, {}, flags);
  auto info = detail::sized<bph_pack_info>();
  detail::call_later<decltype(bph_pack_query)>("bph_pack_query", stream.device(), &call, index, &info);
  auto desc = detail::sized<bph_buffer_desc>();
  desc.bytes = info.bytes;
  desc.alignment = info.alignment;
  desc.stream = stream.get();
  auto buffer = std::make_shared<const Buffer>(stream.device(), desc);
  bph_tensor packed{};
  detail::call_later<decltype(bph_pack)>("bph_pack", stream.get(), &call, index, buffer->get(), uint64_t{0}, &packed);
  return Tensor(std::move(buffer), packed);
}

// Overload for operands in braces: pack(stream, BP_OP_MATMUL, 1, {a, b}, {out}).
inline Tensor pack(const Stream& stream, uint32_t op, uint32_t index, std::initializer_list<bph_tensor> inputs,
                   std::initializer_list<bph_tensor> outputs, const void* attributes = nullptr, uint64_t flags = 0) {
  return pack(stream, op, index, std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()),
              attributes, flags);
}

namespace detail {

// Returns `input`, broadcast to the output's shape.
inline bph_tensor broadcast_like(const Tensor& input, const Tensor& out) {
  const bph_tensor& from = input.view();
  const bph_tensor& to = out.view();
  bool same = from.rank == to.rank;
  for (size_t i = 0; same && i < to.rank; ++i) same = from.shape[i] == to.shape[i];
  return same ? from : input.broadcast_to(out.shape()).view();
}

// Executes an elementwise operator with one output. Checks the number of operands at compile time.
template <uint32_t op, class... Inputs>
void elementwise(const Stream& stream, const void* attributes, const Tensor& out, const Inputs&... inputs) {
  using Row = OpRow<op>;
  static_assert(Row::is_elementwise && Row::outputs_min == 1 && Row::scalars == 0);
  static_assert(Row::inputs_min <= sizeof...(Inputs) && sizeof...(Inputs) <= Row::inputs_max);
  execute(stream, op, {broadcast_like(inputs, out)...}, {out.view()}, attributes);
}

}  // namespace detail

// The names bit_and, bit_or and bit_xor differ from ops.def, because `and`, `or` and `xor` are C++
// keywords. The name bit_not matches these names.
#define BACKPLANE_UNARY(name, symbol)                                          \
  inline void name(const Stream& stream, const Tensor& out, const Tensor& x) { \
    detail::elementwise<BP_OP_##symbol>(stream, nullptr, out, x);              \
  }
#define BACKPLANE_BINARY(name, symbol)                                                          \
  inline void name(const Stream& stream, const Tensor& out, const Tensor& a, const Tensor& b) { \
    detail::elementwise<BP_OP_##symbol>(stream, nullptr, out, a, b);                            \
  }
BACKPLANE_UNARY(copy, COPY)
BACKPLANE_UNARY(cast, CAST)
BACKPLANE_UNARY(neg, NEG)
BACKPLANE_UNARY(abs, ABS)
BACKPLANE_UNARY(floor, FLOOR)
BACKPLANE_UNARY(rint, RINT)
BACKPLANE_UNARY(sqrt, SQRT)
BACKPLANE_UNARY(rsqrt, RSQRT)
BACKPLANE_UNARY(exp, EXP)
BACKPLANE_UNARY(log, LOG)
BACKPLANE_UNARY(sin, SIN)
BACKPLANE_UNARY(cos, COS)
BACKPLANE_UNARY(tanh, TANH)
BACKPLANE_UNARY(erf, ERF)
BACKPLANE_UNARY(bit_not, BITNOT)
BACKPLANE_BINARY(add, ADD)
BACKPLANE_BINARY(sub, SUB)
BACKPLANE_BINARY(mul, MUL)
BACKPLANE_BINARY(div, DIV)
BACKPLANE_BINARY(rem, REM)
BACKPLANE_BINARY(max, MAX)
BACKPLANE_BINARY(min, MIN)
BACKPLANE_BINARY(bit_and, AND)
BACKPLANE_BINARY(bit_or, OR)
BACKPLANE_BINARY(bit_xor, XOR)
BACKPLANE_BINARY(shl, SHL)
BACKPLANE_BINARY(shr, SHR)
#undef BACKPLANE_UNARY
#undef BACKPLANE_BINARY

// `predicate` is BP_COMPARE_*.
inline void compare(const Stream& stream, const Tensor& out, const Tensor& a, const Tensor& b, uint32_t predicate) {
  auto attrs = attributes<BP_OP_COMPARE>();
  attrs.predicate = predicate;
  detail::elementwise<BP_OP_COMPARE>(stream, &attrs, out, a, b);
}
inline void select(const Stream& stream, const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  detail::elementwise<BP_OP_SELECT>(stream, nullptr, out, condition, a, b);
}
inline void cumsum(const Stream& stream, const Tensor& out, const Tensor& x, uint32_t axis, bool exclusive = false,
                   bool reverse = false) {
  auto attrs = attributes<BP_OP_CUMSUM>();
  attrs.axis = axis;
  attrs.exclusive = exclusive;
  attrs.reverse = reverse;
  detail::elementwise<BP_OP_CUMSUM>(stream, &attrs, out, x);
}

template <class Number>
void fill(const Stream& stream, const Tensor& out, Number value) {
  execute(stream, BP_OP_FILL, {}, {out}, nullptr, {scalar_bits(out.dtype(), value)});
}
template <class Number>
void iota(const Stream& stream, const Tensor& out, uint32_t axis, Number start, Number step) {
  auto attrs = attributes<BP_OP_IOTA>();
  attrs.axis = axis;
  execute(stream, BP_OP_IOTA, {}, {out}, &attrs, {scalar_bits(out.dtype(), start), scalar_bits(out.dtype(), step)});
}
inline void gather(const Stream& stream, const Tensor& out, const Tensor& x, const Tensor& index, uint32_t axis) {
  auto attrs = attributes<BP_OP_GATHER>();
  attrs.axis = axis;
  execute(stream, BP_OP_GATHER, {x, index}, {out}, &attrs);
}
// `io` is read and written; `mode` is BP_SCATTER_*.
inline void scatter(const Stream& stream, const Tensor& io, const Tensor& index, const Tensor& source, uint32_t axis,
                    uint32_t mode) {
  auto attrs = attributes<BP_OP_SCATTER>();
  attrs.axis = axis;
  attrs.mode = mode;
  execute(stream, BP_OP_SCATTER, {index, source}, {io}, &attrs);
}

// Returns a set of dimensions as a mask for reductions, as in axes(0, 2).
template <std::integral... Axes>
constexpr uint32_t axes(Axes... axis) noexcept {
  return (0u | ... | (1u << axis));
}
#define BACKPLANE_REDUCE(name, symbol)                                                        \
  inline void name(const Stream& stream, const Tensor& out, const Tensor& x, uint32_t axes) { \
    auto attrs = attributes<BP_OP_##symbol>();                                                \
    attrs.axes = axes;                                                                        \
    execute(stream, BP_OP_##symbol, {x}, {out}, &attrs);                                      \
  }
#define BACKPLANE_ARG(name, symbol)                                                           \
  inline void name(const Stream& stream, const Tensor& out, const Tensor& x, uint32_t axis) { \
    auto attrs = attributes<BP_OP_##symbol>();                                                \
    attrs.axis = axis;                                                                        \
    execute(stream, BP_OP_##symbol, {x}, {out}, &attrs);                                      \
  }
BACKPLANE_REDUCE(reduce_sum, REDUCE_SUM)
BACKPLANE_REDUCE(reduce_prod, REDUCE_PROD)
BACKPLANE_REDUCE(reduce_max, REDUCE_MAX)
BACKPLANE_REDUCE(reduce_min, REDUCE_MIN)
BACKPLANE_ARG(argmax, ARGMAX)
BACKPLANE_ARG(argmin, ARGMIN)
#undef BACKPLANE_REDUCE
#undef BACKPLANE_ARG

// `precision` is a mask of BP_PRECISION_ALLOW_*.
inline void matmul(const Stream& stream, const Tensor& out, const Tensor& a, const Tensor& b,
                   uint32_t precision = BP_PRECISION_FULL) {
  auto attrs = attributes<BP_OP_MATMUL>();
  attrs.precision = precision;
  execute(stream, BP_OP_MATMUL, {a, b}, {out}, &attrs);
}
inline void sort(const Stream& stream, const Tensor& values, const Tensor& indices, const Tensor& x, uint32_t axis,
                 bool descending = false) {
  auto attrs = attributes<BP_OP_SORT>();
  attrs.axis = axis;
  attrs.descending = descending;
  execute(stream, BP_OP_SORT, {x}, {values, indices}, &attrs);
}
// Generates random bits. Element 4 * j + l of `out` is 32-bit word l (0 to 3) of the Philox block
// whose counter is counter + j.
inline void philox(const Stream& stream, const Tensor& out, uint64_t key, uint64_t counter_low,
                   uint64_t counter_high = 0) {
  execute(stream, BP_OP_PHILOX, {}, {out}, nullptr, {key, counter_low, counter_high});
}

}  // namespace backplane
