// SPDX-License-Identifier: Apache-2.0
// The operator cumsum of f32, f16 and bf16. A slice contains the elements along the axis. Vector kernels
// process contiguous slices, and groups of slices that are adjacent in memory. The plain kernel processes all
// other slices.
#include "simd/scan.hpp"

#include <backplane/kit/loops.hpp>

#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

struct ScanPlan {
  ScanKernels by;
  Kernel plain;
};

void run_cumsum(const Call& call) {
  constexpr int64_t kGrain = int64_t{1} << 16;  // number of elements that justify waking a thread
  const auto& plan = call.prepared<ScanPlan>();
  const View &in = call.in(0), &out = call.out();
  const int64_t elements = out.elements(), size = static_cast<int64_t>(dtype_bytes(in.dtype));
  if (elements == 0) return;
  const auto& attributes = call.attributes<bp_cumsum_attributes>();
  const uint32_t axis = attributes.axis;
  const int64_t length = in.shape[axis], in_step = byte_stride(in, axis), out_step = byte_stride(out, axis);
  const bool exclusive = attributes.exclusive != 0, reverse = attributes.reverse != 0;
  const View from = lanes(in, axis), to = lanes(out, axis);
  const LoopNest<2> nest({&to, &from});
  const auto is_dense = [&](int64_t a, int64_t b) { return a == size && b == size; };
  const bool rows = is_dense(in_step, out_step) || length == 1,
             columns = is_dense(nest.inner_strides()[0], nest.inner_strides()[1]);
  if (!rows && !columns) return plan.plain(call);
  parallel(elements, kGrain, [&](int part, int parts) noexcept {
    const uint32_t d = nest.longest();
    const Range range = range_of(nest.extent(d), part, parts, nest.extent(d) >= 64 * parts ? 64 : 1);
    if (range.begin == range.end) return;
    nest.cut(d, range.begin, range.end).rows([&](const auto& at, const auto& strides, int64_t count) {
      if (rows) {
        for (int64_t k = 0; k < count; ++k)
          plan.by.row(at[1] + k * strides[1], at[0] + k * strides[0], length, exclusive, reverse);
        return;
      }
      const int64_t last = reverse ? length - 1 : 0, sign = reverse ? -1 : 1;
      for (int64_t begin = 0; begin < count; begin += ScanKernels::kMaxColumns) {
        plan.by.columns(at[1] + last * in_step + begin * size, sign * in_step, at[0] + last * out_step + begin * size,
                        sign * out_step, length, std::min(ScanKernels::kMaxColumns, count - begin), exclusive);
      }
    });
  });
}

}  // namespace

void add_scan(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    const ScanKernels by = scan_kernels(dtype);
    if (by.row == nullptr) continue;
    KernelSpec spec = *kernels.find(BP_OP_CUMSUM, {dtype, dtype});
    spec.state = std::make_shared<ScanPlan>(ScanPlan{by, spec.run});
    spec.run = run_cumsum;
    kernels.add(BP_OP_CUMSUM, dtype, spec);
  }
}

}  // namespace backplane::onednn
