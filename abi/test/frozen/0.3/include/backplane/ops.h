/* SPDX-License-Identifier: Apache-2.0 */
/* Operators: ids, attribute structs, descriptors, properties of plans, and executions. ops.def
 * contains the table of operators. */
#ifndef BACKPLANE_OPS_H
#define BACKPLANE_OPS_H

#include "tensor.h"

enum {
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, \
                  acc, prof, since, family, doc)                                                                       \
  BP_OP_##symbol = id,
#include "ops.def"
#undef BP_OP_ROW
  BP_OP_LIMIT = 200 /* every id of ops.def is below this limit */
};
#define BP_SINCE_0_2 BP_VERSION(0, 2) /* the version that ops.def calls 0_2 */
#define BP_SINCE_0_3 BP_VERSION(0, 3) /* the version that ops.def calls 0_3 */
#define BP_OP_VENDOR 0x80000000u      /* the first id for operators that plugins define */

/* The minimum size in bytes of every attribute struct. This minimum never changes. The size of each
 * attribute struct is a multiple of 8. */
#define BP_ATTRIBUTES_MIN_SIZE 8u
/* Attribute structs: bp_axis_attributes, bp_reduce_attributes, ... Role: input. A field that the
 * caller's struct lacks is treated as zero. */
#define BP_ATTRS_BEGIN(stem)              \
  typedef struct bp_##stem##_attributes { \
    uint32_t struct_size;
#define BP_ATTR(stem, type, field, lo, hi, doc) type field;
#define BP_ATTR_ARRAY(stem, type, field, count, lo, hi, doc) type field[count];
#define BP_ATTR_RESERVED(stem, field) uint32_t field;
#define BP_ATTRS_END(stem) \
  }                        \
  bp_##stem##_attributes;
#include "attributes.def"
#undef BP_ATTRS_BEGIN
#undef BP_ATTR
#undef BP_ATTR_ARRAY
#undef BP_ATTR_RESERVED
#undef BP_ATTRS_END

/* Values of attribute fields. The numbers are frozen. */
enum { BP_SCATTER_SET = 0, BP_SCATTER_ADD = 1, BP_SCATTER_MAX = 2, BP_SCATTER_MIN = 3 };
enum {
  BP_COMPARE_EQ = 0,
  BP_COMPARE_NE = 1,
  BP_COMPARE_LT = 2,
  BP_COMPARE_LE = 3,
  BP_COMPARE_GT = 4,
  BP_COMPARE_GE = 5
};
/* Precision-relaxation flags of the mask `precision`; 0 means full precision. Each flag applies to
 * products of two operands of the stated dtype, including products inside a fused operator. No
 * flag applies to anything else that the operator computes. A callee never refuses a flag, and
 * ignores flags that it does not use or know. There are no flags for f64, bf16 and integers. */
enum {
  BP_PRECISION_FULL = 0,
  BP_PRECISION_ALLOW_TF32 = 1, /* f32 operands may be rounded to 11 significant bits */
  /* Each f32 operand may be split into two bf16 parts, high and low. The product of two low parts
   * may be omitted. */
  BP_PRECISION_ALLOW_BF16X3 = 2,
  /* Products of f16 operands may be accumulated in f16, which overflows above 65504. */
  BP_PRECISION_ALLOW_F16_ACCUMULATE = 4,
  BP_PRECISION_ALLOW_BF16 = 8, /* f32 operands may be rounded to bf16 */
  /* f16 values with a magnitude below 2^-14 may become zeros of any sign. */
  BP_PRECISION_ALLOW_FLUSH_F16 = 16
};
enum { BP_CAUSAL_NONE = 0, BP_CAUSAL_LOWER_RIGHT = 1, BP_CAUSAL_UPPER_LEFT = 2 };
enum { BP_GELU_ERF = 0, BP_GELU_TANH = 1 };
enum {
  BP_ACTIVATION_NONE = 0,
  BP_ACTIVATION_RELU = 1,
  BP_ACTIVATION_GELU_ERF = 2,
  BP_ACTIVATION_GELU_TANH = 3,
  BP_ACTIVATION_SILU = 4,
  BP_ACTIVATION_SIGMOID = 5,
  BP_ACTIVATION_TANH = 6 /* only in activation_bwd. Since 0.3 */
};
/* Functions of the operator `unary`. A later version may add functions. */
enum {
  BP_UNARY_EXPM1 = 0,
  BP_UNARY_EXP2 = 1,
  BP_UNARY_LOG1P = 2,
  BP_UNARY_LOG2 = 3,
  BP_UNARY_LOG10 = 4,
  BP_UNARY_SIGN = 5,
  BP_UNARY_CEIL = 6,
  BP_UNARY_TRUNC = 7,
  BP_UNARY_FRAC = 8,
  BP_UNARY_TAN = 9,
  BP_UNARY_ASIN = 10,
  BP_UNARY_ACOS = 11,
  BP_UNARY_ATAN = 12,
  BP_UNARY_SINH = 13,
  BP_UNARY_COSH = 14,
  BP_UNARY_ASINH = 15,
  BP_UNARY_ACOSH = 16,
  BP_UNARY_ATANH = 17,
  BP_UNARY_SOFTPLUS = 18,
  BP_UNARY_LOG_SIGMOID = 19,
  BP_UNARY_MISH = 20,
  BP_UNARY_HARD_SIGMOID = 21,
  BP_UNARY_HARD_SWISH = 22
};
enum { BP_REDUCTION_NONE = 0, BP_REDUCTION_MEAN = 1, BP_REDUCTION_SUM = 2 };
enum { BP_NORM_LAYER = 0, BP_NORM_RMS = 1, BP_NORM_GROUP = 2, BP_NORM_BATCH = 3 };

/* Sets of dtypes, for the column `dtypes` of ops.def. */
#define BP_SET_FLOATS (BP_DTYPE_BIT(BP_F16) | BP_DTYPE_BIT(BP_BF16) | BP_DTYPE_BIT(BP_F32) | BP_DTYPE_BIT(BP_F64))
#define BP_SET_INTS \
  (BP_DTYPE_BIT(BP_U8) | BP_DTYPE_BIT(BP_I8) | BP_DTYPE_BIT(BP_I32) | BP_DTYPE_BIT(BP_U32) | BP_DTYPE_BIT(BP_I64))
#define BP_SET_BITS (BP_SET_INTS | BP_DTYPE_BIT(BP_BOOL))
#define BP_SET_NUMERIC (BP_SET_FLOATS | BP_SET_INTS)
#define BP_SET_ALL (BP_SET_NUMERIC | BP_DTYPE_BIT(BP_BOOL))
/* Dtypes of the first input of the operator `matmul`. */
#define BP_SET_MATMUL (BP_SET_FLOATS | BP_DTYPE_BIT(BP_U8) | BP_DTYPE_BIT(BP_I8))
#define BP_SET_U32 BP_DTYPE_BIT(BP_U32)
/* Dtypes of operators that move elements without computing. The set is separate from BP_SET_ALL,
 * because storage formats may be added to this set only. */
#define BP_SET_MOVED (BP_SET_NUMERIC | BP_DTYPE_BIT(BP_BOOL))
/* Dtypes of the operator `scatter` with mode SET. Its other modes accept BP_SET_NUMERIC. */
#define BP_SET_SCATTERED BP_SET_MOVED

/* Dtype rules: the dtypes of the operands as a function of T. */
enum {
  BP_RULE_SAME = 1,       /* all operands are T */
  BP_RULE_CAST = 2,       /* input is T, output is any dtype of the operator's set */
  BP_RULE_GATHER = 3,     /* x and out are T, index is i32 or i64 */
  BP_RULE_SCATTER = 4,    /* index is i32 or i64, source and io are T; see BP_SET_SCATTERED */
  BP_RULE_COMPARE = 5,    /* inputs are T, out is bool */
  BP_RULE_SELECT = 6,     /* condition is bool; a, b and out are T */
  BP_RULE_SUM = 7,        /* input is T; output is T or f32 if T is f16 or bf16; T for other floats;
                             T, i32 or i64 for integers; i32 or i64 for bool */
  BP_RULE_INDEX = 8,      /* input is T, out is i32 or i64 */
  BP_RULE_SORT = 9,       /* x and values are T, optional indices are i32 or i64 */
  BP_RULE_MATMUL = 10,    /* f32 and f64: T x T to T; f16 and bf16: T x T to T or f32, T x f32 and
                             f32 x T to f32; i8 x i8 and u8 x i8 to i32, mod 2^32 */
  BP_RULE_COMPOSITE = 11, /* each composite has a rule in rules/signatures.hpp */
  BP_RULE_WIDEN = 12      /* input is T; output is T, or f32 if T is f16 or bf16 */
};

/* Shape rules. The rules apply to views that the caller has already broadcast with stride 0.
 * Operators do not promote dtypes. */
enum {
  BP_SHAPE_GENERATE = 1,    /* there is no input; the output may have any shape */
  BP_SHAPE_ELEMENTWISE = 2, /* all operands have the same shape */
  BP_SHAPE_GATHER = 3,      /* x, index and out have the same rank; index and out have the same
                               shape, which differs from x's shape only along `axis` */
  BP_SHAPE_SCATTER = 4,     /* index, source and io have the same rank; index and source have the
                               same shape, which differs from io's shape only along `axis` */
  BP_SHAPE_REDUCE = 5,      /* out has the shape of the input, with extent 1 in `axes` */
  BP_SHAPE_ARG = 6,         /* out has the shape of the input, with extent 1 along `axis`; the
                               input's extent along `axis` is not 0 */
  BP_SHAPE_MATMUL = 7,      /* a[B..,M,K], b[B..,K,N] and out[B..,M,N] have the same rank, at least
                               2, and equal batch extents */
  BP_SHAPE_SORT = 8,        /* each output has the shape of the input */
  BP_SHAPE_COMPOSITE = 9    /* each composite has a rule in rules/signatures.hpp */
};

/* Values of the columns `kind` and `profile` of ops.def. */
enum { BP_KIND_PRIMITIVE = 1, BP_KIND_COMPOSITE = 2 };
enum { BP_PROFILE_CORE = 1, BP_PROFILE_INFER = 2, BP_PROFILE_TRAIN = 3, BP_PROFILE_COMPOSITE = 4 };

/* Requests determinism: executions with equal bp_execution.desc and equal operand bytes give equal
 * bits. The guarantee covers every plan of the class, for the same library, driver and device. The
 * order of a sum does not depend on other work, on addresses of buffers and workspace, or on more
 * alignment than the views state. A plugin that cannot guarantee this returns UNSUPPORTED. */
#define BP_OP_FLAG_DETERMINISTIC 1u
/* The work reads scalars from device memory when the work runs. Without this flag, all launches of
 * a graph use the recorded scalars. */
#define BP_OP_FLAG_DEVICE_SCALARS 2u
/* plan_create may run trials on the device to choose the fastest kernel. Without this flag, or with
 * DETERMINISTIC, plan_create must not run trials. */
#define BP_OP_FLAG_TUNE 4u
/* Requests a plan that serves only the descriptor's sizes and is not ANY_SIZE. Only core sets this
 * flag, and only if the any-size plan has BP_PLAN_SPECIALIZABLE. plan_create returns UNSUPPORTED if
 * no plan is faster for these sizes. */
#define BP_OP_FLAG_SPECIALIZE 8u
#define BP_OP_FLAGS_ALL 15u /* a callee returns UNSUPPORTED for any other flag */

/* A descriptor: an operator with its operands, without data. Role: input, borrowed for the call. A
 * view that an operator both reads and writes, such as `io` of `scatter`, is an output and not an
 * input. */
typedef struct bp_op_desc {
  uint32_t struct_size;
  uint32_t op;    /* BP_OP_* */
  uint64_t flags; /* BP_OP_FLAG_* */
  /* The bp_<stem>_attributes of the operator's row. Null means zeros, and is legal if
   * attributes.def marks the stem as optional. */
  const void* attributes;
  const bp_tensor_desc* inputs;
  const bp_tensor_desc* outputs;
  uint32_t input_count;
  uint32_t output_count;
  /* The number of bp_execution.scalars. Missing scalars are zero. If there are more scalars than
   * the plugin knows, plan_create returns UNSUPPORTED. */
  uint32_t scalar_count;
  uint32_t hints; /* a callee ignores unknown bits; no hint is defined yet */
} bp_op_desc;
#define BP_OP_DESC_MIN_SIZE 56u
BP_FROZEN_MIN(bp_op_desc, BP_OP_DESC_MIN_SIZE);

/* A view is near if each extent, the number of elements, and the distance in elements between any
 * two elements are below this limit. Otherwise the view is far. A number below the limit stays
 * below 2^31 if a kernel rounds it up to a multiple of at most 65536. Numbers of bytes, the offset
 * of element 0, workspace and an operator's iteration space may exceed the limit even for near
 * views. */
#define BP_NEAR_LIMIT INT64_C(0x7FFF0000)

/* The plan serves every descriptor of its class. Descriptors of a class differ only in shape and
 * strides. In all descriptors of a class, the same operands are dense (contiguous row-major), and
 * the same operands are near. For each dimension, all extents are 0, all are 1, or all are greater.
 * All strides are 0, all are 1, all are greater, or all are negative. The stride of a dimension of
 * extent 0 or 1 is treated as 0. A packed operand has the same shape and strides in all descriptors
 * of a class. The plan's stage masks apply to all descriptors of the class, and so does its
 * workspace without BP_PLAN_SIZED_WORKSPACE. The plan reads sizes from bp_execution.desc. Core
 * caches the plan by class. */
#define BP_PLAN_ANY_SIZE 1u
#define BP_PLAN_DETERMINISTIC 2u /* results are bitwise the same from run to run */
/* In an ANY_SIZE plan, workspace_bytes applies only to the sizes that plan_create received.
 * plan_workspace returns the workspace for other sizes. */
#define BP_PLAN_SIZED_WORKSPACE 4u
/* A plan for one size may be faster than this ANY_SIZE plan. If a size recurs, core requests a plan
 * for that size with BP_OP_FLAG_SPECIALIZE. */
#define BP_PLAN_SPECIALIZABLE 8u
/* Only a query (plan_create with a null `out`) returns this flag, if the plan's properties are
 * unknown until the plan is created. The masks are then 0 and workspace_bytes is
 * BP_WORKSPACE_UNKNOWN. Test workspace_bytes for this value before you add sizes. */
#define BP_PLAN_FACTS_UNKNOWN 16u
#define BP_WORKSPACE_UNKNOWN UINT64_MAX

/* Properties of a plan. Role: output of plan_create. */
typedef struct bp_plan_info {
  uint32_t struct_size;
  uint32_t flags; /* BP_PLAN_* */
  /* Masks: bit 1 << i means that core copies input or output i to or from a dense, fully aligned
   * temporary. The plan does not accept that operand's strides, alignment, aliasing or immediate.
   * The plan is created for the temporaries. */
  uint32_t stage_inputs;
  uint32_t stage_outputs;
  /* Size of the workspace, which core provides uninitialised. The next execution on the stream gets
   * the same memory. The plugin therefore orders the two executions, unless they use separate parts
   * of the workspace. */
  uint64_t workspace_bytes;
} bp_plan_info;
#define BP_PLAN_INFO_MIN_SIZE 24u
BP_FROZEN_MIN(bp_plan_info, BP_PLAN_INFO_MIN_SIZE);

/* The data of one execution. Role: input, borrowed for the call. A field of a later version is
 * present only if a flag of the plan's descriptor requested it. A non-zero tail that no flag
 * requested is INVALID_ARGUMENT. */
typedef struct bp_execution {
  uint32_t struct_size;
  uint32_t reserved;
  /* The descriptor of this call. It equals the plan's descriptor, including attributes, so a plugin
   * need not read the attributes again. Only these parts may differ:
   *   - extents and strides within the class, if the plan is ANY_SIZE;
   *   - operands that core staged. A staged operand is dense, fully aligned and not immediate, and
   *     aliases no other operand. If the input that an output aliases was staged, the alias refers
   *     to the first identical input that was not staged, or to none. */
  const bp_op_desc* desc;
  const bp_operand* inputs;  /* desc->input_count entries */
  const bp_operand* outputs; /* desc->output_count entries */
  /* desc->scalar_count entries. If the plan has DEVICE_SCALARS, all entries are buffers. Otherwise
   * all are immediates. Each scalar has its natural alignment and at most 8 bytes. */
  const bp_operand* scalars;
  bp_buffer* workspace; /* null if not needed; aligned to bp_device_info.alignment */
  uint64_t workspace_offset;
  uint64_t workspace_bytes;
} bp_execution;
#define BP_EXECUTION_MIN_SIZE 64u
BP_FROZEN_MIN(bp_execution, BP_EXECUTION_MIN_SIZE);

#endif
