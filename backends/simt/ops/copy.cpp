// SPDX-License-Identifier: Apache-2.0
// The operators copy, fill and iota.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

constexpr int64_t kTile = 32;  // SIMT_TILE of device/copy.h
// Returns SIMT_WIDE_TILE of device/copy.h.
constexpr int64_t wide_tile(uint32_t bytes) { return bytes <= 2 ? 64 : 32; }

class Copy : public Map {
 public:
  explicit Copy(uint32_t dtype) : Map(moved_module("copy", dtype), "copy") {}

  KernelNames kernels(const kit::PlanForm& plan) const override {
    KernelNames out = Map::kernels(plan);
    out[kTranspose] = {module(), "copy_transpose"};
    return out;
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (!has_transposes(limits)) return out;
    out[kTranspose] = {module(), "copy_tiles"};
    out[kBlocks] = {module(), "copy_blocks"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    Nest nest = Nest::over(call.out());
    nest.add(call.out());
    nest.add(call.in(0));
    nest.merge();
    if (!transpose(nest, kTile / 2)) return launch_map(launcher, program.kernels[0], program.kernels[1], nest);
    const Limits& limits = launcher.limits();
    if (has_transposes(limits)) {
      if (const auto status = launch_blocks(launcher, program.kernels[kBlocks], nest)) return *status;
    }
    const int64_t tile = has_transposes(limits) ? wide_tile(nest.operand[0].bytes) : kTile;
    return nest.for_slices([&](const Nest& slice, int64_t) {
      NestParams params = slice.nest_params();
      int64_t tiles = 1;
      for (uint32_t d = 0; d < slice.rank; ++d) {
        tiles *= d + 2 < slice.rank ? slice.shape[d] : (slice.shape[d] + tile - 1) / tile;
      }
      params.count = static_cast<uint32_t>(tiles);
      const uint32_t group = whole_group(limits);
      const auto places = slice.places();
      return launch(launcher, program.kernels[kTranspose], groups_for(params.count, 1), group, {places.data(), 2},
                    params);
    });
  }

 private:
  enum Kernel : uint32_t { kTranspose = 2, kBlocks };
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
    counter.bytes = 1;  // makes the counter's byte offset the index of its first element along the axis
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
