/* SPDX-License-Identifier: Apache-2.0 */
/* Names of specialisation constants for the host's C++ (runtime/pipelines.hpp) and the kernels' GLSL:
 * their ids, and the values that are not in ops.def or dtypes.def. A constant that the host omits is 0. */

/* Every shader (memory.glsl). */
#define BACKPLANE_ID_LAYOUT 0  /* how operands are laid out: BACKPLANE_LAYOUT_* */
#define BACKPLANE_ID_OP 1      /* the computation: the operator's id, or as the shader defines */
#define BACKPLANE_ID_VARIANT 2 /* each shader defines its meaning */
#define BACKPLANE_ID_MODE 3    /* each shader defines its meaning */

/* Other names of the first four, for shaders that give them another meaning. */
#define BACKPLANE_ID_B_SOURCE BACKPLANE_ID_LAYOUT      /* gemm.glsl: window, or bits of a weight */
#define BACKPLANE_ID_EPILOGUE BACKPLANE_ID_OP          /* gemm.glsl: activation, or zero points */
#define BACKPLANE_ID_OUT_DTYPE BACKPLANE_ID_VARIANT    /* gemm.glsl, reduce.comp */
#define BACKPLANE_ID_ALGORITHM BACKPLANE_ID_MODE       /* matmul.comp: BACKPLANE_ALGORITHM_* */
#define BACKPLANE_ID_SUBGROUP_SIZE BACKPLANE_ID_OP     /* attention.comp */
#define BACKPLANE_ID_IGNORE_INDEX BACKPLANE_ID_VARIANT /* loss_cross_entropy.comp */

/* From 4 on, each family has its own constants. */
#define BACKPLANE_ID_VEC4_TILE 4  /* reduction.glsl: threads per vec4 row; 0 if rows are not vec4 */
#define BACKPLANE_ID_GROUP_SIZE 4 /* register_rows.glsl, topk.comp: threads of a workgroup */
#define BACKPLANE_ID_VEC4S 5      /* register_rows.glsl: groups of four elements that a thread keeps */
#define BACKPLANE_ID_GROUP_ROWS 6 /* register_rows.glsl: rows per workgroup */
#define BACKPLANE_ID_GEMM_ROWS 4  /* matmul_k_major.comp */
#define BACKPLANE_ID_MATRIX_M 4   /* matmul_cooperative.comp; cooperative_matrix.py reads M, N and K here */
#define BACKPLANE_ID_MATRIX_N 5
#define BACKPLANE_ID_MATRIX_K 6
#define BACKPLANE_ID_MATRIX_SUBGROUP_SIZE 7
#define BACKPLANE_ID_SUBGROUPS_M 8 /* subgroups of a workgroup along M */
#define BACKPLANE_ID_GROUP_TILE 9  /* rows and columns of a workgroup */
#define BACKPLANE_ID_COUNT 10

/* Values of LAYOUT. */
#define BACKPLANE_LAYOUT_STRIDED 0   /* any strides */
#define BACKPLANE_LAYOUT_DENSE 1     /* dense in one order, or immediates; uses only strides[0] */
#define BACKPLANE_LAYOUT_VEC4_ROWS 2 /* rows whose extent is a multiple of four (vec4_loop.glsl) */

/* Values of OP of copy.comp. */
#define BACKPLANE_COPY_COPY 0
#define BACKPLANE_COPY_FILL 1
#define BACKPLANE_COPY_SELECT 2
#define BACKPLANE_COPY_GATHER 3

/* Values of ALGORITHM. enum GemmAlgorithm adds the algorithms that have separate shaders. */
#define BACKPLANE_ALGORITHM_DIRECT 0
#define BACKPLANE_ALGORITHM_SHARED 1
#define BACKPLANE_ALGORITHM_SUBGROUP 2
#define BACKPLANE_ALGORITHM_SKINNY 3
/* Value of MODE of matmul.comp compiled for subgroups. */
#define BACKPLANE_MODE_VEC4_COLUMNS 1

/* Values of MODE. */
#define BACKPLANE_CROSS_ENTROPY_ROWS 0    /* loss_cross_entropy.comp: losses and gradients of rows */
#define BACKPLANE_CROSS_ENTROPY_WEIGHTS 1 /* the sum of the targets' weights */
#define BACKPLANE_CROSS_ENTROPY_LOSSES 2  /* the sum of losses */
#define BACKPLANE_NORM_BWD_GRADIENT 0     /* norm_bwd.comp: dx */
#define BACKPLANE_NORM_BWD_PARAMETERS 1   /* dgamma and dbeta */
#define BACKPLANE_NORM_BWD_STATISTICS 2   /* mean and rstd alone */
#define BACKPLANE_SCAN_THREAD 0           /* scan.comp: a thread scans a slice */
#define BACKPLANE_SCAN_GROUP 1            /* a workgroup scans a slice */
#define BACKPLANE_SORT_COUNT 0            /* sort.comp: by counting */
#define BACKPLANE_SORT_BEGIN 1            /* a bitonic network: copies values, writes indices */
#define BACKPLANE_SORT_STEP 2             /* a bitonic network: one step */
