// SPDX-License-Identifier: Apache-2.0
// Conversion of elements to and from f32, the dtype in which most kernels compute.
#pragma once

#include <backplane/ops.h>
#include <cstddef>
#include <cstring>

#include "simd/cast.hpp"

namespace backplane::onednn {

class F32Cast {
 public:
  static F32Cast to_f32(uint32_t dtype) { return F32Cast(dtype == BP_F32 ? nullptr : cast_kernel(dtype, BP_F32)); }
  static F32Cast from_f32(uint32_t dtype) { return F32Cast(dtype == BP_F32 ? nullptr : cast_kernel(BP_F32, dtype)); }

  // Returns whether both dtypes are f32. If so, a kernel may use the source without conversion.
  bool is_copy() const { return kernel_ == nullptr; }

  void operator()(const void* from, void* to, int64_t count) const {
    if (kernel_ == nullptr) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    } else {
      kernel_(&from, to, count);
    }
  }
  // Converts `count` elements to f32. An element has `bytes` bytes, and the addresses of elements are `step`
  // bytes apart.
  void strided(const std::byte* from, int64_t step, int64_t bytes, float* to, int64_t count) const {
    if (step == bytes) return (*this)(from, to, count);
    for (int64_t i = 0; i < count; ++i) (*this)(from + i * step, to + i, 1);
  }

 private:
  explicit F32Cast(VectorKernel kernel) : kernel_(kernel) {}
  VectorKernel kernel_;
};

}  // namespace backplane::onednn
