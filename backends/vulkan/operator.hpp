// SPDX-License-Identifier: Apache-2.0
// How an operator becomes kernels: which pipelines its plan needs, and what is enqueued for one execution.
#pragma once

#include <backplane/kit/plan.hpp>

#include "pipelines.hpp"
#include "stream.hpp"

namespace backplane::vulkan {

// The kit's plan, whose kernel's state is the Operator, with the pipelines that were made for it.
struct Plan {
  kit::Plan base;
  bool packed = false;  // every operand is packed, in one order, or an immediate: kernels need no strides
  std::array<VkPipeline, 8> pipelines{};
};

// A pipeline by name; without one the plan has none in its place.
struct Kernel {
  std::string shader;
  Constants constants{};
  bool optional = false;  // where the driver does not compile it the plan has none, and does without
};

class Operator {
 public:
  Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator() = default;

  // At most as many as a plan holds; only of what is known when the plan is made.
  virtual std::vector<Kernel> kernels(const kit::Plan& plan, bool packed) const = 0;
  // Operands have device addresses, or are immediates.
  virtual kit::Status enqueue(Stream& stream, const Plan& plan, const kit::Call& call) const = 0;
};

// Adds every operator that `device` can run; or says which setting it cannot follow.
kit::Status add_operators(kit::Kernels& kernels, const PhysicalDevice& device);

}  // namespace backplane::vulkan
