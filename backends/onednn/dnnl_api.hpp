// SPDX-License-Identifier: Apache-2.0
// Where oneDNN 2.x and 3.x differ. The rest of the plugin is written against these names.
#pragma once

#include <cstdlib>
#include <dnnl.hpp>
#include <string>

namespace backplane::onednn::dnnl_api {

inline std::string version() {
  const dnnl_version_t* is = dnnl_version();
  return "oneDNN " + std::to_string(is->major) + "." + std::to_string(is->minor) + "." + std::to_string(is->patch);
}

// oneDNN's cache of primitives keeps what plans already keep, and what they have let go. Off, unless the user has set it;
// it is one for the whole process.
inline void leave_caching_to_plans() {
  for (const char* variable : {"DNNL_PRIMITIVE_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"}) {
    if (std::getenv(variable) != nullptr) return;
  }
  dnnl::set_primitive_cache_capacity(0);
}

using Dims = dnnl::memory::dims;
using Md = dnnl::memory::desc;
using Type = dnnl::memory::data_type;

// Every factory gives an empty descriptor where no implementation takes the operands, and throws dnnl::error otherwise.
inline dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const Md& a, const Md& b, const Md& bias,
                                           const Md& out, const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, a, b, bias, out, attributes, true};
#else
  return {dnnl::matmul::desc(a, b, bias, out), attributes, engine, true};
#endif
}

// out = alpha * op(a) * op(b) + beta * out in f32, row-major; `N` or `T`. On one thread inside a team, where it is called.
inline dnnl_status_t sgemm(char op_a, char op_b, int64_t rows, int64_t cols, int64_t depth, float alpha, const float* a,
                           int64_t a_stride, const float* b, int64_t b_stride, float beta, float* out, int64_t stride) {
  return dnnl_sgemm(op_a, op_b, rows, cols, depth, alpha, a, a_stride, b, b_stride, beta, out, stride);
}

// The window of a convolution: strides, dilations less 1, padding.
struct Window {
  Dims strides, dilations, begin, end;
};

inline dnnl::convolution_forward::primitive_desc conv(const dnnl::engine& engine, const Md& x, const Md& w,
                                                      const Md& bias, const Md& y, const Window& at,
                                                      const dnnl::primitive_attr& attributes) {
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  constexpr auto kind = dnnl::prop_kind::forward_training;
  return {engine, kind, algorithm, x, w, bias, y, at.strides, at.dilations, at.begin, at.end, attributes, true};
#else
  constexpr auto kind = dnnl::prop_kind::forward_training;
  return {{kind, algorithm, x, w, bias, y, at.strides, at.dilations, at.begin, at.end}, attributes, engine, true};
#endif
}

inline dnnl::deconvolution_forward::primitive_desc conv_transpose(const dnnl::engine& engine, const Md& x, const Md& w,
                                                                  const Md& bias, const Md& y, const Window& at,
                                                                  const dnnl::primitive_attr& attributes) {
  constexpr auto algorithm = dnnl::algorithm::deconvolution_direct;
  constexpr auto kind = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kind, algorithm, x, w, bias, y, at.strides, at.dilations, at.begin, at.end, attributes, true};
#else
  return {{kind, algorithm, x, w, bias, y, at.strides, at.dilations, at.begin, at.end}, attributes, engine, true};
#endif
}

inline dnnl::convolution_backward_weights::primitive_desc conv_bwd_weight(
    const dnnl::engine& engine, const Md& x, const Md& dw, const Md& dy, const Window& at,
    const dnnl::primitive_attr& attributes, const dnnl::convolution_forward::primitive_desc& forward) {
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, algorithm, x, dw, dy, at.strides, at.dilations, at.begin, at.end, forward, attributes, true};
#else
  return {{algorithm, x, dw, dy, at.strides, at.dilations, at.begin, at.end}, attributes, engine, forward, true};
#endif
}

inline size_t bytes_of(const Md& md) { return md.get_size(); }

}  // namespace backplane::onednn::dnnl_api
