// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for copies.
#include <backplane/backplane.h>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "memory/transfer.hpp"

using namespace backplane::core;

bp_status bph_copy(bph_stream* stream, bph_buffer* dst, uint64_t dst_offset, bph_buffer* src, uint64_t src_offset,
                   uint64_t bytes, uint32_t flags, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_copy";
    copy(require<Stream>(stream, function), require<Buffer>(dst, function), dst_offset, require<Buffer>(src, function),
         src_offset, bytes, flags);
  });
}

bp_status bph_copy_in(bph_stream* stream, bph_buffer* dst, uint64_t dst_offset, const void* src, uint64_t bytes,
                      uint32_t flags, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_copy_in";
    copy_in(require<Stream>(stream, function), require<Buffer>(dst, function), dst_offset, src, bytes, flags);
  });
}

bp_status bph_copy_out(bph_stream* stream, void* dst, bph_buffer* src, uint64_t src_offset, uint64_t bytes,
                       uint32_t flags, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_copy_out";
    copy_out(require<Stream>(stream, function), dst, require<Buffer>(src, function), src_offset, bytes, flags);
  });
}

bp_status bph_copy_across(bph_stream* dst_stream, bph_buffer* dst, uint64_t dst_offset, bph_stream* src_stream,
                          bph_buffer* src, uint64_t src_offset, uint64_t bytes, uint32_t flags, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_copy_across";
    copy_across(require<Stream>(dst_stream, function), require<Buffer>(dst, function), dst_offset,
                require<Stream>(src_stream, function), require<Buffer>(src, function), src_offset, bytes, flags);
  });
}
