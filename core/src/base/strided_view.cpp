// SPDX-License-Identifier: Apache-2.0
// Decides whether views overlap.
//
// Two elements overlap if a bounded linear Diophantine equation has a solution: integers 0 <= x_k <= n_k with sum a_k
// x_k = b. A depth-first search solves the equation exactly. The search visits the terms in order of decreasing
// coefficient. The search prunes by the range and the greatest common divisor of the remaining terms. Usual layouts
// need a few steps. The number of steps is limited, because the problem is NP-hard.
#include "base/strided_view.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace backplane::core {

namespace {

constexpr int kMaxTerms = 2 * BP_MAX_RANK + 2;
constexpr int kMaxWork = 20000;

struct Term {
  int64_t coefficient;  // > 0
  int64_t limit;        // > 0
};

template <class T, class Before>
void insertion_sort(T* items, int count, Before before) {
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && before(items[j], items[j - 1]); --j) std::swap(items[j], items[j - 1]);
  }
}

struct Problem {
  Term terms[kMaxTerms];
  int count = 0;
  int64_t suffix_gcd[kMaxTerms + 1];
  int64_t suffix_max[kMaxTerms + 1];
  int work = 0;

  void add(int64_t coefficient, int64_t limit) {
    if (coefficient > 0 && limit > 0) terms[count++] = {coefficient, limit};
  }

  Overlap solve(int64_t target) {
    insertion_sort(terms, count, [](const Term& a, const Term& b) { return a.coefficient > b.coefficient; });
    suffix_gcd[count] = 0;
    suffix_max[count] = 0;
    for (int i = count - 1; i >= 0; --i) {
      suffix_gcd[i] = std::gcd(suffix_gcd[i + 1], terms[i].coefficient);
      int64_t product = 0;
      if (__builtin_mul_overflow(terms[i].coefficient, terms[i].limit, &product) ||
          __builtin_add_overflow(product, suffix_max[i + 1], &suffix_max[i])) {
        return Overlap::unknown;
      }
    }
    return search(0, target);
  }

  Overlap search(int index, int64_t target) {
    if (target == 0) return Overlap::yes;
    if (target < 0 || target > suffix_max[index] || target % suffix_gcd[index] != 0) return Overlap::no;
    if (++work > kMaxWork) return Overlap::unknown;
    const Term& term = terms[index];
    // `least` is the smallest x_k with which the later terms can reach the rest of the target.
    const int64_t suffix = suffix_max[index + 1];
    const int64_t least = target > suffix ? (target - suffix + term.coefficient - 1) / term.coefficient : 0;
    const int64_t most = std::min(term.limit, target / term.coefficient);
    for (int64_t x = most; x >= least; --x) {
      const Overlap overlap = search(index + 1, target - x * term.coefficient);
      if (overlap != Overlap::no) return overlap;
    }
    return Overlap::no;
  }
};

// Returns the magnitude of a stride. The magnitude of INT64_MIN does not fit, but no legal view has
// that stride.
int64_t magnitude(int64_t value) { return value < 0 ? (value == INT64_MIN ? INT64_MAX : -value) : value; }

}  // namespace

bp_tensor_desc staged_like(const bp_tensor_desc& view, uint8_t alignment_log2) noexcept {
  bp_tensor_desc dense = view;
  dense.flags = static_cast<uint16_t>(view.flags & BP_DESC_HINTS);
  dense.alias = 0;
  dense.alignment_log2 = alignment_log2;
  make_dense(dense);
  return dense;
}

Overlap self_overlap(const bp_tensor_desc& view) noexcept {
  // First tests a sufficient condition for no overlap, which usually holds: each dimension's stride exceeds
  // the span of all dimensions with smaller strides.
  struct Dim {
    int64_t stride, extent;
  } dims[BP_MAX_RANK];
  int count = 0;
  for (uint32_t d = 0; d < view.rank; ++d) {
    if (view.shape[d] == 0) return Overlap::no;
    if (view.shape[d] > 1) dims[count++] = {magnitude(view.strides[d]), view.shape[d]};
  }
  insertion_sort(dims, count, [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  int64_t span = 0;
  bool nested = true;
  for (int i = 0; i < count; ++i) {
    nested &= dims[i].stride > span;
    int64_t reach = 0;
    if (__builtin_mul_overflow(dims[i].stride, dims[i].extent - 1, &reach) ||
        __builtin_add_overflow(span, reach, &span)) {
      return Overlap::unknown;
    }
  }
  if (nested) return Overlap::no;
  // In each dimension k, the indices of two elements differ by d_k, which is in -(n_k - 1)..(n_k - 1). By symmetry,
  // assume that the first nonzero d_k is positive, and write d_k = 1 + x. Let x_j = d_j + n_j - 1 for the later
  // dimensions. For each k, the loop solves s_k (1 + x) + sum s_j x_j = sum s_j (n_j - 1).
  for (int k = 0; k < count; ++k) {
    if (dims[k].stride == 0) return Overlap::yes;
    Problem problem;
    problem.add(dims[k].stride, dims[k].extent - 2);
    int64_t target = -dims[k].stride;
    for (int j = k + 1; j < count; ++j) {
      // `target` cannot overflow, because it never exceeds `span`.
      problem.add(dims[j].stride, 2 * (dims[j].extent - 1));
      target += dims[j].stride * (dims[j].extent - 1);
    }
    const Overlap overlap = problem.solve(target);
    if (overlap != Overlap::no) return overlap;
  }
  return Overlap::no;
}

Overlap views_overlap(const bp_tensor_desc& a, uint32_t a_bytes, const bp_tensor_desc& b, uint32_t b_bytes,
                      int64_t b_minus_a) noexcept {
  // Let a and b be the addresses of element 0 of the views. Let s_i and t_j be the strides in bytes. The views share a
  // byte if a + sum s_i x_i + u = b + sum t_j y_j + v has a solution. The variables u and v satisfy 0 <= u < a_bytes
  // and 0 <= v < b_bytes. The substitution x -> n - x makes negative coefficients positive and shifts the target.
  Problem problem;
  int64_t target = b_minus_a;
  bool overflow = false;
  const auto add = [&](int64_t coefficient, int64_t limit) {
    if (limit <= 0 || coefficient == 0) return;
    if (coefficient < 0) {
      int64_t shift = 0;
      if (__builtin_sub_overflow(int64_t{0}, coefficient, &coefficient)) {
        overflow = true;
        return;
      }
      overflow |= __builtin_mul_overflow(coefficient, limit, &shift) || __builtin_add_overflow(target, shift, &target);
    }
    problem.add(coefficient, limit);
  };
  const auto add_dim = [&](int64_t stride, int64_t bytes, int64_t limit) {
    if (limit == 0) return;  // the stride of a dimension of extent 1 has no meaning
    int64_t coefficient = 0;
    overflow |= __builtin_mul_overflow(stride, bytes, &coefficient);
    if (!overflow) add(coefficient, limit);
  };
  for (uint32_t d = 0; d < a.rank; ++d) {
    if (a.shape[d] == 0) return Overlap::no;
    add_dim(a.strides[d], a_bytes, a.shape[d] - 1);
  }
  for (uint32_t d = 0; d < b.rank; ++d) {
    if (b.shape[d] == 0) return Overlap::no;
    add_dim(b.strides[d], -static_cast<int64_t>(b_bytes), b.shape[d] - 1);
  }
  add(1, a_bytes - 1);
  add(-1, b_bytes - 1);
  return overflow ? Overlap::unknown : problem.solve(target);
}

}  // namespace backplane::core
