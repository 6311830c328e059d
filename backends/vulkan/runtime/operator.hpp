// SPDX-License-Identifier: Apache-2.0
// The interface of operators. An operator lists the kernels of a plan, and enqueues the commands of
// each execution.
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
// Maximum number of kernels per plan. The operator defines the index of each kernel, and Program::pipelines uses the
// same indices.
inline constexpr std::size_t kMaxPipelines = 10;
using Kernels = std::array<Kernel, kMaxPipelines>;

// A compiled plan.
struct Program {
  std::shared_ptr<const Operator> op;
  bool dense = false;  // all operands are dense or immediates, so kernels need no strides
  // Null for unused entries, and for optional kernels that failed to compile.
  std::array<VkPipeline, kMaxPipelines> pipelines{};
};

class Operator {
 public:
  Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator() = default;

  // Returns UNSUPPORTED to reject a descriptor. Initially, `needs` describes a plan that needs no
  // workspace and serves operands of any size. prepare() may change `needs`.
  virtual kit::Status prepare(const kit::CheckedDesc&, kit::PlanNeeds&) const { return {}; }
  // Returns the kernels of a plan. The kernels must depend only on properties that are fixed when
  // the plan is made.
  virtual Kernels kernels(const kit::PlanForm& plan, bool dense) const = 0;
  virtual kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const = 0;
};

using OperatorEntry = kit::QueueOperator<std::shared_ptr<const Operator>>;
using Operators = kit::Operators<OperatorEntry>;

// Returns the table entry for an operator whose operands may have any strides, and whose scalars
// may be in host or device memory.
template <class Op, class... Arguments>
OperatorEntry entry_of(Arguments&&... arguments) {
  OperatorEntry entry;
  entry.kernel = std::make_shared<const Op>(std::forward<Arguments>(arguments)...);
  entry.dense = false;
  entry.device_scalars = true;
  return entry;
}

}  // namespace backplane::vulkan
