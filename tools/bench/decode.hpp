// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/model.hpp"
#include "bench/models.hpp"
#include "host.hpp"

namespace tool {

// Decodes `steps` tokens of gpt_step on a freshly opened device. Runs every length twice: the
// length is new in the first run and known in the second. Each run follows another step, so both
// start with similar caches.
DecodeReport measure_decode(const Device& device, ModelSize size, int64_t steps);

}  // namespace tool
