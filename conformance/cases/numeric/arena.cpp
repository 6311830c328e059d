// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

// Size in bytes of the guard band before and after each operand. A vector or tile access past the
// end of an operand stays within the band.
constexpr uint64_t kGuardBytes = 256;
constexpr uint64_t kOperandAlignment = 256;

uint64_t round_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

void draw_canaries(Random& random, unsigned char* at, uint64_t bytes) {
  uint64_t state = random() | 1;
  for (uint64_t i = 0; i < bytes; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(at + i, &state, std::min<uint64_t>(8, bytes - i));
  }
}

template <size_t Bytes>
void scatter_elements(const View& view, unsigned char* element_0, const unsigned char* dense) {
  each_offset(view, [&](int64_t offset) {
    std::memcpy(element_0 + offset * static_cast<int64_t>(Bytes), dense, Bytes);
    dense += Bytes;
  });
}

template <size_t Bytes>
void gather_elements(const View& view, const unsigned char* element_0, unsigned char* dense) {
  each_offset(view, [&](int64_t offset) {
    std::memcpy(dense, element_0 + offset * static_cast<int64_t>(Bytes), Bytes);
    dense += Bytes;
  });
}

}  // namespace

uint64_t Arena::reserve(size_t& image, uint64_t bytes, bool nan, uint64_t alignment) {
  if (!shared_ || images_.empty()) images_.emplace_back();
  image = images_.size() - 1;
  std::vector<unsigned char>& memory = images_.back();
  const uint64_t from = memory.size();
  const uint64_t begin = shared_ ? round_up(from + kGuardBytes, alignment) : 0;
  memory.resize(shared_ ? begin + bytes + kGuardBytes : bytes);
  if (nan) {
    std::memset(memory.data() + from, 0xFF, memory.size() - from);
  } else {
    draw_canaries(random_, memory.data() + from, memory.size() - from);
  }
  return begin;
}

size_t Arena::allocate(std::string label, uint32_t dtype, const View& view, bool is_read) {
  Region region{.label = std::move(label), .dtype = dtype, .view = view};
  const auto size = static_cast<int64_t>(oracle::bytes_of(dtype));
  if (view.immediate || (view.empty() && !shared_)) {
    region.none = true;
  } else {
    const int64_t span = view.empty() ? 0 : (view.high - view.low + 1) * size;
    const int64_t shift = shared_ ? view.shift * size : 0;
    region.begin = reserve(region.image, static_cast<uint64_t>(shift + span), is_read && oracle::is_float(dtype),
                           kOperandAlignment) +
                   static_cast<uint64_t>(shift);
    region.end = region.begin + static_cast<uint64_t>(span);
    region.element_0 = region.begin + static_cast<uint64_t>(-view.low * size);
  }
  regions_.push_back(std::move(region));
  return regions_.size() - 1;
}

size_t Arena::allocate_bytes(std::string label, uint64_t bytes) {
  Region region{.label = std::move(label), .scratch = true};
  region.begin = region.element_0 =
      reserve(region.image, bytes, false, std::max<uint64_t>(alignment_, kOperandAlignment));
  region.end = region.begin + bytes;
  regions_.push_back(std::move(region));
  return regions_.size() - 1;
}

size_t Arena::share(std::string label, size_t other) {
  Region region = regions_[other];
  region.label = std::move(label);
  regions_.push_back(std::move(region));
  return regions_.size() - 1;
}

void Arena::put(std::vector<std::vector<unsigned char>>& images, size_t index, const oracle::Tensor& dense) const {
  const Region& region = regions_[index];
  if (region.none || region.view.empty()) return;
  unsigned char* const at = images[region.image].data() + region.element_0;
  if (region.view.is_dense()) {
    std::copy(dense.bytes.begin(), dense.bytes.end(), at);
    return;
  }
  switch (oracle::bytes_of(region.dtype)) {
    case 1:
      return scatter_elements<1>(region.view, at, dense.bytes.data());
    case 2:
      return scatter_elements<2>(region.view, at, dense.bytes.data());
    case 4:
      return scatter_elements<4>(region.view, at, dense.bytes.data());
    default:
      return scatter_elements<8>(region.view, at, dense.bytes.data());
  }
}

oracle::Tensor Arena::get(const std::vector<std::vector<unsigned char>>& images, size_t index) const {
  const Region& region = regions_[index];
  oracle::Tensor dense{region.dtype, region.view.shape, {}};
  const uint32_t size = oracle::bytes_of(region.dtype);
  dense.bytes.resize(static_cast<size_t>(dense.count()) * size);
  if (dense.bytes.empty()) return dense;
  const unsigned char* const at = images[region.image].data() + region.element_0;
  if (region.view.is_dense()) {
    std::memcpy(dense.bytes.data(), at, dense.bytes.size());
    return dense;
  }
  switch (size) {
    case 1:
      gather_elements<1>(region.view, at, dense.bytes.data());
      break;
    case 2:
      gather_elements<2>(region.view, at, dense.bytes.data());
      break;
    case 4:
      gather_elements<4>(region.view, at, dense.bytes.data());
      break;
    default:
      gather_elements<8>(region.view, at, dense.bytes.data());
  }
  return dense;
}

std::string Arena::stray_write(const std::vector<std::vector<unsigned char>>& got,
                               const std::vector<size_t>& written) const {
  std::vector<std::vector<unsigned char>> wanted = images_;
  for (const size_t index : written) {
    if (!regions_[index].none) put(wanted, index, get(got, index));
  }
  for (const Region& region : regions_) {
    if (!region.scratch || region.begin == region.end) continue;
    std::memcpy(wanted[region.image].data() + region.begin, got[region.image].data() + region.begin,
                region.end - region.begin);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == got[i]) continue;
    const auto [expected, found] = std::mismatch(wanted[i].begin(), wanted[i].end(), got[i].begin());
    const auto byte = static_cast<uint64_t>(expected - wanted[i].begin());
    return fmt::format("it wrote 0x{:02x} {}, which is no element of an output and held 0x{:02x}", *found,
                       location_text(i, byte), *expected);
  }
  return {};
}

std::string Arena::location_text(size_t image, uint64_t byte) const {
  const Region* nearest = nullptr;
  uint64_t least = ~uint64_t{0};
  for (const Region& region : regions_) {
    if (region.none || region.image != image) continue;
    const uint64_t distance = byte < region.begin  ? region.begin - byte
                              : byte >= region.end ? byte - region.end + 1
                                                   : 0;
    if (distance >= least) continue;
    least = distance;
    nearest = &region;
  }
  if (nearest == nullptr) return fmt::format("at byte {}", byte);
  if (byte < nearest->begin) return fmt::format("{} bytes before {}", least, nearest->label);
  if (byte >= nearest->end) return fmt::format("{} bytes after the last of {}", least, nearest->label);
  return fmt::format("at byte {} from element 0 of {}", static_cast<int64_t>(byte - nearest->element_0),
                     nearest->label);
}

}  // namespace backplane::conformance::numeric
