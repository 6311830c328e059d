// SPDX-License-Identifier: Apache-2.0
#include "runtime/units.hpp"

namespace backplane::cuda {

kit::Result<uint32_t> permitted_instructions() {
  const char* const given = std::getenv(kTensorKernels);
  const std::string_view value = given == nullptr ? "" : given;
  if (value.empty() || value == "warps") return kTensorCores;
  if (value == "on") return kTensorCores | kWarpgroups;
  if (value == "trial") return kTensorCores | kWarpgroups | kTrial;
  if (value == "off") return 0u;
  return kit::invalid_argument(kTensorKernels, " is `", value, "`; set it to on, warps, trial or off");
}

// kernels/warpgroup_product.h and kernels/unit_product.h have the same tiles. The estimates of time relate to each
// other. Those of warps are measured on an H100 at 4096 x 4096 x 4096. Those of warpgroups are expectations: 1.5 times
// the speed of warps, unless reads and writes of shared memory take longer.
const gpu_host::UnitKernels& tensor_kernels() {
  static constexpr const char *kWarps = "unit_product", *kGroups = "warpgroup_product";
  static constexpr uint32_t kAlignment = 1024;  // WARPGROUP_ALIGNMENT
  static constexpr gpu_host::UnitTile kTiles[] = {
      {128, 256, 256, (128 + 256) * 128 * 4 + kAlignment, 1360, kWarpgroups, kGroups},
      {128, 128, 256, (128 + 128) * 128 * 3 + kAlignment, 820, kWarpgroups, kGroups},
      {64, 64, 128, (64 + 64) * 128 * 4 + kAlignment, 300, kWarpgroups, kGroups},
      {128, 256, 256, (128 + 256) * 128 * 3, 2048, kTensorCores, kWarps},
      {128, 128, 256, (128 + 128) * 128 * 3, 1120, kTensorCores, kWarps},
      {64, 64, 128, (64 + 64) * 128 * 4, 400, kTensorCores, kWarps},
  };
  static constexpr gpu_host::UnitKernels kKernels{kWarps, kTiles};
  return kKernels;
}

}  // namespace backplane::cuda
