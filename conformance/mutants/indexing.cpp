// SPDX-License-Identifier: Apache-2.0
// Defects in addressing: tails, offsets, strides, ranks, sizes.
#include <array>
#include <backplane/rules/plan_class.hpp>
#include <map>
#include <mutex>

#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr int64_t kVector = 4;

int64_t inner_extent(const View& view) { return view.rank == 0 ? 1 : view.shape[view.rank - 1]; }

void drop_tail(const Call& call) {
  const int64_t inner = inner_extent(call.out()), kept = inner - inner % kVector;
  const std::vector<std::byte> before = save(call.out());
  honest_kernel(call)(call);
  const auto size = static_cast<std::size_t>(bytes_of(call.out()));
  each(call.out(), [&](std::byte* at, int64_t n) {
    if (n % inner >= kept) std::memcpy(at, before.data() + static_cast<std::size_t>(n) * size, size);
  });
}

// If each index of a scatter applies to a whole row, leaves the last elements of each row unchanged.
void scatter_row_tail(const Call& call) {
  const View &index = call.in(0), &io = call.out();
  const bool rows = io.rank > 1 && index.strides[io.rank - 1] == 0 && !is_immediate(index);
  (rows ? drop_tail : honest_kernel(call))(call);
}

// Processes the last n % 4 elements of each row again.
void tail_twice(const Call& call) {
  honest_kernel(call)(call);
  if (call.out().rank == 0) return;
  const bool scatter = call.op->id == BP_OP_SCATTER;
  const uint32_t last = call.out().rank - 1;
  const bool moves_io = !scatter || call.attributes<bp_scatter_attributes>().axis != last;
  const bool in_place = call.out().data == call.in(0).data || call.out().data == call.in(1).data;
  const int64_t inner = call.in(0).shape[last], tail = inner % kVector;
  if (tail == 0 || (!scatter && !in_place)) return;
  Altered again(call);
  for (std::size_t i = 0; i < again.inputs(); ++i) cut(again.in(i), last, inner - tail, tail);
  if (moves_io) cut(again.out(), last, inner - tail, tail);
  again.run(honest_kernel(call));
}

void write_padded_tile(const Call& call) {
  honest_kernel(call)(call);
  const View& out = call.out();
  if (out.elements() == 0 || out.strides[out.rank - 1] != 1) return;
  std::byte* last = nullptr;
  each(out, [&](std::byte* at, int64_t) { last = at; });
  for (int64_t n = inner_extent(out); n % kVector != 0; ++n)
    std::memset(last += bytes_of(out), 0, static_cast<std::size_t>(bytes_of(out)));
}

// Reads the elements between the end of a row and the end of its last vector, and multiplies them
// by 0. The result is wrong if one of these elements is NaN or infinite.
void read_past_end(const Call& call) {
  honest_kernel(call)(call);
  const View &in = call.in(0), &out = call.out();
  if (in.elements() == 0 || in.rank == 0 || in.strides[in.rank - 1] != 1 || is_immediate(in)) return;
  if ((call.attributes<bp_reduce_attributes>().axes >> (in.rank - 1) & 1u) == 0) return;
  std::byte *last = nullptr, *last_out = nullptr;
  each(in, [&](std::byte* at, int64_t) { last = at; });
  each(out, [&](std::byte* at, int64_t) { last_out = at; });
  double leaked = 0;
  for (int64_t n = inner_extent(in); n % kVector != 0; ++n) leaked += 0 * get(in.dtype, last += bytes_of(in));
  if (leaked != 0) put(out.dtype, last_out, leaked);
}

bp_status ignore_offset(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                        bp_error* error) {
  std::vector<bp_operand> inputs(execution->inputs, execution->inputs + execution->desc->input_count);
  for (bp_operand& operand : inputs) operand.offset = 0;
  bp_execution changed = *execution;
  changed.inputs = inputs.data();
  return kHonest.plan_execute(device, stream, plan, &changed, error);
}

// Runs the kernel after `change(view)` has modified each input that has memory and is not an
// immediate.
template <class Change>
void run_changed(const Call& call, const Change& change) {
  Altered altered(call);
  for (std::size_t i = 0; i < altered.inputs(); ++i) {
    if (altered.in(i).data != nullptr && !is_immediate(altered.in(i))) change(altered.in(i));
  }
  altered.run(honest_kernel(call));
}

void ignore_strides(const Call& call) {
  run_changed(call, [](View& view) {
    View dense = view;
    make_dense(dense);
    for (uint32_t d = 0; d < view.rank; ++d) {
      if (view.strides[d] != 0) view.strides[d] = dense.strides[d];
    }
  });
}
void negative_stride_unsigned(const Call& call) {
  run_changed(call, [](View& view) {
    for (int64_t& stride : view.strides) {
      if (stride < 0) stride = static_cast<uint32_t>(stride);
    }
  });
}
void stride_zero_as_one(const Call& call) {
  run_changed(call, [](View& view) {
    for (uint32_t d = 0; d < view.rank; ++d) {
      if (view.strides[d] == 0 && view.shape[d] > 1) view.strides[d] = 1;
    }
  });
}
// Converts all strides except the innermost stride to bytes twice.
void stride_scaled_twice(const Call& call) {
  run_changed(call, [](View& view) {
    for (uint32_t d = 0; d + 1 < view.rank; ++d) view.strides[d] *= bytes_of(view);
  });
}
void rank_collapsed(const Call& call) {
  run_changed(call, [](View& view) {
    for (uint32_t d = view.rank > 4 ? view.rank - 4 : 0; d-- > 0;) {
      view.strides[d] = view.strides[d + 1] * view.shape[d + 1];
    }
  });
}
void alignment_assumed(const Call& call) {
  run_changed(call, [](View& view) {
    view.data = reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(view.data) & ~uintptr_t{15});
  });
}
void immediate_ignored(const Call& call) {
  Altered altered(call);
  for (std::size_t i = 0; i < altered.inputs(); ++i) {
    if (is_immediate(altered.in(i))) altered.in(i).immediate = 0;
  }
  altered.run(honest_kernel(call));
}

int64_t reach_of(const View& view) {
  int64_t reach = 0;
  for (uint32_t d = 0; d < view.rank; ++d) reach += (view.shape[d] - 1) * std::abs(view.strides[d]);
  return reach;
}

void index_overflow(const Call& call) {
  const View &in = call.in(0), &out = call.out();
  if (out.elements() == 0 || std::max(reach_of(in), reach_of(out)) <= INT32_MAX) return honest_kernel(call)(call);
  std::vector<uint32_t> index(BP_MAX_RANK);
  const auto at = [&](const View& view) {
    uint32_t offset = 0;
    for (uint32_t d = 0; d < view.rank; ++d) offset += index[d] * static_cast<uint32_t>(view.strides[d]);
    return view.data + static_cast<int64_t>(static_cast<int32_t>(offset)) * bytes_of(view);
  };
  for (int64_t n = out.elements(); n > 0; --n) {
    std::memcpy(at(out), at(in), static_cast<std::size_t>(bytes_of(out)));
    for (uint32_t d = out.rank; d-- > 0 && ++index[d] == static_cast<uint64_t>(out.shape[d]);) index[d] = 0;
  }
}

// Caches kernels by plan class without kClassFar, so a far view may get the kernel for near views.
Status prepare_by_class(const CheckedDesc& checked, Prepared& prepared) {
  static std::mutex mutex;
  static std::map<std::array<uint64_t, 3>, bool> near_ones;
  const bp_tensor_desc &in = checked.desc.inputs[0], &out = checked.desc.outputs[0];
  const auto class_of = [](const bp_tensor_desc& view) { return rules::view_class(view) & ~rules::kClassFar; };
  const std::lock_guard lock(mutex);
  const bool near =
      near_ones.try_emplace({in.dtype, class_of(in), class_of(out)}, rules::is_near(in) && rules::is_near(out))
          .first->second;
  if (near) prepared.run = index_overflow;
  prepared.any_size = true;
  return {};
}
void add_kernels_by_class(Kernels& kernels) {
  for (const DtypeInfo& dtype : rules::dtype_rows()) {
    const KernelSpec* spec = kernels.find(BP_OP_COPY, {dtype.id, dtype.id});
    if (spec == nullptr) continue;
    KernelSpec changed = *spec;
    changed.prepare = prepare_by_class;
    kernels.add(BP_OP_COPY, dtype.id, dtype.id, changed);
  }
}

void batch_truncated(const Call& call) {
  constexpr int64_t kMost = 65535;
  Altered altered(call);
  for (uint32_t d = 0; d + 2 < call.out().rank; ++d) {
    if (call.out().shape[d] <= kMost) continue;
    for (View* view : {&altered.in(0), &altered.in(1), &altered.out()}) view->shape[d] = kMost;
  }
  altered.run(honest_kernel(call));
}

bool has_empty_output(const bp_op_desc& desc) {
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    for (uint32_t d = 0; d < desc.outputs[i].rank; ++d) {
      if (desc.outputs[i].shape[d] == 0) return true;
    }
  }
  return false;
}
bp_status zero_size_launch(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                           bp_error* error) {
  if (has_empty_output(*execution->desc)) return report(error, BP_INTERNAL, "mutant: a launch of 0 blocks");
  return kHonest.plan_execute(device, stream, plan, execution, error);
}

void zero_size_stale(const Call& call) {
  if (call.in(0).elements() != 0) honest_kernel(call)(call);
}
void k_zero_unwritten(const Call& call) {
  if (call.in(0).shape[call.in(0).rank - 1] != 0) honest_kernel(call)(call);
}

// Computes the pitch of a transposed first operand from the wrong extent.
void transposed_pitch(const Call& call) {
  Altered altered(call);
  View& a = altered.in(0);
  const uint32_t r = a.rank - 2, c = a.rank - 1;
  if (a.strides[r] == 1 && a.strides[c] == a.shape[r]) a.strides[c] = a.shape[c];
  altered.run(honest_kernel(call));
}

void axis_from_end(const Call& call) {
  Altered altered(call);
  auto& axis = altered.attributes<bp_cumsum_attributes>().axis;
  axis = call.out().rank - 1 - axis;
  altered.run(honest_kernel(call));
}

template <void (*kRun)(const Call&)>
constexpr Mutation on_inputs() {
  return {.kernels = [](Kernels& kernels) { replace_all(kernels, ops_with_inputs(), kRun); }};
}

}  // namespace

const Mutation defect::drop_tail{
    .kernels = [](Kernels& kernels) { replace_all(kernels, ops_of(BP_SHAPE_ELEMENTWISE), mutants::drop_tail); }};
const Mutation defect::scatter_row_tail = on_op<mutants::scatter_row_tail, BP_OP_SCATTER>();
const Mutation defect::tail_twice{.kernels = [](Kernels& kernels) {
  replace_all(kernels, ops_of(BP_SHAPE_ELEMENTWISE, 2), mutants::tail_twice);
  replace(kernels, BP_OP_SCATTER, mutants::tail_twice);
}};
const Mutation defect::padded_tile_written = on_op<write_padded_tile, BP_OP_MATMUL>();
const Mutation defect::read_past_end = on_op<mutants::read_past_end, BP_OP_REDUCE_SUM, BP_SET_FLOATS>();
const Mutation defect::offset_ignored{.api = [](bp_device_api& api) { api.plan_execute = ignore_offset; }};
const Mutation defect::strides_ignored = on_inputs<ignore_strides>();
const Mutation defect::negative_stride_unsigned = on_inputs<mutants::negative_stride_unsigned>();
const Mutation defect::stride_zero_as_one = on_inputs<mutants::stride_zero_as_one>();
const Mutation defect::stride_scaled_twice = on_inputs<mutants::stride_scaled_twice>();
const Mutation defect::far_as_near{.kernels = add_kernels_by_class};
const Mutation defect::index_overflow = on_op<mutants::index_overflow, BP_OP_COPY>();
const Mutation defect::batch_truncated = on_op<mutants::batch_truncated, BP_OP_MATMUL>();
const Mutation defect::zero_size_launch{
    .api = [](bp_device_api& api) { api.plan_execute = mutants::zero_size_launch; }};
const Mutation defect::zero_size_stale{
    .kernels = [](Kernels& kernels) { replace_all(kernels, ops_of(BP_SHAPE_REDUCE), mutants::zero_size_stale); }};
const Mutation defect::k_zero_unwritten = on_op<mutants::k_zero_unwritten, BP_OP_MATMUL>();
const Mutation defect::rank_collapsed = on_inputs<mutants::rank_collapsed>();
const Mutation defect::transposed_pitch = on_op<mutants::transposed_pitch, BP_OP_MATMUL>();
const Mutation defect::alignment_assumed = on_inputs<mutants::alignment_assumed>();
const Mutation defect::immediate_ignored = on_inputs<mutants::immediate_ignored>();
const Mutation defect::axis_from_end = on_op<mutants::axis_from_end, BP_OP_CUMSUM>();

}  // namespace backplane::conformance::mutants
