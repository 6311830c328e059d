// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

void add_cast(Operators& operators, const PhysicalDevice& device) {
  const uint32_t elements_per_group = vec4_elements_per_group(device);
  for_dtypes(BP_SET_ALL, [&](uint32_t from) {
    for_dtypes(BP_SET_ALL, [&](uint32_t to) {
      operators.add(BP_OP_CAST, from, to, entry_of<Elementwise>(shader_name("cast", from), to, elements_per_group));
    });
  });
}

}  // namespace backplane::vulkan
