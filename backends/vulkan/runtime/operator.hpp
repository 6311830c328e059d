// SPDX-License-Identifier: Apache-2.0
// The interface of an operator, which lists the kernels of a plan and enqueues the commands of an
// execution.
#pragma once

#include <backplane/kit/queue_device.hpp>

#include "runtime/pipelines.hpp"
#include "runtime/stream.hpp"

namespace backplane::vulkan {

using View = kit::QueueView<Buffer*>;
using Call = kit::QueueCall<Buffer*>;

// Returns the device address of a kit::Place, or 0 if the place has no memory.
inline uint64_t address_of(const kit::Place<Buffer*>& place) {
  return place.memory == nullptr ? 0 : place.memory->address + place.offset;
}
inline uint64_t address_of(const View& view) { return address_of(view.place); }

class Operator;

// A kernel that a plan needs. An entry with an empty `shader` is unused.
struct Kernel {
  std::string shader;
  Constants constants{};
  bool optional = false;  // whether the plan can run without this kernel if its compilation fails
};
// Maximum number of kernels per plan. Each operator has an enum with the indices of its kernels.
// Program::pipelines uses the same indices.
inline constexpr std::size_t kMaxPipelines = 10;
using Kernels = std::array<Kernel, kMaxPipelines>;

// A compiled plan.
struct Program {
  std::shared_ptr<const Operator> op;
  bool dense = false;  // all operands are dense or immediates, so kernels need no strides
  std::array<VkPipeline, kMaxPipelines> pipelines{};  // null if the plan runs without the kernel
};

class Operator {
 public:
  Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator() = default;

  // Returns UNSUPPORTED to reject a descriptor. May change `needs`, which initially describes a
  // plan for any size without workspace.
  virtual kit::Status prepare(const kit::CheckedDesc&, kit::PlanNeeds&) const { return {}; }
  // Returns the kernels of a plan. They must depend only on properties that are fixed when the plan
  // is made.
  virtual Kernels kernels(const kit::PlanForm& plan, bool dense) const = 0;
  virtual kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const = 0;
};

using OperatorEntry = kit::QueueOperator<std::shared_ptr<const Operator>>;
using Operators = kit::Operators<OperatorEntry>;

// Returns the entry of an operator whose operands may have any strides, and whose scalars may be in
// host or device memory.
template <class Op, class... Arguments>
OperatorEntry entry_of(Arguments&&... arguments) {
  OperatorEntry entry;
  entry.kernel = std::make_shared<const Op>(std::forward<Arguments>(arguments)...);
  entry.dense = false;
  entry.device_scalars = true;
  return entry;
}

}  // namespace backplane::vulkan
