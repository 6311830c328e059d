/* SPDX-License-Identifier: Apache-2.0 */
/* Names of specialisation constants for the host's C++ (runtime/pipelines.hpp) and the kernels' GLSL:
 * their ids, and the values that are not in ops.def or dtypes.def. A constant that the host omits is 0. */

/* Ids of the constants that every shader has (memory.glsl). */
#define BACKPLANE_ID_LAYOUT 0  /* layout of the operands: BACKPLANE_LAYOUT_* */
#define BACKPLANE_ID_OP 1      /* the operator's id, or a computation that the shader defines */
#define BACKPLANE_ID_VARIANT 2 /* a variant, whose meaning each shader defines */
#define BACKPLANE_ID_MODE 3    /* a mode, whose meaning each shader defines */

/* Other names of these four ids, for shaders that give the constants another meaning. */
#define BACKPLANE_ID_B_SOURCE BACKPLANE_ID_LAYOUT      /* gemm.glsl: WINDOW or, with QUANTIZED, WEIGHT_BITS */
#define BACKPLANE_ID_EPILOGUE BACKPLANE_ID_OP          /* gemm.glsl: the activation or, with integers, zero points */
#define BACKPLANE_ID_OUT_DTYPE BACKPLANE_ID_VARIANT    /* gemm.glsl, reduce.comp: the output's dtype */
#define BACKPLANE_ID_ALGORITHM BACKPLANE_ID_MODE       /* matmul.comp: BACKPLANE_ALGORITHM_* */
#define BACKPLANE_ID_SUBGROUP_SIZE BACKPLANE_ID_OP     /* attention.comp: the subgroup size */
#define BACKPLANE_ID_IGNORE_INDEX BACKPLANE_ID_VARIANT /* loss_cross_entropy.comp: the operator's ignore_index */

/* Ids of the constants that only some shaders have. Different families use the same ids. */
#define BACKPLANE_ID_VEC4_TILE 4  /* reduction.glsl: threads per row in a vec4 kernel; 0 in other kernels */
#define BACKPLANE_ID_GROUP_SIZE 4 /* register_rows.glsl, topk.comp: threads per workgroup */
#define BACKPLANE_ID_VEC4S 5      /* register_rows.glsl: groups of four elements that a thread keeps */
#define BACKPLANE_ID_GROUP_ROWS 6 /* register_rows.glsl: rows per workgroup */
#define BACKPLANE_ID_GEMM_ROWS 4  /* matmul_k_major.comp: maximum number of rows */
#define BACKPLANE_ID_MATRIX_M 4   /* matmul_cooperative.comp; cooperative_matrix.py reads M, N and K from this file */
#define BACKPLANE_ID_MATRIX_N 5
#define BACKPLANE_ID_MATRIX_K 6
#define BACKPLANE_ID_MATRIX_SUBGROUP_SIZE 7
#define BACKPLANE_ID_SUBGROUPS_M 8   /* matmul_cooperative.comp: subgroups of a workgroup along M */
#define BACKPLANE_ID_GROUP_TILE 9    /* matmul_cooperative.comp: rows and columns of a workgroup's tile */
#define BACKPLANE_ID_GROUP_TILE_N 10 /* matmul_cooperative_wide.comp: columns of a tile; GROUP_TILE has the rows */
#define BACKPLANE_ID_COUNT 11

/* Values of LAYOUT. */
#define BACKPLANE_LAYOUT_STRIDED 0   /* operands have any strides */
#define BACKPLANE_LAYOUT_DENSE 1     /* operands are dense or immediates; only strides[0] is used */
#define BACKPLANE_LAYOUT_VEC4_ROWS 2 /* operands have rows whose extent is a multiple of four (vec4_loop.glsl) */

/* Values of OP of copy.comp. */
#define BACKPLANE_COPY_COPY 0
#define BACKPLANE_COPY_FILL 1
#define BACKPLANE_COPY_SELECT 2
#define BACKPLANE_COPY_GATHER 3

/* Values of ALGORITHM. GemmAlgorithm has further values for algorithms with separate shaders. */
#define BACKPLANE_ALGORITHM_DIRECT 0
#define BACKPLANE_ALGORITHM_SHARED 1
#define BACKPLANE_ALGORITHM_SUBGROUP 2
#define BACKPLANE_ALGORITHM_SKINNY 3
/* Value of MODE of matmul.comp for subgroups whose threads read all their columns at once. */
#define BACKPLANE_MODE_VEC4_COLUMNS 1

/* Values of MODE in other shaders. */
#define BACKPLANE_CROSS_ENTROPY_ROWS 0    /* loss_cross_entropy.comp: losses and gradients of rows */
#define BACKPLANE_CROSS_ENTROPY_WEIGHTS 1 /* loss_cross_entropy.comp: the sum of the targets' weights */
#define BACKPLANE_CROSS_ENTROPY_LOSSES 2  /* loss_cross_entropy.comp: the sum of losses */
#define BACKPLANE_NORM_BWD_GRADIENT 0     /* norm_bwd.comp: dx */
#define BACKPLANE_NORM_BWD_PARAMETERS 1   /* norm_bwd.comp: dgamma and dbeta */
#define BACKPLANE_NORM_BWD_STATISTICS 2   /* norm_bwd.comp: mean and rstd alone */
#define BACKPLANE_SCAN_THREAD 0           /* scan.comp: a thread scans a slice */
#define BACKPLANE_SCAN_GROUP 1            /* scan.comp: a workgroup scans a slice */
#define BACKPLANE_SORT_COUNT 0            /* sort.comp: sorts by counting */
#define BACKPLANE_SORT_BEGIN 1            /* sort.comp: begins a bitonic network; copies values, writes indices */
#define BACKPLANE_SORT_STEP 2             /* sort.comp: one step of a bitonic network */
