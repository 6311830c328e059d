// SPDX-License-Identifier: Apache-2.0
// The operators argmax and argmin of f32, f16 and bf16. A slice contains the elements along the axis. Vector
// kernels process contiguous slices, and groups of slices that are adjacent in memory. The plain kernel
// processes all other slices.
#include "simd/reduce_arg.hpp"

#include <backplane/kit/loops.hpp>

#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

struct ArgPlan {
  ArgKernels by;
  Kernel plain;
};

void run_arg(const Call& call) {
  constexpr int64_t kGrain = int64_t{1} << 17;  // number of elements that justify waking a thread
  const auto& plan = call.prepared<ArgPlan>();
  const View &in = call.in(0), &out = call.out();
  if (out.elements() == 0) return;
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const int64_t length = in.shape[axis], step = byte_stride(in, axis),
                bytes = static_cast<int64_t>(dtype_bytes(in.dtype));
  const View lane = lanes(in, axis);
  const LoopNest<2> nest({&out, &lane});
  const bool rows = step == bytes || length == 1, columns = nest.inner_strides()[1] == bytes;
  if (!rows && !columns) return plan.plain(call);
  parallel(in.elements(), kGrain, [&](int part, int parts) noexcept {
    const uint32_t d = nest.longest();
    const Range range = range_of(nest.extent(d), part, parts, nest.extent(d) >= 64 * parts ? 64 : 1);
    if (range.begin == range.end) return;
    nest.cut(d, range.begin, range.end).rows([&](const auto& at, const auto& strides, int64_t count) {
      const auto found = [&](int64_t k) { return reinterpret_cast<int32_t*>(at[0] + k * strides[0]); };
      if (rows) {
        for (int64_t k = 0; k < count; ++k) *found(k) = plan.by.row(at[1] + k * strides[1], length);
        return;
      }
      int32_t indices[ArgKernels::kMaxColumns];
      for (int64_t begin = 0; begin < count; begin += ArgKernels::kMaxColumns) {
        const int64_t width = std::min(ArgKernels::kMaxColumns, count - begin);
        plan.by.columns(at[1] + begin * bytes, step, length, width, indices);
        for (int64_t k = 0; k < width; ++k) *found(begin + k) = indices[k];
      }
    });
  });
}

}  // namespace

void add_reduce_arg(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    for (const uint32_t op : {BP_OP_ARGMAX, BP_OP_ARGMIN}) {
      const ArgKernels by = arg_kernels(op, dtype);
      if (by.row == nullptr) continue;
      KernelSpec spec = *kernels.find(op, {dtype, BP_I32});
      spec.state = std::make_shared<ArgPlan>(ArgPlan{by, spec.run});
      spec.run = run_arg;
      kernels.add(op, dtype, spec);
    }
  }
}

}  // namespace backplane::onednn
