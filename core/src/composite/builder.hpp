// SPDX-License-Identifier: Apache-2.0
// Lowers a composite to steps. Each function for a primitive appends one step and returns the
// result, a new dense temporary.
//
// Elementwise primitives take operands of one rank, broadcast extents of 1, and accept constants of
// rank 0. Numbers are computed in the dtype `number()`, which is f64 if the composite computes in
// f64, and f32 otherwise. `load` and `store` convert to and from that dtype. If a result is stored
// right after it was computed, the step that computes the result writes to the target directly.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "base/op_table.hpp"
#include "composite/program.hpp"
#include "composite/views.hpp"

namespace backplane::core::composite {

// The intended size in bytes of a tile's temporaries, such as attention's scores or a convolution's
// unfolded image. Tiles are larger if there would otherwise be more than kMaxTiles.
inline constexpr int64_t kMinTileBytes = int64_t{64} << 20;
inline constexpr int64_t kMaxTiles = 4096;
// The maximum number of steps of a program. A program has several steps for each tap of a convolution kernel, and for
// each frequency of rope.
inline constexpr size_t kMaxSteps = size_t{1} << 18;

// Returns the size of a tile in bytes if the temporaries of all tiles have `total` bytes.
inline int64_t tile_bytes(int64_t total) { return std::max(kMinTileBytes, total / kMaxTiles); }

// Size in bytes of the largest attribute struct of a primitive.
inline constexpr size_t kStepAttributeBytes = [] {
  size_t most = BP_ATTRIBUTES_MIN_SIZE;
  for (const OpRow& row : rules::op_rows()) {
    if (row.kind == BP_KIND_PRIMITIVE) most = std::max<size_t>(most, row.attributes->bytes);
  }
  return most;
}();

// A program step that has no plan yet.
struct Draft {
  const OpRow* row;
  std::array<unsigned char, kStepAttributeBytes> attributes{};  // zero unless the step sets them
  // The inputs, followed by the outputs.
  std::vector<Value> operands{};
  uint32_t inputs = 0;
  uint64_t scalars[2] = {};
  bool scalars_of_call = false;  // the step has the scalars of the composite instead of `scalars`
};

// A piece of memory, a constant or a scalar that steps use.
struct Storage {
  Location::Kind kind;
  uint32_t index = 0;   // index of the composite's input, output or scalar
  uint64_t bits = 0;    // bits of a constant
  int64_t bytes = 0;    // size of a temporary
  uint64_t offset = 0;  // offset of a temporary, valid after lay_out_temporaries
  uint32_t alignment_log2 = 0;
  uint32_t writes = 0, reads = 0;
};

class Builder {
 public:
  // `full_alignment_log2` is log2 of the alignment of temporary memory.
  Builder(const OpRow& row, const bp_op_desc& desc, uint32_t full_alignment_log2);

  const bp_op_desc& desc() const { return desc_; }
  template <class Attributes>
  const Attributes& attributes() const {
    return *static_cast<const Attributes*>(desc_.attributes);
  }
  uint32_t number() const { return number_; }
  bool has_input(uint32_t index) const { return index < desc_.input_count && desc_.inputs[index].dtype != 0; }
  bool has_output(uint32_t index) const { return index < desc_.output_count && desc_.outputs[index].dtype != 0; }
  Value input(uint32_t index) const { return inputs_[index]; }
  Value output(uint32_t index) const { return outputs_[index]; }

  // Functions that make values without memory:
  Value constant(double value) { return constant(number_, value); }
  Value constant(uint32_t dtype, double value);
  Value integer(uint32_t dtype, int64_t value);
  // Returns a scalar of the call, with extents of 1. With DEVICE_SCALARS the scalar has memory.
  Value scalar(uint32_t index, uint32_t rank);

  // Functions that move data:
  Value load(uint32_t index) { return widen(input(index)); }
  Value widen(const Value& value) { return cast(value, number_); }
  // Returns `value` itself if it already has `dtype`.
  Value cast(const Value& value, uint32_t dtype);
  Value dense(const Value& value);  // returns `value` itself if it is dense
  // Returns a view if the strides allow it, and a dense copy otherwise.
  Value reshape(const Value& value, const Extents& shape);
  Value temporary(uint32_t dtype, const Extents& shape);
  void fill(const Value& target, double value);
  Value iota(uint32_t dtype, const Extents& shape, uint32_t axis, int64_t start);
  // Returns `count` words of philox, as a u32 vector. The composite must have the scalars of philox.
  Value philox(int64_t count);
  Value gather(const Value& x, const Value& index, uint32_t axis);
  // Stores `value` in `target` and converts it if needed. If possible, the step that computed
  // `value` writes to `target` directly. Returns a value that later steps may read.
  Value store(const Value& target, const Value& value);

  // Elementwise primitives:
  Value unary(uint32_t op, const Value& x);
  Value binary(uint32_t op, const Value& a, const Value& b);
  Value compare(uint32_t predicate, const Value& a, const Value& b);
  Value select(const Value& condition, const Value& a, const Value& b);
  // Adds `b` to `target` in place.
  void accumulate(const Value& target, const Value& b);
  Value neg(const Value& x) { return unary(BP_OP_NEG, x); }
  Value exp(const Value& x) { return unary(BP_OP_EXP, x); }
  Value log(const Value& x) { return unary(BP_OP_LOG, x); }
  Value add(const Value& a, const Value& b) { return binary(BP_OP_ADD, a, b); }
  Value sub(const Value& a, const Value& b) { return binary(BP_OP_SUB, a, b); }
  Value mul(const Value& a, const Value& b) { return binary(BP_OP_MUL, a, b); }
  Value div(const Value& a, const Value& b) { return binary(BP_OP_DIV, a, b); }

  // Other primitives. A `dtype` of 0 means the dtype of x.
  Value reduce(uint32_t op, const Value& x, uint32_t axes, uint32_t dtype = 0);
  Value sum(const Value& x, uint32_t axes) { return reduce(BP_OP_REDUCE_SUM, x, axes); }
  // A `dtype` of 0 means number().
  Value matmul(const Value& a, const Value& b, uint32_t precision, uint32_t dtype = 0);
  Value arg(uint32_t op, const Value& x, uint32_t axis);  // the result has dtype i32
  struct Sorted {
    Value values, indices;
  };
  Sorted sort(const Value& x, uint32_t axis, bool descending);

  // Assigns offsets to temporaries. Temporaries that are never in use at the same time may share
  // memory. Returns the total size in bytes.
  uint64_t lay_out_temporaries();
  const std::vector<Draft>& drafts() const { return drafts_; }
  // The operands of a finished step: their views, with alignment and aliases, and their locations.
  struct Operands {
    bp_tensor_desc views[8];
    Location locations[8];
  };
  Operands operands_of(const Draft& draft) const;

 private:
  Value value_of(Location::Kind kind, uint32_t index, const bp_tensor_desc& view);
  Draft& append(uint32_t op, std::initializer_list<Value> inputs, const Value& output);
  Value elementwise(uint32_t op, uint32_t dtype, std::initializer_list<Value> inputs, uint32_t predicate = 0);
  bool redirect(const Value& target, const Value& value);
  bool same_memory(const Value& output, const Value& input) const;
  bool may_take_over(const Draft& draft, size_t step, const std::vector<size_t>& last, uint32_t& from) const;

  const OpRow& row_;
  const bp_op_desc& desc_;
  uint32_t number_;
  uint32_t full_alignment_log2_;
  std::vector<Value> inputs_, outputs_;
  std::vector<Storage> storages_;
  std::vector<Draft> drafts_;
};

}  // namespace backplane::core::composite
