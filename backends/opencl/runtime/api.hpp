// SPDX-License-Identifier: Apache-2.0
// The OpenCL functions that the plugin calls. The plugin looks up the functions at run time and
// does not link an OpenCL library.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <backplane/kit/error.hpp>

namespace backplane::opencl {

// The functions of the system's OpenCL loader, which finds the drivers.
struct Api {
#define BP_CL(name) decltype(&::name) name = nullptr;
#define BP_CL_EXTENSION(name)
#include "runtime/functions.def"
#undef BP_CL
#undef BP_CL_EXTENSION

  // Returns the functions, which stay loaded until the process ends. Returns UNAVAILABLE if the
  // system has no loader, or if the loader lacks a function.
  static kit::Result<const Api*> load();
};

// The functions of a platform's extensions. A function is null if the platform lacks it.
struct Extensions {
#define BP_CL(name)
#define BP_CL_EXTENSION(name) name##_fn name = nullptr;
#include "runtime/functions.def"
#undef BP_CL
#undef BP_CL_EXTENSION

  static Extensions of(const Api& api, cl_platform_id platform);
};

// Converts the result of the OpenCL function `call` to a status, with `code` as the vendor code.
kit::Status status_of(cl_int code, const char* call);

}  // namespace backplane::opencl
