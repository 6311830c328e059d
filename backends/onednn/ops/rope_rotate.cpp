// SPDX-License-Identifier: Apache-2.0
// The operator rotate, in one pass over x. Tables that several rows share are not copied.
#include <backplane/kit/loops.hpp>
#include <backplane/kit/plan.hpp>

#include "ops/f32_cast.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "runtime/threads.hpp"
#include "simd/rope.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

constexpr int64_t kRotateGrain = int64_t{1} << 16;  // number of elements that justify waking a thread

// One execution of rotate. The memory of a thread contains the cosines, the sines, and two rows.
struct Rotate {
  decltype(RopeKernels::rotate) rotate;
  F32Cast widen, narrow, widen_table;
  int64_t depth, half, bytes;  // `bytes` is the size of an element of x
  bool pairs;

  int64_t memory() const { return 2 * (half + kRopePadding) + 2 * depth; }

  void run(const LoopNest<4>& nest, float* own) const {
    RopeTable table{nullptr, nullptr, own, own + half + kRopePadding, half};
    float *const from = table.sines + half + kRopePadding, *const to = from + depth;
    const std::byte *cosine = nullptr, *sine = nullptr;  // addresses of the tables whose f32 copies `own` contains
    nest.rows([&](const auto& at, const auto& strides, int64_t count) {
      for (int64_t k = 0; k < count; ++k) {
        std::byte* const out = at[0] + k * strides[0];
        const std::byte* const in = at[1] + k * strides[1];
        const auto read = [&](const std::byte*& last, const std::byte* next, float* values) {
          if (next != last) widen_table(next, values, half);
          last = next;
        };
        read(cosine, at[2] + k * strides[2], table.cosines);
        read(sine, at[3] + k * strides[3], table.sines);
        if (widen.is_copy()) {
          rotate(table, pairs, reinterpret_cast<const float*>(in), reinterpret_cast<float*>(out));
        } else {
          widen(in, from, 2 * half);
          rotate(table, pairs, from, to);
          narrow(to, out, 2 * half);
        }
        if (in != out)
          std::memcpy(out + 2 * half * bytes, in + 2 * half * bytes,
                      static_cast<std::size_t>((depth - 2 * half) * bytes));
      }
    });
  }
};

void run_rotate(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  const int64_t elements = x.elements();
  if (elements == 0) return;
  const uint32_t last = x.rank - 1;
  const Rotate all{.rotate = call.prepared<RopeKernels>().rotate,
                   .widen = F32Cast::to_f32(x.dtype),
                   .narrow = F32Cast::from_f32(x.dtype),
                   .widen_table = F32Cast::to_f32(call.in(1).dtype),
                   .depth = x.shape[last],
                   .half = call.in(1).shape[last],
                   .bytes = static_cast<int64_t>(dtype_bytes(x.dtype)),
                   .pairs = call.attributes<bp_rotate_attributes>().interleaved != 0};
  const View out = lanes(y, last), in = lanes(x, last), cosine = lanes(call.in(1), last),
             sine = lanes(call.in(2), last);
  const LoopNest<4> nest({&out, &in, &cosine, &sine});
  float* const memory = scratch_floats(*call.scratch, team_size() * all.memory());
  parallel(elements, kRotateGrain, [&](int part, int parts) noexcept {
    const uint32_t d = nest.longest();
    const Range range = range_of(nest.extent(d), part, parts);
    if (range.begin < range.end) all.run(nest.cut(d, range.begin, range.end), memory + part * all.memory());
  });
}

// Requests staging of operands whose last dimension is not contiguous, because the kernel reads contiguous
// elements.
Status prepare_rotate(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  const auto is_contiguous = [](const bp_tensor_desc& view) {
    return view.shape[view.rank - 1] == 1 || view.strides[view.rank - 1] == 1;
  };
  for (uint32_t i = 0; i < 3; ++i) {
    if (!is_contiguous(desc.inputs[i]) || (desc.inputs[i].flags & BP_DESC_IMMEDIATE) != 0)
      prepared.stage_inputs |= 1u << i;
  }
  if (!is_contiguous(desc.outputs[0])) prepared.stage_outputs |= 1u;
  prepared.any_size = false;
  prepared.state = std::make_shared<RopeKernels>(rope_kernels());
  return {};
}

}  // namespace

void add_rope_rotate(Kernels& kernels) {
  if (rope_kernels().rotate == nullptr) return;
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    kernels.add(BP_OP_ROTATE, dtype, {.run = run_rotate, .prepare = prepare_rotate, .mixed = rules::kMixedParameters});
  }
}

}  // namespace backplane::onednn
