// SPDX-License-Identifier: Apache-2.0
// Generates text with the model.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "model.hpp"

namespace char_gpt {

struct Writing {
  int64_t count = 300;       // number of characters to generate
  std::string prompt;        // if empty, the model begins with a new line
  double temperature = 0.7;  // 0 always selects the most likely character
  uint64_t seed = 1;
};

// Continues the prompt, and returns the generated characters without the prompt. Draws each character from the
// model's prediction for the last `context` characters, but never a control character except newline. Passes
// each character to `written`, if `written` is set. Waits for the stream after each character.
std::string write(const backplane::Stream& stream, const Model& model, const Writing& writing,
                  const std::function<void(char)>& written = {});

}  // namespace char_gpt
