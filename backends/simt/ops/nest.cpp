// SPDX-License-Identifier: Apache-2.0
#include "ops/nest.hpp"

namespace backplane::simt {

Nest Nest::over(const View& view) {
  Nest out;
  out.rank = view.rank;
  std::copy_n(view.shape, view.rank, out.shape);
  return out;
}

Nest::Operand& Nest::add(const View& view) {
  Operand& out = operand[operands++];
  out.bytes = kit::dtype_bytes(view.dtype);
  out.is_immediate = view.is_immediate;
  if (view.is_immediate) {
    out.immediate = view.immediate;
  } else {
    out.place = view.place;
    std::copy_n(view.strides, view.rank, out.strides);
  }
  return out;
}

Nest::Operand& Nest::add(const Scalar& scalar, uint32_t dtype) {
  Operand& out = operand[operands++];
  out.bytes = kit::dtype_bytes(dtype);
  out.is_immediate = !scalar.on_device;
  if (scalar.on_device) {
    out.place = scalar.place;
  } else {
    out.immediate = scalar.bits;
  }
  return out;
}

Nest::Operand& Nest::add_absent() { return operand[operands++]; }

int64_t Nest::count() const {
  int64_t out = 1;
  for (uint32_t i = 0; i < rank; ++i) out *= shape[i];
  return out;
}

void Nest::drop(uint32_t axis) {
  --rank;
  std::copy(shape + axis + 1, shape + rank + 1, shape + axis);
  for (uint32_t k = 0; k < operands; ++k) {
    int64_t* strides = operand[k].strides;
    std::copy(strides + axis + 1, strides + rank + 1, strides + axis);
    strides[rank] = 0;
  }
}

void Nest::merge() {
  for (uint32_t i = rank; i-- > 0;) {
    if (shape[i] == 1) drop(i);
  }
  for (uint32_t i = rank; i-- > 1;) {
    bool mergeable = true;
    for (uint32_t k = 0; k < operands; ++k) {
      mergeable &= operand[k].strides[i - 1] == operand[k].strides[i] * shape[i];
    }
    if (!mergeable) continue;
    shape[i - 1] *= shape[i];
    for (uint32_t k = 0; k < operands; ++k) operand[k].strides[i - 1] = operand[k].strides[i];
    drop(i);
  }
}

NestParams Nest::nest_params() const {
  NestParams out{};
  out.rank = std::max(rank, 1u);
  out.shape[0] = 1;
  out.count = static_cast<uint32_t>(count());
  for (uint32_t d = 0; d < rank; ++d) out.shape[d] = static_cast<uint32_t>(shape[d]);
  for (uint32_t k = 0; k < operands; ++k) {
    std::copy_n(operand[k].strides, rank, out.strides[k]);
    out.immediates[k] = operand[k].immediate;
    if (operand[k].is_immediate) out.immediate |= 1u << k;
  }
  return out;
}

bool Nest::has_rows(uint32_t least) const {
  if (rank == 0 || shape[rank - 1] < least || operand[0].strides[rank - 1] != 1) return false;
  uint32_t broadcast = 0;
  for (uint32_t k = 1; k < operands; ++k) {
    const int64_t stride = operand[k].strides[rank - 1];
    if (stride != 0 && stride != 1) return false;
    broadcast += stride == 0 ? 1 : 0;
  }
  return broadcast <= 1;
}

RowParams Nest::row_params(uint32_t chunk) const {
  RowParams out{};
  out.rank = rank - 1;
  uint32_t rows = 1;
  for (uint32_t d = 0; d < out.rank; ++d) {
    out.shape[d] = static_cast<uint32_t>(shape[d]);
    rows *= out.shape[d];
  }
  out.columns = static_cast<uint32_t>(shape[out.rank]);
  out.chunk = chunk;
  out.row_chunks = (out.columns + chunk - 1) / chunk;
  out.chunks = out.row_chunks * rows;
  for (uint32_t k = 0; k < operands; ++k) {
    std::copy_n(operand[k].strides, out.rank, out.strides[k]);
    out.immediates[k] = operand[k].immediate;
    if (operand[k].is_immediate) out.immediate |= 1u << k;
    if (operand[k].strides[out.rank] == 0) out.broadcast |= 1u << k;
  }
  return out;
}

std::array<Place, SIMT_OPERANDS> Nest::places() const {
  std::array<Place, SIMT_OPERANDS> out;
  for (uint32_t k = 0; k < operands; ++k) out[k] = operand[k].place;
  return out;
}

uint32_t whole_group(const Limits& limits) { return std::min(std::max(limits.width, 256u), limits.max_group_size); }

uint32_t stream_group(const Limits& limits) { return limits.is_cpu ? limits.width : whole_group(limits); }

uint32_t elements_per_group(const Limits& limits, uint32_t group, uint64_t count, uint64_t least) {
  if (!limits.is_cpu) return group;
  const uint64_t share = std::clamp<uint64_t>(count / (limits.compute_units * uint64_t{4}), least, 16384);
  return static_cast<uint32_t>((share + group - 1) / group * group);
}

uint32_t row_group(const Limits& limits, uint32_t columns) {
  if (limits.is_cpu) return limits.width;
  const uint32_t loads = (columns + 3) / 4;
  return std::min((loads + limits.width - 1) / limits.width * limits.width, whole_group(limits));
}

uint32_t row_chunk(const Limits& limits, uint64_t count) {
  const uint32_t group = stream_group(limits);
  if (limits.is_cpu) return elements_per_group(limits, group, count);
  // Lanes of a GPU load up to 16 elements at once, and a group makes several steps if all compute units have work.
  const uint64_t steps = std::clamp<uint64_t>(count / (uint64_t{32} * group * limits.compute_units), 1, 4);
  return static_cast<uint32_t>(4 * group * steps);
}

uint32_t row_groups(const Limits& limits, const RowParams& params) {
  return groups_for(params.chunks, limits.is_cpu ? std::max(1024 / params.columns, 1u) : 1);
}

kit::Status launch_map(Launcher& launcher, uint32_t any, uint32_t rows, Nest nest, uint32_t option) {
  nest.merge();
  if (!nest.has_rows(launcher.limits().width)) {
    return launch_nest(launcher, any, nest, [&](NestParams& params, int64_t) { params.option = option; });
  }
  return launch_rows(launcher, rows, nest, option);
}

kit::Status launch_rows(Launcher& launcher, uint32_t kernel, const Nest& nest, uint32_t option) {
  const Limits& limits = launcher.limits();
  return nest.for_slices([&](const Nest& slice, int64_t) {
    RowParams params = slice.row_params(row_chunk(limits, static_cast<uint64_t>(slice.count())));
    params.option = option;
    const auto places = slice.places();
    return launch(launcher, kernel, row_groups(limits, params), row_group(limits, params.columns),
                  {places.data(), slice.operands}, params);
  });
}

}  // namespace backplane::simt
