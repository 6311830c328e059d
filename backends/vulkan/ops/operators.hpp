// SPDX-License-Identifier: Apache-2.0
// The functions that add the operators of the plugin. Each function adds a family or a part of a
// family.
#pragma once

#include "ops/gemm_algorithm.hpp"
#include "runtime/operator.hpp"

namespace backplane::vulkan {

// Adds every operator that `device` can run. Returns UNSUPPORTED if an environment variable
// requests a GEMM algorithm that the device does not support.
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
