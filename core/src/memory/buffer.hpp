// SPDX-License-Identifier: Apache-2.0
// A buffer of the host API: a span from the allocator, a raw plugin buffer, or imported memory.
#pragma once

#include <backplane/backplane.h>

#include <cstdint>

#include "base/handle.hpp"

namespace backplane::core {

class Device;
class Stream;

// The fields of a buffer that host API calls read. These fields are constant while the handle is
// valid. The allocator's Block is the only derived class.
class Buffer {
 public:
  static constexpr HandleType kHandleType = HandleType::buffer;

  bp_buffer* plugin_buffer = nullptr;  // null if the buffer has no memory
  uint64_t plugin_offset = 0;
  uint64_t bytes = 0;
  uint32_t kind = BP_MEMORY_DEVICE;
  uint8_t alignment_log2 = 0;  // log2 of the first byte's alignment, at most BP_MAX_ALIGNMENT_LOG2
  bool read_only = false;      // no call may write to the memory
  Device* device = nullptr;    // each live buffer keeps the device open
  uint64_t public_handle = 0;

  // `desc` is the caller's descriptor. Throws the errors that bph_buffer_create returns.
  static Buffer& create(Device& device, const bph_buffer_desc& desc, Stream* stream);
  // `desc` is the caller's descriptor. Throws the errors that bph_buffer_import returns.
  static Buffer& import(Device& device, const bph_import_desc& desc, Stream* stream);
  // The next three functions implement bph_buffer_create_external, bph_buffer_import_external and
  // bph_buffer_map_peer, and throw the errors that the bph_ functions return.
  static Buffer& create_external(Device& device, const bph_buffer_desc& desc, const char* type, Stream* stream);
  static Buffer& import_external(Device& device, const bp_external_handle& handle, Stream* stream);
  static Buffer& map_peer(Device& device, Buffer& source, Stream* stream);
  // Implements bph_buffer_export, and throws that function's errors.
  bp_external_handle exported(const char* type);
  // Releases `buffer`, unless another call has already released `handle`.
  static void end(Buffer& buffer, uint64_t handle) noexcept;

  void record(Stream& stream);
  // Like record, except that `stream` belongs to another device.
  void record_foreign(Stream& stream);
  void* map();  // throws UNSUPPORTED for DEVICE memory

  struct Address {
    uint64_t value = 0;
    uint32_t flags = 0;  // BPH_BUFFER_ADDRESS_*
  };
  Address address();  // returns the address of byte 0 for bph_buffer_info

  // Keeps the memory alive until end_hold, even if the handle is released.
  void hold() noexcept;
  void end_hold() noexcept;

 protected:
  Buffer() = default;
  ~Buffer() = default;
};

}  // namespace backplane::core
