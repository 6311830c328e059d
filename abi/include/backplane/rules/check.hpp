// SPDX-License-Identifier: Apache-2.0
// All checks of an operator's descriptor that do not depend on a device. The host makes these
// checks before it calls a plugin. The author kit makes the same checks in plan_create.
#pragma once

#include <backplane/rules/attributes.hpp>
#include <backplane/rules/canonical.hpp>
#include <backplane/rules/composite.hpp>
#include <backplane/rules/primitives.hpp>

namespace backplane::rules {

namespace detail {

inline void check_count(const char* noun, uint32_t count, uint32_t least, uint32_t most) {
  if (count >= least && count <= most) return;
  const std::string takes =
      least == most ? text("takes ", least, ' ', noun) : text("takes ", least, " to ", most, ' ', noun);
  if (count < least) invalid(takes, ", ", count, " given");
  unsupported(takes, ", ", count, " given");
}

// Checks the form of a packed operand. Only the plugin knows the layout.
inline void check_packed(const char* role, uint32_t index, const bp_tensor_desc& view, bool input) {
  if (!input) unsupported(role, ' ', index, " is packed; only inputs may be");
  if (view.rank < 2 || element_count(view) == 0 || (view.flags & BP_DESC_IMMEDIATE) != 0) {
    unsupported(role, ' ', index, " with shape ", shape_text(view),
                " is packed; a packed operand has rank 2 or more, elements and a buffer");
  }
  const bool rest = std::any_of(view.strides + 2, view.strides + view.rank, [](int64_t stride) { return stride != 0; });
  if (view.strides[0] <= 0 || rest) {
    unsupported(role, ' ', index, " is packed, with strides ", stride_text(view),
                "; pass the view that its packing returned: the size, the layout and zeros");
  }
}

inline void check_view(const char* role, uint32_t index, const bp_tensor_desc& view, uint32_t required, bool input) {
  if (view.dtype == 0) {
    if (index < required) invalid(role, ' ', index, " is absent: it has no dtype, which only optional operands may");
    return;
  }
  if (view.rank > BP_MAX_RANK) {
    invalid(role, ' ', index, " has rank ", uint32_t{view.rank}, "; the most is ", BP_MAX_RANK);
  }
  const uint32_t bytes = dtype_bytes(view.dtype);
  if (bytes == 0) unsupported(role, ' ', index, " has dtype ", view.dtype, ", which is none");
  if (!input && (view.flags & BP_DESC_IMMEDIATE) != 0) {
    unsupported(role, ' ', index, " is an immediate; give it a buffer");
  }
  if ((view.flags & ~(BP_DESC_IMMEDIATE | BP_DESC_PACKED | BP_DESC_HINTS)) != 0) {
    unsupported(role, ' ', index, " has flags ", mask_text(view.flags), ", of which bits are unknown");
  }
  for (uint32_t d = 0; d < view.rank; ++d) {
    if (view.shape[d] < 0) {
      invalid(role, ' ', index, " has shape ", shape_text(view), ": extent ", d, " is negative");
    }
  }
  if ((view.flags & BP_DESC_IMMEDIATE) != 0) {
    const bool strides =
        std::any_of(view.strides, view.strides + view.rank, [](int64_t stride) { return stride != 0; });
    if (strides || bytes > sizeof(uint64_t)) {
      invalid(role, ' ', index, " is an immediate ", dtype_name(view.dtype), " with strides ", stride_text(view),
              "; an immediate has strides 0 and at most 8 bytes");
    }
  }
  if (is_packed(view)) check_packed(role, index, view, input);
  const int64_t count = element_count(view);
  Extent extent{};
  int64_t total = 0;
  if (count < 0 || __builtin_mul_overflow(count, static_cast<int64_t>(bytes), &total) ||
      !extent_of(view, bytes, &extent)) {
    unsupported(role, ' ', index, " with shape ", shape_text(view), " and strides ", stride_text(view),
                " does not fit 63 bits of address");
  }
}

}  // namespace detail

// Checks flags, counts and views of a descriptor in canonical form. Reads no views beyond the
// operator's maximum counts. Throws Violation.
inline void check_operands(const OpInfo& op, const bp_op_desc& desc) {
  if ((desc.flags & ~uint64_t{BP_OP_FLAGS_ALL}) != 0) {
    unsupported("flags ", mask_text(desc.flags), " have bits that are unknown; known are ", mask_text(BP_OP_FLAGS_ALL));
  }
  detail::check_count("inputs", desc.input_count, op.inputs_min, op.inputs_max);
  detail::check_count("outputs", desc.output_count, op.outputs_min, op.outputs_max);
  detail::check_count("scalars", desc.scalar_count, op.scalars_min, op.scalars_max);
  if ((desc.inputs == nullptr && desc.input_count != 0) || desc.outputs == nullptr) {
    invalid("the array of ", desc.outputs == nullptr ? "outputs" : "inputs", " is null");
  }
  for (uint32_t i = 0; i < desc.input_count; ++i) {
    detail::check_view("input", i, desc.inputs[i], op.inputs_min, true);
  }
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    detail::check_view("output", i, desc.outputs[i], op.outputs_min, false);
    const uint32_t alias = desc.outputs[i].alias;
    if (alias > desc.input_count) {
      invalid("output ", i, " names input ", alias - 1, " as identical, of ", desc.input_count, " inputs");
    }
    if (alias != 0 && is_packed(desc.inputs[alias - 1])) {
      unsupported("output ", i, " names input ", alias - 1, " as identical, which is packed and cannot be an output");
    }
  }
}

// Checks that shapes agree. An execution of an any-size plan needs this check too, because its
// shapes may differ from the plan's shapes. Throws Violation.
inline void check_shapes(const OpInfo& op, const bp_op_desc& desc, const void* attributes) {
  if (op.shape_rule == BP_SHAPE_COMPOSITE) return check_composite_shapes(desc, attributes);
  check_primitive_shapes(op, desc, attributes);
}

// Checks a descriptor in canonical form (trim_operands); `attributes` are from copy_attributes.
// Throws Violation.
inline void check(const OpInfo& op, const bp_op_desc& desc, const void* attributes) {
  check_operands(op, desc);
  if (op.dtype_rule == BP_RULE_COMPOSITE) {
    check_composite_dtypes(desc, op.dtypes);
  } else {
    check_primitive_dtypes(op, desc, attributes);
  }
  check_shapes(op, desc, attributes);
}

// True if the operator reads an output before it writes that output.
constexpr bool reads_outputs(const OpInfo& op) noexcept { return op.id == BP_OP_SCATTER || op.id == BP_OP_ADAMW; }

}  // namespace backplane::rules
