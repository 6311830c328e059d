// SPDX-License-Identifier: Apache-2.0
// How well the model knows a text.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "model.hpp"

namespace char_gpt {

// The characters as the model reads them: their bytes.
std::vector<int32_t> codes(const std::string& text);

// Bits that `text` needs under the model: 8 for its first character, then each predicted once, from what stands before it in
// the text, at least half a context where there is as much. Waits.
double bits(const backplane::Stream& stream, const Model& model, const std::string& text);

}  // namespace char_gpt
