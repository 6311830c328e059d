// SPDX-License-Identifier: Apache-2.0
// The operators of the plugin. There is a function for each family or part of a family.
#pragma once

#include "ops/gemm_algorithm.hpp"
#include "runtime/operator.hpp"

namespace backplane::vulkan {

// Adds every operator that `device` can run. UNSUPPORTED if a setting requests an algorithm that
// the device lacks.
kit::Status add_operators(Operators& operators, const PhysicalDevice& device);

void add_attention(Operators& operators, const PhysicalDevice& device);
void add_cast(Operators& operators, const PhysicalDevice& device);
void add_conv(Operators& operators, const PhysicalDevice& device, GemmAlgorithm algorithm);
void add_copy(Operators& operators, const PhysicalDevice& device);
void add_elementwise(Operators& operators, const PhysicalDevice& device);
void add_embedding(Operators& operators);
void add_index(Operators& operators);
void add_loss(Operators& operators, const PhysicalDevice& device);
void add_matmul(Operators& operators, const PhysicalDevice& device, GemmAlgorithm algorithm);
void add_norm(Operators& operators, const PhysicalDevice& device);
void add_norm_bwd(Operators& operators, const PhysicalDevice& device);
void add_optimizer(Operators& operators);
void add_pool(Operators& operators);
void add_quantize(Operators& operators, const PhysicalDevice& device);
void add_quantize_matmul(Operators& operators, const PhysicalDevice& device, GemmAlgorithm algorithm);
void add_random(Operators& operators);
void add_reduce(Operators& operators, const PhysicalDevice& device);
void add_rope(Operators& operators);
void add_scan(Operators& operators);
void add_softmax(Operators& operators, const PhysicalDevice& device);
void add_sort(Operators& operators);
void add_topk(Operators& operators, const PhysicalDevice& device);

}  // namespace backplane::vulkan
