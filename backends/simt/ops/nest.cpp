// SPDX-License-Identifier: Apache-2.0
#include "ops/nest.hpp"

#include <bit>

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

bool Nest::is_aligned(uint32_t k, uint64_t bytes) const {
  const Place& place = operand[k].place;
  const uint64_t start = place.memory == nullptr            ? 0
                         : place.memory->address != nullptr ? std::bit_cast<uintptr_t>(place.memory->address)
                                                            : place.memory->offset;
  return (start + place.offset) % bytes == 0;
}

uint32_t Nest::widest() const {
  uint32_t out = 1;
  for (uint32_t k = 0; k < operands; ++k) out = std::max(out, operand[k].is_immediate ? 1 : operand[k].bytes);
  return out;
}

uint32_t whole_group(const Limits& limits) { return std::min(std::max(limits.width, 256u), limits.max_group_size); }

uint32_t stream_group(const Limits& limits) { return limits.is_cpu ? limits.width : whole_group(limits); }

uint32_t elements_per_group(const Limits& limits, uint32_t group, uint64_t count, uint64_t least) {
  if (!limits.is_cpu) return group;
  const uint64_t share = std::clamp<uint64_t>(count / (limits.compute_units * uint64_t{4}), least, 16384);
  return static_cast<uint32_t>((share + group - 1) / group * group);
}

uint32_t row_chunk(const Limits& limits, uint64_t count) {
  const uint32_t group = stream_group(limits);
  if (limits.is_cpu) return elements_per_group(limits, group, count);
  // On a GPU, a chunk has 4 to 16 elements per lane, and more than 4 only if all compute units have work nevertheless.
  // A lane loads up to 16 elements at once.
  const uint64_t steps = std::clamp<uint64_t>(count / (uint64_t{32} * group * limits.compute_units), 1, 4);
  return static_cast<uint32_t>(4 * group * steps);
}

uint32_t row_groups(const Limits& limits, const RowParams& params) {
  return groups_for(params.chunks, limits.is_cpu ? std::max(1024 / params.columns, 1u) : 1);
}

RowGroups divide_rows(const Limits& limits, uint32_t bytes, RowParams& params) {
  const auto whole = [&](uint32_t threads) { return (threads + limits.width - 1) / limits.width * limits.width; };
  const uint32_t most = whole_group(limits), pack = SIMT_PACK_BYTES / bytes, packs = (params.columns + pack - 1) / pack;
  if (limits.has_teams && packs <= most / 2) {
    params.team = std::bit_ceil(packs);
    return {groups_for(params.chunks, most / params.team), most};
  }
  params.team = limits.is_cpu ? limits.width : std::min(whole((params.columns + 3) / 4), most);
  return {row_groups(limits, params), params.team};
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
    const RowGroups groups = divide_rows(limits, slice.widest(), params);
    return launch(launcher, kernel, groups.groups, groups.group_size, {places.data(), slice.operands}, params);
  });
}

bool has_transposes(const Limits& limits) { return !limits.is_cpu && whole_group(limits) == SIMT_BLOCK_THREADS; }

bool transpose(Nest& nest, int64_t least) {
  const auto line_of = [&](uint32_t k) {
    uint32_t axis = 0;
    while (axis < nest.rank && (nest.operand[k].strides[axis] != 1 || nest.shape[axis] < least)) ++axis;
    return axis;
  };
  const uint32_t along = line_of(0);
  uint32_t across = along;
  for (uint32_t k = 1; k < nest.operands; ++k) {
    const uint32_t line = line_of(k);
    if (nest.operand[k].is_immediate || line == nest.rank) return false;
    if (line == along) continue;
    if (across != along && across != line) return false;
    across = line;
  }
  if (along == nest.rank || across == along) return false;
  const auto to_end = [&](int64_t* of) {
    const int64_t last[2] = {of[across], of[along]};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < nest.rank; ++i) {
      if (i != across && i != along) of[kept++] = of[i];
    }
    std::copy_n(last, 2, of + kept);
  };
  to_end(nest.shape);
  for (uint32_t k = 0; k < nest.operands; ++k) to_end(nest.operand[k].strides);
  return true;
}

std::optional<kit::Status> launch_blocks(Launcher& launcher, uint32_t kernel, const Nest& nest, uint32_t option) {
  const uint32_t bytes = nest.operand[0].bytes, last = nest.rank - 1;
  const int64_t line = bytes == 1 ? 8 : SIMT_PACK_BYTES / bytes;
  for (uint32_t k = 0; k < nest.operands; ++k) {
    const int64_t* strides = nest.operand[k].strides;
    // A line is contiguous along one of the last two dimensions. If both have stride 1, as in overlapping windows, a
    // line begins at every element, so most lines are not aligned.
    const uint32_t along = strides[last] == 1 ? last : last - 1;
    const auto begins = [&](uint32_t d) { return strides[d] % line == 0 || (d == along && strides[d] == 1); };
    for (uint32_t d = 0; d < nest.rank; ++d) {
      if (!begins(d)) return std::nullopt;
    }
    if (!nest.is_aligned(k, static_cast<uint64_t>(line) * bytes)) return std::nullopt;
  }
  const int64_t matrix = nest.shape[last] * nest.shape[last - 1];
  if (nest.shape[last] % line != 0 || nest.shape[last - 1] % line != 0 || matrix > Nest::kMaxCount) return std::nullopt;
  return nest.for_slices([&](const Nest& slice, int64_t) {
    NestParams params = slice.nest_params();
    params.option = option;
    const int64_t columns = slice.shape[last] / line, rows = slice.shape[last - 1] / line;
    const auto threads = static_cast<int64_t>(whole_group(launcher.limits()));
    int64_t across = 16;
    while (across > 1 && across / 2 >= columns) across /= 2;
    while (across < threads && across < columns && threads / across / 2 >= rows) across *= 2;
    const int64_t down = threads / across;
    params.extra[0] = across;
    params.count =
        static_cast<uint32_t>(slice.count() / matrix * ((columns + across - 1) / across) * ((rows + down - 1) / down));
    const auto places = slice.places();
    return launch(launcher, kernel, groups_for(params.count, 1), static_cast<uint32_t>(threads),
                  {places.data(), slice.operands}, params);
  });
}

}  // namespace backplane::simt
