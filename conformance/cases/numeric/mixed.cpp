// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/mixed.hpp"

#include "cases/numeric/composite.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

using rules::is_half;

// Returns whether the operator's signature contains `letter` as the dtype of an operand.
bool has_letter(uint32_t op, char letter) {
  if (rules::detail::kSignaturePlaces[op] == 0) return false;
  const rules::Signature& signature = rules::signature_of(op);
  const auto is = [&](const rules::Pattern& pattern) { return pattern.dtype == letter; };
  return std::any_of(std::begin(signature.inputs), std::end(signature.inputs), is) ||
         std::any_of(std::begin(signature.outputs), std::end(signature.outputs), is);
}

// Converts a tensor to `dtype`. If `from` is a 16-bit float, each new value is within half an ulp
// of the original value. The 16-bit dtype does not represent the new values, so an implementation
// that uses this dtype gives wrong results. Zeros and values that are not finite are unchanged.
oracle::Tensor converted(const oracle::Tensor& from, uint32_t dtype, Random& random) {
  if (from.dtype == dtype || from.dtype == 0 || from.dtype == BP_BOOL) return from;
  oracle::Tensor to{dtype, from.shape, {}};
  if (from.bytes.empty()) return to;  // the operator only writes this output
  to = make_tensor(dtype, from.shape);
  for (int64_t i = 0; i < to.count(); ++i) {
    if (!oracle::is_float(dtype)) {
      oracle::store(to, i, oracle::encode_integer(dtype, oracle::integer_at(from, i)));
      continue;
    }
    const long double value = oracle::value_at(from, i);
    const bool moves = std::isfinite(value) && is_half(from.dtype);
    const long double reach = moves ? oracle::ulp(from.dtype, value) * 0.45L * (2 * unit(random) - 1) : 0;
    oracle::store(to, i, oracle::encode(dtype, value == 0 ? value : value + reach));
  }
  return to;
}

// Returns the dtype of an operand that has `letter` in the signature. `plain` is the dtype of the
// operand in the plain form.
uint32_t dtype_of(char letter, const Mix& mix, uint32_t t, uint32_t plain) {
  const auto departs = [&](uint32_t bit) { return (mix.mixed & bit) != 0; };
  const bool wide_parameters = departs(rules::kMixedParameters);
  switch (letter) {
    case 's':
      return is_half(t) ? uint32_t{BP_F32} : plain;
    case 'p':
      return wide_parameters ? uint32_t{BP_F32} : plain;
    case 'r':
      return wide_parameters || departs(rules::kMixedState) ? uint32_t{BP_F32} : plain;
    case 'h':
      return departs(rules::kMixedHalves) ? mix.other : plain;
    case 'm':
      return departs(rules::kMixedMask) ? mix.other : plain;
    case 'f':
      return departs(rules::kMixedScale) ? mix.other : plain;
    case 'n':
      return departs(rules::kMixedIndex) ? uint32_t{BP_I64} : plain;
    default:
      return plain;
  }
}

// Adds the operand "w minimum" of quantized_matmul, with one value in [-1, 1) per weight scale.
void add_minimum(Setup& setup, Random& random) {
  std::vector<oracle::Tensor>& inputs = setup.call.inputs;
  inputs.resize(8);
  inputs[7] = scaled(inputs[2].dtype, inputs[2].shape, 1, 0, random);
}

}  // namespace

std::vector<Mix> mixes_of(uint32_t op, uint32_t dtype) {
  std::vector<Mix> all;
  const bool half = is_half(dtype);
  const auto has = [&](char letter) { return has_letter(op, letter); };
  const auto others = [&](uint32_t mixed) {
    for (const uint32_t other : {BP_F16, BP_BF16, BP_F32}) {
      if (other != dtype) all.push_back({mixed, other});
    }
  };
  if (half && has('p')) all.push_back({rules::kMixedParameters});
  if (half && has('r')) all.push_back({rules::kMixedState});
  if (has('n')) all.push_back({rules::kMixedIndex});
  if (half && has('n') && has('p')) all.push_back({rules::kMixedIndex | rules::kMixedParameters});
  if (half && (op == BP_OP_SOFTMAX || op == BP_OP_LOG_SOFTMAX)) all.push_back({rules::kMixedWide});
  if (op == BP_OP_ARGMAX || op == BP_OP_ARGMIN || op == BP_OP_SORT) all.push_back({rules::kMixedIndex});
  for (const uint32_t other : {BP_F16, BP_BF16}) {
    if (dtype == BP_F32 && (has('h') || op == BP_OP_MATMUL)) all.push_back({rules::kMixedHalves, other});
    if (dtype == BP_F32 && has('h') && has('m')) all.push_back({rules::kMixedHalves | rules::kMixedMask, other});
  }
  if (has('m')) others(rules::kMixedMask);
  if (has('f')) {
    others(rules::kMixedScale);
    others(rules::kMixedScale | rules::kMixedMinimum);
    all.push_back({rules::kMixedMinimum});
  }
  return all;
}

std::string name_of(const Mix& mix) {
  constexpr std::string_view names[] = {"parameters", "state", "index", "halves", "mask", "scale", "minimum", "wide"};
  std::string name;
  for (size_t i = 0; i < std::size(names); ++i) {
    if ((mix.mixed >> i & 1u) == 0) continue;
    name.append(name.empty() ? "" : "+").append(names[i]);
  }
  if (mix.other != 0) name.append("_").append(oracle::format_of(mix.other).name);
  return name;
}

namespace {

// Makes some indices too large for i32. In embedding, the low 32 bits of a large index are a legal
// index.
void reach_further(oracle::Call& call) {
  oracle::Tensor& index = call.inputs[1];
  const bool embeds = call.op == BP_OP_EMBEDDING;
  if (!embeds && call.op != BP_OP_ROPE) return;
  for (int64_t i = embeds ? 3 : 5; i < index.count(); i += embeds ? 5 : 7) {
    const int64_t far = embeds ? i % call.inputs[0].shape[0] + (1 + i % 3) * (int64_t{1} << 32)
                               : oracle::integer_at(index, i) + (int64_t{1} << 31);
    oracle::store(index, i, oracle::encode_integer(BP_I64, far));
  }
}

}  // namespace

void mix(const Mix& mix, Setup& setup, Random& random) {
  oracle::Call& call = setup.call;
  const auto set = [&](oracle::Tensor& operand, uint32_t dtype) { operand = converted(operand, dtype, random); };
  if ((mix.mixed & rules::kMixedMinimum) != 0) add_minimum(setup, random);
  switch (call.op) {
    case BP_OP_SOFTMAX:
    case BP_OP_LOG_SOFTMAX:
      if (mix.mixed != 0) set(call.outputs[0], BP_F32);
      return;
    case BP_OP_ARGMAX:
    case BP_OP_ARGMIN:
    case BP_OP_SORT:
      if (mix.mixed != 0) set(call.outputs.back(), BP_I64);
      return;
    case BP_OP_MATMUL:
      if (mix.mixed != 0) set(call.inputs[random() % 2], mix.other);
      return;
    default:
      break;
  }
  if (rules::detail::kSignaturePlaces[call.op] == 0) return;
  const rules::Signature& signature = rules::signature_of(call.op);
  uint32_t t = 0;
  const auto find = [&](const std::vector<oracle::Tensor>& operands, const rules::Pattern* patterns) {
    for (size_t i = 0; i < operands.size() && t == 0; ++i) {
      if (patterns[i].dtype == 't') t = operands[i].dtype;
    }
  };
  find(call.inputs, signature.inputs);
  find(call.outputs, signature.outputs);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    oracle::Tensor& input = call.inputs[i];
    if (input.dtype != 0) set(input, dtype_of(signature.inputs[i].dtype, mix, t, input.dtype));
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    oracle::Tensor& output = call.outputs[i];
    if (output.dtype != 0) set(output, dtype_of(signature.outputs[i].dtype, mix, t, output.dtype));
  }
  if ((mix.mixed & rules::kMixedIndex) != 0) reach_further(call);
}

uint32_t mixed_of(const Setup& setup) {
  const auto views_of = [](const std::vector<oracle::Tensor>& operands) {
    std::vector<bp_tensor_desc> views(operands.size());
    for (size_t i = 0; i < views.size(); ++i) views[i].dtype = static_cast<uint16_t>(operands[i].dtype);
    return views;
  };
  const std::vector<bp_tensor_desc> inputs = views_of(setup.call.inputs), outputs = views_of(setup.call.outputs);
  bp_op_desc desc = {};
  desc.op = setup.call.op;
  desc.inputs = inputs.data();
  desc.outputs = outputs.data();
  desc.input_count = static_cast<uint32_t>(inputs.size());
  desc.output_count = static_cast<uint32_t>(outputs.size());
  return rules::mixed_of(desc);
}

void add_mixed(Catalogue& catalogue, const Problem& plain, std::string_view more) {
  for (const Mix& each : mixes_of(plain.op, plain.dtype)) {
    Problem problem = plain;
    problem.mixed = each.mixed;
    problem.other = each.other;
    std::string name(more);
    name.append(name.empty() ? "mixed_" : ".mixed_").append(name_of(each));
    add_composite(catalogue, problem, name);
  }
}

}  // namespace backplane::conformance::numeric
