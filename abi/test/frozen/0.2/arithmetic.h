/* SPDX-License-Identifier: Apache-2.0 */
/* What the frozen plugins compute: the operators of 0.2 that their test needs, on strided views of f32, i32, u8 and bool, slowly. It
 * trusts each precondition that 0.2 states: what it was not told of it reads wrongly. C and C++. */
#ifndef FROZEN_ARITHMETIC_H
#define FROZEN_ARITHMETIC_H

#include <backplane/ops.h>
#include <math.h>
#include <string.h>

typedef struct frozen_view {
  unsigned char* data; /* element 0 */
  uint32_t dtype;      /* 0: absent */
  uint32_t rank;
  int64_t shape[BP_MAX_RANK], strides[BP_MAX_RANK];
} frozen_view;

typedef struct frozen_call {
  uint32_t op, inputs, outputs;
  const void* attributes;
  frozen_view in[8], out[4];
  float scalars[4];
} frozen_call;

typedef struct frozen_index {
  int64_t at[BP_MAX_RANK];
} frozen_index;

static inline unsigned char* frozen_at(const frozen_view* v, const frozen_index* index, size_t bytes) {
  int64_t offset = 0;
  for (uint32_t i = 0; i < v->rank; ++i) offset += index->at[i] * v->strides[i];
  return v->data + offset * (int64_t)bytes;
}

static inline double frozen_get(const frozen_view* v, const frozen_index* index) {
  if (v->dtype == BP_I32 || v->dtype == BP_U32) {
    int32_t value;
    memcpy(&value, frozen_at(v, index, sizeof(value)), sizeof(value));
    return v->dtype == BP_U32 ? (double)(uint32_t)value : (double)value;
  }
  if (v->dtype == BP_U8 || v->dtype == BP_BOOL) return (double)*frozen_at(v, index, 1);
  float value; /* all that is left of what 0.2 lets this plugin be asked for */
  memcpy(&value, frozen_at(v, index, sizeof(value)), sizeof(value));
  return (double)value;
}

static inline void frozen_put(const frozen_view* v, const frozen_index* index, double x) {
  if (v->dtype == BP_I32 || v->dtype == BP_U32) {
    const int32_t value = (int32_t)(uint32_t)(int64_t)x;
    memcpy(frozen_at(v, index, sizeof(value)), &value, sizeof(value));
  } else if (v->dtype == BP_U8) {
    *frozen_at(v, index, 1) = (unsigned char)(int64_t)x; /* integers wrap */
  } else if (v->dtype == BP_BOOL) {
    *frozen_at(v, index, 1) = x != 0;
  } else {
    const float value = (float)x;
    memcpy(frozen_at(v, index, sizeof(value)), &value, sizeof(value));
  }
}

static inline int64_t frozen_count(const frozen_view* v) {
  int64_t count = 1;
  for (uint32_t i = 0; i < v->rank; ++i) count *= v->shape[i];
  return count;
}

static inline frozen_index frozen_nth(const frozen_view* v, int64_t n) {
  frozen_index index = {{0}};
  for (uint32_t i = v->rank; i-- > 0; n /= v->shape[i]) index.at[i] = n % v->shape[i];
  return index;
}

static inline double frozen_gelu(double x, uint32_t approximation) {
  if (approximation != BP_GELU_ERF) return x * (0.5 + 0.5 * tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  return x * (0.5 + 0.5 * erf(x * 0.7071067811865476));
}

static inline double frozen_compare(uint32_t predicate, double a, double b) {
  switch (predicate) {
    case BP_COMPARE_EQ:
      return a == b;
    case BP_COMPARE_NE:
      return a != b;
    case BP_COMPARE_LT:
      return a < b;
    case BP_COMPARE_LE:
      return a <= b;
    case BP_COMPARE_GT:
      return a > b;
    default:
      return a >= b;
  }
}

/* One element of an elementwise operator. */
static inline double frozen_element(const frozen_call* call, double a, double b, double c) {
  const uint32_t* words = (const uint32_t*)call->attributes;
  switch (call->op) {
    case BP_OP_NEG:
      return -a;
    case BP_OP_ABS:
      return fabs(a);
    case BP_OP_FLOOR:
      return floor(a);
    case BP_OP_SQRT:
      return sqrt(a);
    case BP_OP_EXP:
      return exp(a);
    case BP_OP_LOG:
      return log(a);
    case BP_OP_TANH:
      return tanh(a);
    case BP_OP_ERF:
      return erf(a);
    case BP_OP_ADD:
      return a + b;
    case BP_OP_SUB:
      return a - b;
    case BP_OP_MUL:
      return a * b;
    case BP_OP_DIV:
      return a / b;
    case BP_OP_MAX:
      return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    case BP_OP_MIN:
      return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case BP_OP_COMPARE:
      return frozen_compare(words[1], a, b);
    case BP_OP_SELECT:
      return a != 0 ? b : c;
    case BP_OP_GELU:
      return frozen_gelu(a, words[1]);
    default: /* copy, cast */
      return a;
  }
}

static inline int frozen_is_elementwise(uint32_t op) {
  static const uint32_t ops[] = {BP_OP_COPY, BP_OP_CAST,    BP_OP_NEG,    BP_OP_ABS,  BP_OP_FLOOR,
                                 BP_OP_SQRT, BP_OP_EXP,     BP_OP_LOG,    BP_OP_TANH, BP_OP_ERF,
                                 BP_OP_ADD,  BP_OP_SUB,     BP_OP_MUL,    BP_OP_DIV,  BP_OP_MAX,
                                 BP_OP_MIN,  BP_OP_COMPARE, BP_OP_SELECT, BP_OP_GELU};
  for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i) {
    if (ops[i] == op) return 1;
  }
  return 0;
}

static inline void frozen_elementwise(const frozen_call* call) {
  const int64_t count = frozen_count(&call->out[0]);
  for (int64_t n = 0; n < count; ++n) {
    const frozen_index at = frozen_nth(&call->out[0], n);
    double x[3] = {0, 0, 0};
    for (uint32_t i = 0; i < call->inputs && i < 3; ++i) x[i] = frozen_get(&call->in[i], &at);
    frozen_put(&call->out[0], &at, frozen_element(call, x[0], x[1], x[2]));
  }
}

static inline void frozen_reduce(const frozen_call* call) {
  const frozen_view *in = &call->in[0], *out = &call->out[0];
  const int sums = call->op == BP_OP_REDUCE_SUM;
  double results[64]; /* the test's rows are few */
  const int64_t rows = frozen_count(out);
  for (int64_t n = 0; n < rows && n < 64; ++n) results[n] = sums ? 0 : -INFINITY;
  for (int64_t n = 0; n < frozen_count(in); ++n) {
    const frozen_index at = frozen_nth(in, n);
    int64_t row = 0;
    for (uint32_t i = 0; i < out->rank; ++i) row = row * out->shape[i] + (out->shape[i] == 1 ? 0 : at.at[i]);
    const double x = frozen_get(in, &at);
    if (sums) results[row] += x;
    if (!sums && x > results[row]) results[row] = x;
  }
  for (int64_t n = 0; n < rows && n < 64; ++n) {
    const frozen_index at = frozen_nth(out, n);
    frozen_put(out, &at, results[n]);
  }
}

static inline void frozen_iota(const frozen_call* call) {
  const frozen_view* out = &call->out[0];
  const uint32_t axis = ((const uint32_t*)call->attributes)[1];
  int32_t words[2];
  memcpy(words, call->scalars, sizeof(words)); /* in the output's dtype */
  for (int64_t n = 0; n < frozen_count(out); ++n) {
    const frozen_index at = frozen_nth(out, n);
    const double i = (double)at.at[axis];
    const int floats = out->dtype == BP_F32;
    const double start = floats ? (double)call->scalars[0] : words[0],
                 step = floats ? (double)call->scalars[1] : words[1];
    frozen_put(out, &at, start + i * step);
  }
}

static inline void frozen_fill(const frozen_call* call) {
  int32_t word;
  memcpy(&word, call->scalars, sizeof(word));
  for (int64_t n = 0; n < frozen_count(&call->out[0]); ++n) {
    const frozen_index at = frozen_nth(&call->out[0], n);
    frozen_put(&call->out[0], &at, call->out[0].dtype == BP_F32 ? (double)call->scalars[0] : word);
  }
}

static inline void frozen_matmul(const frozen_call* call) {
  const frozen_view *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
  const uint32_t row = out->rank - 2, column = out->rank - 1;
  for (int64_t n = 0; n < frozen_count(out); ++n) {
    const frozen_index at = frozen_nth(out, n);
    double sum = 0;
    for (int64_t k = 0; k < a->shape[column]; ++k) {
      frozen_index left = at, right = at;
      left.at[column] = k;
      right.at[row] = k;
      sum += frozen_get(a, &left) * frozen_get(b, &right);
    }
    frozen_put(out, &at, sum);
  }
}

/* q[B,H,L,D], k[B,G,S,D], v[B,G,S,E], mask[B,H,L,S]; `keys` of them count. */
static inline void frozen_attention_of(const frozen_call* call, int64_t keys) {
  const frozen_view *q = &call->in[0], *k = &call->in[1], *v = &call->in[2], *out = &call->out[0];
  const frozen_view* mask = call->inputs > 3 && call->in[3].dtype != 0 ? &call->in[3] : NULL;
  const bp_attention_attributes* attributes = (const bp_attention_attributes*)call->attributes;
  const int64_t shared = q->shape[1] / k->shape[1];
  for (int64_t n = 0; n < frozen_count(out); ++n) {
    const frozen_index at = frozen_nth(out, n);
    double scores[16], greatest = -INFINITY, total = 0, sum = 0; /* the test's keys are few */
    for (int64_t s = 0; s < keys && s < 16; ++s) {
      frozen_index left = at, right = {{at.at[0], at.at[1] / shared, s, 0}}, of_mask = at;
      scores[s] = 0;
      for (int64_t d = 0; d < q->shape[3]; ++d) {
        left.at[3] = right.at[3] = d;
        scores[s] += frozen_get(q, &left) * frozen_get(k, &right);
      }
      scores[s] *= (double)attributes->scale;
      of_mask.at[3] = s;
      if (mask != NULL && mask->dtype == BP_BOOL && frozen_get(mask, &of_mask) == 0) scores[s] = -INFINITY;
      if (mask != NULL && mask->dtype != BP_BOOL) scores[s] += frozen_get(mask, &of_mask);
      if (scores[s] > greatest) greatest = scores[s];
    }
    for (int64_t s = 0; s < keys && s < 16; ++s) {
      const frozen_index value = {{at.at[0], at.at[1] / shared, s, at.at[3]}};
      const double weight = greatest == -INFINITY ? 0 : exp(scores[s] - greatest);
      total += weight;
      sum += weight * frozen_get(v, &value);
    }
    frozen_put(out, &at, total == 0 ? 0 : sum / total);
  }
}

/* Scalars: the rate and the corrections of both moments. */
static inline void frozen_adamw_of(const frozen_call* call, double gradient_scale) {
  const bp_adamw_attributes* a = (const bp_adamw_attributes*)call->attributes;
  const double rate = (double)call->scalars[0];
  for (int64_t n = 0; n < frozen_count(&call->out[0]); ++n) {
    const frozen_index at = frozen_nth(&call->out[0], n);
    const double g = frozen_get(&call->in[0], &at) * gradient_scale, p = frozen_get(&call->out[0], &at);
    const double m = (double)a->beta1 * frozen_get(&call->out[1], &at) + (1 - (double)a->beta1) * g;
    const double v = (double)a->beta2 * frozen_get(&call->out[2], &at) + (1 - (double)a->beta2) * g * g;
    const double root = sqrt(v / (double)call->scalars[2]) + (double)a->epsilon;
    frozen_put(&call->out[1], &at, m);
    frozen_put(&call->out[2], &at, v);
    frozen_put(&call->out[0], &at,
               p - rate * (double)a->weight_decay * p - rate * (m / (double)call->scalars[1]) / root);
  }
}

static inline int frozen_knows(uint32_t op) {
  return frozen_is_elementwise(op) || op == BP_OP_FILL || op == BP_OP_IOTA || op == BP_OP_REDUCE_SUM ||
         op == BP_OP_REDUCE_MAX || op == BP_OP_MATMUL || op == BP_OP_ATTENTION || op == BP_OP_ADAMW;
}

static inline void frozen_run(const frozen_call* call) {
  switch (call->op) {
    case BP_OP_FILL:
      frozen_fill(call);
      break;
    case BP_OP_IOTA:
      frozen_iota(call);
      break;
    case BP_OP_REDUCE_SUM:
    case BP_OP_REDUCE_MAX:
      frozen_reduce(call);
      break;
    case BP_OP_MATMUL:
      frozen_matmul(call);
      break;
    case BP_OP_ATTENTION:
      frozen_attention_of(call, call->in[1].shape[2]);
      break;
    case BP_OP_ADAMW:
      frozen_adamw_of(call, 1);
      break;
    default:
      frozen_elementwise(call);
  }
}

#endif
