/* SPDX-License-Identifier: Apache-2.0 */
/* Operators: ids, attribute structs, descriptors, facts of plans, executions. ops.def is the
 * table. */
#ifndef BACKPLANE_OPS_H
#define BACKPLANE_OPS_H

#include "tensor.h"

enum {
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, \
                  acc, prof, since, family, doc)                                                                       \
  BP_OP_##symbol = id,
#include "ops.def"
#undef BP_OP_ROW
  BP_OP_LIMIT = 200 /* every id of ops.def is less than this */
};
#define BP_SINCE_0_2 BP_VERSION(0, 2) /* the column `since` of ops.def, as a number */
#define BP_OP_VENDOR 0x80000000u      /* numbers from here on are operators of plugins */

/* The minimum size of every attribute struct, which never changes. Sizes are multiples of 8. */
#define BP_ATTRIBUTES_MIN_SIZE 8u
/* Attribute structs: bp_axis_attributes, bp_reduce_attributes, ... Role: input. A field that the
 * caller's struct lacks is zero. */
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

/* Values of attribute fields; frozen. */
enum { BP_SCATTER_SET = 0, BP_SCATTER_ADD = 1, BP_SCATTER_MAX = 2, BP_SCATTER_MIN = 3 };
enum {
  BP_COMPARE_EQ = 0,
  BP_COMPARE_NE = 1,
  BP_COMPARE_LT = 2,
  BP_COMPARE_LE = 3,
  BP_COMPARE_GT = 4,
  BP_COMPARE_GE = 5
};
/* Permissions of `precision`, a mask; 0 is full precision. Each permission applies to products of
 * operands of one dtype, also inside a fused operator, and to nothing else that the operator
 * computes. A callee never refuses a permission; it ignores those that it does not use or know.
 * There are no permissions for f64, bf16 and integers. */
enum {
  BP_PRECISION_FULL = 0,
  BP_PRECISION_ALLOW_TF32 = 1,           /* f32: operands may be rounded to 11 significant bits */
  BP_PRECISION_ALLOW_BF16X3 = 2,         /* f32: operands may be two bf16 each, without low x low */
  BP_PRECISION_ALLOW_F16_ACCUMULATE = 4, /* f16: sums may be f16, which overflows above 65504 */
  BP_PRECISION_ALLOW_BF16 = 8,           /* f32: operands may be rounded to bf16 */
  BP_PRECISION_ALLOW_FLUSH_F16 = 16      /* f16: numbers below 2^-14 may become zeros of any sign */
};
enum { BP_CAUSAL_NONE = 0, BP_CAUSAL_LOWER_RIGHT = 1, BP_CAUSAL_UPPER_LEFT = 2 };
enum { BP_GELU_ERF = 0, BP_GELU_TANH = 1 };
enum {
  BP_ACTIVATION_NONE = 0,
  BP_ACTIVATION_RELU = 1,
  BP_ACTIVATION_GELU_ERF = 2,
  BP_ACTIVATION_GELU_TANH = 3,
  BP_ACTIVATION_SILU = 4,
  BP_ACTIVATION_SIGMOID = 5
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
/* Dtypes of the first input of matmul. */
#define BP_SET_MATMUL (BP_SET_FLOATS | BP_DTYPE_BIT(BP_U8) | BP_DTYPE_BIT(BP_I8))
#define BP_SET_U32 BP_DTYPE_BIT(BP_U32)
/* For operators that move elements without computing. This is a separate set, since storage formats
 * may be added to it. */
#define BP_SET_MOVED (BP_SET_NUMERIC | BP_DTYPE_BIT(BP_BOOL))
#define BP_SET_SCATTERED BP_SET_MOVED /* for mode SET; other modes have BP_SET_NUMERIC */

/* Dtype rules: the dtypes of the operands as a function of T. */
enum {
  BP_RULE_SAME = 1,       /* all are T */
  BP_RULE_CAST = 2,       /* input T, output any of the set */
  BP_RULE_GATHER = 3,     /* x T, index i32 or i64, out T */
  BP_RULE_SCATTER = 4,    /* index i32 or i64, source T, io T; see BP_SET_SCATTERED */
  BP_RULE_COMPARE = 5,    /* inputs T, out bool */
  BP_RULE_SELECT = 6,     /* condition bool, a and b T, out T */
  BP_RULE_SUM = 7,        /* f16, bf16 to themselves or f32; other floats T; integers T, i32 or i64;
                             bool i32 or i64 */
  BP_RULE_INDEX = 8,      /* input T, out i32 or i64 */
  BP_RULE_SORT = 9,       /* x T, values T, optional indices i32 or i64 */
  BP_RULE_MATMUL = 10,    /* f32, f64: T x T to T; f16, bf16: to T or f32, and with f32 on the other
                             side to f32; i8 x i8 and u8 x i8 to i32, mod 2^32 */
  BP_RULE_COMPOSITE = 11, /* the composite's own */
  BP_RULE_WIDEN = 12      /* input T; output T, or f32 if T is f16 or bf16 */
};

/* Shape rules. Shapes are equal after the caller has broadcast them (stride 0). Dtypes are not
 * promoted. */
enum {
  BP_SHAPE_GENERATE = 1,    /* no input; any output shape */
  BP_SHAPE_ELEMENTWISE = 2, /* all shapes equal */
  BP_SHAPE_GATHER = 3,      /* x, index, out of one rank; index and out equal, and equal to x except
                               along `axis` */
  BP_SHAPE_SCATTER = 4,     /* index, source, io of one rank; index and source equal, equal to io
                               except along `axis` */
  BP_SHAPE_REDUCE = 5,      /* out = in with extent 1 in `axes` */
  BP_SHAPE_ARG = 6,         /* out = in with extent 1 along `axis`, whose extent in the input is
                               not 0 */
  BP_SHAPE_MATMUL = 7,      /* a[B..,M,K], b[B..,K,N], out[B..,M,N]; one rank of at least 2; batch
                               extents equal */
  BP_SHAPE_SORT = 8,        /* each output has the shape of the input */
  BP_SHAPE_COMPOSITE = 9    /* the composite's own */
};

/* Kinds and profiles, columns of ops.def. */
enum { BP_KIND_PRIMITIVE = 1, BP_KIND_COMPOSITE = 2 };
enum { BP_PROFILE_CORE = 1, BP_PROFILE_INFER = 2, BP_PROFILE_TRAIN = 3, BP_PROFILE_COMPOSITE = 4 };

/* DETERMINISTIC: executions with equal bp_execution.desc and equal operand bytes give equal bits,
 * with every plan of the class, for the same library, driver and device. Neither other work, nor
 * the addresses of buffers and workspace, nor a larger alignment than stated changes the order of a
 * sum. A plugin that cannot guarantee this returns UNSUPPORTED. */
#define BP_OP_FLAG_DETERMINISTIC 1u
/* The work reads scalars from device memory when it runs, as the replay of graphs requires. */
#define BP_OP_FLAG_DEVICE_SCALARS 2u
/* plan_create may run trials on the device. Without this flag, or with DETERMINISTIC, it must
 * not. */
#define BP_OP_FLAG_TUNE 4u
/* Requests a plan for these sizes only, which is not ANY_SIZE. Only core sets it, and only if the
 * any-size plan has BP_PLAN_SPECIALIZABLE. UNSUPPORTED if no plan is faster for these sizes. */
#define BP_OP_FLAG_SPECIALIZE 8u
#define BP_OP_FLAGS_ALL 15u /* a callee returns UNSUPPORTED for any other flag */

/* A descriptor: an operator with its operands, without data. Role: input, borrowed for the call. A
 * view that an operator reads and writes (scatter) is an output and not an input. */
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
  uint32_t hints; /* a callee ignores the bits that it does not know; none is defined yet */
} bp_op_desc;
#define BP_OP_DESC_MIN_SIZE 56u
BP_FROZEN_MIN(bp_op_desc, BP_OP_DESC_MIN_SIZE);

/* A view is near if each extent, its number of elements and the distance between any two elements,
 * in elements, are below this limit; otherwise it is far. Rounding up to a tile stays below 2^31.
 * Bytes, the offset of element 0, workspace and an operator's iteration space may exceed the limit
 * even for near views. */
#define BP_NEAR_LIMIT INT64_C(0x7FFF0000)

/* The plan serves every descriptor of its class. Descriptors of a class differ only in shape and
 * strides. For each operand they agree in denseness (contiguous row-major) and in being near or
 * far. For each dimension they agree in the class of the extent (0, 1, more) and of the stride (0,
 * 1, more, negative). The stride of a dimension of extent 0 or 1 counts as 0. The plan's workspace
 * and masks apply to all descriptors of the class. The plan takes sizes from bp_execution.desc, and
 * core caches it by class. */
#define BP_PLAN_ANY_SIZE 1u
#define BP_PLAN_DETERMINISTIC 2u /* bitwise the same from run to run */
/* With ANY_SIZE: workspace_bytes is for the sizes of plan_create only. plan_workspace returns the
 * workspace of other sizes. */
#define BP_PLAN_SIZED_WORKSPACE 4u
/* With ANY_SIZE: a plan for one size may be faster. If a size recurs, core requests such a plan
 * with BP_OP_FLAG_SPECIALIZE. */
#define BP_PLAN_SPECIALIZABLE 8u
/* Only in a query (plan_create with a null `out`): the facts are not known before the plan is made.
 * The masks are 0 and workspace_bytes is BP_WORKSPACE_UNKNOWN; test it before you add sizes. */
#define BP_PLAN_FACTS_UNKNOWN 16u
#define BP_WORKSPACE_UNKNOWN UINT64_MAX

/* Facts about a plan. Role: output of plan_create. */
typedef struct bp_plan_info {
  uint32_t struct_size;
  uint32_t flags; /* BP_PLAN_* */
  /* Masks of operands that core copies to or from dense, fully aligned temporaries, because the
   * plan does not accept their strides, alignment, aliasing or immediates. The plan is made for the
   * temporaries. */
  uint32_t stage_inputs;
  uint32_t stage_outputs;
  /* Core provides the workspace, uninitialised. The next execution on the stream gets the same
   * bytes, so the plugin orders the two executions, unless it keeps their workspaces apart. */
  uint64_t workspace_bytes;
} bp_plan_info;
#define BP_PLAN_INFO_MIN_SIZE 24u
BP_FROZEN_MIN(bp_plan_info, BP_PLAN_INFO_MIN_SIZE);

/* The data of one execution. Role: input, borrowed for the call. A later field is present only if a
 * flag of the plan's descriptor requested it. A non-zero tail that no flag requested is
 * INVALID_ARGUMENT. */
typedef struct bp_execution {
  uint32_t struct_size;
  uint32_t reserved;
  /* The descriptor of this call. It equals the plan's, including attributes, which a plugin need
   * not read again, except for:
   *   - extents and strides within the class, if the plan is ANY_SIZE;
   *   - operands that core staged: they are dense, fully aligned, not immediate, and alias nothing.
   *     An output's alias then names the first identical input that was not staged, or none. */
  const bp_op_desc* desc;
  const bp_operand* inputs;  /* desc->input_count */
  const bp_operand* outputs; /* desc->output_count */
  /* desc->scalar_count: all immediates, or with DEVICE_SCALARS all buffers. Each has its natural
   * alignment and at most 8 bytes. */
  const bp_operand* scalars;
  bp_buffer* workspace; /* null if the plan needs none; aligned to bp_device_info.alignment */
  uint64_t workspace_offset;
  uint64_t workspace_bytes;
} bp_execution;
#define BP_EXECUTION_MIN_SIZE 64u
BP_FROZEN_MIN(bp_execution, BP_EXECUTION_MIN_SIZE);

#endif
