/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the host's C++ and the kernels' GLSL share. */
#define BACKPLANE_GROUP 128              /* threads per workgroup; every Vulkan device supports 128 */
#define BACKPLANE_PARAMS_BYTES 672       /* size of the parameters of most kernels in bytes (params.glsl) */
#define BACKPLANE_TRANSPOSE_TILE 32      /* rows and columns of a tile of copy_transpose.comp */
#define BACKPLANE_ROPE_TABLE 128         /* maximum number of frequencies per dispatch of rope */
#define BACKPLANE_REDUCTION_RANK 9       /* maximum number of outer and inner dimensions together (reduction.glsl) */
#define BACKPLANE_REDUCTION_REGISTERS 8  /* maximum number of elements of a row that a thread keeps in registers */
#define BACKPLANE_VEC4_TILE 8            /* threads per vec4 row on a CPU; a CPU vector holds 8 threads */
#define BACKPLANE_TOPK_MAX 512           /* maximum k of topk */
#define BACKPLANE_PARTIAL_BYTES 16       /* size in bytes of the partial results of one split of a row */
#define BACKPLANE_THREAD_TILE_M 8        /* rows of GEMM outputs per thread */
#define BACKPLANE_THREAD_TILE_N 4        /* columns of GEMM outputs per thread */
#define BACKPLANE_GROUP_TILE_M 64        /* rows of GEMM outputs per workgroup */
#define BACKPLANE_GROUP_TILE_N 64        /* columns of GEMM outputs per workgroup */
#define BACKPLANE_WIDE_TILE_M 128        /* rows of GEMM outputs per workgroup, for GEMMs that have enough such tiles */
#define BACKPLANE_WIDE_TILE_N 64         /* columns of GEMM outputs per such workgroup */
#define BACKPLANE_SKINNY_TILE_N 512      /* columns per workgroup of a GEMM with at most BACKPLANE_THREAD_TILE_M rows */
#define BACKPLANE_K_MAJOR_TILE_N 16      /* columns per workgroup of a GEMM with K-major `b` */
#define BACKPLANE_MIN_SUBGROUP 8         /* minimum subgroup size of kernels with ballots */
#define BACKPLANE_SUBGROUP_WORKGROUP 64  /* threads per workgroup with ballots, and maximum subgroup size */
#define BACKPLANE_MATRIX_GROUP 256       /* threads per workgroup of a GEMM with cooperative matrices */
#define BACKPLANE_MATRIX_DEPTH_BYTES 64  /* bytes along k of a tile of a GEMM with cooperative matrices */
#define BACKPLANE_MATRIX_TILE 64         /* rows and columns of a tile of a GEMM with cooperative matrices */
#define BACKPLANE_MATRIX_LARGE_TILE 128  /* rows and columns of a larger tile, for GEMMs that have enough such tiles */
#define BACKPLANE_MATRIX_WIDE_TILE_M 128 /* rows of a tile of matmul_cooperative_wide.comp */
#define BACKPLANE_MATRIX_WIDE_TILE_N 256 /* columns of a tile of matmul_cooperative_wide.comp */
#define BACKPLANE_ATTENTION_ROWS 8       /* queries per subgroup of attention */
#define BACKPLANE_ATTENTION_KEYS 8       /* keys per thread in a block of attention */
