// SPDX-License-Identifier: Apache-2.0
#include "ops/loop_nest.hpp"

#include <cstring>

namespace backplane::vulkan {

int64_t element_bytes(const View& view) { return static_cast<int64_t>(kit::dtype_bytes(view.dtype)); }

LoopNest LoopNest::of(std::initializer_list<const View*> views) {
  LoopNest out;
  const View& first = **views.begin();
  out.rank = first.rank;
  std::copy_n(first.shape, first.rank, out.shape);
  for (const View* view : views) {
    LoopOperand& operand = out.operand[out.operands++];
    operand.view = view;
    operand.address = address_of(*view);
    for (uint32_t i = 0; i < view->rank; ++i) operand.strides[i] = view->strides[i] * element_bytes(*view);
  }
  return out;
}

void LoopNest::add_counter(uint32_t axis) { operand[operands++].strides[axis] = 1; }

int64_t LoopNest::count() const {
  int64_t out = 1;
  for (uint32_t i = 0; i < rank; ++i) out *= shape[i];
  return out;
}

void LoopNest::drop(uint32_t axis) {
  --rank;
  std::copy(shape + axis + 1, shape + rank + 1, shape + axis);
  for (uint32_t k = 0; k < operands; ++k) {
    int64_t* strides = operand[k].strides;
    std::copy(strides + axis + 1, strides + rank + 1, strides + axis);
  }
}

bool LoopNest::is_vec4(uint32_t k) const {
  const LoopOperand& from = operand[k];
  if (from.view->is_immediate) return true;
  const int64_t bytes = element_bytes(*from.view), row = rank == 2 ? from.strides[0] : 0;
  const auto alignment = static_cast<uint64_t>(std::min<int64_t>(4 * bytes, 16));
  return from.strides[rank - 1] == bytes && (from.address | static_cast<uint64_t>(row)) % alignment == 0;
}

bool LoopNest::transpose(int64_t extent) {
  const auto line_of = [&](uint32_t k) {
    const int64_t bytes = element_bytes(*operand[k].view);
    uint32_t axis = 0;
    while (axis < rank && (operand[k].strides[axis] != bytes || shape[axis] < extent)) ++axis;
    return axis;
  };
  if (operands != 2 || operand[1].view->is_immediate) return false;
  const uint32_t lines[2] = {line_of(1), line_of(0)};
  if (lines[0] == lines[1] || std::max(lines[0], lines[1]) == rank) return false;
  const auto to_end = [&](int64_t* of) {
    const int64_t last[2] = {of[lines[0]], of[lines[1]]};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rank; ++i)
      if (i != lines[0] && i != lines[1]) of[kept++] = of[i];
    std::copy_n(last, 2, of + kept);
  };
  to_end(shape);
  for (uint32_t k = 0; k < operands; ++k) to_end(operand[k].strides);
  return true;
}

void LoopNest::merge() {
  for (uint32_t i = rank; i-- > 0;) {
    if (shape[i] == 1) drop(i);
  }
  for (uint32_t i = rank; i-- > 1;) {
    bool mergeable = true;
    for (uint32_t k = 0; mergeable && k < operands; ++k)
      mergeable = operand[k].strides[i - 1] == operand[k].strides[i] * shape[i];
    if (!mergeable) continue;
    shape[i] *= shape[i - 1];
    for (uint32_t k = 0; k < operands; ++k) operand[k].strides[i - 1] = operand[k].strides[i];
    shape[i - 1] = shape[i];
    drop(i);
  }
}

void LoopNest::fill(Params& params, uint64_t params_address) const {
  params.count = static_cast<uint32_t>(count());
  params.rank = rank;
  for (uint32_t i = 0; i < rank; ++i) params.shape[i] = static_cast<uint32_t>(shape[i]);
  for (uint32_t k = 0; k < operands; ++k) {
    const LoopOperand& from = operand[k];
    ParamsOperand& to = params.operands[k];
    to.address = from.address;
    // Kernels for dense operands read the first stride even if the rank is 0.
    std::copy_n(from.strides, std::max(rank, 1u), to.strides);
    if (from.view != nullptr && from.view->is_immediate) {
      const auto bytes = static_cast<std::size_t>(element_bytes(*from.view));
      for (std::size_t i = 0; i < 4; ++i)
        std::memcpy(params.operand_values[k] + i * bytes, &from.view->immediate, bytes);
      to.address = params_address + offsetof(Params, operand_values) + k * sizeof(params.operand_values[0]);
      std::fill_n(to.strides, std::max(rank, 1u), 0);
    }
  }
}

void add_access(Accesses& out, const View& view, bool write) {
  if (view.place.memory == nullptr) return;
  const int64_t size = element_bytes(view);
  int64_t low = 0, high = size;
  for (uint32_t i = 0; i < view.rank; ++i) {
    if (view.shape[i] == 0) return;
    const int64_t reach = (view.shape[i] - 1) * view.strides[i] * size;
    (reach < 0 ? low : high) += reach;
  }
  const auto address = address_of(view);
  out.add({address + static_cast<uint64_t>(low), address + static_cast<uint64_t>(high), write});
}

void fill_scalars(Params& params, uint64_t params_address, const Call& call) {
  for (uint32_t i = 0; i < call.scalars.size(); ++i) {
    const auto& scalar = call.scalars[i];
    params.scalar_values[i] = scalar.bits;
    params.scalar_at[i] = scalar.on_device ? address_of(scalar.place)
                                           : params_address + offsetof(Params, scalar_values) + i * sizeof(uint64_t);
  }
}

Accesses accesses_of(const Call& call) {
  Accesses out;
  for (const View& view : call.inputs) add_access(out, view, false);
  for (const View& view : call.outputs) add_access(out, view, true);
  for (const auto& scalar : call.scalars) {
    if (!scalar.on_device) continue;
    const uint64_t address = address_of(scalar.place);
    out.add({address, address + sizeof(uint64_t), false});
  }
  return out;
}

}  // namespace backplane::vulkan
