// SPDX-License-Identifier: Apache-2.0
// Checks an operator descriptor against the rules of the ABI, and derives the keys that select its
// kernel.
#pragma once

#include <backplane/kit/op_table.hpp>
#include <backplane/rules/check.hpp>
#include <backplane/rules/mixed.hpp>

namespace backplane::kit {

// The two dtypes that select a kernel. `first` is the dtype T of the operator's dtype rule (BP_RULE_*). `second` is
// the dtype that T does not determine: the output's dtype for `cast`, sums, `matmul` and composites, and the index's
// dtype for `gather` and `scatter`. If T determines all dtypes, `second` is T.
struct KernelDtypes {
  uint32_t first = 0;
  uint32_t second = 0;
};

// A valid descriptor in canonical form, with a copy of its attributes.
struct CheckedDesc {
  const OpInfo* op = nullptr;
  bp_op_desc desc{};
  KernelDtypes dtypes;
  uint32_t mixed = 0;  // mask of rules::Mixed
  Attributes attributes{};
};

using rules::shape_text;  // returns text such as "[2,3]"

inline KernelDtypes kernel_dtypes(const OpInfo& op, const bp_op_desc& desc) {
  const uint32_t t = rules::dtype_of(op, desc), result = desc.outputs[0].dtype;
  const bool index = op.dtype_rule == BP_RULE_GATHER || op.dtype_rule == BP_RULE_SCATTER;
  // Composites are included, because T may be a quantized dtype while the output is a float.
  const bool output = op.dtype_rule == BP_RULE_CAST || op.dtype_rule == BP_RULE_SUM ||
                      op.dtype_rule == BP_RULE_MATMUL || op.dtype_rule == BP_RULE_COMPOSITE;
  return {t, index ? desc.inputs[op.dtype_rule == BP_RULE_GATHER].dtype : output ? result : t};
}

inline Status packed_unread(const CheckedDesc& checked, uint32_t input) {
  return unsupported(checked.op->name, ": input ", input, " is packed, and this plugin's ", checked.op->name, " on ",
                     dtype_name(checked.dtypes.first), " reads only plain operands; pass the plain operand")
      .with_op(checked.desc.op);
}

// Checks a descriptor, except for the properties that depend on the plugin, and fills `out`. If
// `packed` is false, returns UNSUPPORTED for a descriptor with a packed input.
inline Status check_desc(const bp_op_desc* given, CheckedDesc& out, bool packed = false) {
  Status status = read_input(given, BP_OP_DESC_MIN_SIZE, "bp_op_desc", out.desc);
  if (!status.ok()) return status;
  bp_op_desc& desc = out.desc;
  out.op = find_op(desc.op);
  if (out.op == nullptr) return unsupported("operator ", desc.op, " is not in this plugin's table: update the plugin");
  rules::trim_operands(desc);
  try {
    rules::copy_attributes(*out.op, desc.attributes, out.attributes.bytes);
    rules::check(*out.op, desc, out.attributes.bytes);
  } catch (const rules::Violation& violation) {
    return {violation.status(), text(out.op->name, ": ", violation.what())};
  }
  out.dtypes = kernel_dtypes(*out.op, desc);
  out.mixed = rules::mixed_of(desc) | rules::additions_of(desc, out.attributes.bytes);
  for (uint32_t i = 0; !packed && i < desc.input_count; ++i) {
    if (rules::is_packed(desc.inputs[i])) return packed_unread(out, i);
  }
  return {};
}

}  // namespace backplane::kit
