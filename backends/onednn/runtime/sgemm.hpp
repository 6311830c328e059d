// SPDX-License-Identifier: Apache-2.0
// oneDNN's sgemm as an inner step of a kernel. Each thread of a team calls it for its own part of the work.
#pragma once

#include <atomic>
#include <backplane/kit/error.hpp>
#include <stdexcept>

#include "runtime/dnnl_api.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {

// Any number of threads may call multiply() concurrently. Each thread must have a TeamSize of 1 in scope. Call
// check() after all threads have finished.
class Sgemm {
 public:
  // Computes out = alpha * op(a) * op(b) + beta * out, row-major. op_a and op_b are 'N', or 'T' if the
  // operand is transposed.
  void multiply(char op_a, char op_b, int64_t rows, int64_t cols, int64_t depth, float alpha, const float* a,
                int64_t a_stride, const float* b, int64_t b_stride, float beta, float* out,
                int64_t stride) const noexcept {
    const dnnl_status_t status =
        dnnl_api::sgemm(op_a, op_b, rows, cols, depth, alpha, a, a_stride, b, b_stride, beta, out, stride);
    if (status != dnnl_success) failure_.store(status, std::memory_order_relaxed);
  }
  // Like the other overload, with op_a = 'N'.
  void multiply(char op_b, int64_t rows, int64_t cols, int64_t depth, float alpha, const float* a, int64_t a_stride,
                const float* b, int64_t b_stride, float beta, float* out, int64_t stride) const noexcept {
    multiply('N', op_b, rows, cols, depth, alpha, a, a_stride, b, b_stride, beta, out, stride);
  }

  // Throws if a call of multiply() has failed.
  void check() const {
    const dnnl_status_t failure = failure_.load(std::memory_order_relaxed);
    if (failure != dnnl_success)
      throw std::runtime_error(kit::text("oneDNN returned status ", int{failure}, " from sgemm"));
  }

 private:
  mutable std::atomic<dnnl_status_t> failure_{dnnl_success};
};

}  // namespace backplane::onednn
