// SPDX-License-Identifier: Apache-2.0
// Converts violations of the ABI's rules to Error. Also checks the addresses, which only the host
// knows.
#include "dispatch/validate.hpp"

#include "base/error.hpp"
#include "base/strided_view.hpp"

namespace backplane::core {

namespace {

// Runs a check of the ABI's rules. If the check throws a Violation, throws an Error whose message
// begins with the operator's name.
template <class Check>
void obey(const OpRow& row, const Check& check) {
  try {
    check();
  } catch (const rules::Violation& violation) {
    throw Error(violation.status(), "{}: {}", row.name, violation.what()).with_op(row.id);
  }
}

// Checks that the address of element 0 has the natural alignment of the dtype.
void check_alignment(const char* role, uint32_t index, const bp_tensor_desc& view) {
  if (view.dtype == 0 || (view.flags & BP_DESC_IMMEDIATE) != 0 || rules::element_count(view) == 0) return;
  const uint32_t needed = rules::natural_alignment(dtype_bytes(view.dtype));
  if (view.alignment_log2 >= 31 || (1u << view.alignment_log2) >= needed) return;
  rules::unsupported(role, ' ', index, " starts at an address aligned to ", 1u << view.alignment_log2, " bytes; ",
                     dtype_name(view.dtype), " needs ", needed);
}

void check_output(const OpRow& row, uint32_t index, const bp_tensor_desc& view) {
  if (view.dtype == 0) return;
  const Overlap overlap = self_overlap(view);
  if (overlap != Overlap::no) {
    rules::invalid("output ", index, " with shape ", rules::shape_text(view), " and strides ", rules::stride_text(view),
                   overlap == Overlap::yes
                       ? " has two elements at one address; write to distinct ones"
                       : " may have two elements at one address, and the check would take too long");
  }
  if (view.alias != 0 && row.shape_rule != BP_SHAPE_ELEMENTWISE) {
    rules::invalid("output ", index, " is input ", view.alias - 1, ": only elementwise operators work in place");
  }
}

}  // namespace

const OpRow& require_op(uint32_t op) {
  const OpRow* row = op_row(op);
  if (row == nullptr) {
    throw Error(BP_UNSUPPORTED, "operator {} is none that this library knows; bph_op_by_name gives the id of a name",
                op)
        .with_op(op);
  }
  return *row;
}

void read_attributes(const OpRow& row, const void* attributes, unsigned char* out) {
  obey(row, [&] { rules::copy_attributes(row, attributes, out); });
}

void validate(const OpRow& row, const bp_op_desc& desc) {
  obey(row, [&] {
    rules::check(row, desc, desc.attributes);
    for (uint32_t i = 0; i < desc.input_count; ++i) check_alignment("input", i, desc.inputs[i]);
    for (uint32_t i = 0; i < desc.output_count; ++i) check_alignment("output", i, desc.outputs[i]);
    for (uint32_t i = 0; i < desc.output_count; ++i) check_output(row, i, desc.outputs[i]);
  });
}

}  // namespace backplane::core
