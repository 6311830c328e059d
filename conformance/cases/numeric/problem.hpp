// SPDX-License-Identifier: Apache-2.0
// A numeric case has four parts. A Problem is a few numbers that describe it; a Setup is the
// operator with its data, created when the case runs; an Execution runs it; a Check compares the
// results.
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
  // For example "3x1x5", or "scalar".
  std::string text() const;
  std::vector<int64_t> list() const;
};

// How the problem is executed.
enum class Mode : uint8_t {
  once,
  twice,           // executes the same plan twice; the second execution must not use stale data
  again,           // then executes the plan with other data and scalars
  resized,         // then executes another size of the same class, on the same plan if it is any-size
  device_scalars,  // scalars in device memory
  deterministic,   // with the flag; three executions must return the same bits
};
inline constexpr std::string_view kModeNames[] = {"", "twice", "again", "resized", "device_scalars", "deterministic"};

// The operator with its data: filled inputs, and outputs with dtype and shape (and data if read).
struct Setup {
  oracle::Call call{};
  uint64_t flags = 0;
  // Checks the statistics of all outputs, after the check of each element. Returns the error, or
  // "".
  std::function<std::string(const Setup&, const std::vector<oracle::Expected>&, const std::vector<oracle::Tensor>&)>
      check_whole{};
};

struct Problem {
  uint32_t op = 0;
  uint32_t dtype = 0;  // T of the operator's dtype rule
  uint32_t second =
      0;          // the dtype that the rule leaves free (cast, reduce, matmul: output; gather, scatter: index), or 0
  Shape shape{};  // of the first output for elementwise operators; otherwise defined by the family
  Layout layout = Layout::dense;
  DataPattern pattern = DataPattern::tags;
  Mode mode = Mode::once;
  std::array<int32_t, 6> parameters{};     // defined by the family: axis, attributes, data pattern
  uint32_t precision = BP_PRECISION_FULL;  // the permissions for its products
  uint32_t mixed = 0;                      // a mask of rules::Mixed: which operands differ from the plain form
  uint32_t other = 0;                      // the dtype of these operands if there is a choice
  Setup (*make)(const Problem&, Random&) = nullptr;
};

// Sets the operator's attribute struct, including its struct_size.
template <typename Attributes>
void set_attributes(oracle::Call& call, Attributes attributes) {
  attributes.struct_size = sizeof(attributes);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&attributes);
  call.attributes.assign(bytes, bytes + sizeof(attributes));
}

// Calls `visit` for each dtype of a set, in order of id.
template <typename Visit>
void for_dtypes(uint64_t set, Visit visit) {
  for (uint32_t dtype = 1; dtype < BP_DTYPE_LIMIT; ++dtype) {
    if ((set & BP_DTYPE_BIT(dtype)) != 0) visit(dtype);
  }
}

// Returns the problem of a case; null if the case has several problems or none.
const Problem* problem_of(const Case& which);

// Appends the case `numeric.<op>.<dtypes>.<shape>.<layout>.<pattern>[.<more>]`. Profile, extension
// and requirements follow from the problem; `requirements` are added to them.
void add(Catalogue& catalogue, const Problem& problem, std::string_view more = {},
         std::initializer_list<std::string_view> requirements = {});

// Appends one case of several problems of one operator: it creates all plans before it executes the
// first. Unsupported problems other than the first are skipped. The first problem names the case.
void add_apart(Catalogue& catalogue, const std::vector<Problem>& problems, std::string_view more);

// Appends the same case through the host library, with "decomposed" at the end of its id.
void add_decomposed(Catalogue& catalogue, const Problem& problem, std::string_view more,
                    std::initializer_list<std::string_view> requirements);

// Creates the setup, lays it out, executes and checks it.
void run(Context& context, const Problem& problem);
// The `run` of a numeric case, from which `problem_of` gets the problem.
struct RunProblem {
  Problem problem;
  void (*how)(Context& context, const Problem& problem) = run;
  void operator()(Context& context) const { how(context, problem); }
};
// Does the same through the host library, decomposed.
void run_decomposed(Context& context, const Problem& problem);

}  // namespace backplane::conformance::numeric
