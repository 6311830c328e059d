// SPDX-License-Identifier: Apache-2.0
// Checks an operator descriptor against the table: counts, ranks, dtypes, shapes, attributes.
#pragma once

#include <backplane/kit/op_table.hpp>
#include <backplane/rules/composite.hpp>
#include <backplane/rules/mixed.hpp>

namespace backplane::kit {

// The two dtypes that choose a kernel: T of the dtype rule, and the one that the rule leaves free (cast and sum: the
// output; gather and scatter: the index; matmul: the output). Where nothing is free, second is T.
struct KernelDtypes {
  uint32_t first = 0;
  uint32_t second = 0;
};

// A descriptor that passed, with its attributes copied.
struct CheckedDesc {
  const OpInfo* op = nullptr;
  bp_op_desc desc{};
  KernelDtypes dtypes;
  uint32_t mixed = 0;  // rules::Mixed
  Attributes attributes{};
};

using rules::shape_text;  // "[2,3]"

namespace detail {

inline bool same_shape(const bp_tensor_desc& a, const bp_tensor_desc& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}
inline bool same_but(const bp_tensor_desc& a, const bp_tensor_desc& b, uint32_t axis) {
  if (a.rank != b.rank) return false;
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (i != axis && a.shape[i] != b.shape[i]) return false;
  }
  return true;
}

inline Status check_view(const OpInfo& op, const bp_tensor_desc& view, const char* role, uint32_t index, bool input) {
  if (view.rank > BP_MAX_RANK) {
    return invalid_argument(op.name, ": ", role, " ", index, " has rank ", uint32_t{view.rank}, ", at most ",
                            BP_MAX_RANK, " is legal");
  }
  if (view.dtype == 0) {
    if (index >= (input ? op.inputs_min : op.outputs_min)) return {};  // absent
    return invalid_argument(op.name, ": ", role, " ", index, " has no dtype, which only optional operands may");
  }
  if (dtype_bytes(view.dtype) == 0) {
    return unsupported(op.name, ": ", role, " ", index, " has the dtype ", view.dtype,
                       ", which this plugin does not know: update the plugin");
  }
  if ((view.flags & ~(input ? BP_DESC_IMMEDIATE : 0)) != 0) {
    return unsupported(op.name, ": ", role, " ", index, " has the flags ", view.flags,
                       ", which this plugin does not know");
  }
  int64_t count = 1;
  bool far = false, empty = false;
  for (uint32_t i = 0; i < view.rank; ++i) {
    if (view.shape[i] < 0) {
      return invalid_argument(op.name, ": ", role, " ", index, " has the negative extent ", view.shape[i]);
    }
    empty |= view.shape[i] == 0;
    far |= __builtin_mul_overflow(count, view.shape[i], &count);
    if ((view.flags & BP_DESC_IMMEDIATE) != 0 && view.shape[i] > 1 && view.strides[i] != 0) {
      return invalid_argument(op.name, ": immediate ", role, " ", index, " has the stride ", view.strides[i],
                              " in dimension ", i, "; every stride of an immediate is 0");
    }
  }
  if (far && !empty) {
    return invalid_argument(op.name, ": ", role, " ", index, " of ", shape_text(view),
                            " has more elements than 63 bits count");
  }
  return {};
}

// Runs a check of rules/composite.hpp.
template <class Check>
Status obeys(const OpInfo& op, const Check& check) {
  try {
    check();
    return {};
  } catch (const rules::Violation& violation) {
    return invalid_argument(op.name, ": ", violation.what());
  }
}

inline Status check_counts(const OpInfo& op, const bp_op_desc& desc) {
  const auto in_range = [](uint32_t n, uint32_t lo, uint32_t hi) { return n >= lo && n <= hi; };
  if (!in_range(desc.input_count, op.inputs_min, op.inputs_max)) {
    return invalid_argument(op.name, ": ", desc.input_count, " inputs given, it takes ", op.inputs_min, " to ",
                            op.inputs_max);
  }
  if (!in_range(desc.output_count, op.outputs_min, op.outputs_max)) {
    return invalid_argument(op.name, ": ", desc.output_count, " outputs given, it has ", op.outputs_min, " to ",
                            op.outputs_max);
  }
  if ((desc.input_count != 0 && desc.inputs == nullptr) || desc.outputs == nullptr) {
    return invalid_argument(op.name, ": the array of views is null");
  }
  if (desc.scalar_count > op.scalars) {
    return unsupported(op.name, ": ", desc.scalar_count, " scalars given, this plugin knows ", op.scalars);
  }
  return {};
}

// The dtype rule: which dtype each operand must have.
inline Status check_dtypes(const OpInfo& op, const bp_op_desc& desc, const Attributes& attributes, KernelDtypes& out) {
  const auto in = [&](uint32_t i) -> uint32_t { return desc.inputs[i].dtype; };
  const auto result = [&](uint32_t i) -> uint32_t { return desc.outputs[i].dtype; };
  constexpr uint32_t kIndexes = BP_DTYPE_BIT(BP_I32) | BP_DTYPE_BIT(BP_I64);
  constexpr uint32_t kHalves = BP_DTYPE_BIT(BP_F16) | BP_DTYPE_BIT(BP_BF16);
  const uint32_t t = op.inputs_max == 0                                        ? result(0)
                     : op.rule == BP_RULE_SELECT || op.rule == BP_RULE_SCATTER ? in(1)
                                                                               : in(0);
  const auto wrong = [&](const char* what, uint32_t dtype, uint32_t legal) {
    return invalid_argument(op.name, ": ", what, " is ", dtype_name(dtype), ", legal is ", dtype_list(legal));
  };
  if (op.rule == BP_RULE_COMPOSITE) {  // quantized operands come before the float ones
    out = {t, result(0)};
    return obeys(op, [&] { rules::check_composite_dtypes(desc, op.dtypes); });
  }
  if (!in_set(op.dtypes, t)) return wrong("its dtype", t, op.dtypes);
  const uint32_t only_t = BP_DTYPE_BIT(t);
  const auto first = [&](uint32_t legal) {
    return in_set(legal, result(0)) ? Status{} : wrong("the output", result(0), legal);
  };
  out = {t, t};
  switch (op.rule) {
    case BP_RULE_SAME:
      for (uint32_t i = 0; i < desc.input_count; ++i) {
        if (in(i) != t) return wrong("an input", in(i), only_t);
      }
      return first(only_t);
    case BP_RULE_WIDEN:
      return first(only_t | (in_set(kHalves, t) ? BP_DTYPE_BIT(BP_F32) : 0));
    case BP_RULE_CAST:
      out.second = result(0);
      return first(op.dtypes);
    case BP_RULE_GATHER:
      out.second = in(1);
      if (!in_set(kIndexes, in(1))) return wrong("the index", in(1), kIndexes);
      return first(only_t);
    case BP_RULE_SCATTER:
      out.second = in(0);
      if (!in_set(kIndexes, in(0))) return wrong("the index", in(0), kIndexes);
      if (t == BP_BOOL && attributes.as<bp_scatter_attributes>().mode != BP_SCATTER_SET) {
        return invalid_argument("scatter: bool is legal with mode SET only");
      }
      return first(only_t);
    case BP_RULE_COMPARE:
      if (in(1) != t) return wrong("the second input", in(1), only_t);
      return first(BP_DTYPE_BIT(BP_BOOL));
    case BP_RULE_SELECT:
      if (in(0) != BP_BOOL) return wrong("the condition", in(0), BP_DTYPE_BIT(BP_BOOL));
      if (in(2) != t) return wrong("the third input", in(2), only_t);
      return first(only_t);
    case BP_RULE_SUM:
      out.second = result(0);
      if (in_set(kHalves, t)) return first(only_t | BP_DTYPE_BIT(BP_F32));
      if (in_set(BP_SET_FLOATS, t)) return first(only_t);
      return first(t == BP_BOOL ? kIndexes : only_t | kIndexes);
    case BP_RULE_INDEX:
      return first(BP_DTYPE_BIT(BP_I32));
    case BP_RULE_SORT:
      if (result(1) != BP_I32) return wrong("the second output", result(1), BP_DTYPE_BIT(BP_I32));
      return first(only_t);
    case BP_RULE_MATMUL: {
      out.second = result(0);
      const uint32_t b = in_set(BP_SET_FLOATS, t) ? only_t : BP_DTYPE_BIT(BP_I8);
      if (!in_set(b, in(1))) return wrong("the second input", in(1), b);
      if (in_set(kHalves, t)) return first(only_t | BP_DTYPE_BIT(BP_F32));
      return first(in_set(BP_SET_FLOATS, t) ? only_t : BP_DTYPE_BIT(BP_I32));
    }
    default:
      return {};
  }
}

inline Status check_axis(const OpInfo& op, uint32_t axis, uint32_t rank) {
  if (axis < rank) return {};
  return invalid_argument(op.name, ": axis ", axis, " is not below the rank ", rank);
}

// The axis of the operators that have one, else 0.
inline uint32_t axis_of(const OpInfo& op, const Attributes& attributes) {
  return op.has_axis ? attributes.as<bp_axis_attributes>().axis : 0;
}

inline Status check_reduced(const OpInfo& op, const bp_tensor_desc& in, const bp_tensor_desc& out, uint32_t axes) {
  bool fits = in.rank == out.rank;
  for (uint32_t i = 0; fits && i < in.rank; ++i) fits = out.shape[i] == ((axes >> i & 1u) ? 1 : in.shape[i]);
  if (fits) return {};
  return invalid_argument(op.name, ": input ", shape_text(in), " reduced over the axes mask ", axes, " does not give ",
                          shape_text(out), "; reduced dimensions stay with extent 1");
}

inline Status check_matmul(const bp_tensor_desc& a, const bp_tensor_desc& b, const bp_tensor_desc& out) {
  const uint32_t rank = out.rank;
  bool fits = rank >= 2 && a.rank == rank && b.rank == rank;
  for (uint32_t i = 0; fits && i + 2 < rank; ++i) fits = a.shape[i] == out.shape[i] && b.shape[i] == out.shape[i];
  fits = fits && a.shape[rank - 2] == out.shape[rank - 2] && a.shape[rank - 1] == b.shape[rank - 2] &&
         b.shape[rank - 1] == out.shape[rank - 1];
  if (fits) return {};
  return invalid_argument("matmul: ", shape_text(a), " x ", shape_text(b), " does not give ", shape_text(out),
                          "; legal is [..,M,K] x [..,K,N] to [..,M,N]");
}

}  // namespace detail

// The shape rule. Repeated at each execution of an any-size plan, so it is quick.
inline Status check_shapes(const OpInfo& op, const bp_op_desc& desc, const Attributes& attributes) {
  using namespace detail;
  const bp_tensor_desc* in = desc.inputs;
  const bp_tensor_desc& out = desc.outputs[0];
  const auto differ = [&](const bp_tensor_desc& a, const bp_tensor_desc& b) {
    return invalid_argument(op.name, ": the shapes ", shape_text(a), " and ", shape_text(b),
                            " do not fit; broadcasting is the caller's, by stride 0");
  };
  const uint32_t axis = axis_of(op, attributes);
  if (op.has_axis) {
    Status status = check_axis(op, axis, op.id == BP_OP_SCATTER || desc.input_count == 0 ? out.rank : in[0].rank);
    if (!status.ok()) return status;
  }
  switch (op.shape) {
    case BP_SHAPE_ELEMENTWISE:
      for (uint32_t i = 0; i < desc.input_count; ++i) {
        if (!same_shape(in[i], out)) return differ(in[i], out);
      }
      return {};
    case BP_SHAPE_GATHER:
      if (!same_shape(in[1], out)) return differ(in[1], out);
      return same_but(in[0], out, axis) ? Status{} : differ(in[0], out);
    case BP_SHAPE_SCATTER:
      if (!same_shape(in[0], in[1])) return differ(in[0], in[1]);
      return same_but(in[0], out, axis) ? Status{} : differ(in[0], out);
    case BP_SHAPE_REDUCE: {
      const uint32_t axes = attributes.as<bp_reduce_attributes>().axes;
      if (in[0].rank < 8 && (axes >> in[0].rank) != 0) {
        return invalid_argument(op.name, ": the axes mask ", axes, " names a dimension beyond the rank ",
                                uint32_t{in[0].rank});
      }
      return check_reduced(op, in[0], out, axes);
    }
    case BP_SHAPE_ARG:
      if (in[0].shape[axis] == 0) return invalid_argument(op.name, ": axis ", axis, " is empty, so it has no extremum");
      return check_reduced(op, in[0], out, 1u << axis);
    case BP_SHAPE_MATMUL:
      return check_matmul(in[0], in[1], out);
    case BP_SHAPE_SORT:
      if (!same_shape(in[0], out)) return differ(in[0], out);
      return same_shape(in[0], desc.outputs[1]) ? Status{} : differ(in[0], desc.outputs[1]);
    case BP_SHAPE_COMPOSITE:
      return obeys(op, [&] { rules::check_composite_shapes(desc, attributes.bytes); });
    default:
      return {};
  }
}

// Everything about a descriptor that does not depend on the plugin.
inline Status check_desc(const bp_op_desc* given, CheckedDesc& out) {
  Status status = read_input(given, BP_OP_DESC_MIN_SIZE, "bp_op_desc", out.desc);
  if (!status.ok()) return status;
  const bp_op_desc& desc = out.desc;
  out.op = find_op(desc.op);
  if (out.op == nullptr) return unsupported("operator ", desc.op, " is not in this plugin's table: update the plugin");
  const OpInfo& op = *out.op;
  if ((desc.flags & ~uint64_t{BP_OP_FLAGS_ALL}) != 0) {
    return unsupported(op.name, ": the flags ", desc.flags, " hold a bit that this plugin does not know");
  }
  if (status = detail::check_counts(op, desc); !status.ok()) return status;
  for (uint32_t i = 0; i < desc.input_count; ++i) {
    if (status = detail::check_view(op, desc.inputs[i], "input", i, true); !status.ok()) return status;
  }
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    if (status = detail::check_view(op, desc.outputs[i], "output", i, false); !status.ok()) return status;
    if (desc.outputs[i].alias > desc.input_count) {
      return invalid_argument(op.name, ": output ", i, " aliases input ", desc.outputs[i].alias - 1, " of ",
                              desc.input_count);
    }
  }
  if (op.attribute_bytes != 0) {
    if (status = op.check_attributes(desc.attributes, out.attributes); !status.ok()) return status;
  } else if (desc.attributes != nullptr) {
    return invalid_argument(op.name, " has no attributes, so the pointer must be null");
  }
  if (status = detail::check_dtypes(op, desc, out.attributes, out.dtypes); !status.ok()) return status;
  out.mixed = rules::mixed_of(desc);
  return check_shapes(op, desc, out.attributes);
}

}  // namespace backplane::kit
