// SPDX-License-Identifier: Apache-2.0
// The operators gather and scatter, which select elements by an index operand.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

class Gather : public Operator {
 public:
  explicit Gather(uint32_t dtype) : module_(moved_module("index_gather", dtype)) {}
  KernelNames kernels(const kit::PlanForm&) const override { return {{{module_, "gather"}, {module_, "gather_rows"}}}; }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (!limits.is_cpu) out[kQuads] = {module_, "gather_quads"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const View &x = call.in(0), &index = call.in(1);
    const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
    Nest nest = Nest::over(call.out());
    nest.add(call.out());
    nest.add(index);
    const int64_t stride = std::exchange(nest.add(x).strides[axis], 0);
    nest.merge();
    // If x is empty, every index is out of range.
    const int64_t extent = x.elements() == 0 ? 0 : x.shape[axis];
    const uint32_t index_bytes = kit::dtype_bytes(index.dtype);
    if (has_quads(nest, launcher.limits())) {
      const uint32_t last = nest.rank - 1;
      const int64_t step = nest.operand[2].strides[last];
      nest.shape[last] /= 4;
      for (uint32_t k = 0; k < nest.operands; ++k) nest.operand[k].strides[last] *= 4;
      return launch_nest(launcher, program.kernels[kQuads], nest, [&](NestParams& params, int64_t) {
        params.extra[0] = extent;
        params.extra[1] = stride;
        params.extra[2] = step;
        params.option = index_bytes;
      });
    }
    if (!has_equal_indices(nest, launcher.limits())) {
      return launch_nest(launcher, program.kernels[kElements], nest, [&](NestParams& params, int64_t) {
        params.extra[0] = extent;
        params.extra[1] = stride;
        params.option = index_bytes;
      });
    }
    return nest.for_slices([&](const Nest& slice, int64_t) {
      const Limits& limits = launcher.limits();
      GatherRowsParams params{slice.row_params(row_chunk(limits, static_cast<uint64_t>(slice.count()))), extent,
                              stride};
      params.rows.option = index_bytes;
      const auto places = slice.places();
      const RowGroups groups = divide_rows(limits, slice.operand[0].bytes, params.rows);
      return launch(launcher, program.kernels[kRows], groups.groups, groups.group_size, {places.data(), slice.operands},
                    params);
    });
  }

 private:
  enum Kernel : uint32_t { kElements, kRows, kQuads };

  // Returns whether rows of out and of the index consist of quads: four elements at a multiple of their size.
  static bool has_quads(const Nest& nest, const Limits& limits) {
    if (limits.is_cpu || nest.rank == 0 || nest.shape[nest.rank - 1] % 4 != 0) return false;
    if (nest.operand[1].is_immediate || nest.operand[2].is_immediate) return false;
    for (uint32_t k = 0; k < 2; ++k) {
      const int64_t* strides = nest.operand[k].strides;
      if (strides[nest.rank - 1] != 1 || !nest.is_aligned(k, 4 * uint64_t{nest.operand[k].bytes})) return false;
      if (std::any_of(strides, strides + nest.rank - 1, [](int64_t stride) { return stride % 4 != 0; })) return false;
    }
    return true;
  }
  // Returns whether rows of out and x are contiguous, have one index, and have at least 4 elements
  // per thread of a sub-group.
  static bool has_equal_indices(const Nest& nest, const Limits& limits) {
    if (nest.rank == 0 || nest.shape[nest.rank - 1] < 4 * limits.width) return false;
    const auto stride = [&](uint32_t k) { return nest.operand[k].strides[nest.rank - 1]; };
    return stride(0) == 1 && stride(1) == 0 && stride(2) == 1;
  }

  const std::string module_;
};

class Scatter : public Operator {
 public:
  explicit Scatter(uint32_t dtype) : module_(module_name("index_scatter", dtype)) {}
  // Returns UNSUPPORTED for mode ADD on f16 and bf16, because rounding each addition to 16 bits
  // would exceed the error bound of a sum. Also returns UNSUPPORTED for modes other than SET on f64,
  // because kernels do not compute with f64.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const override {
    const uint32_t dtype = checked.dtypes.first, mode = checked.attributes.as<bp_scatter_attributes>().mode;
    const bool half = dtype == BP_F16 || dtype == BP_BF16;
    if (mode == BP_SCATTER_SET || (dtype != BP_F64 && (mode != BP_SCATTER_ADD || !half))) return {};
    return kit::unsupported("scatter: this mode on ", kit::dtype_name(dtype),
                            " is not implemented by this plugin; scatter in f32, and cast");
  }
  KernelNames kernels(const kit::PlanForm&) const override { return {{{module_, "scatter"}}}; }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const View &io = call.out(), &index = call.in(0), &source = call.in(1);
    const auto& attributes = call.attributes<bp_scatter_attributes>();
    const uint32_t axis = attributes.axis;
    Nest nest = Nest::over(index);
    const int64_t io_stride = nest.add(io).strides[axis], index_stride = nest.add(index).strides[axis],
                  source_stride = nest.add(source).strides[axis];
    if (nest.count() == 0 || io.elements() == 0) return {};
    nest.drop(axis);
    nest.merge();
    return launch_nest(
        launcher, program.kernels[0], nest,
        [&](NestParams& params, int64_t) {
          params.extra[0] = io.shape[axis];
          params.extra[1] = io_stride;
          params.extra[2] = index.shape[axis];
          params.extra[3] = index_stride;
          params.extra[4] = source_stride;
          params.extra[5] = attributes.mode;
          params.option = kit::dtype_bytes(index.dtype);
        },
        1);
  }

 private:
  const std::string module_;
};

}  // namespace

void add_index(Operators& operators) {
  for_dtypes(BP_SET_ALL, [&](uint32_t dtype) {
    operators.add(BP_OP_GATHER, dtype, entry_of<Gather>(dtype));
    operators.add(BP_OP_SCATTER, dtype, entry_of<Scatter>(dtype));
  });
}

}  // namespace backplane::simt
