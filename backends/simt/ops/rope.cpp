// SPDX-License-Identifier: Apache-2.0
// The operator rope, which rotates pairs of elements. The elements of a pair are adjacent or half a
// row apart.
#include <cmath>
#include <numbers>

#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

class Rope : public Operator {
 public:
  explicit Rope(uint32_t dtype) : module_(module_name("rope", dtype)) {}

  // Returns UNSUPPORTED for bases below 1, because the kernel represents negative powers of the
  // base as fractions of at most 1.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const override {
    if (checked.attributes.as<bp_rope_attributes>().base >= 1) return {};
    return kit::unsupported("rope: bases below 1 are not implemented by this plugin; the operator is decomposed");
  }
  KernelNames kernels(const kit::PlanForm&) const override {
    return {{{module_, "rope_unit"}, {module_, "rope_strided"}}};
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_rope_attributes>();
    const View &y = call.out(), &x = call.in(0), &position = call.in(1);
    const uint32_t last = x.rank - 1;
    const int64_t depth = x.shape[last], rotated = attributes.rotary_extent == 0 ? depth : attributes.rotary_extent;
    if (y.elements() == 0) return {};
    if (depth > Nest::kMaxCount) {
      return kit::invalid_argument("rope: this plugin rotates rows of at most 2^30 elements, not ", depth,
                                   "; divide x");
    }
    RopeParams params{};
    Nest nest = Nest::over(y);
    nest.add(y);
    nest.add(x);
    nest.add(position);
    for (uint32_t k = 0; k < 2; ++k) params.strides[k] = nest.operand[k].strides[last];
    nest.drop(last);
    nest.merge();
    params.repeats = 1;
    if (const uint32_t axis = repeated(nest); axis < nest.rank) {
      params.repeats = static_cast<uint32_t>(nest.shape[axis]);
      for (uint32_t k = 0; k < 2; ++k) params.repeat_strides[k] = nest.operand[k].strides[axis];
      nest.drop(axis);
      nest.merge();
    }
    params.pairs = static_cast<uint32_t>(rotated / 2);
    params.depth = static_cast<uint32_t>(depth);
    params.interleaved = attributes.interleaved;
    params.wide = kit::dtype_bytes(position.dtype) == 8 ? 1 : 0;
    fill_powers(params, attributes.base);
    const bool unit = params.strides[0] == 1 && params.strides[1] == 1;
    return nest.for_slices(
        [&](const Nest& rows, int64_t) { return run(launcher, program.kernels[unit ? 0 : 1], rows, params); },
        Nest::kMaxCount / params.repeats);
  }

 private:
  // Returns the longest dimension along which positions are equal, or the rank if there is none.
  static uint32_t repeated(const Nest& nest) {
    uint32_t out = nest.rank;
    for (uint32_t i = 0; i < nest.rank; ++i) {
      const bool repeats = nest.operand[2].strides[i] == 0 && nest.shape[i] <= Nest::kMaxCount;
      if (repeats && (out == nest.rank || nest.shape[i] > nest.shape[out])) out = i;
    }
    return out;
  }
  static void fill_powers(RopeParams& params, float base) {
    const auto fraction = [](long double value) {
      return static_cast<uint64_t>(std::min(std::ldexp(value, 64), 0x1.fffffffffffffffep63L));
    };
    for (uint32_t bit = 0; (params.pairs - 1) >> bit != 0; ++bit) {
      const long double exponent = -std::ldexp(1.0L, static_cast<int>(bit)) / static_cast<long double>(params.pairs);
      params.powers[bit] = fraction(std::pow(static_cast<long double>(base), exponent));
    }
    params.powers[31] = fraction(std::numbers::inv_pi_v<long double> / 2);
  }

  static kit::Status run(Launcher& launcher, uint32_t kernel, const Nest& rows, RopeParams params) {
    const Limits& limits = launcher.limits();
    params.rows = rows.nest_params();
    uint32_t group = limits.width;
    while (!limits.is_cpu && group < params.pairs && group * 2 <= whole_group(limits)) group *= 2;
    // Chunks are as long as possible while all compute units have work. In long chunks, more rows
    // share sines and frequencies.
    const uint32_t wanted = limits.compute_units * (limits.is_cpu ? 4 : 16), count = params.rows.count;
    const uint32_t divisions = std::max(wanted / count, 1u);
    params.repeat_chunk = std::max(params.repeats / divisions, 1u);
    params.repeat_chunks = (params.repeats + params.repeat_chunk - 1) / params.repeat_chunk;
    params.row_chunk = std::clamp(count / wanted, 1u, kMaxRows);
    params.row_chunks = (count + params.row_chunk - 1) / params.row_chunk;
    const uint64_t items = uint64_t{params.row_chunks} * params.repeat_chunks;
    const auto places = rows.places();
    return launch(launcher, kernel, groups_for(items, 1), group, {places.data(), rows.operands}, params);
  }

  static constexpr uint32_t kMaxRows = 8;  // maximum number of rows per group
  const std::string module_;
};

}  // namespace

void add_rope(Operators& operators) {
  for_dtypes(kComputed & BP_SET_FLOATS, [&](uint32_t dtype) {
    OperatorEntry entry = entry_of<Rope>(dtype);
    entry.mixed = rules::kMixedIndex;
    operators.add(BP_OP_ROPE, dtype, std::move(entry));
  });
}

}  // namespace backplane::simt
