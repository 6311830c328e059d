// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/model.hpp"
#include "bench/models.hpp"
#include "host.hpp"

namespace tool {

// Decodes `steps` tokens with gpt_step on a freshly opened device. Runs each cache length twice.
// The length is new in the first run and known in the second run. Another run of the model directly
// precedes each of the two runs, so both start with similar contents of the CPU caches.
DecodeReport measure_decode(const Device& device, ModelSize size, int64_t steps);

}  // namespace tool
