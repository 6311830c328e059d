// SPDX-License-Identifier: Apache-2.0
// The rules of ops.h, and what to tell a caller who broke one.
#include "validate.hpp"

#include <fmt/format.h>

#include <backplane/rules/composite.hpp>
#include <cmath>
#include <cstring>

#include "error.hpp"
#include "layout.hpp"
#include "shape_text.hpp"

namespace bp {

namespace {

class Checker {
 public:
  Checker(const OpRow& row, const bp_op_desc& desc) : row_(row), desc_(desc) {}

  void run() {
    check_counts();
    for (uint32_t i = 0; i < desc_.input_count; ++i) check_view("input", i, desc_.inputs[i], row_.inputs_min);
    for (uint32_t i = 0; i < desc_.output_count; ++i) check_view("output", i, desc_.outputs[i], row_.outputs_min);
    for (uint32_t i = 0; i < desc_.output_count; ++i) check_output(i);
    check_dtypes();
    check_shapes();
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    char text[400];
    const auto end = fmt::format_to_n(text, sizeof(text) - 1, format, std::forward<Args>(args)...);
    *end.out = '\0';
    throw Error(BP_INVALID_ARGUMENT, "{}: {}", row_.name, static_cast<const char*>(text)).with_op(row_.id);
  }

  void check_counts() const {
    const auto check = [this](const char* noun, uint32_t count, uint32_t least, uint32_t most) {
      if (count >= least && count <= most) return;
      if (least == most) fail("takes {} {}, {} given", least, noun, count);
      fail("takes {} to {} {}, {} given", least, most, noun, count);
    };
    check("inputs", desc_.input_count, row_.inputs_min, row_.inputs_max);
    check("outputs", desc_.output_count, row_.outputs_min, row_.outputs_max);
    check("scalars", desc_.scalar_count, row_.scalars, row_.scalars);
    if ((desc_.flags & ~static_cast<uint64_t>(BP_OP_FLAGS_ALL)) != 0) {
      throw Error(BP_UNSUPPORTED, "{}: flags {:#x} has bits that this library does not know; the known ones are {:#x}",
                  row_.name, desc_.flags, BP_OP_FLAGS_ALL)
          .with_op(row_.id);
    }
  }

  void check_view(const char* role, uint32_t index, const bp_tensor_desc& view, uint32_t required) const {
    if (view.dtype == 0 && index >= required) return;  // absent
    if (view.rank > BP_MAX_RANK) fail("{} {} has rank {}; the most is {}", role, index, view.rank, BP_MAX_RANK);
    const uint32_t bytes = dtype_bytes(view.dtype);
    if (bytes == 0) fail("{} {} has dtype {}, which is none", role, index, view.dtype);
    for (uint32_t d = 0; d < view.rank; ++d) {
      if (view.shape[d] < 0) {
        fail("{} {} has shape {}: extent {} is negative", role, index, shape_text(view).text, d);
      }
    }
    const int64_t count = element_count(view);
    Extent extent;
    int64_t total = 0;
    if (count < 0 || __builtin_mul_overflow(count, static_cast<int64_t>(bytes), &total) ||
        !extent_of(view, bytes, &extent)) {
      fail("{} {} with shape {} and strides {} does not fit 63 bits of address", role, index, shape_text(view).text,
           stride_text(view).text);
    }
    if ((view.flags & BP_DESC_IMMEDIATE) == 0 && count > 0 && (1u << view.alignment_log2) < bytes) {
      fail("{} {} starts at an address aligned to {} bytes; {} needs {}", role, index, 1u << view.alignment_log2,
           dtype_name(view.dtype), bytes);
    }
  }

  void check_output(uint32_t index) const {
    const bp_tensor_desc& view = desc_.outputs[index];
    if (view.dtype == 0) return;
    if ((view.flags & BP_DESC_IMMEDIATE) != 0) fail("output {} is an immediate; give it a buffer", index);
    switch (self_overlap(view)) {
      case Answer::no:
        break;
      case Answer::yes:
        fail("output {} with shape {} and strides {} has two elements at one address; write to distinct ones", index,
             shape_text(view).text, stride_text(view).text);
      case Answer::unknown:
        fail(
            "output {} with shape {} and strides {} may have two elements at one address, and it takes too long to "
            "tell",
            index, shape_text(view).text, stride_text(view).text);
    }
    if (view.alias != 0 && row_.shape_rule != BP_SHAPE_ELEMENTWISE) {
      fail("output {} is input {}: only elementwise operators work in place", index, view.alias - 1);
    }
  }

  uint32_t in(uint32_t index) const { return desc_.inputs[index].dtype; }
  uint32_t out(uint32_t index = 0) const { return desc_.outputs[index].dtype; }

  void expect(const char* role, uint32_t index, uint32_t dtype, uint32_t wanted) const {
    if (dtype != wanted) fail("{} {} is {}; it must be {}", role, index, dtype_name(dtype), dtype_name(wanted));
  }
  void expect_in_set(const char* role, uint32_t index, uint32_t dtype, uint32_t set) const {
    if ((BP_DTYPE_BIT(dtype) & set) != 0) return;
    std::array<char, 120> names{};
    char* at = names.data();
    for (const DtypeRow& dtype_row : dtype_rows()) {
      if ((BP_DTYPE_BIT(dtype_row.id) & set) != 0) at = fmt::format_to(at, " {}", dtype_row.name);
    }
    fail("{} {} is {}; it may be one of{}", role, index, dtype_name(dtype), names.data());
  }
  void expect_index(const char* role, uint32_t index, uint32_t dtype) const {
    expect_in_set(role, index, dtype, BP_DTYPE_BIT(BP_I32) | BP_DTYPE_BIT(BP_I64));
  }

  void check_dtypes() const {
    const uint32_t count = desc_.input_count;
    const uint32_t t = row_.dtype_rule == BP_RULE_SELECT    ? in(1)
                       : row_.dtype_rule == BP_RULE_SCATTER ? out()
                       : count > 0                          ? in(0)
                                                            : out();
    if (row_.dtype_rule == BP_RULE_COMPOSITE) return;
    expect_in_set(count > 0 ? "input" : "output", row_.dtype_rule == BP_RULE_SELECT ? 1 : 0, t, row_.dtypes);
    switch (row_.dtype_rule) {
      case BP_RULE_SAME:
        for (uint32_t i = 1; i < count; ++i) expect("input", i, in(i), t);
        expect("output", 0, out(), t);
        break;
      case BP_RULE_CAST:
        expect_in_set("output", 0, out(), row_.dtypes);
        break;
      case BP_RULE_WIDEN:
        expect_in_set("output", 0, out(), BP_DTYPE_BIT(t) | (t == BP_F16 || t == BP_BF16 ? BP_DTYPE_BIT(BP_F32) : 0));
        break;
      case BP_RULE_GATHER:
        expect_index("input", 1, in(1));
        expect("output", 0, out(), t);
        break;
      case BP_RULE_SCATTER:
        expect_index("input", 0, in(0));
        expect("input", 1, in(1), t);
        if (t == BP_BOOL && static_cast<const bp_scatter_attributes*>(desc_.attributes)->mode != BP_SCATTER_SET) {
          fail("bool scatters with mode set only");
        }
        break;
      case BP_RULE_COMPARE:
        expect("input", 1, in(1), t);
        expect("output", 0, out(), BP_BOOL);
        break;
      case BP_RULE_SELECT:
        expect("input", 0, in(0), BP_BOOL);
        expect("input", 2, in(2), t);
        expect("output", 0, out(), t);
        break;
      case BP_RULE_SUM:
        check_sum(t);
        break;
      case BP_RULE_INDEX:
        expect("output", 0, out(), BP_I32);
        break;
      case BP_RULE_SORT:
        expect("output", 0, out(0), t);
        expect("output", 1, out(1), BP_I32);
        break;
      case BP_RULE_MATMUL:
        check_matmul_dtypes(t);
        break;
      default:
        break;
    }
  }

  void check_sum(uint32_t t) const {
    const uint32_t wide = BP_DTYPE_BIT(BP_I32) | BP_DTYPE_BIT(BP_I64);
    uint32_t allowed = BP_DTYPE_BIT(t);
    if (t == BP_F16 || t == BP_BF16) allowed |= BP_DTYPE_BIT(BP_F32);
    if ((BP_DTYPE_BIT(t) & BP_SET_INTS) != 0) allowed |= wide;
    if (t == BP_BOOL) allowed = wide;
    expect_in_set("output", 0, out(), allowed);
  }

  void check_matmul_dtypes(uint32_t t) const {
    if (t == BP_U8 || t == BP_I8) {
      expect("input", 1, in(1), BP_I8);
      expect("output", 0, out(), BP_I32);
      return;
    }
    expect("input", 1, in(1), t);
    uint32_t allowed = BP_DTYPE_BIT(t);
    if (t == BP_F16 || t == BP_BF16) allowed |= BP_DTYPE_BIT(BP_F32);
    expect_in_set("output", 0, out(), allowed);
  }

  void same_shape(const char* role_a, uint32_t a_index, const bp_tensor_desc& a, const char* role_b, uint32_t b_index,
                  const bp_tensor_desc& b, int but = -1) const {
    bool same = a.rank == b.rank;
    for (uint32_t d = 0; same && d < a.rank; ++d) same = static_cast<int>(d) == but || a.shape[d] == b.shape[d];
    if (same) return;
    if (but < 0) {
      fail("{} {} has shape {}, {} {} has {}: they must be equal (broadcast with stride 0 first)", role_a, a_index,
           shape_text(a).text, role_b, b_index, shape_text(b).text);
    }
    fail("{} {} has shape {}, {} {} has {}: they must be equal but along axis {}", role_a, a_index, shape_text(a).text,
         role_b, b_index, shape_text(b).text, but);
  }

  uint32_t axis(const bp_tensor_desc& of) const {
    // `axis` is the first field of each attribute struct that has one.
    const uint32_t value = static_cast<const bp_axis_attributes*>(desc_.attributes)->axis;
    if (value >= of.rank) fail("axis is {}; the rank is {}", value, of.rank);
    return value;
  }

  void check_shapes() const {
    const bp_tensor_desc* in = desc_.inputs;
    const bp_tensor_desc* out = desc_.outputs;
    switch (row_.shape_rule) {
      case BP_SHAPE_GENERATE:
        if (row_.id == BP_OP_IOTA) (void)axis(out[0]);
        break;
      case BP_SHAPE_ELEMENTWISE:
        for (uint32_t i = 0; i < desc_.input_count; ++i) same_shape("input", i, in[i], "output", 0, out[0]);
        if (row_.attributes->bytes != 0 && std::strcmp(row_.attributes->fields[0].name, "axis") == 0)
          (void)axis(out[0]);
        break;
      case BP_SHAPE_GATHER: {
        const uint32_t along = axis(in[0]);
        same_shape("input", 1, in[1], "output", 0, out[0]);
        same_shape("input", 0, in[0], "output", 0, out[0], static_cast<int>(along));
        break;
      }
      case BP_SHAPE_SCATTER: {
        const uint32_t along = axis(out[0]);
        same_shape("input", 0, in[0], "input", 1, in[1]);
        same_shape("input", 0, in[0], "output", 0, out[0], static_cast<int>(along));
        break;
      }
      case BP_SHAPE_REDUCE: {
        const uint32_t axes = static_cast<const bp_reduce_attributes*>(desc_.attributes)->axes;
        if (axes >> in[0].rank != 0) fail("axes is {:#b}; the rank is {}", axes, in[0].rank);
        check_reduced(axes);
        break;
      }
      case BP_SHAPE_ARG: {
        const uint32_t along = axis(in[0]);
        if (in[0].shape[along] == 0)
          fail("axis {} of shape {} is empty: there is no index to give", along, shape_text(in[0]).text);
        check_reduced(1u << along);
        break;
      }
      case BP_SHAPE_MATMUL:
        check_matmul_shapes();
        break;
      case BP_SHAPE_SORT:
        (void)axis(in[0]);
        same_shape("input", 0, in[0], "output", 0, out[0]);
        same_shape("input", 0, in[0], "output", 1, out[1]);
        break;
      default:
        break;
    }
  }

  void check_reduced(uint32_t axes) const {
    const bp_tensor_desc& from = desc_.inputs[0];
    const bp_tensor_desc& to = desc_.outputs[0];
    bool right = from.rank == to.rank;
    for (uint32_t d = 0; right && d < from.rank; ++d)
      right = to.shape[d] == ((axes >> d & 1u) != 0 ? 1 : from.shape[d]);
    if (!right) {
      fail("output 0 has shape {}; input 0 has {} and the reduced axes {:#b} keep extent 1", shape_text(to).text,
           shape_text(from).text, axes);
    }
  }

  void check_matmul_shapes() const {
    const bp_tensor_desc& a = desc_.inputs[0];
    const bp_tensor_desc& b = desc_.inputs[1];
    const bp_tensor_desc& c = desc_.outputs[0];
    const uint32_t rank = c.rank;
    bool right = rank >= 2 && a.rank == rank && b.rank == rank;
    for (uint32_t d = 0; right && d + 2 < rank; ++d) right = a.shape[d] == c.shape[d] && b.shape[d] == c.shape[d];
    right = right && a.shape[rank - 2] == c.shape[rank - 2] && b.shape[rank - 1] == c.shape[rank - 1] &&
            a.shape[rank - 1] == b.shape[rank - 2];
    if (!right) {
      fail("{} times {} to {}: they must be [..,M,K], [..,K,N] and [..,M,N] of one rank", shape_text(a).text,
           shape_text(b).text, shape_text(c).text);
    }
  }

  const OpRow& row_;
  const bp_op_desc& desc_;
};

double field_value(const AttributeField& field, const unsigned char* at) {
  switch (field.type) {
    case AttributeField::Type::u32:
    case AttributeField::Type::reserved: {
      uint32_t value;
      std::memcpy(&value, at, sizeof(value));
      return value;
    }
    case AttributeField::Type::i32: {
      int32_t value;
      std::memcpy(&value, at, sizeof(value));
      return value;
    }
    case AttributeField::Type::f32: {
      float value;
      std::memcpy(&value, at, sizeof(value));
      return static_cast<double>(value);
    }
    case AttributeField::Type::i64: {
      int64_t value;
      std::memcpy(&value, at, sizeof(value));
      return static_cast<double>(value);
    }
  }
  return 0;
}

size_t field_bytes(AttributeField::Type type) { return type == AttributeField::Type::i64 ? 8 : 4; }

}  // namespace

const OpRow& require_op(uint32_t op) {
  const OpRow* row = op_row(op);
  if (row == nullptr) {
    throw Error(BP_INVALID_ARGUMENT, "operator {} does not exist; bph_op_by_name gives the id of a name", op)
        .with_op(op);
  }
  return *row;
}

void read_attributes(const OpRow& row, const void* attributes, unsigned char* out) {
  const AttributeLayout& layout = *row.attributes;
  if (layout.bytes == 0) {
    if (attributes == nullptr) return;
    throw Error(BP_INVALID_ARGUMENT, "{}: takes no attributes; pass null", row.name).with_op(row.id);
  }
  if (attributes == nullptr) {
    throw Error(BP_INVALID_ARGUMENT, "{}: attributes are null; pass a bp_{}_attributes", row.name, layout.stem)
        .with_op(row.id);
  }
  uint32_t size;
  std::memcpy(&size, attributes, sizeof(size));
  if (size < layout.bytes) {
    throw Error(BP_INVALID_ARGUMENT, "{}: bp_{}_attributes.struct_size is {}; set it to sizeof, {}", row.name,
                layout.stem, size, layout.bytes)
        .with_op(row.id);
  }
  const auto* bytes = static_cast<const unsigned char*>(attributes);
  for (size_t i = layout.bytes; i < size; ++i) {
    if (bytes[i] != 0) {
      throw Error(BP_UNSUPPORTED, "{}: bp_{}_attributes has non-zero bytes beyond the {} that this library knows",
                  row.name, layout.stem, layout.bytes)
          .with_op(row.id);
    }
  }
  std::memcpy(out, attributes, layout.bytes);
  std::memcpy(out, &layout.bytes, sizeof(layout.bytes));
  for (const AttributeField& field : layout.fields) {
    for (uint32_t i = 0; i < field.count; ++i) {
      const double value = field_value(field, out + field.offset + i * field_bytes(field.type));
      if (!(value >= field.lo && value <= field.hi)) {
        throw Error(BP_INVALID_ARGUMENT, "{}: attribute {} is {}; it must be {} to {}", row.name, field.name, value,
                    field.lo, field.hi)
            .with_op(row.id);
      }
    }
  }
}

void validate(const OpRow& row, const bp_op_desc& desc) {
  Checker(row, desc).run();
  if (row.shape_rule != BP_SHAPE_COMPOSITE) return;
  try {
    backplane::rules::check_composite_dtypes(desc, row.dtypes);
    backplane::rules::check_composite_shapes(desc, desc.attributes);
  } catch (const backplane::rules::Violation& violation) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {}", row.name, violation.what()).with_op(row.id);
  }
}

bool reads_outputs(const OpRow& row) noexcept { return row.id == BP_OP_SCATTER || row.id == BP_OP_ADAMW; }

}  // namespace bp
