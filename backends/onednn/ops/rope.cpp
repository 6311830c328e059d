// SPDX-License-Identifier: Apache-2.0
// The operator rope, in one pass over x.
#include "simd/rope.hpp"

#include <backplane/kit/plan.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "ops/f32_cast.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

constexpr int64_t kRopeGrain = int64_t{1} << 16;  // number of elements that justify waking a thread
constexpr int64_t kKept = int64_t{1} << 16;       // maximum depth for which a plan stores the frequencies

// The state of a plan: the kernels, and the frequencies of the plan's size, in the layout that
// fill_frequencies() writes.
struct Rope {
  RopeKernels kernels;
  int64_t half = -1;
  std::vector<float> frequencies;
};

int64_t half_of(int64_t depth, const bp_rope_attributes& attributes) {
  return (attributes.rotary_extent == 0 ? depth : attributes.rotary_extent) / 2;
}

// Writes the frequencies as an array of remainders, followed by an array of integer parts (RopeTable). Both
// arrays have half + kRopePadding elements.
void fill_frequencies(float* to, int64_t half, float base) {
  constexpr long double two_pi = 2 * std::numbers::pi_v<long double>;
  const long double ratio = std::pow(static_cast<long double>(base), -1 / static_cast<long double>(half));
  const int64_t padded = half + kRopePadding;
  std::fill_n(to, 2 * padded, 0.0f);
  auto* steps = reinterpret_cast<uint32_t*>(to + padded);
  long double turns = 1 / two_pi;
  for (int64_t i = 0; i < half; ++i, turns *= ratio) {
    const long double scaled = std::ldexp(turns - std::floor(turns), 32), whole = std::floor(scaled);
    steps[i] = static_cast<uint32_t>(whole);
    to[i] = static_cast<float>(std::ldexp((scaled - whole) * two_pi, -32));
  }
}

void run_rope(const Call& call) {
  const View &x = call.in(0), &position = call.in(1), &y = call.out();
  const int64_t elements = x.elements();
  if (elements == 0) return;
  const auto& attributes = call.attributes<bp_rope_attributes>();
  const auto& plan = call.prepared<Rope>();
  const RopeKernels& kernels = plan.kernels;
  const int64_t depth = x.shape[x.rank - 1], bytes = static_cast<int64_t>(dtype_bytes(x.dtype));
  const int64_t half = half_of(depth, attributes), rotated = 2 * half, padded = half + kRopePadding;
  const F32Cast widen = F32Cast::to_f32(x.dtype), narrow = F32Cast::from_f32(x.dtype);
  // The scratch memory contains the frequencies, which all threads share. It also contains the cosines, the
  // sines and two rows of each thread.
  const int64_t size = 2 * padded + 2 * depth;
  float* memory = scratch_floats(*call.scratch, 2 * padded + team_size() * size);
  const float* frequencies = plan.frequencies.data();
  if (plan.half != half) {
    fill_frequencies(memory, half, attributes.base);
    frequencies = memory;
  }
  const RopeTable table{reinterpret_cast<const uint32_t*>(frequencies + padded), frequencies, nullptr, nullptr, half};
  parallel(elements, kRopeGrain, [&](int part, int parts) noexcept {
    float* own = memory + 2 * padded + part * size;
    RopeTable mine = table;
    mine.cosines = own;
    mine.sines = own + padded;
    float *from = own + 2 * padded, *to = from + depth;
    const Range range = range_of(elements / depth, part, parts);
    for (int64_t r = range.begin; r < range.end; ++r) {
      const std::byte* in = x.data + r * depth * bytes;
      std::byte* out = y.data + r * depth * bytes;
      kernels.angles(mine, position.as<int32_t>()[r]);
      if (widen.is_copy()) {
        kernels.rotate(mine, attributes.interleaved != 0, reinterpret_cast<const float*>(in),
                       reinterpret_cast<float*>(out));
      } else {
        widen(in, from, rotated);
        kernels.rotate(mine, attributes.interleaved != 0, from, to);
        narrow(to, out, rotated);
      }
      std::memcpy(out + rotated * bytes, in + rotated * bytes, static_cast<std::size_t>((depth - rotated) * bytes));
    }
  });
}

Status prepare(const CheckedDesc& checked, Prepared& prepared) {
  const auto& attributes = checked.attributes.as<bp_rope_attributes>();
  const bp_tensor_desc& x = checked.desc.inputs[0];
  prepared.any_size = true;
  if (x.shape[x.rank - 1] > kKept) return {};
  auto plan = std::make_shared<Rope>();
  plan->kernels = rope_kernels();
  plan->half = half_of(x.shape[x.rank - 1], attributes);
  plan->frequencies.resize(static_cast<std::size_t>(2 * (plan->half + kRopePadding)));
  fill_frequencies(plan->frequencies.data(), plan->half, attributes.base);
  prepared.state = std::move(plan);
  return {};
}

}  // namespace

void add_rope(Kernels& kernels) {
  const RopeKernels steps = rope_kernels();
  if (steps.angles == nullptr) return;
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    kernels.add(
        BP_OP_ROPE, dtype,
        {.run = run_rope, .dense = true, .prepare = prepare, .state = std::make_shared<Rope>(Rope{steps, -1, {}})});
  }
}

}  // namespace backplane::onednn
