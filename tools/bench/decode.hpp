// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/model.hpp"
#include "bench/models.hpp"
#include "host.hpp"

namespace tool {

// Decodes `steps` tokens with gpt_step on a freshly opened device. Runs every length twice. The
// length is new in the first run and known in the second run. A run of the model precedes each of
// the two, so both start with similar CPU caches.
DecodeReport measure_decode(const Device& device, ModelSize size, int64_t steps);

}  // namespace tool
