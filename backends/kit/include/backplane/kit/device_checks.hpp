// SPDX-License-Identifier: Apache-2.0
// Checks for the arguments of a device's slots, with their error messages.
#pragma once

#include <backplane/kit/structs.hpp>
#include <bit>

namespace backplane::kit {

// Checks that `bytes` at `offset` lie within a buffer of `room` bytes. `role` is "source" or
// "destination".
inline Status check_span(const char* role, uint64_t room, uint64_t offset, uint64_t bytes) {
  if (offset <= room && bytes <= room - offset) return {};
  return invalid_argument("copy: ", bytes, " bytes at ", offset, " reach past the ", role, ", which has ", room);
}

// Checks that two ranges of the same memory do not overlap. `to` and `from` are addresses or
// offsets.
inline Status check_no_overlap(uint64_t to, uint64_t from, uint64_t bytes) {
  if (to >= from + bytes || from >= to + bytes) return {};
  return invalid_argument("copy: source and destination overlap over ", bytes, " bytes");
}

inline Status check_kinds_of_copy(uint32_t dst_kind, uint32_t src_kind) {
  if (dst_kind != BP_MEMORY_HOST || src_kind != BP_MEMORY_HOST) return {};
  return invalid_argument("copy: a device does not copy from HOST to HOST memory; use memcpy");
}

inline Status check_host_pointer(const void* pointer, uint64_t bytes) {
  if (pointer != nullptr || bytes == 0) return {};
  return invalid_argument("copy: the host pointer is null");
}

inline Status check_event_flags(uint32_t flags) {
  if ((flags & ~BP_EVENT_TIMING) == 0) return {};
  return unsupported("event_create: the flags ", flags, " contain an unknown bit");
}

// Returns UNSUPPORTED if the mask `kinds` (bp_device_info.memory_kinds) does not contain `kind`.
inline Status check_kind(uint64_t kinds, uint32_t kind) {
  if (kind < BP_MEMORY_KINDS && (kinds >> kind & 1u) != 0) return {};
  return unsupported("memory kind ", kind, " is not offered by this device: see memory_kinds of its bp_device_info");
}

// Checks the arguments of buffer_create. `alignment` is the requested alignment, or the device's
// alignment if the caller requested 0.
inline Status check_buffer(const bp_buffer_desc& desc, uint64_t alignment, uint64_t kinds, uint64_t max_alignment) {
  if (desc.bytes == 0) return invalid_argument("buffer_create: 0 bytes requested; request at least 1");
  if (Status status = check_kind(kinds, desc.kind); !status.ok()) return status;
  if (!std::has_single_bit(alignment)) {
    return invalid_argument("buffer_create: the alignment ", alignment, " is not a power of two");
  }
  if (alignment > max_alignment) {
    return unsupported("buffer_create: the alignment ", alignment, " is above ", max_alignment);
  }
  return {};
}

inline Status no_host_address() {
  return unsupported("buffer_map: memory of kind DEVICE has no host address; copy, or use HOST or SHARED");
}

// Checks the options of device_open for a plugin that has no options.
inline Status check_no_options(const char* plugin, std::string_view options) {
  if (options.empty()) return {};
  return unsupported(plugin, ": the device option ", options.substr(0, options.find_first_of("=;")),
                     " is not known; there are no options");
}

}  // namespace backplane::kit
