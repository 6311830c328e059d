// SPDX-License-Identifier: Apache-2.0
// Computes a device's matrix products of f16 and bf16 with the stack's own kernels for matrix units, if no library
// computes them. gpu_host/unit_params.h states the parameters of these kernels.
#pragma once

#include <backplane/kit/plugin.hpp>

#include <array>
#include <optional>
#include <span>

#include "gpu_host/kernels.hpp"

namespace backplane::gpu_host {

using u32 = uint32_t;
using i64 = int64_t;
using u64 = uint64_t;
#include "gpu_host/unit_params.h"

// The tile of c that a group of a kernel computes.
struct UnitTile {
  uint32_t rows, columns, group_size, local_bytes;
  uint32_t step_cycles;   // an estimate of a compute unit's time for UNIT_DEPTH elements of k, for the choice of a tile
  uint32_t instructions;  // the bits of Limits::matrix_instructions that the kernels need
  const char* module;
  // If not 0, the kernels use tensor maps of a and b, and a group computes several tiles. The value is the number of
  // groups that a compute unit runs at once.
  uint32_t resident_groups = 0;
};

// The kernels of a stack for matrix units. A module for the dtype T is MODULE_T. The module of a tile contains the
// kernels unit_ROWSxCOLUMNS_kk, _kn, _mk and _mn. The suffix is the contiguous index of a and of b. UnitKernels::module
// contains the kernel unit_combine, for all devices with matrix instructions. The module of tiles with tensor maps has
// its own unit_combine, whose threads compute UNIT_COMBINED elements of a row at once.
struct UnitKernels {
  const char* module;
  std::span<const UnitTile> tiles;
};
// Returns whether a device can run the kernels of a tile.
bool can_run(const UnitTile& tile, const simt::Limits& limits);

// The launches of a product: the kernel that computes the product or its splits, and the kernel that adds the splits.
struct UnitCall {
  UnitParams params{};
  std::array<simt::Place, UNIT_OPERANDS> places{};
  uint32_t kernel = 0, combine = 0;
  uint32_t groups = 1, group_size = 1, local_bytes = 0;
  uint32_t combined = 1;  // elements of a row that a thread of `combine` computes at once
  std::array<simt::TensorMap, 2> maps{};
  uint32_t map_count = 0;

  simt::Launch launch() {
    return {kernel,  {groups, 1, 1}, group_size,  places,
            &params, sizeof(params), local_bytes, std::span(maps).first(map_count)};
  }
  simt::Launch combination();
};

// A tile of the table, and the splits of k.
struct UnitChoice {
  std::size_t tile = 0;
  uint32_t splits = 1, split_depth = 0;
};
// Returns the choice for a product. The choice depends only on the limits, the extents, the strides of the batch and
// the size of the scratch memory.
UnitChoice choose_unit(std::span<const UnitTile> tiles, const simt::Limits& limits, const simt::MatrixProduct& product);

class Units {
 public:
  Units(const Context& context, Kernels& kernels) : context_(context), kernels_(kernels) {}

  // Returns whether the device has the kernels, and its settings permit them.
  bool is_on() const;
  // Loads the module for products of `dtype` if necessary. Returns false if there is none, or if it cannot be loaded.
  bool load(uint32_t dtype, const kit::Host& host);
  // Returns the launches of a product, or nothing if the kernels of simt must compute it.
  std::optional<UnitCall> call_of(const simt::MatrixProduct& product);

 private:
  static constexpr std::size_t kMaxTiles = 12, kLayouts = 4;
  // The kernel numbers of a dtype. A number is empty until a product first needs its kernel.
  struct Module {
    std::optional<uint32_t> combine, combine_of_maps, kernels[kMaxTiles][kLayouts];
  };

  kit::Result<uint32_t> find(const char* module, uint32_t dtype, const std::string& name, uint32_t local_bytes);
  // Sets the kernels of a call. Returns false if the kernels cannot be used.
  bool set_kernels(UnitCall& out, uint32_t dtype, std::size_t tile, std::size_t layout);

  const Context& context_;
  Kernels& kernels_;
  std::mutex mutex_;                    // guards modules_
  std::map<uint32_t, Module> modules_;  // the keys are dtypes; an entry lacks combine after a failure
};

}  // namespace backplane::gpu_host
