// SPDX-License-Identifier: Apache-2.0
// The loops of a kernel: dimensions with a stride for each operand. Dimensions are merged if all
// operands allow it.
#pragma once

#include <initializer_list>

#include "runtime/operator.hpp"
#include "shaders/sizes.h"

namespace backplane::vulkan {

inline constexpr uint32_t kGroup = BACKPLANE_GROUP;  // threads per workgroup, unless a shader has its own number
// Maximum number of workgroups of a dispatch; kernels stride over the rest. Vulkan guarantees
// 65,535.
inline constexpr uint32_t kMaxGroups = 32768;

constexpr uint32_t groups_for(uint64_t items, uint32_t per_group = kGroup) {
  const uint64_t groups = (items + per_group - 1) / per_group;
  return groups > kMaxGroups ? kMaxGroups : static_cast<uint32_t>(groups);
}

struct LoopOperand {
  const View* view = nullptr;  // null for a counter, whose "address" is the sum of its strides
  uint64_t address = 0;
  int64_t strides[BP_MAX_RANK] = {};  // bytes
};

struct LoopNest {
  uint32_t rank = 0;
  int64_t shape[BP_MAX_RANK] = {};
  uint32_t operands = 0;
  LoopOperand operand[Params::kOperands];

  // Loops over the shape of the first view.
  static LoopNest of(std::initializer_list<const View*> views);
  // Adds an operand that counts 0, 1, 2, ... along `axis` and is constant along the other axes.
  void add_counter(uint32_t axis);

  int64_t count() const;
  // Removes dimension `axis`, which the kernel handles itself.
  void drop(uint32_t axis);
  // Whether kernels can load four elements of operand `k` at once, at every multiple of four in a
  // row. The rank is 1 or 2. True for immediates.
  bool is_vec4(uint32_t k) const;
  // Returns true if operand 0 is contiguous along one dimension and operand 1 along another, and
  // both dimensions have at least `extent` elements. Makes these the last two dimensions, which
  // changes the order of elements.
  bool transpose(int64_t extent);
  // Merges dimensions that are contiguous in every operand, and drops those of extent 1. Keeps the
  // order of elements.
  void merge();
  static constexpr int64_t kMaxCount = int64_t{1} << 30;  // leaves room for strides: kernels count in 32 bits
  // Calls `body(slice, first)` for slices of at most `max_count` elements; `first` is the logical
  // index of a slice's element 0.
  template <class Body>
  kit::Status for_slices(const Body& body, int64_t max_count = kMaxCount) const {
    return count() == 0 ? kit::Status{} : divide(body, 0, std::min(max_count, kMaxCount));
  }

  // Writes shape, operands and immediates.
  void fill(Params& params, uint64_t params_address) const;

 private:
  // Slices the first dimension whose extent is not 1, so that slices are consecutive in logical
  // order.
  template <class Body>
  kit::Status divide(const Body& body, int64_t first, int64_t max_count) const {
    const int64_t total = count();
    if (total <= max_count) return body(*this, first);
    uint32_t axis = 0;
    while (shape[axis] == 1) ++axis;
    const int64_t inner = total / shape[axis];
    const int64_t step = inner >= max_count ? 1 : max_count / inner;
    for (int64_t i = 0; i < shape[axis]; i += step) {
      LoopNest slice = *this;
      slice.shape[axis] = std::min(step, shape[axis] - i);
      for (uint32_t k = 0; k < operands; ++k)
        slice.operand[k].address += static_cast<uint64_t>(i * operand[k].strides[axis]);
      if (kit::Status status = slice.divide(body, first + i * inner, max_count); !status.ok()) return status;
    }
    return {};
  }
};

int64_t element_bytes(const View& view);

// Adds the range of bytes that `view` can reach. Adds nothing for immediates and empty views.
void add_access(Accesses& out, const View& view, bool write);

// Writes the address of each scalar of a call: in device memory, or in the parameters, which then
// hold its value.
void fill_scalars(Params& params, uint64_t params_address, const Call& call);

// The accesses of a call to its inputs, its outputs and its scalars in device memory.
Accesses accesses_of(const Call& call);

}  // namespace backplane::vulkan
