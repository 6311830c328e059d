// SPDX-License-Identifier: Apache-2.0
// A numeric case has four parts. A Problem describes the case in a few numbers. A Setup is the
// operator with its data, which is created when the case runs. An Execution executes the operator,
// and a Check compares the results.
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
  // Returns a text such as "3x1x5", or "scalar".
  std::string text() const;
  std::vector<int64_t> list() const;
};

// The ways to execute a problem.
enum class Mode : uint8_t {
  once,
  twice,           // executes one plan twice; the second execution must not use stale data
  again,           // executes one plan twice, the second time with other data and scalars
  resized,         // executes a second size of the same class, with the same plan if it is an any-size plan
  device_scalars,  // passes scalars in device memory
  deterministic,   // executes a deterministic plan three times; the results must have the same bits
};
inline constexpr std::string_view kModeNames[] = {"", "twice", "again", "resized", "device_scalars", "deterministic"};

// The operator with its data. Inputs are filled, and outputs have a dtype and a shape. Only outputs
// that the operator reads have data.
struct Setup {
  oracle::Call call{};
  uint64_t flags = 0;
  // Checks the statistics of all outputs, after each element has been checked. Returns an error text, or "".
  std::function<std::string(const Setup&, const std::vector<oracle::Expected>&, const std::vector<oracle::Tensor>&)>
      check_whole{};
};

struct Problem {
  uint32_t op = 0;
  uint32_t dtype = 0;  // dtype T in the operator's dtype rule
  // A second dtype, or 0 if there is none. This dtype belongs to the output (cast, reduce, matmul), to the index
  // (gather, scatter), or to another operand that the family defines.
  uint32_t second = 0;
  // For elementwise operators, the shape of the first output. Other families define the meaning of
  // `shape`.
  Shape shape{};
  Layout layout = Layout::dense;
  DataPattern pattern = DataPattern::tags;
  Mode mode = Mode::once;
  std::array<int32_t, 6> parameters{};     // axis, attributes or data pattern, as the family defines
  uint32_t precision = BP_PRECISION_FULL;  // precision-relaxation flags (BP_PRECISION_ALLOW_*)
  uint32_t mixed = 0;                      // mask of rules::Mixed; 0 for the plain form (mixed.hpp)
  uint32_t other = 0;                      // dtype of the mixed operands if there is a choice
  uint32_t since = 0;                      // ABI version of an addition to the operator; 0 if there is none
  Setup (*make)(const Problem&, Random&) = nullptr;
};

// Sets the operator's attribute struct, including its struct_size.
template <typename Attributes>
void set_attributes(oracle::Call& call, Attributes attributes) {
  attributes.struct_size = sizeof(attributes);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&attributes);
  call.attributes.assign(bytes, bytes + sizeof(attributes));
}

// Calls `visit` for each dtype in `set`, in order of id.
template <typename Visit>
void for_dtypes(uint64_t set, Visit visit) {
  for (uint32_t dtype = 1; dtype < BP_DTYPE_LIMIT; ++dtype) {
    if ((set & BP_DTYPE_BIT(dtype)) != 0) visit(dtype);
  }
}

// Returns the problem of a case, or null if the case has several problems or none.
const Problem* problem_of(const Case& which);

// Appends the case `numeric.<op>.<dtypes>.<shape>.<layout>.<pattern>[.<more>]`. The problem determines the profile, the
// extension and most requirements. `requirements` contains additional requirements.
void add(Catalogue& catalogue, const Problem& problem, std::string_view more = {},
         std::initializer_list<std::string_view> requirements = {});

// Appends one case with several problems of one operator. The case creates all plans before the first execution. If the
// plugin declines the first problem, the case ends as not claimed. The case skips other problems that the plugin
// declines. The first problem determines the id of the case.
void add_apart(Catalogue& catalogue, const std::vector<Problem>& problems, std::string_view more);

// Appends a case that runs the problem through the host library. The id of the case ends with
// "decomposed". The case belongs to the first profile that requires all primitives of the decomposition.
void add_decomposed(Catalogue& catalogue, const Problem& problem, std::string_view more,
                    std::initializer_list<std::string_view> requirements);

// Creates the setup of the problem, executes it and checks the results.
void run(Context& context, const Problem& problem);
// The function object in Case::run of a numeric case. The function problem_of() reads the problem from this object.
struct RunProblem {
  Problem problem;
  void (*how)(Context& context, const Problem& problem) = run;
  void operator()(Context& context) const { how(context, problem); }
};
// Runs the problem through the host library, which decomposes the operator.
void run_decomposed(Context& context, const Problem& problem);

}  // namespace backplane::conformance::numeric
