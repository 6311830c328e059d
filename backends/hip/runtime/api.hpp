// SPDX-License-Identifier: Apache-2.0
// The functions of the HIP runtime API that the plugin calls. The plugin looks up the functions at run
// time and links no HIP library.
#pragma once

#include <hip/hip_runtime_api.h>

#include <backplane/kit/error.hpp>
#if HIP_VERSION >= 60000000
#include <hip/hip_deprecated.h>
#endif

namespace backplane::hip {

// The environment variable that names the driver's library.
inline constexpr const char* kDriverSetting = "BACKPLANE_HIP_DRIVER";

// HIP 6 changed the layout of hipDeviceProp_t. The symbol hipGetDevicePropertiesR0000 of HIP 6 keeps
// the layout of HIP 5.
#if HIP_VERSION >= 60000000
using Properties = hipDeviceProp_tR0000;
#else
using Properties = hipDeviceProp_t;
#endif

struct Api {
// The cast selects one of the overloads that the header declares, and fails if no overload has these types.
#define BP_HIP(name, ...) decltype(static_cast<hipError_t (*)(__VA_ARGS__)>(&::name)) name = nullptr;
#include "runtime/functions.def"
  // Functions that a driver may lack. A function that it lacks is null.
#include "runtime/graph_functions.def"
#undef BP_HIP
  bool has_graphs = false;  // the driver has all functions for graphs
  const char* (*error_name)(hipError_t) = nullptr;
  hipError_t (*get_properties)(Properties*, int) = nullptr;
  // Functions that a driver may lack. A function that it lacks is null.
  hipError_t (*stream_is_capturing)(hipStream_t, hipStreamCaptureStatus*) = nullptr;
  hipError_t (*stream_device)(hipStream_t, hipDevice_t*) = nullptr;

  // Returns the functions, which stay loaded until the process ends. Returns UNAVAILABLE if the
  // system has no driver, or if the driver is too old.
  static kit::Result<const Api*> load();

  // Converts the result of the driver's function `call` to a status, with `code` as the vendor
  // code. After a failure, resets the thread's last error, so that other users of HIP in the process do
  // not report it as theirs.
  kit::Status status_of(hipError_t code, const char* call) const;
  // Returns whether a call succeeded. After a failure, resets the thread's last error, as status_of() does.
  bool succeeded(hipError_t code) const;
};

// Returns the major and the minor number of a HIP version as text.
std::string version_text(int version);

}  // namespace backplane::hip
