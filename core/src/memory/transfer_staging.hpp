// SPDX-License-Identifier: Apache-2.0
// Staging between pageable and device memory through HOST memory.
#pragma once

#include <cstdint>

#include "memory/buffer.hpp"
#include "streams/stream.hpp"

namespace backplane::core::transfer {

// Size of a staging chunk in bytes. Two chunks are in flight. On a SHARED stream all bytes are
// staged at once, so that no call waits while it holds the stream's lock.
inline constexpr uint64_t kChunkBytes = 2u << 20;

// A HOST span that the host fills or empties, and an event that completes after the device's last
// use of the span.
class StagingSlot {
 public:
  explicit StagingSlot(Stream& stream) : stream_(stream) {}
  StagingSlot(const StagingSlot&) = delete;
  StagingSlot& operator=(const StagingSlot&) = delete;
  ~StagingSlot();

  // Allocates the span. `tracked` must be true if `wait` will be called.
  void prepare(uint64_t bytes, bool tracked);
  void record();  // the caller holds the stream's lock
  void wait();
  char* address() const noexcept { return address_; }
  const Span& span() const noexcept { return span_; }

 private:
  Stream& stream_;
  Span span_;
  char* address_ = nullptr;
  bp_event* event_ = nullptr;
};

bool has_host_memory(const Device& device) noexcept;
// Copies between pageable and device memory through HOST memory. Every device that does not accept
// pageable memory has HOST memory. When stage_in returns, `src` is free. When stage_out returns,
// `dst` is filled. Both functions lock the stream and count the bytes.
void stage_in(Stream& stream, const char* function, Buffer& dst, uint64_t dst_offset, const char* src, uint64_t bytes);
void stage_out(Stream& stream, const char* function, char* dst, Buffer& src, uint64_t src_offset, uint64_t bytes);
void count_staged(Device& device, uint64_t bytes) noexcept;

}  // namespace backplane::core::transfer
