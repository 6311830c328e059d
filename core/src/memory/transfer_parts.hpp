// SPDX-License-Identifier: Apache-2.0
// Parts that all copies share: checks, enqueues, and staging through HOST memory.
#pragma once

#include <cstdint>
#include <memory>

#include "memory/buffer.hpp"
#include "streams/stream.hpp"

namespace bp::transfer {

// Staging goes in pieces of this size, two in flight. A SHARED stream stages the whole at once, so as not to wait in its turn.
inline constexpr uint64_t chunk_bytes = 2u << 20;

void require_flags(const char* function, uint32_t flags, uint32_t known);
void require_on_stream(const char* function, const Stream& stream, const char* which, const Buffer& buffer);
void require_inside(const char* function, const char* which, const Buffer& buffer, uint64_t offset, uint64_t bytes);
[[noreturn]] void overlap(const char* function, uint64_t bytes, uint64_t src_offset, uint64_t dst_offset);
[[noreturn]] void both_host(const char* function, uint64_t bytes);

// Counts the enqueue, and throws unless it was accepted. Call these in the stream's turn.
void check_enqueue(Stream& stream, const char* slot, bp_status status, const bp_error& error);
void enqueue_copy(Stream& stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src, uint64_t src_offset,
                  uint64_t bytes);
void enqueue_in(Stream& stream, Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes);
// Waits for the stream if a part may have been submitted: that part writes to `dst` until the stream has ended.
void enqueue_out(Stream& stream, void* dst, Buffer& src, uint64_t src_offset, uint64_t bytes);

// A HOST span that the host fills or empties, and the event after which the device is done with it.
class Slot {
 public:
  explicit Slot(Stream& stream) : stream_(stream) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();

  // `tracked` if `wait` will be called.
  void prepare(uint64_t bytes, bool tracked);
  void record();  // in the stream's turn
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
// Through HOST memory, which a device has if it does not take pageable memory. At return `src` is free and `dst` is
// filled. They take the stream's turn themselves, and count the bytes.
void stage_in(Stream& stream, const char* function, Buffer& dst, uint64_t dst_offset, const char* src, uint64_t bytes);
void stage_out(Stream& stream, const char* function, char* dst, Buffer& src, uint64_t src_offset, uint64_t bytes);
void count_staged(Device& device, uint64_t bytes) noexcept;

}  // namespace bp::transfer
