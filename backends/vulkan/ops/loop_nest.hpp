// SPDX-License-Identifier: Apache-2.0
// The loops of a kernel, as dimensions with one stride per operand. Dimensions are merged if the
// strides of all operands allow this.
#pragma once

#include <initializer_list>

#include "runtime/operator.hpp"
#include "shaders/sizes.h"

namespace backplane::vulkan {

inline constexpr uint32_t kGroup = BACKPLANE_GROUP;  // default number of threads per workgroup
// Maximum number of workgroups per dispatch. Kernels loop over the remaining work. Vulkan
// guarantees at least 65,535 workgroups.
inline constexpr uint32_t kMaxGroups = 32768;

constexpr uint32_t groups_for(uint64_t items, uint32_t per_group = kGroup) {
  const uint64_t groups = (items + per_group - 1) / per_group;
  return groups > kMaxGroups ? kMaxGroups : static_cast<uint32_t>(groups);
}

struct LoopOperand {
  const View* view = nullptr;  // null for a counter, whose computed address is its value
  uint64_t address = 0;
  int64_t strides[BP_MAX_RANK] = {};  // strides in bytes
};

struct LoopNest {
  uint32_t rank = 0;
  int64_t shape[BP_MAX_RANK] = {};
  uint32_t operands = 0;
  LoopOperand operand[Params::kOperands];

  // Returns loops over the shape of the first view, with all views as operands.
  static LoopNest of(std::initializer_list<const View*> views);
  // Adds an operand that counts 0, 1, 2, ... along `axis` and is constant along the other axes.
  void add_counter(uint32_t axis);

  int64_t count() const;
  // Removes dimension `axis`, because the kernel itself loops over this dimension.
  void drop(uint32_t axis);
  // Returns whether kernels can load four elements of operand `k` at once, at every multiple of
  // four in a row. Returns true for immediates. The rank must be 1 or 2.
  bool is_vec4(uint32_t k) const;
  // Returns true if operand 0 is contiguous along one dimension and operand 1 along another, and
  // both dimensions have at least `extent` elements. If so, makes these dimensions the last two,
  // which changes the order of elements.
  bool transpose(int64_t extent);
  // Merges dimensions that are contiguous in every operand, and drops dimensions of extent 1. Keeps
  // the order of elements.
  void merge();
  // Maximum number of elements per slice. Kernels add grid strides to 32-bit indices, which must
  // not overflow.
  static constexpr int64_t kMaxCount = int64_t{1} << 30;
  // Calls `body(slice, first)` for slices of at most `max_count` elements. `first` is the logical
  // index of the first element of a slice.
  template <class Body>
  kit::Status for_slices(const Body& body, int64_t max_count = kMaxCount) const {
    return count() == 0 ? kit::Status{} : divide(body, 0, std::min(max_count, kMaxCount));
  }

  // Writes the count, shape, operands and immediates to `params`. `params_address` is the device
  // address of `params`.
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

// Adds the range of bytes that the elements of `view` span. Adds nothing for immediates and empty
// views.
void add_access(Accesses& out, const View& view, bool write);

// Writes the address of each scalar of a call. A scalar that is not in device memory is copied to
// `params`, whose device address is `params_address`.
void fill_scalars(Params& params, uint64_t params_address, const Call& call);

// Returns the accesses of a call to inputs, outputs and scalars in device memory.
Accesses accesses_of(const Call& call);

}  // namespace backplane::vulkan
