/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the host's C++ and the kernels' GLSL must agree on. */
#define BACKPLANE_GROUP 128          /* threads of a workgroup: the least that Vulkan guarantees */
#define BACKPLANE_PARAMS_BYTES 672   /* of the parameters that most kernels have (params.glsl) */
#define BACKPLANE_TRANSPOSE_TILE 32 /* rows and columns of a tile that is copied the other way round */
#define BACKPLANE_ROPE_TABLE 128     /* frequencies of a dispatch of rope */
#define BACKPLANE_REDUCTION_RANK 9         /* dimensions of rows and within them, together (reduction.glsl) */
#define BACKPLANE_REDUCTION_REGISTERS 8         /* elements of a row that a thread keeps in registers */
#define BACKPLANE_VEC4_TILE 8         /* threads that a CPU's row by four has: its vectors */
#define BACKPLANE_TOPK_MAX 512           /* elements that are selected of a row at most */
#define BACKPLANE_PARTIAL_BYTES 16     /* bytes that are kept of a part of a row */
#define BACKPLANE_THREAD_TILE_M 8           /* rows and columns of a product that a thread adds up */
#define BACKPLANE_THREAD_TILE_N 4
#define BACKPLANE_GROUP_TILE_M 64 /* the same of a workgroup */
#define BACKPLANE_GROUP_TILE_N 64
#define BACKPLANE_SKINNY_TILE_N 512        /* columns, where there are at most BACKPLANE_THREAD_TILE_M rows */
#define BACKPLANE_K_MAJOR_TILE_N 16       /* the same where they run along k */
#define BACKPLANE_MIN_SUBGROUP 8               /* of a subgroup, at least */
#define BACKPLANE_SUBGROUP_WORKGROUP 64         /* threads of a workgroup that works by subgroups: the most lanes of one */
#define BACKPLANE_MATRIX_GROUP 256      /* threads of a workgroup that multiplies cooperative matrices */
#define BACKPLANE_MATRIX_DEPTH_BYTES 64 /* of a line of k, that it passes through shared memory at once */
#define BACKPLANE_MATRIX_TILE 64        /* rows and columns of such a workgroup */
#define BACKPLANE_MATRIX_LARGE_TILE 128 /* the same where there are enough of them */
#define BACKPLANE_ATTENTION_ROWS 8      /* queries of a subgroup */
#define BACKPLANE_ATTENTION_KEYS 8      /* keys of a lane, of a block */
