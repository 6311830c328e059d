// SPDX-License-Identifier: Apache-2.0
// Helpers for the C functions: outputs, handles, and statuses that are not failures.
#pragma once

#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/ref.hpp"

namespace backplane::core {

inline uint64_t handle_value(const void* handle) noexcept { return reinterpret_cast<uint64_t>(handle); }

template <class T>
void start_output(T* out, const char* function) {
  if (out == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: out is null; pass where the result goes", function);
  *out = {};
}

// Stores a new handle for `object` in `*out`. The handle owns the reference to `object`.
template <class T, class Handle>
void hand_out(Ref<T> object, Handle** out) {
  object->public_handle = HandleTable::instance().insert(T::kHandleType, object.get());
  *out = reinterpret_cast<Handle*>(object->public_handle);
  object.detach();
}

// Removes the object from the handle table, and returns the object. Returns null if the handle is invalid.
template <class T>
T* take_handle(const void* handle) noexcept {
  return static_cast<T*>(HandleTable::instance().remove(T::kHandleType, handle_value(handle)));
}

template <class T>
void end_handle(const void* handle) noexcept {
  T* object = take_handle<T>(handle);
  if (object != nullptr) object->release();
}

// Like guard, but `body` returns a status. `body` may return TIMEOUT or NOT_READY, which do not
// change the error record.
template <class Body>
bp_status guard_status(bp_error* error, Body&& body) noexcept {
  bp_status status = BP_OK;
  const bp_status failure = guard(error, [&] { status = body(); });
  return failure != BP_OK ? failure : status;
}

}  // namespace backplane::core
