// SPDX-License-Identifier: Apache-2.0
// Copies between buffers and to and from pageable host memory.
#pragma once

#include <cstdint>

#include "memory/buffer.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

// Each function throws the errors that the bph_ function of the same name returns.
void copy(Stream& stream, Buffer& dst, uint64_t dst_offset, Buffer& src, uint64_t src_offset, uint64_t bytes,
          uint32_t flags);
void copy_in(Stream& stream, Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes, uint32_t flags);
void copy_out(Stream& stream, void* dst, Buffer& src, uint64_t src_offset, uint64_t bytes, uint32_t flags);
void copy_across(Stream& dst_stream, Buffer& dst, uint64_t dst_offset, Stream& src_stream, Buffer& src,
                 uint64_t src_offset, uint64_t bytes, uint32_t flags);

// Orders later work of `second` after all work that is already on `first`. Both streams belong to
// one device.
void order(const char* function, Stream& first, Stream& second);

}  // namespace backplane::core
