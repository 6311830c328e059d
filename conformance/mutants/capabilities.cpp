// SPDX-License-Identifier: Apache-2.0
// Defects in declarations: a device declares wrong properties, or contradicts its declarations.
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

// A device_info slot that modifies its result with `kChange`.
template <void (*kChange)(bp_device_info& info)>
bp_status changed_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  const bp_status status = honest_plugin().device_info(plugin, index, out, error);
  if (status == BP_OK) kChange(*out);
  return status;
}
template <void (*kChange)(bp_device_info& info)>
constexpr Mutation says() {
  return {.plugin = [](bp_plugin& plugin) { plugin.device_info = changed_info<kChange>; }};
}

void synchronous(bp_device_info& info) { info.capabilities |= BP_CAP_SYNCHRONOUS; }
void no_alignment(bp_device_info& info) { info.alignment = 48; }
void no_device_memory(bp_device_info& info) { info.memory_kinds &= ~uint64_t{1u << BP_MEMORY_DEVICE}; }
void no_host_memory(bp_device_info& info) {
  info.memory_kinds &= ~uint64_t{1u << BP_MEMORY_HOST};
  info.capabilities &= ~uint64_t{BP_CAP_HOST_OPERANDS};
}
void unterminated(bp_device_info& info) { std::memset(info.name, 'x', sizeof(info.name)); }
void no_bytes(bp_device_info& info) { info.max_buffer_bytes = 0; }
void varying(bp_device_info& info) {
  static std::atomic<uint8_t> calls{0};
  info.uuid[15] = calls.fetch_add(1);
}
void unknown_type(bp_device_info& info) { info.type = 0; }
void reserved_dirty(bp_device_info& info) { info.reserved = 1; }

bp_status count_varies(const bp_plugin*, uint32_t* out, bp_error*) {
  static std::atomic<uint32_t> calls{0};
  *out = 1 + calls.fetch_add(1) % 2;
  return BP_OK;
}

bp_status elapsed_not_offered(bp_device*, bp_event*, bp_event*, int64_t*, bp_error* error) {
  return report(error, BP_UNSUPPORTED, "mutant: this device cannot time");
}
bp_status shared_not_offered(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  if (desc != nullptr && desc->struct_size >= sizeof(*desc) && desc->kind == BP_MEMORY_SHARED) {
    if (out != nullptr) *out = nullptr;
    return report(error, BP_UNSUPPORTED, "mutant: no SHARED memory after all");
  }
  return kHonest.buffer_create(device, desc, out, error);
}
bp_status host_operands_refused(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                                bp_error* error) {
  for (uint32_t i = 0; i < execution->desc->input_count; ++i) {
    bp_buffer* buffer = execution->inputs[i].buffer;
    if (buffer != nullptr && buffer_of(buffer).kind == BP_MEMORY_HOST) {
      return report(error, BP_INVALID_ARGUMENT, "mutant: an operand is in HOST memory");
    }
  }
  return kHonest.plan_execute(device, stream, plan, execution, error);
}
// Rounds sums differently in every second execution.
void sum_varies(const Call& call) {
  static std::atomic<uint32_t> runs{0};
  const bool odd = runs.fetch_add(1) % 2 != 0;
  honest_kernel(call)(call);
  each_value<float>(call.out(), [&](float sum) {
    return odd && std::isfinite(sum) && sum != std::rint(sum) ? std::nextafter(sum, 0.0f) : sum;
  });
}

// Rounds sums differently for different addresses of the input, like a kernel that splits rows at
// page boundaries.
void sum_varies_with_place(const Call& call) {
  const auto steps = reinterpret_cast<uintptr_t>(call.in(0).data) / 64 % 7;
  honest_kernel(call)(call);
  each_value<float>(call.out(), [&](float sum) {
    for (uintptr_t i = 0; i < steps; ++i) sum = std::isfinite(sum) ? std::nextafter(sum, 0.0f) : sum;
    return sum;
  });
}

// The event that is recorded after each copy. While a copy is pending, sums are rounded
// differently, as in a kernel that distributes rows over idle cores.
HostEvent& last_copy() {
  static auto* event = new HostEvent(false);
  return *event;
}
bp_status copy_marked(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                      uint64_t src_offset, uint64_t bytes, bp_error* error) {
  const bp_status status = kHonest.copy(device, stream, dst, dst_offset, src, src_offset, bytes, error);
  if (status == BP_OK) (void)last_copy().record(stream_of(stream));
  return status;
}
void sum_varies_with_load(const Call& call) {
  const bool busy = last_copy().wait(0).code() == BP_TIMEOUT;
  honest_kernel(call)(call);
  each_value<float>(call.out(),
                    [&](float sum) { return busy && std::isfinite(sum) ? std::nextafter(sum, 0.0f) : sum; });
}

// Runs the kernel in flush-to-zero mode, if the host has this mode. Do not use this function for the operator `log`,
// because the host's log is wrong in this mode. Do not use this function for `max` and `min` either, because
// comparisons do not flush.
void flushing(const Call& call) {
#if defined(__SSE2__)
  constexpr unsigned kFlushBoth = 0x8040;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlushBoth);
  honest_kernel(call)(call);
  _mm_setcsr(before);
#else
  honest_kernel(call)(call);
#endif
}
void declares_flushing(bp_device_info& info) { info.capabilities |= BP_CAP_FTZ_F32; }

}  // namespace

const Mutation defect::device_unreachable{
    .plugin = [](bp_plugin& plugin) { plugin.device_info = changed_info<no_host_memory>; },
    .api = [](bp_device_api& api) { api.copy_in = nullptr, api.copy_out = nullptr; }};
const Mutation defect::flushes_as_declared{
    .kernels =
        [](Kernels& kernels) {
          constexpr uint64_t kFlushed = BP_DTYPE_BIT(BP_F32) | BP_DTYPE_BIT(BP_BF16);
          for (const uint32_t op : {BP_OP_SQRT, BP_OP_RSQRT, BP_OP_EXP, BP_OP_SIN, BP_OP_COS, BP_OP_TANH, BP_OP_ERF,
                                    BP_OP_FLOOR, BP_OP_RINT, BP_OP_ADD, BP_OP_SUB, BP_OP_MUL, BP_OP_DIV, BP_OP_IOTA,
                                    BP_OP_REDUCE_SUM, BP_OP_REDUCE_PROD, BP_OP_CUMSUM, BP_OP_MATMUL}) {
            replace(kernels, op, flushing, kFlushed);
          }
        },
    .plugin = says<declares_flushing>().plugin};
const Mutation defect::synchronous_lie = says<synchronous>();
const Mutation defect::alignment_no_power = says<no_alignment>();
const Mutation defect::device_memory_denied = says<no_device_memory>();
const Mutation defect::device_name_unterminated = says<unterminated>();
const Mutation defect::max_buffer_zero = says<no_bytes>();
const Mutation defect::device_info_varies = says<varying>();
const Mutation defect::device_type_unknown = says<unknown_type>();
const Mutation defect::info_reserved_dirty = says<reserved_dirty>();
const Mutation defect::device_count_varies{.plugin = [](bp_plugin& plugin) { plugin.device_count = count_varies; }};
const Mutation defect::timing_lie = on_slot<&bp_device_api::event_elapsed, elapsed_not_offered>();
const Mutation defect::shared_memory_lie = on_slot<&bp_device_api::buffer_create, shared_not_offered>();
const Mutation defect::host_operands_lie = on_slot<&bp_device_api::plan_execute, host_operands_refused>();
const Mutation defect::deterministic_lie = on_op<sum_varies, BP_OP_REDUCE_SUM, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::deterministic_in_place = on_op<sum_varies_with_place, BP_OP_REDUCE_SUM, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::deterministic_when_idle{
    .kernels = [](Kernels& kernels) { replace(kernels, BP_OP_REDUCE_SUM, sum_varies_with_load, BP_DTYPE_BIT(BP_F32)); },
    .api = [](bp_device_api& api) { api.copy = copy_marked; }};

}  // namespace backplane::conformance::mutants
