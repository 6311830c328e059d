// SPDX-License-Identifier: Apache-2.0
// Calls of the driver from classes with a member `const Api& cu_`.
#pragma once

#include "runtime/api.hpp"

// Calls a function of the driver, and converts the result to a status that names the function.
#define BP_CALL(function, ...) cu_.status_of(cu_.function(__VA_ARGS__), #function)

namespace backplane::cuda {

template <class T>
kit::Result<T> result_of(kit::Status status, T value) {
  if (!status.ok()) return status;
  return value;
}

}  // namespace backplane::cuda
