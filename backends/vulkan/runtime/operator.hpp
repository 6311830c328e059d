// SPDX-License-Identifier: Apache-2.0
// The interface of an operator: the kernels that its plan needs, and the commands of one execution.
#pragma once

#include <backplane/kit/queue_device.hpp>

#include "runtime/pipelines.hpp"
#include "runtime/stream.hpp"

namespace backplane::vulkan {

using View = kit::QueueView<Buffer*>;
using Call = kit::QueueCall<Buffer*>;

// The address for kernels; 0 if there is nothing to read.
inline uint64_t address_of(const kit::Place<Buffer*>& place) {
  return place.memory == nullptr ? 0 : place.memory->address + place.offset;
}
inline uint64_t address_of(const View& view) { return address_of(view.place); }

class Operator;

// A pipeline that a plan needs. Without a name the plan does without.
struct Kernel {
  std::string shader;
  Constants constants{};
  bool optional = false;  // if the driver does not compile it, the plan does without
};
// The kernels of a plan, and their pipelines, at indices that the operator names by an enum of its
// own.
inline constexpr std::size_t kMaxPipelines = 10;
using Kernels = std::array<Kernel, kMaxPipelines>;

// A plan, compiled.
struct Program {
  std::shared_ptr<const Operator> op;
  bool dense = false;  // every operand is dense, in one order, or an immediate: kernels need no strides
  std::array<VkPipeline, kMaxPipelines> pipelines{};  // null: the operator did without
};

class Operator {
 public:
  Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator() = default;

  // Rejects a descriptor (UNSUPPORTED), or says what its plan needs. On entry the plan serves any
  // size and has no workspace.
  virtual kit::Status prepare(const kit::CheckedDesc&, kit::PlanNeeds&) const { return {}; }
  // Depends only on what is known when the plan is made.
  virtual Kernels kernels(const kit::PlanForm& plan, bool dense) const = 0;
  virtual kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const = 0;
};

using OperatorEntry = kit::QueueOperator<std::shared_ptr<const Operator>>;
using Operators = kit::Operators<OperatorEntry>;

// An entry for operands of any strides, and scalars of the host or of the device.
template <class Op, class... Arguments>
OperatorEntry entry_of(Arguments&&... arguments) {
  OperatorEntry entry;
  entry.kernel = std::make_shared<const Op>(std::forward<Arguments>(arguments)...);
  entry.dense = false;
  entry.device_scalars = true;
  return entry;
}

}  // namespace backplane::vulkan
