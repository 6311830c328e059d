// SPDX-License-Identifier: Apache-2.0
// Test cases for operators whose operands have several dtypes. The data come from the plain form of
// a case, in which all floats have one dtype and all indices are i32. Some operands are then
// converted to other dtypes that the dtype rules allow.
#pragma once

#include <backplane/rules/mixed.hpp>

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

namespace rules = backplane::rules;

// One combination of operand dtypes: the operands that differ from the plain form, and their dtype
// if there is a choice.
struct Mix {
  uint32_t mixed = 0;  // bit mask of rules::Mixed
  uint32_t other = 0;  // dtype of the 16-bit float operands, masks or scales; 0 if there is no choice
};
// Returns all legal combinations of `op` whose main dtype T is `dtype`, except the plain form.
std::vector<Mix> mixes_of(uint32_t op, uint32_t dtype);
// Returns a name such as "parameters+state" or "halves_f16".
std::string name_of(const Mix& mix);

// Converts the operands of a plain setup to the dtypes of `mix`, with values that only the wider
// dtypes represent. Statistics are always f32.
void mix(const Mix& mix, Setup& setup, Random& random);

// Returns a mask of rules::Mixed with the operands of `setup` that differ from the plain form.
uint32_t mixed_of(const Setup& setup);

// Adds a native and a decomposed case for every legal combination of the dtypes of the operands of `problem`.
void add_mixed(Catalogue& catalogue, const Problem& problem, std::string_view more);

}  // namespace backplane::conformance::numeric
