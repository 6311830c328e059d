// SPDX-License-Identifier: Apache-2.0
#include "runtime/units.hpp"

#include <charconv>

namespace backplane::cuda {

kit::Result<uint32_t> permitted_instructions() {
  const char* const given = std::getenv(kTensorKernels);
  const std::string_view value = given == nullptr ? "" : given;
  if (value.empty() || value == "on") return kTensorCores | kWarpgroups | kTensorMaps;
  if (value == "warps") return kTensorCores;
  if (value == "trial") return kTensorCores | kWarpgroups | kTensorMaps | kTrial;
  if (value == "off") return 0u;
  return kit::invalid_argument(kTensorKernels, " is `", value, "`; set it to on, warps, trial or off");
}

kit::Result<uint32_t> assumed_compute_units(uint32_t actual) {
  const char* const given = std::getenv(kComputeUnits);
  const std::string_view value = given == nullptr ? "" : given;
  if (value.empty()) return actual;
  uint16_t out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc() || end != value.data() + value.size() || out == 0) {
    return kit::invalid_argument(kComputeUnits, " is `", value, "`; set it to a number from 1 to 65535, or unset it");
  }
  return uint32_t{out};
}

namespace {

// Returns a tile of kernels/tensor_product.h. Its shared memory has `slots` slots for tiles of a and b, two barriers
// per slot, and 1024 bytes for alignment. It also has `part` sums per reading thread (finish_parts).
constexpr gpu_host::UnitTile tensor_tile(uint32_t rows, uint32_t columns, uint32_t slots, uint32_t part,
                                         uint32_t step_cycles, uint32_t resident_groups) {
  constexpr uint32_t kLine = 128, kBarriers = 16, kAlignment = 1024, kProducer = 32;
  const uint32_t readers = rows * 2;
  return {rows,
          columns,
          readers + kProducer,
          slots * ((rows + columns) * kLine + kBarriers) + readers * part * 4 + kAlignment,
          step_cycles,
          kWarpgroups | kTensorMaps | kTrial,
          "tensor_product",
          resident_groups};
}

}  // namespace

// The headers of the modules in kernels/ have the same tiles. The estimates of time (step_cycles) come from
// measurements on an H100 at 4096 x 4096 x 4096, and only their ratios matter. The estimates for tensor_product come
// from another program with the same pipeline.
const gpu_host::UnitKernels& tensor_kernels() {
  static constexpr const char *kWarps = "unit_product", *kGroups = "warpgroup_product";
  static constexpr uint32_t kAlignment = 1024;  // WARPGROUP_ALIGNMENT
  static constexpr gpu_host::UnitTile kTiles[] = {
      tensor_tile(128, 256, 4, 32, 1060, 1),
      tensor_tile(128, 192, 5, 24, 820, 1),
      tensor_tile(128, 128, 6, 32, 565, 1),
      tensor_tile(64, 128, 4, 16, 325, 2),
      {128, 256, 256, (128 + 256) * 128 * 4 + kAlignment, 1450, kWarpgroups, kGroups},
      {64, 64, 128, (64 + 64) * 128 * 4 + kAlignment, 325, kWarpgroups, kGroups},
      {128, 256, 256, (128 + 256) * 128 * 3, 2048, kTensorCores, kWarps},
      {128, 128, 256, (128 + 128) * 128 * 3, 1040, kTensorCores, kWarps},
      {64, 64, 128, (64 + 64) * 128 * 4, 355, kTensorCores, kWarps},
  };
  static constexpr gpu_host::UnitKernels kKernels{kWarps, kTiles};
  return kKernels;
}

}  // namespace backplane::cuda
