// SPDX-License-Identifier: Apache-2.0
#include "ops/loop_nest.hpp"

#include <cstring>

namespace backplane::vulkan {

int64_t element_bytes(const View& view) { return static_cast<int64_t>(kit::dtype_bytes(view.dtype)); }

uint64_t vec4_alignment(const View& view) {
  return static_cast<uint64_t>(std::min<int64_t>(4 * element_bytes(view), 16));
}

LoopNest LoopNest::over(const View& view) {
  LoopNest out;
  out.rank = view.rank;
  std::copy_n(view.shape, view.rank, out.shape);
  return out;
}

LoopNest LoopNest::of(std::initializer_list<const View*> views) {
  LoopNest out = over(**views.begin());
  for (const View* view : views) out.add(*view);
  return out;
}

LoopNest::Operand& LoopNest::add(const View& view) {
  Operand& out = add_broadcast(&view);
  for (uint32_t i = 0; i < view.rank; ++i) out.strides[i] = view.strides[i] * element_bytes(view);
  return out;
}

void LoopNest::add_counter(uint32_t axis) { add_broadcast(nullptr).strides[axis] = 1; }

bool LoopNest::is_vec4(uint32_t k) const {
  const Operand& from = operand[k];
  if (from.is_immediate()) return true;
  const auto row = static_cast<uint64_t>(rank == 2 ? from.strides[0] : 0);
  return from.strides[rank - 1] == element_bytes(*from.view) && (from.address | row) % vec4_alignment(*from.view) == 0;
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

void LoopNest::fill(Params& params, uint64_t params_address) const {
  params.count = static_cast<uint32_t>(count());
  params.rank = rank;
  for (uint32_t i = 0; i < rank; ++i) params.shape[i] = static_cast<uint32_t>(shape[i]);
  for (uint32_t k = 0; k < operands; ++k) {
    const Operand& from = operand[k];
    // Kernels for dense operands read the first stride even if the rank is 0.
    fill_operand(from, params.operands[k], std::max(rank, 1u),
                 params_address + offsetof(Params, operand_values) + k * sizeof(params.operand_values[0]));
    if (!from.is_immediate()) continue;
    const auto bytes = static_cast<std::size_t>(element_bytes(*from.view));
    for (std::size_t i = 0; i < 4; ++i) std::memcpy(params.operand_values[k] + i * bytes, &from.view->immediate, bytes);
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
