// SPDX-License-Identifier: Apache-2.0
// Checks and enqueues copies of every kind.
#pragma once

#include <cstdint>

#include "memory/buffer.hpp"
#include "streams/stream.hpp"

namespace backplane::core::transfer {

void require_flags(const char* function, uint32_t flags, uint32_t known);
void require_on_stream(const char* function, const Stream& stream, const char* which, const Buffer& buffer);
void require_inside(const char* function, const char* which, const Buffer& buffer, uint64_t offset, uint64_t bytes);
// Checks the target of a copy: its range, and that its memory may be written.
void require_target(const char* function, const Buffer& buffer, uint64_t offset, uint64_t bytes);
[[noreturn]] void overlap(const char* function, uint64_t bytes, uint64_t src_offset, uint64_t dst_offset);
[[noreturn]] void both_host(const char* function, uint64_t bytes);

// Counts the enqueue call, and throws if `status` is not OK. The callers of this function and of
// enqueue_* hold the stream's lock.
void check_enqueue(Stream& stream, const char* slot, bp_status status, const bp_error& error);
void enqueue_copy(Stream& stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src, uint64_t src_offset,
                  uint64_t bytes);
void enqueue_in(Stream& stream, Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes);
// If the copy fails with EXECUTION_FAILED, waits for the stream, because a submitted part of the copy
// may still write to `dst`.
void enqueue_out(Stream& stream, void* dst, Buffer& src, uint64_t src_offset, uint64_t bytes);

}  // namespace backplane::core::transfer
