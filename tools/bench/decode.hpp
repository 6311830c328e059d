// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/model.hpp"
#include "bench/models.hpp"
#include "host.hpp"

namespace tool {

// Decodes `steps` tokens of gpt_step on a freshly opened device. Every length is run twice: the first time it is new, the second
// time known, each behind a step of a known length, so that the caches are alike.
DecodeReport measure_decode(const Device& device, ModelSize size, int64_t steps);

}  // namespace tool
