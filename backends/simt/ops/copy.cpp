// SPDX-License-Identifier: Apache-2.0
// The operators copy, fill and iota.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

constexpr int64_t kTile = 32;  // SIMT_TILE of device/copy.h

// Makes the input's contiguous dimension second to last, and the output's contiguous dimension
// last. Returns false if the two are the same dimension, or if either dimension is shorter than
// half a tile.
bool transpose(Nest& nest) {
  const auto line_of = [&](uint32_t k) {
    uint32_t axis = 0;
    while (axis < nest.rank && (nest.operand[k].strides[axis] != 1 || nest.shape[axis] < kTile / 2)) ++axis;
    return axis;
  };
  const uint32_t lines[2] = {line_of(1), line_of(0)};
  if (nest.operand[1].is_immediate || lines[0] == lines[1] || std::max(lines[0], lines[1]) == nest.rank) return false;
  const auto to_end = [&](int64_t* of) {
    const int64_t last[2] = {of[lines[0]], of[lines[1]]};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < nest.rank; ++i) {
      if (i != lines[0] && i != lines[1]) of[kept++] = of[i];
    }
    std::copy_n(last, 2, of + kept);
  };
  to_end(nest.shape);
  for (uint32_t k = 0; k < nest.operands; ++k) to_end(nest.operand[k].strides);
  return true;
}

class Copy : public Map {
 public:
  explicit Copy(uint32_t dtype) : Map(moved_module("copy", dtype), "copy") {}

  KernelNames kernels(const kit::PlanForm& plan) const override {
    KernelNames out = Map::kernels(plan);
    out[kTranspose] = {module(), "copy_transpose"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    Nest nest = Nest::over(call.out());
    nest.add(call.out());
    nest.add(call.in(0));
    nest.merge();
    if (!transpose(nest)) return launch_map(launcher, program.kernels[0], program.kernels[1], nest);
    return nest.for_slices([&](const Nest& slice, int64_t) {
      NestParams params = slice.nest_params();
      int64_t tiles = 1;
      for (uint32_t d = 0; d < slice.rank; ++d) {
        tiles *= d + 2 < slice.rank ? slice.shape[d] : (slice.shape[d] + kTile - 1) / kTile;
      }
      params.count = static_cast<uint32_t>(tiles);
      const uint32_t group = whole_group(launcher.limits());
      const auto places = slice.places();
      return launch(launcher, program.kernels[kTranspose], groups_for(params.count, 1), group, {places.data(), 2},
                    params);
    });
  }

 private:
  enum Kernel : uint32_t { kTranspose = 2 };
};

class Fill : public Map {
 public:
  explicit Fill(uint32_t dtype) : Map(moved_module("copy", dtype), "copy") {}
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    Nest nest = Nest::over(call.out());
    nest.add(call.out());
    nest.add(call.scalars[0], call.out().dtype);
    return launch_map(launcher, program.kernels[0], program.kernels[1], nest);
  }
};

class Iota : public Operator {
 public:
  explicit Iota(uint32_t dtype) : module_(module_name("copy_iota", dtype)) {}
  KernelNames kernels(const kit::PlanForm&) const override { return {{{module_, "iota"}}}; }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    Nest nest = Nest::over(call.out());
    nest.add(call.out());
    nest.add(call.scalars[0], call.out().dtype);
    nest.add(call.scalars[1], call.out().dtype);
    Nest::Operand& counter = nest.add_absent();
    counter.bytes = 1;  // the offset of the counter is the index of the first element along the axis
    counter.strides[call.attributes<bp_axis_attributes>().axis] = 1;
    nest.merge();
    return launch_nest(launcher, program.kernels[0], nest, [](NestParams&, int64_t) {});
  }

 private:
  const std::string module_;
};

}  // namespace

void add_copy(Operators& operators) {
  for_dtypes(BP_SET_ALL, [&](uint32_t dtype) {
    operators.add(BP_OP_COPY, dtype, entry_of<Copy>(dtype));
    operators.add(BP_OP_FILL, dtype, entry_of<Fill>(dtype));
  });
  for_dtypes(kComputed & BP_SET_NUMERIC,
             [&](uint32_t dtype) { operators.add(BP_OP_IOTA, dtype, entry_of<Iota>(dtype)); });
}

}  // namespace backplane::simt
