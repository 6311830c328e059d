// SPDX-License-Identifier: Apache-2.0
// A numeric case before it runs: a few numbers, from which operator, data and layout are made when it does.
#pragma once

#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cases/numeric/data_pattern.hpp"
#include "cases/numeric/view.hpp"
#include "harness/context.hpp"
#include "oracle/oracle.hpp"

namespace backplane::conformance::numeric {

using Random = std::mt19937_64;

struct Shape {
  uint8_t rank = 0;
  std::array<int32_t, BP_MAX_RANK> extents{};

  Shape() = default;
  Shape(std::initializer_list<int32_t> list);
  int64_t count() const;
  bool operator==(const Shape&) const = default;
  // "3x1x5", or "scalar".
  std::string text() const;
  std::vector<int64_t> list() const;
};

// How it is executed.
enum class Mode : uint8_t {
  once,
  twice,           // the same plan again: nothing stale may show
  again,           // then other data and scalars on the same plan
  resized,         // then another size of the same class, on the same plan if it serves any size
  device_scalars,  // scalars in device memory
  deterministic,   // with the flag, three times: the same bits
};
inline constexpr std::string_view kModeNames[] = {"", "twice", "again", "resized", "device_scalars", "deterministic"};

// The operator with its data: inputs filled, outputs with dtype and shape (and data where it reads them).
struct Setup {
  oracle::Call call{};
  uint64_t flags = 0;
  // Judges all outputs together, after each element alone was: statistics. Returns what is wrong, or "".
  std::function<std::string(const Setup&, const std::vector<oracle::Expected>&, const std::vector<oracle::Tensor>&)>
      check_whole{};
};

struct Problem {
  uint32_t op = 0;
  uint32_t dtype = 0;  // T of the row's dtype rule
  uint32_t second =
      0;          // the dtype that the rule leaves free (cast, sum, matmul: output; gather, scatter: index); else 0
  Shape shape{};  // of the first output for elementwise operators, else as the family says
  Layout layout = Layout::dense;
  DataPattern pattern = DataPattern::tags;
  Mode mode = Mode::once;
  std::array<int32_t, 6> parameters{};     // the family's own: axis, attributes, kind of data
  uint32_t precision = BP_PRECISION_FULL;  // permissions of its products
  uint32_t mixed = 0;                      // rules::Mixed: how operands depart from the plain form
  uint32_t other = 0;                      // and to which dtype, where there is a choice
  Setup (*make)(const Problem&, Random&) = nullptr;
};

// The operator's attribute struct, with its struct_size set.
template <typename Attributes>
void set_attributes(oracle::Call& call, Attributes attributes) {
  attributes.struct_size = sizeof(attributes);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&attributes);
  call.attributes.assign(bytes, bytes + sizeof(attributes));
}

// Each dtype of a set, by id.
template <typename Visit>
void for_dtypes(uint64_t set, Visit visit) {
  for (uint32_t dtype = 1; dtype < BP_DTYPE_LIMIT; ++dtype) {
    if ((set & BP_DTYPE_BIT(dtype)) != 0) visit(dtype);
  }
}

// The problem that a case runs; null where it is made of several, or of none.
const Problem* problem_of(const Case& which);

// Appends the case `numeric.<op>.<dtypes>.<shape>.<layout>.<values>[.<more>]`. Profile, extension and requirements follow
// from the problem; `requirements` come on top.
void add(Catalogue& catalogue, const Problem& problem, std::string_view more = {},
         std::initializer_list<std::string_view> requirements = {});

// One case of several problems of one operator: all plans are made before the first is executed. Those that the device
// does not support are left out; the first decides. Named by the first, with `more`.
void add_apart(Catalogue& catalogue, const std::vector<Problem>& problems, std::string_view more);

// The same case, run by `run`, with "decomposed" at the end of its name.
void add_decomposed(Catalogue& catalogue, const Problem& problem, std::string_view more,
                    std::initializer_list<std::string_view> requirements);

// Makes, lays out, executes and judges.
void run(Context& context, const Problem& problem);
// The `run` of such a case, from which `problem_of` gets the problem.
struct RunProblem {
  Problem problem;
  void (*how)(Context& context, const Problem& problem) = run;
  void operator()(Context& context) const { how(context, problem); }
};
// Likewise through the host library, decomposed.
void run_decomposed(Context& context, const Problem& problem);

}  // namespace backplane::conformance::numeric
