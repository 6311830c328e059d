// SPDX-License-Identifier: Apache-2.0
// Checks operands, workspace and scalars of an execution for the layer `validation`.
#include "layers/validation/execution.hpp"

#include <algorithm>
#include <cstring>

#include "base/op_table.hpp"
#include "base/strided_view.hpp"
#include "dispatch/validate.hpp"
#include "layers/validation/memory.hpp"

namespace backplane::core::layers {

namespace {

// An operand that has elements, and the bytes that the operand occupies.
struct Placed {
  const char* role;
  uint32_t index;
  const bp_tensor_desc* view;
  const bp_operand* operand;
  Extent extent;  // the view's bytes, relative to the operand's offset
  bool output;
};

class ExecutionCheck {
 public:
  ExecutionCheck(Call& call, const bp_execution& execution, const bp_op_desc& desc, uint64_t workspace)
      : call_(call), execution_(execution), desc_(desc), workspace_(workspace) {}

  std::vector<CheckedBuffer*> run() {
    if (desc_.input_count != 0) call_.need(execution_.inputs, "bp_execution.inputs");
    if (desc_.output_count != 0) call_.need(execution_.outputs, "bp_execution.outputs");
    for (uint32_t i = 0; i < desc_.input_count; ++i)
      check_operand("input", i, desc_.inputs[i], execution_.inputs[i], false);
    for (uint32_t i = 0; i < desc_.output_count; ++i)
      check_operand("output", i, desc_.outputs[i], execution_.outputs[i], true);
    for (uint32_t i = 0; i < desc_.output_count; ++i) check_alias(i);
    check_overlaps();
    check_workspace();
    check_scalars();
    occupy_buffers(call_, used_);
    return std::move(used_);
  }

 private:
  void check_immediate(const char* role, uint32_t index, uint32_t dtype, const bp_operand& operand) const {
    const uint32_t bytes = dtype_bytes(dtype);
    const bool wide = bytes != 0 && bytes < sizeof(uint64_t) && operand.immediate >> (8 * bytes) != 0;
    if (operand.buffer != nullptr || wide) {
      call_.refuse(rule::kOperandPresent, "{} {} is an immediate {}; {}", role, index, dtype_name(dtype),
                   wide ? "zero the bytes above the dtype's" : "pass no buffer with it");
    }
  }

  // Checks that a buffer's memory can be an operand, and adds the buffer to `used_`.
  CheckedBuffer& use_buffer(const char* role, uint32_t index, const bp_operand& operand) {
    CheckedBuffer& buffer = call_.object(operand.buffer, role);
    if (buffer.kind == BP_MEMORY_HOST && (call_.device().info.capabilities & BP_CAP_HOST_OPERANDS) == 0) {
      call_.refuse(rule::kOperandMemory,
                   "{} {} is in HOST memory and the device has no BP_CAP_HOST_OPERANDS; copy it to DEVICE memory", role,
                   index);
    }
    used_.push_back(&buffer);
    return buffer;
  }

  void check_operand(const char* role, uint32_t index, const bp_tensor_desc& view, const bp_operand& operand,
                     bool output) {
    if (view.dtype == 0) return;  // the operand is absent
    if ((view.flags & BP_DESC_IMMEDIATE) != 0) return check_immediate(role, index, view.dtype, operand);
    Extent extent;
    if (!extent_of(view, dtype_bytes(view.dtype), &extent)) {
      call_.refuse(rule::kOperandBounds, "{} {} does not fit into 63 bits of address; describe a smaller view", role,
                   index);
    }
    if (extent.hi == 0) return;
    if (operand.buffer == nullptr) {
      call_.refuse(rule::kOperandPresent, "{} {} has elements and no buffer; pass its buffer", role, index);
    }
    const CheckedBuffer& buffer = use_buffer(role, index, operand);
    const uint64_t start = operand.offset + static_cast<uint64_t>(extent.lo);
    const auto span = static_cast<uint64_t>(extent.hi - extent.lo);
    if (operand.offset > buffer.bytes || start > buffer.bytes || span > buffer.bytes - start) {
      call_.refuse(rule::kOperandBounds,
                   "{} {} touches bytes {} to {} around offset {} of a buffer of {} bytes; keep inside", role, index,
                   extent.lo, extent.hi, operand.offset, buffer.bytes);
    }
    const uint64_t stated = uint64_t{1} << view.alignment_log2;
    if (buffer.alignment < stated || operand.offset % stated != 0) {
      call_.refuse(rule::kOperandAlignment,
                   "{} {} states an alignment of {} bytes; offset {} of a buffer aligned to {} has less: state that",
                   role, index, stated, operand.offset, buffer.alignment);
    }
    placed_.push_back({role, index, &view, &operand, extent, output});
  }

  void check_alias(uint32_t index) const {
    const bp_tensor_desc& view = desc_.outputs[index];
    if (view.alias == 0 || element_count(view) == 0) return;
    const bp_operand& input = execution_.inputs[view.alias - 1];
    const bp_operand& output = execution_.outputs[index];
    if (input.buffer != output.buffer || input.offset != output.offset) {
      call_.refuse(
          rule::kOperandAlias,
          "output {} is described as input {} and starts at offset {}, not {}, or in another buffer; pass the same",
          index, view.alias - 1, output.offset, input.offset);
    }
  }

  // Returns true if `output` has an alias and has the same view and address as `input`.
  static bool in_place(const Placed& output, const Placed& input) {
    return output.view->alias != 0 && output.operand->offset == input.operand->offset &&
           same_elements(*output.view, *input.view);
  }

  void check_overlaps() const {
    for (size_t o = 0; o < placed_.size(); ++o) {
      if (!placed_[o].output) continue;
      for (size_t i = 0; i < o; ++i) check_overlap(placed_[o], placed_[i]);
    }
  }

  void check_overlap(const Placed& output, const Placed& other) const {
    if (output.operand->buffer != other.operand->buffer) return;
    const auto distance = static_cast<int64_t>(other.operand->offset - output.operand->offset);
    if (distance + other.extent.lo >= output.extent.hi || distance + other.extent.hi <= output.extent.lo) return;
    if (!other.output && in_place(output, other)) return;
    if (rules::is_packed(*other.view) || views_overlap(*output.view, dtype_bytes(output.view->dtype), *other.view,
                                                       dtype_bytes(other.view->dtype), distance) != Overlap::no) {
      call_.refuse(
          rule::kOperandOverlap,
          "output {} shares bytes with {} {}, which starts {} bytes from it; use other memory, or state the alias",
          output.index, other.role, other.index, distance);
    }
  }

  void check_workspace() {
    if (workspace_ == 0) return;
    const bp_execution& e = execution_;
    if (e.workspace == nullptr || e.workspace_bytes < workspace_) {
      call_.refuse(rule::kWorkspace, "the plan needs {} bytes and receives {}{}; provide at least as many", workspace_,
                   e.workspace_bytes, e.workspace == nullptr ? " without a buffer" : "");
    }
    const CheckedBuffer& buffer = use_buffer("workspace", 0, {e.workspace, e.workspace_offset, 0});
    const uint64_t alignment = std::max<uint64_t>(call_.device().info.alignment, 1);
    if (e.workspace_offset > buffer.bytes || e.workspace_bytes > buffer.bytes - e.workspace_offset ||
        e.workspace_offset % alignment != 0 || buffer.alignment < alignment) {
      call_.refuse(rule::kWorkspace,
                   "{} bytes at offset {} of a buffer of {} bytes aligned to {}; keep inside, aligned to {}",
                   e.workspace_bytes, e.workspace_offset, buffer.bytes, buffer.alignment, alignment);
    }
    const auto begin = static_cast<int64_t>(e.workspace_offset);
    const int64_t end = begin + static_cast<int64_t>(workspace_);
    for (const Placed& operand : placed_) {
      const auto at = static_cast<int64_t>(operand.operand->offset);
      if (operand.operand->buffer == e.workspace && at + operand.extent.lo < end && at + operand.extent.hi > begin) {
        call_.refuse(rule::kWorkspace, "{} {} is in the workspace; use other memory", operand.role, operand.index);
      }
    }
  }

  void check_scalars() {
    if (desc_.scalar_count == 0) return;
    if (execution_.scalars == nullptr) {
      call_.refuse(rule::kScalars, "{} scalars are described and none is given; pass them", desc_.scalar_count);
    }
    const OpRow* row = op_row(desc_.op);
    const uint32_t dtype = row == nullptr            ? 0
                           : row->scalar_dtype != 0  ? row->scalar_dtype
                           : desc_.output_count != 0 ? desc_.outputs[0].dtype
                                                     : 0;
    const uint64_t bytes = std::max<uint32_t>(dtype_bytes(dtype), 1);
    for (uint32_t i = 0; i < desc_.scalar_count; ++i) {
      const bp_operand& scalar = execution_.scalars[i];
      if ((desc_.flags & BP_OP_FLAG_DEVICE_SCALARS) == 0) {
        if (scalar.buffer != nullptr) {
          call_.refuse(rule::kScalars, "scalar {} is in a buffer; pass an immediate, or plan with DEVICE_SCALARS", i);
        }
        continue;
      }
      if (scalar.buffer == nullptr) {
        call_.refuse(rule::kScalars, "scalar {} is an immediate and the plan has DEVICE_SCALARS; pass a buffer", i);
      }
      const CheckedBuffer& buffer = use_buffer("scalar", i, scalar);
      if (scalar.offset > buffer.bytes || bytes > buffer.bytes - scalar.offset || scalar.offset % bytes != 0) {
        call_.refuse(rule::kScalars,
                     "scalar {} of {} bytes at offset {} of a buffer of {} bytes; keep it inside and aligned", i, bytes,
                     scalar.offset, buffer.bytes);
      }
    }
  }

  Call& call_;
  const bp_execution& execution_;
  const bp_op_desc& desc_;
  const uint64_t workspace_;
  std::vector<Placed> placed_;
  std::vector<CheckedBuffer*> used_;
};

}  // namespace

std::vector<CheckedBuffer*> check_execution(Call& call, const bp_execution& execution, const bp_op_desc& desc,
                                            uint64_t workspace) {
  return ExecutionCheck(call, execution, desc, workspace).run();
}

}  // namespace backplane::core::layers
