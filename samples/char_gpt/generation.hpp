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
  int64_t count = 300;       // characters
  std::string prompt;        // empty: starts a new line
  double temperature = 0.7;  // 0: always the most likely character
  uint64_t seed = 1;
};

// Continues the prompt. Each character is drawn from the model's prediction for the last `context`
// characters. Never draws control characters except newline. Passes each character to `written`, if
// that is set. Waits after each character.
std::string write(const backplane::Stream& stream, const Model& model, const Writing& writing,
                  const std::function<void(char)>& written = {});

}  // namespace char_gpt
