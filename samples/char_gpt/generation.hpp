// SPDX-License-Identifier: Apache-2.0
// The model writes.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "model.hpp"

namespace char_gpt {

struct Writing {
  int64_t count = 300;       // characters
  std::string prompt;        // empty: the beginning of a line
  double temperature = 0.7;  // 0: always the likeliest character
  uint64_t seed = 1;
};

// Continues the prompt, a character after the other, each drawn from what the model says of the last `context` of them. Control
// characters but the end of a line are never drawn. `written` (may be empty) is told each. Waits at every one.
std::string write(const backplane::Stream& stream, const Model& model, const Writing& writing,
                  const std::function<void(char)>& written = {});

}  // namespace char_gpt
