// SPDX-License-Identifier: Apache-2.0
#include "runtime/units.hpp"

namespace backplane::cuda {

kit::Result<uint32_t> permitted_instructions() {
  const char* const given = std::getenv(kTensorKernels);
  const std::string_view value = given == nullptr ? "" : given;
  if (value.empty() || value == "warps") return kTensorCores;
  if (value == "on") return kTensorCores | kWarpgroups;
  if (value == "off") return 0u;
  return kit::invalid_argument(kTensorKernels, " is `", value, "`; set it to on, warps or off");
}

// kernels/unit_product.h has the same tiles. The estimates of time are half the throughput of an H100's wgmma.
const gpu_host::UnitKernels& tensor_kernels() {
  static constexpr gpu_host::UnitTile kTiles[] = {
      {128, 256, 256, (128 + 256) * 128 * 3, 2048},
      {128, 128, 256, (128 + 128) * 128 * 3, 1120},
      {64, 64, 128, (64 + 64) * 128 * 4, 400},
  };
  static constexpr gpu_host::UnitKernels kKernels{"unit_product", kTiles};
  return kKernels;
}

}  // namespace backplane::cuda
