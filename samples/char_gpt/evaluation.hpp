// SPDX-License-Identifier: Apache-2.0
// Measures how well a model predicts a text.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "model.hpp"

namespace char_gpt {

// Returns the byte values of the characters. They are the tokens that the model reads.
std::vector<int32_t> codes(const std::string& text);

// Returns the number of bits to which the model compresses `text`, and waits for the result. The first
// character counts as 8 bits. Each of the other characters is predicted once, from at least half a context of
// preceding characters. If there are fewer preceding characters, the model uses all of them.
double bits(const backplane::Stream& stream, const Model& model, const std::string& text);

}  // namespace char_gpt
