// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/model.hpp"
#include "bench/models.hpp"
#include "host.hpp"

namespace tool {

// Decodes `steps` tokens with gpt_step on `device`, which must be freshly opened. Runs each step twice. In the first
// run, the length of the key-value cache is new to core; in the second run, it is known. A run of the model directly
// precedes each of the two runs, so both start with similar contents of the CPU caches.
DecodeReport measure_decode(const Device& device, ModelSize size, int64_t steps);

}  // namespace tool
