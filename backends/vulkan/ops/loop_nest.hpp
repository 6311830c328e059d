// SPDX-License-Identifier: Apache-2.0
// The loops of a kernel, as dimensions with one stride per operand. Dimensions are merged if the strides of all
// operands allow this. The results of some kernels depend on the order of elements. LoopNest therefore reorders
// dimensions only in transpose(), in contrast to kit::LoopNest.
#pragma once

#include <initializer_list>

#include "runtime/operator.hpp"
#include "shaders/sizes.h"

namespace backplane::vulkan {

inline constexpr uint32_t kGroup = BACKPLANE_GROUP;  // default number of threads per workgroup
// Maximum number of workgroups per dispatch. If there is more work, each workgroup loops. Every
// Vulkan device supports at least 65,535 workgroups.
inline constexpr uint32_t kMaxGroups = 32768;

constexpr uint32_t groups_for(uint64_t items, uint32_t per_group = kGroup) {
  const uint64_t groups = (items + per_group - 1) / per_group;
  return groups > kMaxGroups ? kMaxGroups : static_cast<uint32_t>(groups);
}

int64_t element_bytes(const View& view);
// Returns the alignment in bytes that loads of four elements need.
uint64_t vec4_alignment(const View& view);

// The common base of LoopNest and ReductionNest. The first `outer_rank` dimensions do not
// merge with the other dimensions.
template <uint32_t MaxRank, uint32_t MaxOperands>
struct Loops {
  struct Operand {
    const View* view = nullptr;  // null for counters, scratch memory and absent operands
    uint64_t address = 0;
    int64_t strides[MaxRank] = {};  // strides in bytes

    bool is_immediate() const { return view != nullptr && view->is_immediate; }
  };

  uint32_t rank = 0, outer_rank = 0;
  int64_t shape[MaxRank] = {};
  uint32_t operands = 0;
  Operand operand[MaxOperands];

  // Adds an operand that broadcasts along every dimension until its strides are set. The operand is
  // absent if `view` is null or has no dtype.
  Operand& add_broadcast(const View* view) {
    Operand& out = operand[operands++];
    if (view == nullptr || view->dtype == 0) return out;
    out.view = view;
    out.address = address_of(*view);
    return out;
  }

  // Removes dimension `axis` from the loops. Operators call drop() for a dimension over which the kernel itself loops.
  void drop(uint32_t axis) {
    if (axis < outer_rank) --outer_rank;
    --rank;
    std::copy(shape + axis + 1, shape + rank + 1, shape + axis);
    for (uint32_t k = 0; k < operands; ++k) {
      int64_t* strides = operand[k].strides;
      std::copy(strides + axis + 1, strides + rank + 1, strides + axis);
      strides[rank] = 0;
    }
  }

  // Merges two adjacent dimensions if a single stride per operand suffices for both, and drops dimensions of extent 1.
  // Keeps the order of elements.
  void merge() {
    for (uint32_t i = rank; i-- > 0;) {
      if (shape[i] == 1) drop(i);
    }
    for (uint32_t i = rank; i-- > 1;) {
      if (!can_merge(i)) continue;
      shape[i] *= shape[i - 1];
      for (uint32_t k = 0; k < operands; ++k) operand[k].strides[i - 1] = operand[k].strides[i];
      shape[i - 1] = shape[i];
      drop(i);
    }
  }

 protected:
  // Returns the number of elements in the dimensions `from` to `to` - 1.
  int64_t product(uint32_t from, uint32_t to) const {
    int64_t out = 1;
    for (uint32_t i = from; i < to; ++i) out *= shape[i];
    return out;
  }

  // Calls `body(slice, index)` for slices of `nest` with at most `max_count` indices in the
  // dimensions from `from` to `to` - 1. Slices are consecutive in logical order, because the first
  // dimension whose extent is not 1 is sliced. `index` is `first` plus the logical index at which
  // a slice begins.
  template <class Nest, class Body>
  static kit::Status divide(const Nest& nest, uint32_t from, uint32_t to, int64_t max_count, int64_t first,
                            const Body& body) {
    const int64_t total = nest.product(from, to);
    if (total <= max_count) return body(nest, first);
    uint32_t axis = from;
    while (nest.shape[axis] == 1) ++axis;
    const int64_t inner = total / nest.shape[axis], step = std::max<int64_t>(max_count / inner, 1);
    for (int64_t i = 0; i < nest.shape[axis]; i += step) {
      Nest slice = nest;
      slice.shape[axis] = std::min(step, nest.shape[axis] - i);
      for (uint32_t k = 0; k < nest.operands; ++k)
        slice.operand[k].address += static_cast<uint64_t>(i * nest.operand[k].strides[axis]);
      kit::Status status = divide(slice, from, to, max_count, first + i * inner, body);
      if (!status.ok()) return status;
    }
    return {};
  }

  // Writes the address and the first `count` strides of an operand to `to`. Kernels read the value
  // of an immediate at `immediate_address`.
  template <class Out>
  static void fill_operand(const Operand& from, Out& to, uint32_t count, uint64_t immediate_address) {
    if (from.is_immediate()) {
      to.address = immediate_address;
      std::fill_n(to.strides, count, 0);
    } else {
      to.address = from.address;
      std::copy_n(from.strides, count, to.strides);
    }
  }

 private:
  bool can_merge(uint32_t axis) const {
    if (axis == outer_rank) return false;
    for (uint32_t k = 0; k < operands; ++k) {
      if (operand[k].strides[axis - 1] != operand[k].strides[axis] * shape[axis]) return false;
    }
    return true;
  }
};

// Loops over the elements of views, without outer dimensions.
struct LoopNest : Loops<BP_MAX_RANK, Params::kOperands> {
  // Returns loops over the shape of `view`, without operands.
  static LoopNest over(const View& view);
  // Returns loops over the shape of the first view, with all views as operands.
  static LoopNest of(std::initializer_list<const View*> views);
  // Adds an operand whose dimension i is dimension i of the loops. The operand broadcasts along all further dimensions.
  Operand& add(const View& view);
  // Adds an operand that counts 0, 1, 2, ... along `axis` and is constant along the other axes. The "address" that a
  // kernel computes for this operand is the count.
  void add_counter(uint32_t axis);

  int64_t count() const { return product(0, rank); }
  // Returns whether kernels can load four elements of operand `k` at once, from every index of a
  // row that is a multiple of four. Returns true for immediates. The rank must be 1 or 2.
  bool is_vec4(uint32_t k) const;
  // Returns true if operand 0 is contiguous along one dimension and operand 1 along another, and
  // both dimensions have at least `extent` elements. If so, makes these dimensions the last two,
  // which changes the order of elements.
  bool transpose(int64_t extent);
  // Maximum number of elements per slice. Kernels add grid strides to 32-bit indices, which must
  // not overflow.
  static constexpr int64_t kMaxCount = int64_t{1} << 30;
  // Calls `body(slice, first)` for slices of at most `max_count` elements. `first` is the logical
  // index of the first element of a slice.
  template <class Body>
  kit::Status for_slices(const Body& body, int64_t max_count = kMaxCount) const {
    return count() == 0 ? kit::Status{} : divide(*this, 0, rank, std::min(max_count, kMaxCount), 0, body);
  }

  // Writes the count, shape, operands and immediates to `params`. `params_address` is the device
  // address of `params`.
  void fill(Params& params, uint64_t params_address) const;
};

// Adds the range of bytes that the elements of `view` span. Adds nothing for immediates and empty
// views.
void add_access(Accesses& out, const View& view, bool write);

// Writes the address of each scalar of a call. A scalar that is not in device memory is copied to
// `params`, whose device address is `params_address`.
void fill_scalars(Params& params, uint64_t params_address, const Call& call);

// Returns the ranges of device memory that `call` accesses: its inputs, its outputs, and its scalars in device memory.
Accesses accesses_of(const Call& call);

}  // namespace backplane::vulkan
