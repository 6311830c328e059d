// SPDX-License-Identifier: Apache-2.0
// Measures how well a model predicts a text.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "model.hpp"

namespace char_gpt {

// Returns the characters as the model's input: their byte values.
std::vector<int32_t> codes(const std::string& text);

// Returns the bits that `text` needs under the model. The first character counts 8 bits. Each other
// character is predicted once from the preceding characters: from at least half a context, or from
// all if there are fewer. Waits.
double bits(const backplane::Stream& stream, const Model& model, const std::string& text);

}  // namespace char_gpt
