// SPDX-License-Identifier: Apache-2.0
// What plans are looked up by: an operator with its flags, attributes and views, referred to where they lie; and the same as
// a row of 64-bit words, which a descriptor is rebuilt from.
//
//   word 0   op | input_count << 32 | output_count << 40 | key_no_native
//   word 1   flags of bp_op_desc
//   then     the attribute bytes, as the operator table sizes them, padded with zeros
//   then     for each input, then each output: its head, shape[rank], strides[rank]
#pragma once

#include <backplane/ops.h>

#include <cstdint>
#include <cstring>

#include "validate.hpp"

namespace bp {

inline constexpr uint64_t key_no_native = 1ull << 63;
inline constexpr uint32_t max_key_words =
    2 + (max_attribute_bytes + 7) / 8 + 2 * BP_MAX_OPERANDS * (1 + 2 * BP_MAX_RANK);

// All of a view but shape and strides in one word: dtype | rank << 16 | flags << 24 | alignment_log2 << 32 | alias << 40. The
// lower half is as bph_tensor has it in memory.
constexpr uint64_t key_head(uint64_t dtype, uint64_t rank, uint64_t flags, uint64_t alignment_log2,
                            uint64_t alias) noexcept {
  return dtype | rank << 16 | flags << 24 | alignment_log2 << 32 | alias << 40;
}
constexpr uint32_t head_rank(uint64_t head) noexcept { return static_cast<uint8_t>(head >> 16); }

inline constexpr int64_t no_strides[BP_MAX_RANK] = {};

// A view where it lies. Of an immediate the strides are `no_strides`.
struct ViewRef {
  uint64_t head;
  const int64_t* shape;    // of head_rank(head)
  const int64_t* strides;  // likewise
};
inline ViewRef ref_to(const bp_tensor_desc& desc) noexcept {
  return {key_head(desc.dtype, desc.rank, desc.flags, desc.alignment_log2, desc.alias), desc.shape,
          (desc.flags & BP_DESC_IMMEDIATE) != 0 ? no_strides : desc.strides};
}

// The set of a stream's front that a call belongs to, from its first output and its first operand. It only has to be cheap and to
// spread: entries are compared whole. Reads no dimension that a view has not; of too many it reads one in bounds.
inline constexpr uint32_t front_set_bits = 6;
inline uint32_t front_set(uint32_t op, uint32_t out_rank, const int64_t* out_shape, uint32_t first_rank,
                          const int64_t* first_shape, const int64_t* first_strides) noexcept {
  uint64_t mix = op;
  if (out_rank != 0) [[likely]] {
    mix += static_cast<uint64_t>(out_shape[(out_rank - 1) % BP_MAX_RANK]) * 0x9E3779B97F4A7C15u +
           static_cast<uint64_t>(out_shape[0]);
  }
  if (first_rank != 0) [[likely]] {
    const uint32_t last = (first_rank - 1) % BP_MAX_RANK;
    mix += static_cast<uint64_t>(first_shape[last]) * 0x94D049BB133111EBu +
           static_cast<uint64_t>(first_strides[last]) * 0xD6E8FEB86659FD93u;
  }
  return static_cast<uint32_t>(mix * 0xBF58476D1CE4E5B9u >> (64 - front_set_bits));
}

// What is looked up; borrows all of it.
struct Lookup {
  const OpRow& row;
  uint64_t head;  // word 0 of the key
  uint64_t flags;
  const void* attributes;  // row.attributes->bytes, as read_attributes gives them
  const ViewRef* views;    // inputs, then outputs
  uint32_t view_count;

  static constexpr uint64_t head_of(uint32_t op, uint64_t inputs, uint64_t outputs, bool no_native) noexcept {
    return op | inputs << 32 | outputs << 40 | (no_native ? key_no_native : 0);
  }

  // Where a stream's front keeps it: see front_set.
  uint32_t set() const noexcept {
    const ViewRef& out = views[static_cast<uint8_t>(head >> 32)];
    return front_set(row.id, head_rank(out.head), out.shape, head_rank(views[0].head), views[0].shape,
                     views[0].strides);
  }
};

// The words of a lookup.
struct Key {
  uint64_t words[max_key_words];
  uint32_t count = 0;

  // A copy of `size` words.
  Key(const uint64_t* own, uint32_t size) noexcept : count(size) { std::memcpy(words, own, size * sizeof(uint64_t)); }
  explicit Key(const Lookup& lookup) noexcept {
    words[count++] = lookup.head;
    words[count++] = lookup.flags;
    const uint32_t bytes = lookup.row.attributes->bytes;
    if (bytes != 0) {
      const uint32_t used = (bytes + 7) / 8;
      words[count + used - 1] = 0;
      std::memcpy(words + count, lookup.attributes, bytes);
      count += used;
    }
    for (uint32_t i = 0; i < lookup.view_count; ++i) {
      const ViewRef& view = lookup.views[i];
      const uint32_t rank = head_rank(view.head);
      words[count++] = view.head;
      std::memcpy(words + count, view.shape, rank * sizeof(int64_t));
      std::memcpy(words + count + rank, view.strides, rank * sizeof(int64_t));
      count += 2 * rank;
    }
  }
};

// One view, read back; returns the word behind it. `out` is zeroed beyond rank.
inline const uint64_t* read_view(const uint64_t* words, bp_tensor_desc* out) noexcept {
  std::memset(out, 0, sizeof(*out));
  const uint64_t head = *words++;
  out->dtype = static_cast<uint16_t>(head);
  out->rank = static_cast<uint8_t>(head >> 16);
  out->flags = static_cast<uint8_t>(head >> 24);
  out->alignment_log2 = static_cast<uint8_t>(head >> 32);
  out->alias = static_cast<uint16_t>(head >> 40);
  std::memcpy(out->shape, words, out->rank * sizeof(int64_t));
  std::memcpy(out->strides, words + out->rank, out->rank * sizeof(int64_t));
  return words + 2 * out->rank;
}

}  // namespace bp
