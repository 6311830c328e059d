// SPDX-License-Identifier: Apache-2.0
// rope in one pass. The angle of position p and frequency f wants its rest by 2 pi to 2^-20, whatever p is: more than f32 has. So f / 2 pi, in turns,
// is a whole number of 2^-32 turns and a rest: the product of p with the first wraps at whole turns by itself, and that with the second is small.
#include <backplane/kit/plan.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "ops/vector_loop.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rope.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "simd/simd-inl.h"

#ifndef BACKPLANE_ONEDNN_ROPE
#define BACKPLANE_ONEDNN_ROPE
namespace backplane::onednn {

// Frequencies, and room for what one position makes of them. `half` values each, padded to whole vectors.
struct RopeTable {
  const uint32_t* steps;  // in 2^-32 turns
  const float* rests;     // in radians
  float *cosines, *sines;
  int64_t half;
};
struct RopeRows {
  void (*turn)(const RopeTable& table, int32_t position);
  // y = x, its first 2 half elements rotated: as halves, or as pairs of neighbours.
  void (*rotate)(const RopeTable& table, bool pairs, const float* x, float* y);
};
inline constexpr int64_t kRopePadding = 64;  // elements that vectors may reach beyond `half`

}  // namespace backplane::onednn
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

[[maybe_unused]] void turn(const RopeTable& table, int32_t position) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto whole = hn::Set(di, position);
  const auto number = hn::Set(d, static_cast<float>(position));
  const auto unit = hn::Set(d, 0x1p-31f * std::numbers::pi_v<float>);
  for (int64_t i = 0; i < table.half; i += lanes) {
    const auto steps = hn::LoadU(di, reinterpret_cast<const int32_t*>(table.steps + i));
    const auto wrapped = hn::ConvertTo(d, hn::Mul(whole, steps));
    const auto angle = hn::Add(hn::Mul(wrapped, unit), hn::Mul(number, hn::LoadU(d, table.rests + i)));
    hn::StoreU(cos_of(d, angle), d, table.cosines + i);
    hn::StoreU(sin_of(d, angle), d, table.sines + i);
  }
}

[[maybe_unused]] void rotate(const RopeTable& table, bool pairs, const float* x, float* y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t half = table.half;
  const int64_t step = pairs ? 2 : 1, across = pairs ? 1 : half;
  int64_t i = 0;
  for (; i + lanes <= half && !pairs; i += lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + half + i);
    const auto cosine = hn::LoadU(d, table.cosines + i), sine = hn::LoadU(d, table.sines + i);
    hn::StoreU(hn::Sub(hn::Mul(a, cosine), hn::Mul(b, sine)), d, y + i);
    hn::StoreU(hn::Add(hn::Mul(b, cosine), hn::Mul(a, sine)), d, y + half + i);
  }
  for (; i < half; ++i) {
    const float a = x[step * i], b = x[step * i + across], cosine = table.cosines[i], sine = table.sines[i];
    y[step * i] = a * cosine - b * sine;
    y[step * i + across] = b * cosine + a * sine;
  }
}

RopeRows find_rope() {
  if constexpr (kHasVectors) return {turn, rotate};
  return {};
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_rope);
namespace {

using namespace kit;

constexpr int64_t kGrain = int64_t{1} << 16;  // elements that are worth a thread
constexpr int64_t kKept = int64_t{1} << 16;   // the greatest depth whose frequencies a plan keeps

// What a plan has: the frequencies of the size that it was made for, in the order of fill_frequencies' room.
struct Rope {
  RopeRows rows;
  int64_t half = -1;
  std::vector<float> frequencies;
};

int64_t half_of(int64_t depth, const bp_rope_attributes& attributes) {
  return (attributes.rotary_extent == 0 ? depth : attributes.rotary_extent) / 2;
}

// Rests, then steps, each padded; `room` holds as many.
void fill_frequencies(float* room, int64_t half, float base) {
  constexpr long double two_pi = 2 * std::numbers::pi_v<long double>;
  const long double ratio = std::pow(static_cast<long double>(base), -1 / static_cast<long double>(half));
  const int64_t padded = half + kRopePadding;
  std::fill_n(room, 2 * padded, 0.0f);
  auto* steps = reinterpret_cast<uint32_t*>(room + padded);
  long double turns = 1 / two_pi;
  for (int64_t i = 0; i < half; ++i, turns *= ratio) {
    const long double scaled = std::ldexp(turns - std::floor(turns), 32), whole = std::floor(scaled);
    steps[i] = static_cast<uint32_t>(whole);
    room[i] = static_cast<float>(std::ldexp((scaled - whole) * two_pi, -32));
  }
}

void run(const Call& call) {
  const View &x = call.in(0), &position = call.in(1), &y = call.out();
  const int64_t elements = x.elements();
  if (elements == 0) return;
  const auto& attributes = call.attributes<bp_rope_attributes>();
  const auto& plan = call.prepared<Rope>();
  const RopeRows& rows = plan.rows;
  const int64_t depth = x.shape[x.rank - 1], bytes = static_cast<int64_t>(dtype_bytes(x.dtype));
  const int64_t half = half_of(depth, attributes), rotated = 2 * half, padded = half + kRopePadding;
  const Row widen = x.dtype == BP_F32 ? nullptr : cast_row(x.dtype, BP_F32);
  const Row narrow = x.dtype == BP_F32 ? nullptr : cast_row(BP_F32, x.dtype);
  // Frequencies for all; cosines, sines and two rows for each thread.
  const int64_t room = 2 * padded + 2 * depth;
  auto* memory = reinterpret_cast<float*>(
      call.scratch->get(static_cast<std::size_t>(2 * padded + team_size() * room) * sizeof(float)));
  const float* frequencies = plan.frequencies.data();
  if (plan.half != half) {
    fill_frequencies(memory, half, attributes.base);
    frequencies = memory;
  }
  const RopeTable table{reinterpret_cast<const uint32_t*>(frequencies + padded), frequencies, nullptr, nullptr, half};
  parallel(elements, kGrain, [&](int part, int parts) noexcept {
    float* own = memory + 2 * padded + part * room;
    RopeTable mine = table;
    mine.cosines = own;
    mine.sines = own + padded;
    float *from = own + 2 * padded, *to = from + depth;
    const Range range = range_of(elements / depth, part, parts);
    for (int64_t r = range.begin; r < range.end; ++r) {
      const std::byte* in = x.data + r * depth * bytes;
      std::byte* out = y.data + r * depth * bytes;
      rows.turn(mine, position.as<int32_t>()[r]);
      if (widen == nullptr) {
        rows.rotate(mine, attributes.interleaved != 0, reinterpret_cast<const float*>(in),
                    reinterpret_cast<float*>(out));
      } else {
        const void *packed[] = {in}, *turned[] = {to};
        widen(packed, from, rotated);
        rows.rotate(mine, attributes.interleaved != 0, from, to);
        narrow(turned, out, rotated);
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
  plan->rows = HWY_DYNAMIC_DISPATCH(find_rope)();
  plan->half = half_of(x.shape[x.rank - 1], attributes);
  plan->frequencies.resize(static_cast<std::size_t>(2 * (plan->half + kRopePadding)));
  fill_frequencies(plan->frequencies.data(), plan->half, attributes.base);
  prepared.state = std::move(plan);
  return {};
}

}  // namespace

void add_rope(Kernels& kernels) {
  const RopeRows rows = HWY_DYNAMIC_DISPATCH(find_rope)();
  if (rows.turn == nullptr) return;
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    kernels.add(BP_OP_ROPE, dtype,
                {.run = run, .dense = true, .prepare = prepare, .state = std::make_shared<Rope>(Rope{rows, -1, {}})});
  }
}

}  // namespace backplane::onednn
#endif
