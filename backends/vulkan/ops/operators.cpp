// SPDX-License-Identifier: Apache-2.0
#include "ops/operators.hpp"

namespace backplane::vulkan {

kit::Status add_operators(Operators& operators, const PhysicalDevice& device) {
  auto algorithm = choose_algorithm(device);
  if (!algorithm.ok()) return algorithm.status();
  add_copy(operators, device);
  add_cast(operators, device);
  add_index(operators);
  add_elementwise(operators, device);
  add_reduce(operators, device);
  add_scan(operators);
  add_matmul(operators, device, algorithm.value());
  add_sort(operators);
  add_random(operators);
  add_softmax(operators, device);
  add_norm(operators, device);
  add_norm_bwd(operators, device);
  add_conv(operators, device, algorithm.value());
  add_pool(operators);
  add_attention(operators, device);
  add_rope(operators);
  add_quantize(operators, device);
  add_quantize_matmul(operators, device, algorithm.value());
  add_embedding(operators);
  add_topk(operators, device);
  add_loss(operators, device);
  add_optimizer(operators);
  return {};
}

}  // namespace backplane::vulkan
