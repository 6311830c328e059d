// SPDX-License-Identifier: Apache-2.0
// How an operator becomes kernels: which pipelines its plan needs, and what is enqueued for one execution.
#pragma once

#include <backplane/kit/queue_device.hpp>

#include "runtime/pipelines.hpp"
#include "runtime/stream.hpp"

namespace backplane::vulkan {

using View = kit::QueueView<Buffer*>;
using Call = kit::QueueCall<Buffer*>;

// For kernels; 0 where nothing is there to be read.
inline uint64_t address_of(const kit::Place<Buffer*>& place) {
  return place.memory == nullptr ? 0 : place.memory->address + place.offset;
}
inline uint64_t address_of(const View& view) { return address_of(view.place); }

class Operator;

// What a plan has compiled.
struct Program {
  std::shared_ptr<const Operator> op;
  bool packed = false;  // every operand is packed, in one order, or an immediate: kernels need no strides
  std::array<VkPipeline, 8> pipelines{};
};

// A pipeline by name; without one the program has none in its place.
struct Kernel {
  std::string shader;
  Constants constants{};
  bool optional = false;  // where the driver does not compile it the program has none, and does without
};

class Operator {
 public:
  Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator() = default;

  // Declines a descriptor (UNSUPPORTED), or says what its plan needs; on entry a plan that serves any size and has no workspace.
  virtual kit::Status prepare(const kit::CheckedDesc&, kit::PlanNeeds&) const { return {}; }
  // At most as many as a program holds; only of what is known when the plan is made.
  virtual std::vector<Kernel> kernels(const kit::PlanForm& plan, bool packed) const = 0;
  virtual kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const = 0;
};

using OperatorEntry = kit::QueueOperator<std::shared_ptr<const Operator>>;
using Operators = kit::Operators<OperatorEntry>;

// Of any strides, with scalars of the host or of the device.
template <class Op, class... Arguments>
OperatorEntry entry_of(Arguments&&... arguments) {
  OperatorEntry entry;
  entry.kernel = std::make_shared<const Op>(std::forward<Arguments>(arguments)...);
  entry.dense = false;
  entry.device_scalars = true;
  return entry;
}

// Adds every operator that `device` can run; or says which setting it cannot follow.
kit::Status add_operators(Operators& operators, const PhysicalDevice& device);

}  // namespace backplane::vulkan
