// SPDX-License-Identifier: Apache-2.0
// The operators `compare` and `select`.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>
#include <functional>

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

// If an operand is NaN, every predicate except `ne` is false, as in C++. The kernel computes `gt` and `ge` as `lt`
// and `le` with swapped operands.
template <class T>
void compare(const Call& call) {
  const View &out = call.out(), &a = call.in(0), &b = call.in(1);
  switch (call.attributes<bp_compare_attributes>().predicate) {
    case BP_COMPARE_EQ:
      return map_binary<b8, T, T>(out, a, b, std::equal_to<>{});
    case BP_COMPARE_NE:
      return map_binary<b8, T, T>(out, a, b, std::not_equal_to<>{});
    case BP_COMPARE_LT:
      return map_binary<b8, T, T>(out, a, b, std::less<>{});
    case BP_COMPARE_LE:
      return map_binary<b8, T, T>(out, a, b, std::less_equal<>{});
    case BP_COMPARE_GT:
      return map_binary<b8, T, T>(out, b, a, std::less<>{});
    default:
      return map_binary<b8, T, T>(out, b, a, std::less_equal<>{});
  }
}

// Moves bits, so an operand that is not selected has no effect, even if it is NaN or infinite.
template <class Word>
void select(const Call& call) {
  map_ternary_stored<Word, uint8_t, Word, Word>(
      call, [](uint8_t condition, Word a, Word b) { return condition != 0 ? a : b; });
}

}  // namespace

void add_elementwise_compare(Kernels& kernels) {
  for_types(All{}, [&]<class T>() {
    kernels.add(BP_OP_COMPARE, kDtypeOf<T>, compare<T>);
    kernels.add(BP_OP_SELECT, kDtypeOf<T>, select<Carrier<T>>);
  });
}

}  // namespace backplane::cpu_kernels
