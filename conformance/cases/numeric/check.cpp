// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/check.hpp"

#include <fmt/format.h>

#include "oracle/axis.hpp"
#include "oracle/comparison.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

// Returns whether a device that declares FTZ_F32 may flush subnormals in this call. An operator that
// moves bits, changes signs or compares must not flush.
bool is_arithmetic(const oracle::Call& call) {
  switch (call.op) {
    case BP_OP_FILL:
    case BP_OP_COPY:
    case BP_OP_CAST:
    case BP_OP_GATHER:
    case BP_OP_NEG:
    case BP_OP_ABS:
    case BP_OP_COMPARE:
    case BP_OP_SELECT:
    case BP_OP_ARGMAX:
    case BP_OP_ARGMIN:
    case BP_OP_SORT:
    case BP_OP_EMBEDDING:
    case BP_OP_TOPK:
      return false;
    case BP_OP_SCATTER:
      return oracle::attributes_of<bp_scatter_attributes>(call).mode != BP_SCATTER_SET;
    default:
      return true;
  }
}

void flush(oracle::Tensor& tensor) {
  if (tensor.dtype != BP_F32 && tensor.dtype != BP_BF16) return;
  for (int64_t k = 0; k < tensor.count(); ++k) {
    const uint64_t bits = oracle::load(tensor, k);
    if (oracle::is_subnormal(tensor.dtype, bits)) oracle::store(tensor, k, bits & oracle::sign_bit(tensor.dtype));
  }
}

// Returns the number of operands that an operator reads: its inputs, and the outputs that it
// accumulates into. The caller provides data only for these operands.
size_t count_read(const oracle::Call& call) {
  const bool adds = !call.outputs.empty() && !call.outputs[0].bytes.empty();
  return call.inputs.size() + (adds ? call.outputs.size() : 0);
}

// Returns `call` with flushed operands. `set` is a bit mask of the operands to flush.
oracle::Call flushed(const oracle::Call& call, size_t set) {
  oracle::Call other = call;
  for (size_t i = 0; i < count_read(call); ++i) {
    if ((set >> i & 1) == 0) continue;
    flush(i < other.inputs.size() ? other.inputs[i] : other.outputs[i - other.inputs.size()]);
  }
  return other;
}

bool element_allowed(const oracle::Expected& expected, const oracle::Tensor& got, int64_t index) {
  const auto at = static_cast<size_t>(index);
  oracle::Expected one;
  one.elements = {expected.elements[at]};
  if (at < expected.choices.size()) one.choices = {expected.choices[at]};
  oracle::Tensor element{got.dtype, {}, std::vector<unsigned char>(oracle::bytes_of(got.dtype))};
  oracle::store(element, 0, oracle::load(got, index));
  return oracle::compare(one, element, true).bad == 0;
}

}  // namespace

void Check::operator()(const std::vector<oracle::Expected>& expected, const std::vector<oracle::Tensor>& got) {
  const bool flushes = context_.device().has(BP_CAP_FTZ_F32) && is_arithmetic(setup_.call);
  const std::string_view name = oracle::operator_of(problem_.op)->name, dtype = oracle::format_of(problem_.dtype).name;
  for (size_t o = 0; o < got.size(); ++o) {
    if (got[o].dtype == 0) continue;  // the output is absent
    oracle::Comparison result = oracle::compare(expected[o], got[o], flushes);
    if (result.bad > 0 && flushes) {
      result.bad = 0;
      for (int64_t i = 0; i < got[o].count(); ++i) {
        if (!within_ftz_tolerance(expected[o], got[o], o, i) && result.bad++ == 0) result.first = i;
      }
    } else if (result.worst_ratio >= 0) {
      context_.note_error(result.worst_ratio);
    }
    if (result.bad == 0) continue;
    context_.fail("{} {}: output {} element {} {}: {}; {} of {} elements are wrong; {}{}", name, dtype, o, result.first,
                  oracle::index_text(got[o].shape, result.first),
                  oracle::difference_text(expected[o], got[o], result.first), result.bad, got[o].count(),
                  execution_.text(), inputs_text(got[o], result.first));
  }
  if (!setup_.check_whole) return;
  const std::string fault = setup_.check_whole(setup_, expected, got);
  context_.require(fault.empty(), "{} {}: {}; {}", name, dtype, fault, execution_.text());
}

// Returns whether the element is correct for the original operands, or for any set of operands that the device may have
// flushed.
bool Check::within_ftz_tolerance(const oracle::Expected& expected, const oracle::Tensor& got, size_t output,
                                 int64_t index) {
  if (element_allowed(expected, got, index)) return true;
  // The element is a copy, for example an element that scatter does not write.
  if (expected.elements[static_cast<size_t>(index)].criterion == oracle::Criterion::bits) return false;
  const size_t sets = size_t{1} << count_read(setup_.call);
  for (size_t set = 1; set < sets && flushed_.size() + 1 < sets; ++set) {
    flushed_.push_back(oracle::evaluate(flushed(setup_.call, set)));
  }
  for (const std::vector<oracle::Expected>& other : flushed_) {
    if (element_allowed(other[output], got, index)) return true;
  }
  return false;
}

// If every input has the shape of the output, returns the inputs' elements at `index` as text, such as "; of 1 (0x..),
// 2 (0x..)". Otherwise returns "".
std::string Check::inputs_text(const oracle::Tensor& got, int64_t index) const {
  std::string text;
  for (const oracle::Tensor& input : setup_.call.inputs) {
    if (input.shape != got.shape) return {};
    text += fmt::format("{}{}", text.empty() ? "; of " : ", ", oracle::text(input.dtype, oracle::load(input, index)));
  }
  return text;
}

}  // namespace backplane::conformance::numeric
