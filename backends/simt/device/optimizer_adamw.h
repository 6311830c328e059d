// SPDX-License-Identifier: Apache-2.0
// One step of `adamw` for each element. Operands: parameter, first moment, second moment and gradient,
// then the scalars: the learning rate and the corrections of the two moments. The kernels update the
// parameter and the moments in place.
#include "math.h"
#include "nest.h"

// The numbers that all elements share.
struct Step {
  float rate, correction1, correction2;
};

template <class Params>
SIMT_FN float scalar_of(Pointer base, const Params& p, u32 i) {
  return float_of_bits((p.immediate >> i & 1u) != 0 ? p.scalars[i] : *at_offset<u32>(base, p.offsets[4 + i]));
}
template <class Params>
SIMT_FN Step step_of(Pointer rate, Pointer correction1, Pointer correction2, const Params& p) {
  Step out;
  out.correction1 = scalar_of(correction1, p, 1);
  out.correction2 = scalar_of(correction2, p, 2);
  out.rate = scalar_of(rate, p, 0);
  return out;
}

template <class Params>
SIMT_FN void update(const Params& p, const Step& step, SIMT_GLOBAL SIMT_T::Bits* parameter,
                    SIMT_GLOBAL SIMT_T::Bits* first, SIMT_GLOBAL SIMT_T::Bits* second, SIMT_T::Bits gradient_bits) {
  const float gradient = SIMT_T::value(gradient_bits), before = SIMT_T::value(*parameter);
  const float m = SIMT_T::value(*first) * p.beta1 + gradient * p.complement1;
  const float v = SIMT_T::value(*second) * p.beta2 + gradient * gradient * p.complement2;
  const float divisor = sqrt_f32(divide_f32(v, step.correction2)) + p.epsilon;
  const float change = divide_f32(m, divisor) * divide_f32(step.rate, step.correction1);
  const float decay = p.weight_decay > 0.0f ? before * (step.rate * p.weight_decay) : 0.0f;
  *parameter = SIMT_T::bits(before - decay - change);
  *first = SIMT_T::bits(m);
  *second = SIMT_T::bits(v);
}

SIMT_KERNEL(adamw_nest)
(Pointer parameter, Pointer first, Pointer second, Pointer gradient, Pointer rate, Pointer correction1,
 Pointer correction2, AdamwParams<NestParams> p) {
  typedef SIMT_T::Bits Bits;
  const Step step = step_of(rate, correction1, correction2, p);
  const bool is_immediate = (p.loops.immediate & 8u) != 0;
  for (u32 i = global_id(); i < p.loops.count; i += global_size()) {
    const Position<4> position = locate<4>(p.loops, i);
    update(p, step, at_offset<Bits>(parameter, p.offsets[0]) + position.at[0],
           at_offset<Bits>(first, p.offsets[1]) + position.at[1],
           at_offset<Bits>(second, p.offsets[2]) + position.at[2],
           is_immediate ? (Bits)p.loops.immediates[3] : at_offset<Bits>(gradient, p.offsets[3])[position.at[3]]);
  }
}

// Rows are contiguous in all operands.
SIMT_KERNEL(adamw_rows)
(Pointer parameter, Pointer first, Pointer second, Pointer gradient, Pointer rate, Pointer correction1,
 Pointer correction2, AdamwParams<RowParams> p) {
  typedef SIMT_T::Bits Bits;
  const Step step = step_of(rate, correction1, correction2, p);
  for (u32 c = group_id(); c < p.loops.chunks; c += group_count()) {
    const Chunk<4> chunk = chunk_of<4>(p.loops, c);
    SIMT_GLOBAL Bits* parameters = at_offset<Bits>(parameter, p.offsets[0]) + chunk.at[0];
    SIMT_GLOBAL Bits* firsts = at_offset<Bits>(first, p.offsets[1]) + chunk.at[1];
    SIMT_GLOBAL Bits* seconds = at_offset<Bits>(second, p.offsets[2]) + chunk.at[2];
    SIMT_GLOBAL const Bits* gradients = at_offset<Bits>(gradient, p.offsets[3]) + chunk.at[3];
#ifdef SIMT_PACKS_ROWS
    constexpr u32 size = SIMT_PACK_BYTES / (u32)sizeof(Bits);
    typedef Pack<Bits, size> Packed;
    const u32 past = past_boundary(parameters, SIMT_PACK_BYTES) | past_boundary(firsts, SIMT_PACK_BYTES) |
                     past_boundary(seconds, SIMT_PACK_BYTES) | past_boundary(gradients, SIMT_PACK_BYTES);
    if (past == 0u && chunk.count % size == 0u) {
      for (u32 i = local_id(); i < chunk.count / size; i += group_size()) {
        Packed a = ((const Packed*)parameters)[i], m = ((const Packed*)firsts)[i], v = ((const Packed*)seconds)[i];
        const Packed g = ((const Packed*)gradients)[i];
        SIMT_UNROLL for (u32 e = 0; e < size; ++e) update(p, step, a.at + e, m.at + e, v.at + e, g.at[e]);
        ((Packed*)parameters)[i] = a;
        ((Packed*)firsts)[i] = m;
        ((Packed*)seconds)[i] = v;
      }
      continue;
    }
#endif
    for_row(chunk.count, [&](u32 i) {
      update(p, step, parameters + i + lane(), firsts + i + lane(), seconds + i + lane(), (gradients + i)[lane()]);
    });
  }
}
