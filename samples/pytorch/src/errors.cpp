// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <c10/util/Exception.h>

namespace backplane_torch {
namespace {

thread_local const char* current_overload = nullptr;

}  // namespace

OverloadScope::OverloadScope(const char* name) noexcept : current_(current_overload), outer_(current_) {
  current_ = name;
}
OverloadScope::~OverloadScope() { current_ = outer_; }

std::string message_prefix() {
  return current_overload == nullptr ? "backplane: " : std::string("backplane: aten::") + current_overload + ": ";
}

void raise(bp_status status, const std::string& message) {
  const std::string text = message_prefix() + message + " (" + bph_status_name(status) + ")";
  if (status == BP_OUT_OF_MEMORY) TORCH_CHECK_WITH(OutOfMemoryError, false, text);
  TORCH_CHECK_NOT_IMPLEMENTED(status != BP_UNSUPPORTED, text);
  TORCH_CHECK(false, text);
}

}  // namespace backplane_torch
