// SPDX-License-Identifier: Apache-2.0
// The numeric cases by family of operators: each appends its own.
#pragma once

#include "harness/case.hpp"

namespace bp::conformance::numeric {

void add_elementwise(Catalogue& catalogue);  // unary, binary, compare, select
void add_movement(Catalogue& catalogue);     // fill, copy, cast, iota
void add_index(Catalogue& catalogue);        // gather, scatter
void add_reduce(Catalogue& catalogue);       // reduce_sum, reduce_prod, reduce_max, reduce_min
void add_scan(Catalogue& catalogue);         // argmax, argmin, cumsum, sort
void add_matmul(Catalogue& catalogue);
void add_philox(Catalogue& catalogue);
void add_activations(Catalogue& catalogue);   // gelu, silu, sigmoid, pow
void add_softmax(Catalogue& catalogue);       // softmax, log_softmax, softmax_bwd, cross_entropy
void add_norms(Catalogue& catalogue);         // layer_norm, rms_norm, group_norm, batch_norm, norm_bwd
void add_windows(Catalogue& catalogue);       // linear, conv and its backward, conv_transpose, max_pool, avg_pool
void add_attention(Catalogue& catalogue);     // attention, rope
void add_quantisation(Catalogue& catalogue);  // quantize, dequantize, quantized_matmul
void add_lookups(Catalogue& catalogue);       // embedding, topk, adamw
void add_ties(Catalogue& catalogue);          // casts beside ties
void add_far(Catalogue& catalogue);           // operands that 32 bits do not reach, of every primitive
void add_long(Catalogue& catalogue);          // positions that f32 and 31 bits do not hold
void add_large(Catalogue& catalogue);         // far apart elements, of any operator

}  // namespace bp::conformance::numeric
