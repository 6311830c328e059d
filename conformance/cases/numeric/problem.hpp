// SPDX-License-Identifier: Apache-2.0
// A numeric case before it runs: a few numbers, from which operator, data and layout are made when it does.
#pragma once

#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

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

// What the elements are.
enum class Values : uint8_t {
  tags,        // small integers, different from neighbour to neighbour: a wrong index shows, and sums are exact
  uniform,     // floats in [-1, 1), any integer
  bits,        // any bits
  special,     // zeros, subnormals, infinities, NaN, extremes, 1 and its neighbours, in all pairs
  bounds,      // about the ends of the range: large exponents, small onto large
  cancel,      // the second input is near the first or its negative
  zeros,       // zero and non-zero mixed, of both signs
  halfway,     // between neighbours of the output's dtype
  exhaustive,  // every bit pattern, in order
  windows,     // dense runs of neighbours about thresholds
  family,      // the family's own
};
inline constexpr std::string_view values_names[] = {"tags",  "uniform", "bits",       "special", "bounds", "cancel",
                                                    "zeros", "halfway", "exhaustive", "windows", "family"};

// How it is executed.
enum class Mode : uint8_t {
  once,
  twice,           // the same plan again: nothing stale may show
  again,           // then other data and scalars on the same plan
  resized,         // then another size of the same class, on the same plan if it serves any size
  device_scalars,  // scalars in device memory
  deterministic,   // with the flag, three times: the same bits
};
inline constexpr std::string_view mode_names[] = {"", "twice", "again", "resized", "device_scalars", "deterministic"};

// The operator with its data: inputs filled, outputs with dtype and shape (and data where it reads them).
struct Job {
  oracle::Call call{};
  uint64_t flags = 0;
  // Judges all outputs together, after each element alone was: statistics. Returns what is wrong, or "".
  std::function<std::string(const Job&, const std::vector<oracle::Expected>&, const std::vector<oracle::Tensor>&)>
      judge_whole{};
};

struct Spec {
  uint32_t op = 0;
  uint32_t dtype = 0;  // T of the row's dtype rule
  uint32_t second =
      0;          // the dtype that the rule leaves free (cast, sum, matmul: output; gather, scatter: index); else 0
  Shape shape{};  // of the first output for elementwise operators, else as the family says
  Layout layout = Layout::dense;
  Values values = Values::tags;
  Mode mode = Mode::once;
  std::array<int32_t, 6> parameters{};     // the family's own: axis, attributes, kind of data
  uint32_t precision = BP_PRECISION_FULL;  // permissions of its products
  uint32_t mixed = 0;                      // rules::Mixed: how operands depart from the plain form
  uint32_t other = 0;                      // and to which dtype, where there is a choice
  Job (*make)(const Spec&, Random&) = nullptr;
};

// The operator's attribute struct, struct_size set.
template <typename Attributes>
void set_attributes(oracle::Call& call, const Attributes& attributes) {
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

// The spec that a case runs; null where it is made of several, or of none.
const Spec* spec_of(const Case& which);

// Appends the case `numeric.<op>.<dtypes>.<shape>.<layout>.<values>[.<more>]`. Profile, extension and requirements follow
// from the spec; `requirements` come on top.
void add(Catalogue& catalogue, const Spec& spec, std::string_view more = {},
         std::initializer_list<std::string_view> requirements = {});

// One case of several specs of one operator: all plans are made before the first is executed. Those that the device
// does not support are left out; the first decides. Named by the first, with `more`.
void add_apart(Catalogue& catalogue, const std::vector<Spec>& specs, std::string_view more);

// The same case, run by `run`, with "decomposed" at the end of its name.
void add_decomposed(Catalogue& catalogue, const Spec& spec, std::string_view more,
                    std::initializer_list<std::string_view> requirements);

// Makes, lays out, executes and judges.
void run(Context& context, const Spec& spec);
// The `run` of such a case, from which `spec_of` gets the spec.
struct RunSpec {
  Spec spec;
  void (*how)(Context& context, const Spec& spec) = run;
  void operator()(Context& context) const { how(context, spec); }
};
// Likewise through the host library, decomposed.
void run_decomposed(Context& context, const Spec& spec);

}  // namespace backplane::conformance::numeric
