// SPDX-License-Identifier: Apache-2.0
// The operators max_pool and avg_pool.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

constexpr int64_t kMaxImage = int64_t{1} << 28;  // exclusive limit of image extents and of padding
constexpr int64_t kMaxTaps = 1024;
constexpr int64_t kMaxPositions = int64_t{1} << 31;

class Pool : public Operator {
 public:
  explicit Pool(uint32_t dtype) : module_(module_name("pool", dtype)) {}

  // Returns UNSUPPORTED for padding of kMaxImage and more, because coordinates have 31 bits.
  // Returns UNSUPPORTED for windows of more than kMaxTaps elements, because one thread reads a
  // whole window.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const override {
    const auto& attributes = checked.attributes.as<bp_pool_attributes>();
    int64_t taps = 1;
    for (uint32_t i = 0; i < attributes.spatial_rank; ++i) {
      if (attributes.pad_begin[i] >= kMaxImage || attributes.pad_end[i] >= kMaxImage) {
        return kit::unsupported(checked.op->name, ": padding of ", kMaxImage,
                                " and more is not implemented by this plugin; the operator is decomposed");
      }
      taps = std::min(taps, kMaxTaps + 1) * attributes.kernel[i];
    }
    if (taps <= kMaxTaps) return {};
    return kit::unsupported(checked.op->name, ": windows of more than ", kMaxTaps,
                            " elements are not implemented by this plugin; the operator is decomposed");
  }
  KernelNames kernels(const kit::PlanForm& plan) const override {
    const std::string name = plan.op->name;
    return {{{module_, name + "_nest"}, {module_, name + "_rows"}}};
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const View &x = call.in(0), &y = call.out();
    const View* indices = given(call.outputs, 1);
    for (uint32_t i = 2; i < x.rank; ++i) {
      if (x.shape[i] >= kMaxImage) {
        return kit::invalid_argument(call.op->name, ": this plugin supports image extents below ", kMaxImage, ", not ",
                                     x.shape[i], "; divide the image");
      }
    }
    Nest nest = Nest::over(y);
    nest.add(y);
    if (indices != nullptr) {
      nest.add(*indices);
    } else {
      nest.add_absent();
    }
    nest.add(x);
    std::fill_n(nest.operand[2].strides + 2, x.rank - 2, 0);
    Nest::Operand& counter = nest.add_absent();
    counter.bytes = 1;  // makes the counter's byte offset the index of its first window
    int64_t positions = 1;
    for (uint32_t i = y.rank; i-- > 2; positions *= y.shape[i]) counter.strides[i] = positions;
    if (positions > kMaxPositions) {
      return kit::invalid_argument(call.op->name, ": this plugin supports at most 2^31 windows per plane, not ",
                                   positions, "; divide the image");
    }
    const Limits& limits = launcher.limits();
    const bool rows = has_plain_rows(nest, limits, indices != nullptr);
    merge(nest, rows);
    return nest.for_slices([&](const Nest& slice, int64_t) {
      const auto count = static_cast<uint64_t>(slice.count());
      const auto places = slice.places();
      const std::span<const Place> used{places.data(), slice.operands};
      if (!rows) {
        const uint32_t group = stream_group(limits), elements = elements_per_group(limits, group, count, 256);
        auto params = params_of<NestParams>(call);
        params.loops = slice.nest_params();
        return launch(launcher, program.kernels[kNest], groups_for(count, elements), group, used, params);
      }
      auto params = params_of<RowParams>(call);
      params.loops = slice.row_params(kChunk);
      uint32_t group = limits.width;
      while (!limits.is_cpu && group < params.loops.columns && 2 * group <= whole_group(limits)) group *= 2;
      return launch(launcher, program.kernels[kRows], row_groups(limits, params.loops), group, used, params);
    });
  }

 private:
  enum Kernel : uint32_t { kNest, kRows };
  static constexpr uint32_t kChunk = 1024;  // maximum number of outputs that a group processes at once

  // Returns whether rows of y and of the indices are contiguous, and are longer than half the width
  // of a sub-group.
  static bool has_plain_rows(const Nest& nest, const Limits& limits, bool has_indices) {
    const uint32_t last = nest.rank - 1;
    return nest.shape[last] * 2 > limits.width && nest.operand[0].strides[last] == 1 &&
           (!has_indices || nest.operand[1].strides[last] == 1);
  }
  // Merges all dimensions, or all dimensions except the last.
  static void merge(Nest& nest, bool keeps_last) {
    if (!keeps_last) return nest.merge();
    const Nest whole = nest;
    const uint32_t last = whole.rank - 1;
    nest.drop(last);
    nest.merge();
    nest.shape[nest.rank] = whole.shape[last];
    for (uint32_t k = 0; k < nest.operands; ++k) nest.operand[k].strides[nest.rank] = whole.operand[k].strides[last];
    ++nest.rank;
  }

  // Returns the parameters, except the loops.
  template <class Loops>
  static PoolParams<Loops> params_of(const Call& call) {
    const auto& attributes = call.attributes<bp_pool_attributes>();
    const View &x = call.in(0), &y = call.out();
    const View* indices = given(call.outputs, 1);
    PoolParams<Loops> params{};
    const uint32_t spatial = attributes.spatial_rank, missing = 3 - spatial;
    for (uint32_t d = 0; d < 3; ++d) {
      params.image[d] = params.window[d] = params.stride[d] = params.dilation[d] = 1;
      if (d < missing) continue;
      const uint32_t i = d - missing;
      params.image[d] = static_cast<int32_t>(x.shape[2 + i]);
      params.window[d] = static_cast<int32_t>(attributes.kernel[i]);
      params.stride[d] = static_cast<int32_t>(attributes.stride[i]);
      params.dilation[d] = static_cast<int32_t>(attributes.dilation[i]);
      params.begin[d] = static_cast<int32_t>(attributes.pad_begin[i]);
      params.strides[d] = x.is_immediate ? 0 : x.strides[2 + i];
    }
    params.rows = spatial > 1 ? static_cast<uint32_t>(y.shape[y.rank - 2]) : 1;
    params.columns = static_cast<uint32_t>(y.shape[y.rank - 1]);
    params.count_padding = attributes.count_padding;
    params.index_bytes = indices == nullptr ? 0 : kit::dtype_bytes(indices->dtype);
    return params;
  }

  const std::string module_;
};

}  // namespace

void add_pool(Operators& operators) {
  for_dtypes(kComputed & BP_SET_FLOATS, [&](uint32_t dtype) {
    OperatorEntry entry = entry_of<Pool>(dtype);
    entry.mixed = rules::kMixedIndex;
    operators.add(BP_OP_MAX_POOL, dtype, entry);
    operators.add(BP_OP_AVG_POOL, dtype, entry);
  });
}

}  // namespace backplane::simt
