// SPDX-License-Identifier: Apache-2.0
// The key of a plan lookup: a concrete operator as one block of bytes, which is hashed, compared
// and copied as a whole. The plugin's descriptor points into the block, so no field is encoded or
// decoded. The block consists of:
//
//   1. a DescriptorHead
//   2. the attributes, whose size is in the operator table
//   3. one bp_tensor_desc per input, then one per output
//
// Extents and strides at index `rank` and above are zero. The strides of an immediate are zero too.
#pragma once

#include <backplane/ops.h>

#include <cstdint>
#include <cstring>

#include "dispatch/validate.hpp"

namespace backplane::core {

inline constexpr int64_t kNoStrides[BP_MAX_RANK] = {};  // the strides of an immediate

// A descriptor without its attributes and views.
struct DescriptorHead {
  uint32_t op = 0;
  uint8_t inputs = 0, outputs = 0, scalars = 0;  // counts of the canonical form, without absent operands at the end
  uint8_t no_native = 0;                         // 1 if a composite must be decomposed
  uint32_t flags = 0;                            // BP_OP_FLAG_* flags
  uint32_t hints = 0;                            // bp_op_desc.hints
  // Mask of the inputs that an output overlays. Core copies these inputs before the execution.
  uint32_t overlaid = 0;
  uint32_t reserved = 0;

  uint32_t operands() const noexcept { return uint32_t{inputs} + outputs; }
};
static_assert(sizeof(DescriptorHead) == 24, "it is compared as bytes");

// The offset of the views in a descriptor's block, and the size of the block, in bytes.
struct DescriptorLayout {
  size_t views, bytes;
  DescriptorLayout(const OpRow& row, const DescriptorHead& head) noexcept
      : views(sizeof(DescriptorHead) + row.attributes->bytes),
        bytes(views + head.operands() * sizeof(bp_tensor_desc)) {}
};

// A descriptor for a lookup in the plan cache. Only the used part of the block is initialized.
class Descriptor {
 public:
  // The caller fills in the attributes and the views. The views of the inputs precede the views of
  // the outputs.
  Descriptor(const OpRow& operator_row, const DescriptorHead& with) noexcept
      : row(operator_row), layout_(operator_row, with) {
    std::memcpy(block_, &with, sizeof(with));
  }
  // Copies the block of another descriptor.
  Descriptor(const OpRow& operator_row, const void* block) noexcept
      : Descriptor(operator_row, *static_cast<const DescriptorHead*>(block)) {
    std::memcpy(block_, block, bytes());
  }

  const OpRow& row;

  DescriptorHead& head() noexcept { return *reinterpret_cast<DescriptorHead*>(block_); }
  const DescriptorHead& head() const noexcept { return *reinterpret_cast<const DescriptorHead*>(block_); }
  unsigned char* attributes() noexcept { return block_ + sizeof(DescriptorHead); }
  bp_tensor_desc* views() noexcept { return reinterpret_cast<bp_tensor_desc*>(block_ + layout_.views); }
  const bp_tensor_desc* views() const noexcept {
    return reinterpret_cast<const bp_tensor_desc*>(block_ + layout_.views);
  }
  const void* data() const noexcept { return block_; }
  size_t bytes() const noexcept { return layout_.bytes; }

 private:
  DescriptorLayout layout_;
  alignas(8) unsigned char block_[sizeof(DescriptorHead) + kMaxAttributeBytes +
                                  2 * BP_MAX_OPERANDS * sizeof(bp_tensor_desc)];
};

inline constexpr uint32_t kStreamCacheSetBits = 6;

// Returns the index of the set, in a stream's set-associative plan cache, for an operator, its first output and its
// first operand. The hash is cheap to compute. Collisions are harmless, because entries are compared as a whole. If a
// rank exceeds BP_MAX_RANK, the function still reads within the arrays.
inline uint32_t stream_cache_set(uint32_t op, uint32_t out_rank, const int64_t* out_shape, uint32_t first_rank,
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
  return static_cast<uint32_t>(mix * 0xBF58476D1CE4E5B9u >> (64 - kStreamCacheSetBits));
}

inline uint32_t stream_cache_set(const Descriptor& key) noexcept {
  const bp_tensor_desc* views = key.views();
  const bp_tensor_desc& out = views[key.head().inputs];
  return stream_cache_set(key.row.id, out.rank, out.shape, views[0].rank, views[0].shape, views[0].strides);
}

}  // namespace backplane::core
