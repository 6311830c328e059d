// SPDX-License-Identifier: Apache-2.0
// Creates and compares the host data of cases.
#include "bench/data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

namespace tool {
namespace {

// Number of random elements before the sequence repeats. The number is prime, so that the rows of a
// matrix differ.
constexpr int64_t kPatternElements = 65'521;

HostBlock random_block(const Operand& operand, uint64_t seed) {
  HostBlock block(operand.bytes());
  Values pattern(operand.dtype, {std::min(element_count(operand.shape), kPatternElements)});
  if (operand.index_limit > 0) {
    fill_random_index(pattern, operand.index_limit, seed);
  } else {
    fill_random(pattern, seed);
  }
  for (size_t at = 0; at < block.bytes(); at += pattern.bytes.size()) {
    std::memcpy(block.data() + at, pattern.bytes.data(), std::min(pattern.bytes.size(), block.bytes() - at));
  }
  return block;
}

template <class Element, class Read>
double difference_of(const HostBlock& a, const HostBlock& b, Read&& read) {
  double most = 0, size = 0;
  const size_t count = a.bytes() / sizeof(Element);
  for (size_t i = 0; i < count; ++i) {
    Element bits_a, bits_b;
    std::memcpy(&bits_a, a.data() + i * sizeof(Element), sizeof(Element));
    std::memcpy(&bits_b, b.data() + i * sizeof(Element), sizeof(Element));
    const double x = read(bits_a), y = read(bits_b);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
    if (std::isfinite(y)) size = std::max(size, std::abs(y));
    if (x != y) most = std::max(most, std::abs(x - y));  // equal infinities do not differ
  }
  return size > 0 ? most / size : most;
}

}  // namespace

HostBlock::HostBlock(size_t bytes)
    : data_(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 64) / 64 * 64))), bytes_(bytes) {
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_, 0, bytes);
}
HostBlock::~HostBlock() { std::free(data_); }
HostBlock::HostBlock(HostBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

CaseData make_data(const OpCase& op) {
  CaseData data;
  for (size_t i = 0; i < op.inputs.size(); ++i) data.inputs.push_back(random_block(op.inputs[i], i + 1));
  data.outputs = make_outputs(op);
  return data;
}

std::vector<HostBlock> make_outputs(const OpCase& op) {
  std::vector<HostBlock> outputs;
  for (const Operand& operand : op.outputs) outputs.emplace_back(operand.bytes());
  return outputs;
}

std::optional<double> difference(uint32_t dtype, const HostBlock& a, const HostBlock& b) {
  switch (dtype) {
    case BP_F32:
      return difference_of<float>(a, b, [](float value) { return static_cast<double>(value); });
    case BP_F64:
      return difference_of<double>(a, b, [](double value) { return value; });
    case BP_BF16:
      return difference_of<uint16_t>(a, b, [](uint16_t bits) {
        const uint32_t wide = uint32_t{bits} << 16;
        float value;
        std::memcpy(&value, &wide, sizeof(value));
        return static_cast<double>(value);
      });
    case BP_I32:
      return difference_of<int32_t>(a, b, [](int32_t value) { return static_cast<double>(value); });
    default:
      return {};
  }
}

double most_difference(uint32_t dtype) { return dtype == BP_BF16 ? 0.05 : dtype == BP_I32 ? 0 : 0.001; }

}  // namespace tool
