// SPDX-License-Identifier: Apache-2.0
// Prefix sums along slices. Operands: out and in. The loops over the operands omit the axis.
// extra[0]: extent. extra[1], extra[2]: strides of out and in along the axis. `option` is 1 for an
// exclusive scan. A reversed scan begins at the end and has negative strides.
#include "exact.h"
#include "nest.h"

#if SIMT_IS_FLOAT
typedef Sum Running;
SIMT_FN void take(Running& sum, SIMT_T::Value x) {
  add(sum, x);
  if ((bits_of_float(sum.high) & 0x7F800000u) == 0x7F800000u) sum.low = 0.0f;
}
SIMT_FN void join(Running& sum, Running other) {
  take(sum, other.high);
  sum.low += other.low;
}
SIMT_FN SIMT_T::Bits result(const Running& sum) { return SIMT_T::bits(sum.high + sum.low); }
#else
struct Running {
  u64 high;
};
SIMT_FN void take(Running& sum, SIMT_T::Value x) { sum.high += (u64)(i64)x; }
SIMT_FN void join(Running& sum, Running other) { sum.high += other.high; }
SIMT_FN SIMT_T::Bits result(const Running& sum) { return (SIMT_T::Bits)sum.high; }
#endif
SIMT_FN Running zero() {
  Running out;
  out.high = 0;
#if SIMT_IS_FLOAT
  out.low = 0;
#endif
  return out;
}

// Scans elements `first` to `last` - 1, starting from `sum`. Returns `sum` plus these elements.
// Stores results only if `stores` is true.
SIMT_FN Running scan_elements(const NestParams& p, Pointer out, Pointer in, const Position<2>& at, i64 first, i64 last,
                              Running sum, bool stores) {
  SIMT_GLOBAL SIMT_T::Bits* to = at_offset<SIMT_T::Bits>(out, p.offsets[0]) + at.at[0];
  for (i64 i = first; i < last; ++i) {
    const Running before = sum;
    take(sum, SIMT_T::value(load<SIMT_T::Bits>(in, p, 1, at.at[1] + p.extra[2] * i)));
    if (stores) to[p.extra[1] * i] = result(p.option != 0 ? before : sum);
  }
  return sum;
}

// One thread scans a slice.
SIMT_KERNEL(scan_thread)(Pointer out, Pointer in, NestParams p) {
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    scan_elements(p, out, in, locate<2>(p, i), 0, p.extra[0], zero(), true);
  }
}

// One group scans a slice. Each thread sums a contiguous part of the slice, adds the sums of all
// earlier parts, and then scans its part. The order of additions does not depend on the order of
// threads.
#define SIMT_MAX_GROUP 1024
SIMT_KERNEL(scan_group)(Pointer out, Pointer in, NestParams p) {
  SIMT_SHARED(Running, sums, SIMT_MAX_GROUP);
  const u32 thread = local_id();
  const i64 extent = p.extra[0], stretch = (extent + group_size() - 1) / group_size();
  const i64 first = smaller(thread * stretch, extent), last = smaller(first + stretch, extent);
  for (u32 i = group_id(); i < p.count; i += group_count()) {
    const Position<2> at = locate<2>(p, i);
    sums[thread] = scan_elements(p, out, in, at, first, last, zero(), false);
    group_barrier();
    Running before = zero();
    for (u32 t = 0; t < thread; ++t) join(before, sums[t]);
    group_barrier();
    scan_elements(p, out, in, at, first, last, before, true);
  }
}
