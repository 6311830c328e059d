// SPDX-License-Identifier: Apache-2.0
// The interface of an operator: the kernels that its plan needs, and the commands of one execution.
#pragma once

#include <backplane/kit/queue_device.hpp>

#include "runtime/pipelines.hpp"
#include "runtime/stream.hpp"

namespace backplane::vulkan {

using View = kit::QueueView<Buffer*>;
using Call = kit::QueueCall<Buffer*>;

// The device address of a place; 0 if it has no memory.
inline uint64_t address_of(const kit::Place<Buffer*>& place) {
  return place.memory == nullptr ? 0 : place.memory->address + place.offset;
}
inline uint64_t address_of(const View& view) { return address_of(view.place); }

class Operator;

// A pipeline that a plan needs. If the name is empty, there is no pipeline.
struct Kernel {
  std::string shader;
  Constants constants{};
  bool optional = false;  // if the driver cannot compile it, the plan runs without it
};
// The kernels of a plan. Each operator names the indices of its kernels by an enum; the pipelines
// have the same indices.
inline constexpr std::size_t kMaxPipelines = 10;
using Kernels = std::array<Kernel, kMaxPipelines>;

// A compiled plan.
struct Program {
  std::shared_ptr<const Operator> op;
  bool dense = false;  // operands are immediates or dense in one order, so kernels need no strides
  std::array<VkPipeline, kMaxPipelines> pipelines{};  // null if the operator runs without it
};

class Operator {
 public:
  Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator() = default;

  // Rejects a descriptor (UNSUPPORTED), or changes `needs`. On entry, `needs` describes a plan for
  // any size without workspace.
  virtual kit::Status prepare(const kit::CheckedDesc&, kit::PlanNeeds&) const { return {}; }
  // Returns the kernels of a plan. They depend only on what is known when the plan is made.
  virtual Kernels kernels(const kit::PlanForm& plan, bool dense) const = 0;
  virtual kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const = 0;
};

using OperatorEntry = kit::QueueOperator<std::shared_ptr<const Operator>>;
using Operators = kit::Operators<OperatorEntry>;

// An entry for operands of any strides, with scalars from the host or in device memory.
template <class Op, class... Arguments>
OperatorEntry entry_of(Arguments&&... arguments) {
  OperatorEntry entry;
  entry.kernel = std::make_shared<const Op>(std::forward<Arguments>(arguments)...);
  entry.dense = false;
  entry.device_scalars = true;
  return entry;
}

}  // namespace backplane::vulkan
