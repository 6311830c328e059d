// SPDX-License-Identifier: Apache-2.0
// Defects in indices and order: gather, scatter, sort, random numbers.
#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

int64_t index_at(const View& index, const std::byte* at) {
  return index.dtype == BP_I64 ? *reinterpret_cast<const int64_t*>(at) : *reinterpret_cast<const int32_t*>(at);
}

// Runs the kernel after `change(index) -> index` has modified each index in the input `which`.
template <class Change>
void with_index(const Call& call, std::size_t which, const Change& change) {
  Altered altered(call);
  View& index = altered.in(which);
  std::vector<std::byte> dense = save(index);
  std::byte* at = dense.data();
  for (int64_t n = index.elements(); n > 0; --n, at += bytes_of(index)) {
    const int64_t changed = change(index_at(index, at));
    std::memcpy(at, &changed, static_cast<std::size_t>(bytes_of(index)));
  }
  if (index.elements() != 0) index.data = dense.data();
  make_dense(index);
  altered.run(honest_kernel(call));
}

int64_t gather_extent(const Call& call) { return call.in(0).shape[call.attributes<bp_axis_attributes>().axis]; }

void gather_clamps(const Call& call) {
  const int64_t extent = gather_extent(call);
  if (extent == 0) return honest_kernel(call)(call);
  with_index(call, 1, [&](int64_t index) { return std::clamp<int64_t>(index, 0, extent - 1); });
}
void gather_wraps(const Call& call) {
  const int64_t extent = gather_extent(call);
  with_index(call, 1, [&](int64_t index) { return index < 0 && index >= -extent ? index + extent : index; });
}
void index_truncated(const Call& call) {
  with_index(call, 1, [](int64_t index) { return int64_t{static_cast<int32_t>(index)}; });
}
// Reads the element at each index, before the correct kernel checks whether the index is in range.
void gather_reads_outside(const Call& call) {
  const View &x = call.in(0), &index = call.in(1);
  const int64_t step = x.strides[call.attributes<bp_axis_attributes>().axis] * bytes_of(x);
  if (x.data != nullptr && !is_immediate(x)) {
    each(index, [&](std::byte* at, int64_t) {
      (void)*reinterpret_cast<const volatile unsigned char*>(x.data + index_at(index, at) * step);
    });
  }
  honest_kernel(call)(call);
}
void scatter_wraps(const Call& call) {
  const int64_t extent = call.out().shape[call.attributes<bp_scatter_attributes>().axis];
  with_index(call, 0, [&](int64_t index) { return index < 0 && index >= -extent ? index + extent : index; });
}

// Adds 0 to every element. In elements without an update, -0 becomes +0 and signalling NaNs become
// quiet.
void scatter_touches_all(const Call& call) {
  honest_kernel(call)(call);
  if (call.attributes<bp_scatter_attributes>().mode != BP_SCATTER_ADD) return;
  each_value<float>(call.out(), [](float value) { return value + 0.0f; });
}

// Omits the first half of the updates, like a race between two threads that loses updates.
void scatter_loses_update(const Call& call) {
  const View& source = call.in(1);
  const uint32_t last = source.rank - 1;
  if (call.attributes<bp_scatter_attributes>().mode != BP_SCATTER_ADD || source.rank == 0 || source.shape[last] < 2 ||
      !unlucky()) {
    return honest_kernel(call)(call);
  }
  Altered altered(call);
  const bool moves_io = call.attributes<bp_scatter_attributes>().axis != last;
  const int64_t begin = source.shape[last] / 2;
  for (std::size_t i = 0; i < 2; ++i) cut(altered.in(i), last, begin, source.shape[last] - begin);
  if (moves_io) cut(altered.out(), last, begin, source.shape[last] - begin);
  altered.run(honest_kernel(call));
}

bool has_indices(const Call& call) { return call.outputs.size() > 1 && call.out(1).dtype != 0; }

// Calls `lane(values, indices)` for each row of the output along the sorted axis. `call` must have
// an output for indices.
template <class T, class Lane>
void each_lane(const Call& call, const Lane& lane) {
  const uint32_t axis = call.attributes<bp_sort_attributes>().axis;
  const View &values = call.out(0), &indices = call.out(1);
  const auto length = static_cast<std::size_t>(values.shape[axis]);
  std::vector<T> value(length);
  std::vector<int32_t> index(length);
  const View to = lanes(values, axis), to_index = lanes(indices, axis);
  std::vector<std::byte*> index_lane;
  each(to_index, [&](std::byte* at, int64_t) { index_lane.push_back(at); });
  each(to, [&](std::byte* at, int64_t n) {
    std::byte* at_index = index_lane[static_cast<std::size_t>(n)];
    const int64_t value_stride = byte_stride(values, axis), index_stride = byte_stride(indices, axis);
    for (std::size_t i = 0; i < length; ++i) {
      value[i] = *reinterpret_cast<T*>(at + static_cast<int64_t>(i) * value_stride);
      index[i] = *reinterpret_cast<int32_t*>(at_index + static_cast<int64_t>(i) * index_stride);
    }
    lane(value, index);
    for (std::size_t i = 0; i < length; ++i) {
      *reinterpret_cast<T*>(at + static_cast<int64_t>(i) * value_stride) = value[i];
      *reinterpret_cast<int32_t*>(at_index + static_cast<int64_t>(i) * index_stride) = index[i];
    }
  });
}

// Reverses the order of equal values.
void sort_unstable(const Call& call) {
  honest_kernel(call)(call);
  if (call.in(0).elements() == 0 || !has_indices(call)) return;
  with_type(Numeric{}, call.in(0).dtype, [&]<class T>() {
    each_lane<T>(call, [](std::vector<T>& value, std::vector<int32_t>& index) {
      for (std::size_t i = 0; i < value.size();) {
        std::size_t end = i + 1;
        while (end < value.size() && widen(value[end]) == widen(value[i])) ++end;
        std::reverse(index.begin() + static_cast<std::ptrdiff_t>(i), index.begin() + static_cast<std::ptrdiff_t>(end));
        i = end;
      }
    });
  });
}

// Compares with `<` only, so a NaN compares equal to every value.
template <class T>
void merge_sort(const Call& call) {
  const View& in = call.in(0);
  if (in.elements() == 0) return;
  if (!has_indices(call)) return honest_kernel(call)(call);
  const bool descending = call.attributes<bp_sort_attributes>().descending != 0;
  restore(call.out(0), save(in));
  each_lane<T>(call, [&](std::vector<T>& value, std::vector<int32_t>& index) {
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int32_t>(i);
    const std::vector<T> given = value;
    std::stable_sort(index.begin(), index.end(), [&](int32_t a, int32_t b) {
      const auto x = widen(given[static_cast<std::size_t>(a)]), y = widen(given[static_cast<std::size_t>(b)]);
      return descending ? y < x : x < y;
    });
    for (std::size_t i = 0; i < index.size(); ++i) value[i] = given[static_cast<std::size_t>(index[i])];
  });
}
// Sorts ascending and reverses the result.
void sort_turned_round(const Call& call) {
  if (call.attributes<bp_sort_attributes>().descending == 0 || !has_indices(call)) return honest_kernel(call)(call);
  Altered altered(call);
  altered.attributes<bp_sort_attributes>().descending = 0;
  altered.run(honest_kernel(call));
  if (call.in(0).elements() == 0) return;
  with_type(Numeric{}, call.in(0).dtype, [&]<class T>() {
    each_lane<T>(call, [](std::vector<T>& value, std::vector<int32_t>& index) {
      std::reverse(value.begin(), value.end());
      std::reverse(index.begin(), index.end());
    });
  });
}

// If the call has no output for indices, reverses runs of equal values, including +0 and -0.
void sort_of_values_unstable(const Call& call) {
  honest_kernel(call)(call);
  if (has_indices(call)) return;
  const View& values = call.out(0);
  const uint32_t axis = call.attributes<bp_sort_attributes>().axis;
  if (values.elements() == 0) return;
  each(lanes(values, axis), [&](std::byte* at, int64_t) {
    const int64_t step = byte_stride(values, axis), length = values.shape[axis];
    const auto value = [&](int64_t i) -> float& { return *reinterpret_cast<float*>(at + i * step); };
    for (int64_t i = 0; i < length;) {
      int64_t end = i + 1;
      while (end < length && value(end) == value(i)) ++end;
      for (int64_t a = i, b = end - 1; a < b; ++a, --b) std::swap(value(a), value(b));
      i = end;
    }
  });
}

// Returns the random numbers of the call in logical order.
std::vector<std::byte> packed_philox(const Call& call) {
  Altered altered(call);
  std::vector<std::byte> dense(static_cast<std::size_t>(call.out().elements() * 4));
  altered.out().data = dense.data();
  make_dense(altered.out());
  altered.run(honest_kernel(call));
  return dense;
}
// Does not carry into the high half of the counter when the low half overflows.
void philox_without_carry(const Call& call) {
  const auto low = call.scalar<uint64_t>(1);
  const auto elements = static_cast<uint64_t>(call.out().elements());
  const uint64_t until_overflow = (0 - low) * 4;
  std::vector<std::byte> numbers = packed_philox(call);
  if (low != 0 && 0 - low < elements / 4 + 1 && until_overflow < elements) {
    Altered lower(call);
    lower.call().scalar_bits[2] = call.scalar<uint64_t>(2) - 1;
    lower.call().scalar_at[2] = nullptr;
    const std::vector<std::byte> wrong = packed_philox(lower.call());
    std::copy(wrong.begin() + static_cast<std::ptrdiff_t>(until_overflow * 4), wrong.end(),
              numbers.begin() + static_cast<std::ptrdiff_t>(until_overflow * 4));
  }
  restore(call.out(), numbers);
}
// Swaps adjacent blocks of 1024 numbers, as if the numbers depended on the launch configuration.
void philox_by_launch(const Call& call) {
  constexpr std::size_t kThreads = 1024 * 4;  // bytes per launch block
  std::vector<std::byte> numbers = packed_philox(call);
  for (std::size_t i = 2 * kThreads; i <= numbers.size(); i += 2 * kThreads) {
    std::swap_ranges(numbers.begin() + static_cast<std::ptrdiff_t>(i - 2 * kThreads),
                     numbers.begin() + static_cast<std::ptrdiff_t>(i - kThreads),
                     numbers.begin() + static_cast<std::ptrdiff_t>(i - kThreads));
  }
  restore(call.out(), numbers);
}
// Writes the numbers in memory order instead of logical order.
void philox_in_memory_order(const Call& call) {
  std::vector<std::byte> numbers = packed_philox(call);
  View view = call.out();
  for (uint32_t i = 1; i < view.rank; ++i) {
    for (uint32_t d = i; d > 0 && std::abs(view.strides[d - 1]) < std::abs(view.strides[d]); --d) {
      std::swap(view.shape[d - 1], view.shape[d]);
      std::swap(view.strides[d - 1], view.strides[d]);
    }
  }
  restore(view, numbers);
}

}  // namespace

const Mutation defect::gather_clamps = on_op<mutants::gather_clamps, BP_OP_GATHER>();
const Mutation defect::index_truncated = on_op<mutants::index_truncated, BP_OP_GATHER>();
const Mutation defect::gather_wraps = on_op<mutants::gather_wraps, BP_OP_GATHER>();
const Mutation defect::gather_reads_outside = on_op<mutants::gather_reads_outside, BP_OP_GATHER>();
const Mutation defect::scatter_wraps = on_op<mutants::scatter_wraps, BP_OP_SCATTER>();
const Mutation defect::scatter_touches_all = on_op<mutants::scatter_touches_all, BP_OP_SCATTER, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::scatter_loses_update = on_op<mutants::scatter_loses_update, BP_OP_SCATTER>();
const Mutation defect::sort_unstable = on_op<mutants::sort_unstable, BP_OP_SORT>();
const Mutation defect::sort_nan_equals_all = on_op<merge_sort<float>, BP_OP_SORT, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::sort_turned_round = on_op<mutants::sort_turned_round, BP_OP_SORT>();
const Mutation defect::sort_of_values_unstable =
    on_op<mutants::sort_of_values_unstable, BP_OP_SORT, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::philox_without_carry = on_op<mutants::philox_without_carry, BP_OP_PHILOX>();
const Mutation defect::philox_by_launch = on_op<mutants::philox_by_launch, BP_OP_PHILOX>();
const Mutation defect::philox_in_memory_order = on_op<mutants::philox_in_memory_order, BP_OP_PHILOX>();

}  // namespace backplane::conformance::mutants
