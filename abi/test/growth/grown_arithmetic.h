/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the frozen plugins and of the additions by grow.py. This header is for C and
 * C++. */
#ifndef GROWN_ARITHMETIC_H
#define GROWN_ARITHMETIC_H

#include "../frozen/0.2/arithmetic.h"

static inline int grown_knows(uint32_t op) { return op == BP_OP_SQUARE || frozen_knows(op); }

static inline void grown_copy_i16(const frozen_call* call) {
  for (int64_t n = 0; n < frozen_count(&call->out[0]); ++n) {
    const frozen_index at = frozen_nth(&call->out[0], n);
    memcpy(frozen_at(&call->out[0], &at, 2), frozen_at(&call->in[0], &at, 2), 2);
  }
}

static inline double grown_element(const frozen_call* call, double x) {
  if (call->op == BP_OP_CAST) return x < 0 ? 0 : x > 255 ? 255 : x; /* saturates to the range of u8 */
  if (call->op == BP_OP_SQUARE) return x * x;
  return x / (1 + exp(-1.702 * x)); /* x * sigmoid(1.702 x), the added approximation of gelu */
}

static inline int grown_needs_more(const frozen_call* call) {
  const uint32_t* words = (const uint32_t*)call->attributes;
  return call->op == BP_OP_SQUARE ||
         (call->op == BP_OP_CAST && words != NULL && words[1] != 0 && call->out[0].dtype == BP_U8) ||
         (call->op == BP_OP_GELU && words[1] == 2);
}

static inline void grown_run(const frozen_call* call) {
  if (call->op == BP_OP_COPY && call->out[0].dtype == BP_I16) {
    grown_copy_i16(call);
  } else if (call->op == BP_OP_FLOOR && call->out[0].dtype == BP_I32) {
    frozen_call same = *call;
    same.op = BP_OP_COPY;
    frozen_run(&same);
  } else if (call->op == BP_OP_ATTENTION && call->inputs > 5 && call->in[5].dtype != 0) {
    const frozen_index first = {{0}};
    frozen_attention_of(call, (int64_t)frozen_get(&call->in[5], &first));
  } else if (call->op == BP_OP_ADAMW) {
    frozen_adamw_of(call, call->scalars[3] == 0 ? 1 : (double)call->scalars[3]);
  } else if (grown_needs_more(call)) {
    for (int64_t n = 0; n < frozen_count(&call->out[0]); ++n) {
      const frozen_index at = frozen_nth(&call->out[0], n);
      frozen_put(&call->out[0], &at, grown_element(call, frozen_get(&call->in[0], &at)));
    }
  } else {
    frozen_run(call);
  }
}

/* The slots that grow.py appends to bp_device_api and bp_import_api. */
static inline bp_status grown_later(bp_device* device, uint64_t* out, bp_error* error) {
  (void)device, (void)error;
  *out = 7;
  return BP_OK;
}
static inline bp_status grown_import_later(bp_device* device, uint64_t* out, bp_error* error) {
  (void)device, (void)error;
  *out = 9;
  return BP_OK;
}

#endif
