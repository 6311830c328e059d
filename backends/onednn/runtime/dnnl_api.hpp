// SPDX-License-Identifier: Apache-2.0
// The differences between the APIs of oneDNN 2.x and 3.x. The other files of the plugin use the names of this
// file.
#pragma once

#include <cstdlib>
#include <dnnl.hpp>
#include <string>
#include <vector>

namespace backplane::onednn::dnnl_api {

inline std::string version() {
  const dnnl_version_t* is = dnnl_version();
  return "oneDNN " + std::to_string(is->major) + "." + std::to_string(is->minor) + "." + std::to_string(is->patch);
}

// Switches off oneDNN's process-wide cache of primitives, unless the user has set the capacity of this cache.
// Plans already own their primitives. The cache would retain these primitives after their plans are destroyed.
inline void leave_caching_to_plans() {
  for (const char* variable : {"DNNL_PRIMITIVE_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"}) {
    if (const char* given = std::getenv(variable); given != nullptr && *given != '\0') return;
  }
  dnnl::set_primitive_cache_capacity(0);
}

using Dims = dnnl::memory::dims;
using Md = dnnl::memory::desc;
using Type = dnnl::memory::data_type;

// Returns the description of a primitive. The result is empty if no implementation supports the operands.
// Throws dnnl::error on other failures.
template <class Primitive, class... Operation>
typename Primitive::primitive_desc describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                            const Operation&... operation) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, operation..., attributes, true};
#else
  return {typename Primitive::desc(operation...), attributes, engine, true};
#endif
}

// Returns the description of a backward primitive, which depends on the description of the forward primitive.
template <class Primitive, class Forward, class... Operation>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                                     const Forward& forward, const Operation&... operation) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, operation..., forward, attributes, true};
#else
  return {typename Primitive::desc(operation...), attributes, engine, forward, true};
#endif
}

#if DNNL_VERSION_MAJOR >= 3
using Softmax = dnnl::softmax_forward;
using Pooling = dnnl::pooling_forward;
#else
using Softmax = dnnl::softmax_v2_forward;
using Pooling = dnnl::pooling_v2_forward;
#endif

// Returns the description of an eltwise primitive whose source and target have the same layout. oneDNN 2.x has
// one parameter for this layout, and oneDNN 3.x has two.
inline dnnl::eltwise_forward::primitive_desc describe_eltwise(const dnnl::engine& engine,
                                                              const dnnl::primitive_attr& attributes,
                                                              dnnl::prop_kind kind, dnnl::algorithm algorithm,
                                                              const Md& layout, float alpha, float beta) {
#if DNNL_VERSION_MAJOR >= 3
  return describe<dnnl::eltwise_forward>(engine, attributes, kind, algorithm, layout, layout, alpha, beta);
#else
  return describe<dnnl::eltwise_forward>(engine, attributes, kind, algorithm, layout, alpha, beta);
#endif
}
inline dnnl::layer_normalization_forward::primitive_desc describe_layer_norm(const dnnl::engine& engine,
                                                                             const dnnl::primitive_attr& attributes,
                                                                             dnnl::prop_kind kind, const Md& layout,
                                                                             float epsilon,
                                                                             dnnl::normalization_flags flags) {
#if DNNL_VERSION_MAJOR >= 3
  return describe<dnnl::layer_normalization_forward>(engine, attributes, kind, layout, layout, epsilon, flags);
#else
  return describe<dnnl::layer_normalization_forward>(engine, attributes, kind, layout, epsilon, flags);
#endif
}

// Computes out = alpha * op(a) * op(b) + beta * out in f32, row-major. An op is 'N' (no change) or 'T'
// (transpose). If the caller's TeamSize is 1, sgemm runs on the calling thread only.
inline dnnl_status_t sgemm(char op_a, char op_b, int64_t rows, int64_t cols, int64_t depth, float alpha, const float* a,
                           int64_t a_stride, const float* b, int64_t b_stride, float beta, float* out, int64_t stride) {
  return dnnl_sgemm(op_a, op_b, rows, cols, depth, alpha, a, a_stride, b, b_stride, beta, out, stride);
}

inline Md any_layout(const Md& md) {
#if DNNL_VERSION_MAJOR >= 3
  return {md.get_dims(), md.get_data_type(), dnnl::memory::format_tag::any};
#else
  return {md.dims(), md.data_type(), dnnl::memory::format_tag::any};
#endif
}

inline size_t bytes_of(const Md& md) { return md.get_size(); }

// Returns numbers that describe a layout completely, except for the extents and the data type. Returns nothing
// if oneDNN does not describe the layout by strides and blocks.
inline std::vector<int64_t> layout_numbers(const Md& md) {
  std::vector<int64_t> numbers;
  const auto add = [&](const auto* values, int count) { numbers.insert(numbers.end(), values, values + count); };
#if DNNL_VERSION_MAJOR >= 3
  if (md.get_format_kind() != dnnl::memory::format_kind::blocked) return {};
  const Dims padded = md.get_padded_dims(), strides = md.get_strides(), blocks = md.get_inner_blks(),
             order = md.get_inner_idxs();
  add(padded.data(), static_cast<int>(padded.size()));
  add(strides.data(), static_cast<int>(strides.size()));
  add(blocks.data(), static_cast<int>(blocks.size()));
  add(order.data(), static_cast<int>(order.size()));
#else
  if (md.data.format_kind != dnnl_blocked) return {};
  const dnnl_blocking_desc_t& blocking = md.data.format_desc.blocking;
  add(md.data.padded_dims, md.data.ndims);
  add(blocking.strides, md.data.ndims);
  add(blocking.inner_blks, blocking.inner_nblks);
  add(blocking.inner_idxs, blocking.inner_nblks);
  numbers.push_back(static_cast<int64_t>(md.data.extra.flags));
  numbers.push_back(md.data.extra.compensation_mask);
#endif
  return numbers;
}

// Returns whether both layouts place all elements at the same offsets. A stride matters only if the
// extent of its dimension exceeds 1.
inline bool same_layout(const Md& a, const Md& b) {
  if (a == b) return true;
  const auto plain_strides = [](const Md& md) -> Dims {
#if DNNL_VERSION_MAJOR >= 3
    if (md.get_format_kind() != dnnl::memory::format_kind::blocked || md.get_inner_nblks() != 0) return {};
    return md.get_strides();
#else
    if (md.data.format_kind != dnnl_blocked || md.data.format_desc.blocking.inner_nblks != 0) return {};
    const auto* strides = md.data.format_desc.blocking.strides;
    return {strides, strides + md.data.ndims};
#endif
  };
#if DNNL_VERSION_MAJOR >= 3
  const Dims dims = a.get_dims(), others = b.get_dims();
#else
  const Dims dims = a.dims(), others = b.dims();
#endif
  const Dims first = plain_strides(a), second = plain_strides(b);
  if (first.empty() || second.empty() || dims != others || bytes_of(a) != bytes_of(b)) return false;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1 && first[d] != second[d]) return false;
  }
  return true;
}

}  // namespace backplane::onednn::dnnl_api
