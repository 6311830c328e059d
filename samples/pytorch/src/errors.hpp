// SPDX-License-Identifier: Apache-2.0
// Converts errors of the host API to PyTorch's exceptions.
#pragma once

#include <backplane/backplane.hpp>

namespace backplane_torch {

// Names the ATen overload that this thread executes, such as "add.out". The messages of errors begin with this
// name.
class OverloadScope {
 public:
  explicit OverloadScope(const char* name) noexcept;
  ~OverloadScope();
  OverloadScope(const OverloadScope&) = delete;
  OverloadScope& operator=(const OverloadScope&) = delete;

 private:
  const char*& current_;  // the thread's variable with the name of its innermost overload
  const char* outer_;
};
// Returns the beginning of a message, such as "backplane: aten::add.out: ". If the thread executes no overload,
// returns "backplane: ".
std::string message_prefix();

// Raises an exception. OUT_OF_MEMORY becomes torch.OutOfMemoryError, UNSUPPORTED becomes NotImplementedError,
// and every other status becomes RuntimeError.
[[noreturn]] void raise(bp_status status, const std::string& message);

// Calls `function(arguments..., &error)`. Raises an exception if the status is not OK.
template <class Function, class... Arguments>
void call(Function function, Arguments... arguments) {
  try {
    backplane::detail::call(function, arguments...);
  } catch (const backplane::Error& error) {
    raise(error.status(), error.what());
  }
}

// Like `call`, but returns false if the status is TIMEOUT or NOT_READY.
template <class Function, class... Arguments>
bool poll(Function function, Arguments... arguments) {
  try {
    return backplane::detail::poll(function, arguments...);
  } catch (const backplane::Error& error) {
    raise(error.status(), error.what());
  }
}

}  // namespace backplane_torch
