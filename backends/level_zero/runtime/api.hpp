// SPDX-License-Identifier: Apache-2.0
// The Level Zero functions that the plugin calls. The plugin looks up the functions at run time and
// does not link the loader.
#pragma once

#include <level_zero/ze_api.h>
#include <level_zero/zes_api.h>

#include <backplane/kit/error.hpp>

namespace backplane::level_zero {

// The functions of the system's Level Zero loader, which finds the drivers.
struct Api {
#define BP_ZE(name) decltype(&::name) name = nullptr;
#define BP_ZES(name) decltype(&::name) name = nullptr;
#include "runtime/functions.def"
#undef BP_ZE
#undef BP_ZES

  // Returns the functions, which stay loaded until the process ends. Returns UNAVAILABLE if the
  // system has no loader, or if the loader lacks a function.
  static kit::Result<const Api*> load();
};

// Converts the result of the Level Zero function `call` to a status, with `code` as the vendor code.
kit::Status status_of(ze_result_t code, const char* call);

}  // namespace backplane::level_zero
