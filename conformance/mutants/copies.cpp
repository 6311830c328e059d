// SPDX-License-Identifier: Apache-2.0
// Defects in chunked copies: tails, chunk offsets, 32-bit sizes.
#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr uint64_t kKib = 1024, kMib = kKib * kKib;

bp_status lose_tail(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                    uint64_t bytes, bp_error* error) {
  return kHonest.copy_in(device, stream, dst, dst_offset, src, bytes > 32 * kMib ? bytes - bytes % 4 : bytes, error);
}
bp_status whole_pages(bp_device* device, bp_stream* stream, void* dst, bp_buffer* src, uint64_t src_offset,
                      uint64_t bytes, bp_error* error) {
  const uint64_t tail = bytes % (64 * kKib);
  return kHonest.copy_out(device, stream, dst, src, src_offset,
                          bytes > 64 * kMib && tail < 4 * kKib ? bytes - tail : bytes, error);
}
bp_status chunks_from_start(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                            uint64_t src_offset, uint64_t bytes, bp_error* error) {
  constexpr uint64_t kChunk = 16 * kMib;
  if (bytes <= kChunk || dst == src)
    return kHonest.copy(device, stream, dst, dst_offset, src, src_offset, bytes, error);
  bp_status status = BP_OK;
  for (uint64_t at = 0; at < bytes && status == BP_OK; at += kChunk)
    status = kHonest.copy(device, stream, dst, dst_offset + at, src, at == 0 ? src_offset : at,
                          std::min(kChunk, bytes - at), error);
  return status;
}
bp_status staged_short(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                       uint64_t bytes, bp_error* error) {
  constexpr uint64_t kPiece = 128 * kKib;
  const bool lost = bytes > kPiece && bytes % kPiece == 0;
  return kHonest.copy_in(device, stream, dst, dst_offset, src, lost ? bytes - kPiece : bytes, error);
}
bp_status bytes_in_32_bits(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                           uint64_t src_offset, uint64_t bytes, bp_error* error) {
  return kHonest.copy(device, stream, dst, dst_offset, src, src_offset, static_cast<uint32_t>(bytes), error);
}
bp_status stops_at_2_gib(bp_device* device, bp_stream* stream, void* dst, bp_buffer* src, uint64_t src_offset,
                         uint64_t bytes, bp_error* error) {
  return kHonest.copy_out(device, stream, dst, src, src_offset, std::min<uint64_t>(bytes, 0x7FFFF000), error);
}

}  // namespace

const Mutation defect::upload_tail_lost = on_slot<&bp_device_api::copy_in, lose_tail>();
const Mutation defect::download_whole_pages = on_slot<&bp_device_api::copy_out, whole_pages>();
const Mutation defect::copy_chunk_from_start = on_slot<&bp_device_api::copy, chunks_from_start>();
const Mutation defect::upload_staged_short = on_slot<&bp_device_api::copy_in, staged_short>();
const Mutation defect::copy_bytes_in_32_bits = on_slot<&bp_device_api::copy, bytes_in_32_bits>();
const Mutation defect::download_stops_at_2_gib = on_slot<&bp_device_api::copy_out, stops_at_2_gib>();

}  // namespace backplane::conformance::mutants
