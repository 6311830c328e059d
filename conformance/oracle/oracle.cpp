// SPDX-License-Identifier: Apache-2.0
#include "oracle.hpp"

#include <stdexcept>

#include "operators.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> evaluate(const Call& call) {
  switch (call.op) {
    case BP_OP_FILL:
      return fill(call);
    case BP_OP_COPY:
      return copy(call);
    case BP_OP_CAST:
      return cast(call);
    case BP_OP_IOTA:
      return iota(call);
    case BP_OP_NEG:
    case BP_OP_ABS:
    case BP_OP_FLOOR:
    case BP_OP_RINT:
    case BP_OP_SQRT:
    case BP_OP_RSQRT:
    case BP_OP_EXP:
    case BP_OP_LOG:
    case BP_OP_SIN:
    case BP_OP_COS:
    case BP_OP_TANH:
    case BP_OP_ERF:
    case BP_OP_BITNOT:
      return unary(call);
    case BP_OP_ADD:
    case BP_OP_SUB:
    case BP_OP_MUL:
    case BP_OP_DIV:
    case BP_OP_REM:
    case BP_OP_MAX:
    case BP_OP_MIN:
    case BP_OP_AND:
    case BP_OP_OR:
    case BP_OP_XOR:
    case BP_OP_SHL:
    case BP_OP_SHR:
      return binary(call);
    case BP_OP_COMPARE:
      return compare(call);
    case BP_OP_SELECT:
      return select(call);
    case BP_OP_GATHER:
      return gather(call);
    case BP_OP_SCATTER:
      return scatter(call);
    case BP_OP_REDUCE_SUM:
    case BP_OP_REDUCE_PROD:
    case BP_OP_REDUCE_MAX:
    case BP_OP_REDUCE_MIN:
      return reduce(call);
    case BP_OP_ARGMAX:
    case BP_OP_ARGMIN:
      return arg(call);
    case BP_OP_CUMSUM:
      return cumsum(call);
    case BP_OP_MATMUL:
      return matmul(call);
    case BP_OP_SORT:
      return sort(call);
    case BP_OP_PHILOX:
      return philox(call);
    case BP_OP_GELU:
      return gelu(call);
    case BP_OP_SILU:
      return silu(call);
    case BP_OP_SIGMOID:
      return sigmoid(call);
    case BP_OP_POW:
      return pow(call);
    case BP_OP_SOFTMAX:
    case BP_OP_LOG_SOFTMAX:
      return softmax(call);
    case BP_OP_LAYER_NORM:
      return layer_norm(call);
    case BP_OP_RMS_NORM:
      return rms_norm(call);
    case BP_OP_GROUP_NORM:
      return group_norm(call);
    case BP_OP_BATCH_NORM:
      return batch_norm(call);
    case BP_OP_LINEAR:
      return linear(call);
    case BP_OP_CONV:
      return conv(call);
    case BP_OP_CONV_TRANSPOSE:
    case BP_OP_CONV_BWD_INPUT:
      return conv_transpose(call);
    case BP_OP_CONV_BWD_WEIGHT:
      return conv_bwd_weight(call);
    case BP_OP_MAX_POOL:
      return max_pool(call);
    case BP_OP_AVG_POOL:
      return avg_pool(call);
    case BP_OP_ATTENTION:
      return attention(call);
    case BP_OP_ROPE:
      return rope(call);
    case BP_OP_QUANTIZE:
      return quantize(call);
    case BP_OP_DEQUANTIZE:
      return dequantize(call);
    case BP_OP_QUANTIZED_MATMUL:
      return quantized_matmul(call);
    case BP_OP_EMBEDDING:
      return embedding(call);
    case BP_OP_TOPK:
      return topk(call);
    case BP_OP_CROSS_ENTROPY:
      return cross_entropy(call);
    case BP_OP_SOFTMAX_BWD:
      return softmax_bwd(call);
    case BP_OP_NORM_BWD:
      return norm_bwd(call);
    case BP_OP_ADAMW:
      return adamw(call);
    case BP_OP_ACTIVATION_BWD:
      return activation_bwd(call);
    case BP_OP_UNARY:
      return unary_function(call);
    case BP_OP_ATTENTION_BWD:
      return attention_bwd(call);
    case BP_OP_NLL:
      return nll(call);
    case BP_OP_NLL_BWD:
      return nll_bwd(call);
    case BP_OP_GEMM:
      return gemm(call);
    case BP_OP_UNIFORM:
      return uniform(call);
    case BP_OP_NORMAL:
      return normal(call);
    case BP_OP_DROPOUT:
      return dropout(call);
    default:
      throw std::logic_error("the oracle has no such operator");
  }
}

}  // namespace backplane::conformance::oracle
