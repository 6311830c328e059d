// SPDX-License-Identifier: Apache-2.0
// The loops of a kernel: dimensions with a stride for each operand, merged where all operands allow it.
#pragma once

#include <initializer_list>

#include "runtime/operator.hpp"
#include "shaders/sizes.h"

namespace backplane::vulkan {

inline constexpr uint32_t kGroup = BACKPLANE_GROUP;  // threads of a workgroup, in every shader
// Groups of a dispatch; kernels stride over what lies beyond. Below Vulkan's least limit of 65,535.
inline constexpr uint32_t kMaxGroups = 32768;

constexpr uint32_t groups_for(uint64_t items, uint32_t per_group = kGroup) {
  const uint64_t groups = (items + per_group - 1) / per_group;
  return groups > kMaxGroups ? kMaxGroups : static_cast<uint32_t>(groups);
}

struct LoopOperand {
  const View* view = nullptr;  // null: a counter, whose "address" is what its strides add up to
  uint64_t address = 0;
  int64_t strides[BP_MAX_RANK] = {};  // bytes
};

struct LoopNest {
  uint32_t rank = 0;
  int64_t shape[BP_MAX_RANK] = {};
  uint32_t operands = 0;
  LoopOperand operand[Params::kOperands];

  // Over the shape of the first view.
  static LoopNest of(std::initializer_list<const View*> views);
  // An operand that counts along `axis`: 0, 1, 2, ... and is the same along the others.
  void add_counter(uint32_t axis);

  int64_t count() const;
  // Takes dimension `axis` out; what it was is the kernel's own affair.
  void drop(uint32_t axis);
  // Whether four elements of operand `k` lie at once wherever a row of them begins, of one or two dimensions; an immediate does.
  bool is_vec4(uint32_t k) const;
  // Whether the lines of operand 0 lie along one dimension and those of operand 1 along another, both of at least `extent`: these
  // are then the last and the last but one, and the order of elements is another.
  bool transpose(int64_t extent);
  // Joins dimensions that every operand walks as one, and leaves out those of extent 1. The order of elements stays.
  void merge();
  static constexpr int64_t kMaxCount = int64_t{1} << 30;  // kernels count in 32 bits, with room for their stride
  // Calls `body(part, first)` for parts of at most `most` elements; `first` is the logical index of the part's element 0.
  template <class Body>
  kit::Status for_slices(const Body& body, int64_t max_count = kMaxCount) const {
    return count() == 0 ? kit::Status{} : divide(body, 0, std::min(max_count, kMaxCount));
  }

  // Writes shape, operands and immediates.
  void fill(Params& params, uint64_t params_address) const;

 private:
  // Parts along the first dimension that counts: its slices lie one behind the other in logical order.
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

// Every byte that a view reaches; nothing for immediates and views without elements.
void add_access(Accesses& out, const View& view, bool write);

// Writes the addresses of the scalars of a call: of device memory, or of their values in the parameters.
void fill_scalars(Params& params, uint64_t params_address, const Call& call);

// What a call reads and writes: all inputs, outputs, and scalars on the device.
Accesses accesses_of(const Call& call);

}  // namespace backplane::vulkan
