// SPDX-License-Identifier: Apache-2.0
#include "exact.hpp"

#include <cstring>

#include "oracle/oracle.hpp"

namespace backplane::conformance {

bool is_exact_on_whole_numbers(uint32_t op) {
  switch (op) {
    case BP_OP_SQRT:
    case BP_OP_RSQRT:
    case BP_OP_EXP:
    case BP_OP_LOG:
    case BP_OP_SIN:
    case BP_OP_COS:
    case BP_OP_TANH:
    case BP_OP_ERF:
    case BP_OP_DIV:
      return false;
    default:
      return true;
  }
}

std::vector<Bytes> exact_results(OpDesc& desc, const std::vector<Bytes>& inputs, const std::vector<Bytes>& outputs,
                                 const std::vector<uint64_t>& scalars) {
  oracle::Call call;
  call.op = desc.op();
  call.attributes = desc.attribute_bytes();
  call.scalars = scalars;
  const auto tensor = [](const bp_tensor_desc& view, const Bytes& bytes) {
    return oracle::Tensor{view.dtype, Shape(view.shape, view.shape + view.rank), bytes};
  };
  for (size_t i = 0; i < inputs.size(); ++i) call.inputs.push_back(tensor(desc.inputs()[i], inputs[i]));
  for (size_t i = 0; i < outputs.size(); ++i) call.outputs.push_back(tensor(desc.outputs()[i], outputs[i]));
  std::vector<Bytes> results;
  const std::vector<oracle::Expected> expected = oracle::evaluate(call);
  for (size_t i = 0; i < expected.size(); ++i) {
    const uint32_t width = bph_dtype_bytes(desc.outputs()[i].dtype);
    Bytes bytes(expected[i].elements.size() * width);
    for (size_t at = 0; at < expected[i].elements.size(); ++at)
      std::memcpy(bytes.data() + at * width, &expected[i].elements[at].bits, width);
    results.push_back(std::move(bytes));
  }
  return results;
}

}  // namespace backplane::conformance
