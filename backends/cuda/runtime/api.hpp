// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA driver API that the plugin calls. The plugin looks up the functions at run
// time and links no CUDA library.
#pragma once

#include <cuda.h>

#include <backplane/kit/error.hpp>

namespace backplane::cuda {

// Environment variable. Its value is the path of the driver's library.
inline constexpr const char* kDriverSetting = "BACKPLANE_CUDA_DRIVER";

// cuda.h defines most names as macros that add the function's version, such as cuMemAlloc_v2. Each member therefore
// has the name with the version.
struct Api {
#define BP_CU(name, symbol) decltype(&::name) name = nullptr;
#include "runtime/functions.def"
  // Functions that a driver may lack. A member is null if the driver lacks the function.
#include "runtime/external_functions.def"
#include "runtime/graph_functions.def"
#include "runtime/tensor_functions.def"
#undef BP_CU
  bool has_graphs = false;       // the driver has all functions for graphs
  bool has_tensor_maps = false;  // the driver has all functions for tensor maps
  bool has_external = false;     // the driver has all functions for memory and semaphores that other code shares

  // Returns the functions, which stay loaded until the process ends. Returns UNAVAILABLE if the
  // system has no driver, or if the driver is too old.
  static kit::Result<const Api*> load();

  // Converts the result of the driver's function `call` to a status, with `code` as the vendor code.
  kit::Status status_of(CUresult code, const char* call) const;
};

}  // namespace backplane::cuda
