// SPDX-License-Identifier: Apache-2.0
// Defects in counters and clocks: element counters with too few bits or in f32, and times in 32
// bits or in the wrong unit.
#include <chrono>

#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

int64_t through_f32(int64_t position) { return static_cast<int64_t>(static_cast<float>(position)); }

// Runs the kernel. Then, if the output has one dimension, calls f(element, index) for each element
// of the output.
template <class T, class F>
void each_of_vector(const Call& call, const F& f) {
  honest_kernel(call)(call);
  if (call.out().rank != 1) return;
  for (int64_t i = 0; i < call.out().shape[0]; ++i) f(call.out().as<T>()[i * call.out().strides[0]], i);
}

void iota_in_f32(const Call& call) {
  each_of_vector<int32_t>(call, [&](int32_t& value, int64_t i) {
    value = static_cast<int32_t>(call.scalar<uint32_t>(0) +
                                 static_cast<uint32_t>(through_f32(i)) * call.scalar<uint32_t>(1));
  });
}
void iota_by_steps(const Call& call) {
  float sum = call.scalar<float>(0);
  each_of_vector<float>(call, [&](float& value, int64_t) {
    value = sum;
    sum += call.scalar<float>(1);
  });
}
void arg_in_f32(const Call& call) {
  honest_kernel(call)(call);
  each(call.out(), [](std::byte* at, int64_t) {
    int32_t& index = *reinterpret_cast<int32_t*>(at);
    index = static_cast<int32_t>(through_f32(index));
  });
}

// Runs the kernel with indices that are rounded to f32. `input` is the index operand.
void run_with_rounded(const Call& call, uint32_t input) {
  const View& index = call.in(input);
  if (is_immediate(index) || index.elements() == 0) return honest_kernel(call)(call);
  std::vector<std::byte> rounded = save(index);
  const int64_t size = bytes_of(index);
  Altered altered(call);
  altered.in(input).data = rounded.data();
  make_dense(altered.in(input));
  each(altered.in(input), [&](std::byte* at, int64_t) {
    if (size == 8) {
      int64_t& value = *reinterpret_cast<int64_t*>(at);
      if (std::abs(value) < (int64_t{1} << 40)) value = through_f32(value);
    } else {
      int32_t& value = *reinterpret_cast<int32_t*>(at);
      if (std::abs(static_cast<int64_t>(value)) < (int64_t{1} << 30)) value = static_cast<int32_t>(through_f32(value));
    }
  });
  altered.run(honest_kernel(call));
}
void gather_in_f32(const Call& call) { run_with_rounded(call, 1); }
void scatter_in_f32(const Call& call) { run_with_rounded(call, 0); }

// Limits counts to 2^24, like a counter in f32, in which 2^24 + 1 rounds to 2^24.
void count_in_f32(const Call& call) {
  honest_kernel(call)(call);
  if (call.out().dtype != BP_I32) return;
  each(call.out(), [](std::byte* at, int64_t) {
    int32_t& value = *reinterpret_cast<int32_t*>(at);
    value = std::min(value, 1 << 24);
  });
}
void running_in_f32(const Call& call) {
  honest_kernel(call)(call);
  each(call.out(), [](std::byte* at, int64_t) {
    int32_t& value = *reinterpret_cast<int32_t*>(at);
    if (value > 0 && value < (1 << 26)) value = static_cast<int32_t>(through_f32(value));
  });
}
void philox_repeats(const Call& call) {
  honest_kernel(call)(call);
  const View& out = call.out();
  constexpr int64_t kPeriod = int64_t{1} << 24;
  if (out.rank != 1) return;
  for (int64_t i = kPeriod; i < out.shape[0]; ++i)
    out.as<uint32_t>()[i * out.strides[0]] = out.as<uint32_t>()[(i - kPeriod) * out.strides[0]];
}
void few_elements(const Call& call) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (call.out().rank != 1 || call.out().shape[0] <= kMost) return honest_kernel(call)(call);
  Altered altered(call);
  altered.in(0).shape[0] = altered.out().shape[0] = kMost;
  altered.run(honest_kernel(call));
}

// ---- Time

template <class Narrow>
bp_status elapsed_narrow(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error) {
  const bp_status status = kHonest.event_elapsed(device, begin, end, out_ns, error);
  if (status != BP_OK) return status;
  const bool negative = *out_ns < 0;
  const auto size = static_cast<int64_t>(static_cast<Narrow>(negative ? -*out_ns : *out_ns));
  *out_ns = negative ? -size : size;
  return status;
}

// Returns the timeout after its number of units of kUnit nanoseconds has been truncated to 32 bits.
template <uint64_t kUnit>
uint64_t in_32_bits(uint64_t timeout_ns) {
  if (timeout_ns == BP_WAIT_FOREVER) return timeout_ns;
  return static_cast<uint32_t>(timeout_ns / kUnit) * kUnit + timeout_ns % kUnit;
}
uint64_t negative_polls(uint64_t timeout_ns) {
  return timeout_ns != BP_WAIT_FOREVER && timeout_ns > INT64_MAX ? 0 : timeout_ns;
}
uint64_t until_wrapped(uint64_t timeout_ns) {
  if (timeout_ns == BP_WAIT_FOREVER) return timeout_ns;
  const auto now =
      static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  return now + timeout_ns < now ? 0 : timeout_ns;
}
template <uint64_t (*kChange)(uint64_t)>
bp_status stream_wait_for(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  return kHonest.stream_wait(device, stream, kChange(timeout_ns), error);
}
template <uint64_t (*kChange)(uint64_t)>
bp_status event_wait_for(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error) {
  return kHonest.event_wait(device, event, kChange(timeout_ns), error);
}

}  // namespace

const Mutation defect::iota_counts_in_f32 = on_op<iota_in_f32, BP_OP_IOTA, BP_DTYPE_BIT(BP_I32)>();
const Mutation defect::iota_adds_steps = on_op<iota_by_steps, BP_OP_IOTA, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::arg_index_in_f32{.kernels = [](Kernels& kernels) {
  replace_all(kernels, std::initializer_list<uint32_t>{BP_OP_ARGMAX, BP_OP_ARGMIN}, arg_in_f32);
}};
const Mutation defect::gather_index_in_f32 = on_op<gather_in_f32, BP_OP_GATHER>();
const Mutation defect::scatter_index_in_f32 = on_op<scatter_in_f32, BP_OP_SCATTER>();
const Mutation defect::count_in_f32 = on_op<mutants::count_in_f32, BP_OP_REDUCE_SUM, BP_DTYPE_BIT(BP_BOOL)>();
const Mutation defect::running_sum_in_f32 = on_op<running_in_f32, BP_OP_CUMSUM, BP_DTYPE_BIT(BP_I32)>();
const Mutation defect::philox_position_of_24_bits = on_op<philox_repeats, BP_OP_PHILOX>();
const Mutation defect::elements_of_24_bits{
    .kernels = [](Kernels& kernels) { replace_all(kernels, ops_of(BP_SHAPE_ELEMENTWISE, 1), few_elements); }};
const Mutation defect::elapsed_of_31_bits = on_slot<&bp_device_api::event_elapsed, elapsed_narrow<int32_t>>();
const Mutation defect::elapsed_of_32_bits = on_slot<&bp_device_api::event_elapsed, elapsed_narrow<uint32_t>>();
const Mutation defect::timeout_ns_of_32_bits = on_slot<&bp_device_api::stream_wait, stream_wait_for<in_32_bits<1>>>();
const Mutation defect::timeout_us_of_32_bits = on_slot<&bp_device_api::event_wait, event_wait_for<in_32_bits<1000>>>();
const Mutation defect::timeout_ms_of_32_bits =
    on_slot<&bp_device_api::stream_wait, stream_wait_for<in_32_bits<1'000'000>>>();
const Mutation defect::timeout_s_of_32_bits =
    on_slot<&bp_device_api::event_wait, event_wait_for<in_32_bits<1'000'000'000>>>();
const Mutation defect::timeout_negative_polls = on_slot<&bp_device_api::stream_wait, stream_wait_for<negative_polls>>();
const Mutation defect::deadline_wraps = on_slot<&bp_device_api::event_wait, event_wait_for<until_wrapped>>();

}  // namespace backplane::conformance::mutants
