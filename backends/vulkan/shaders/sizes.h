/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the host's C++ and the kernels' GLSL share. */
#define BACKPLANE_GROUP 128             /* threads of a workgroup: the minimum that Vulkan guarantees */
#define BACKPLANE_PARAMS_BYTES 672      /* size of the parameters of most kernels (params.glsl) */
#define BACKPLANE_TRANSPOSE_TILE 32     /* rows and columns of a tile that is transposed */
#define BACKPLANE_ROPE_TABLE 128        /* maximum frequencies per dispatch of rope */
#define BACKPLANE_REDUCTION_RANK 9      /* maximum outer and inner dimensions of a reduction (reduction.glsl) */
#define BACKPLANE_REDUCTION_REGISTERS 8 /* maximum elements of a row that a thread keeps in registers */
#define BACKPLANE_VEC4_TILE 8           /* threads per vec4 row on a CPU: its vector width */
#define BACKPLANE_TOPK_MAX 512          /* maximum number of selected elements */
#define BACKPLANE_PARTIAL_BYTES 16      /* size of the partial results of a row's split */
#define BACKPLANE_THREAD_TILE_M 8       /* rows and columns of GEMM outputs per thread */
#define BACKPLANE_THREAD_TILE_N 4
#define BACKPLANE_GROUP_TILE_M 64 /* the same per workgroup */
#define BACKPLANE_GROUP_TILE_N 64
#define BACKPLANE_SKINNY_TILE_N 512     /* columns per workgroup, for at most BACKPLANE_THREAD_TILE_M rows */
#define BACKPLANE_K_MAJOR_TILE_N 16     /* the same for K-major b */
#define BACKPLANE_MIN_SUBGROUP 8        /* minimum subgroup size of kernels with ballots */
#define BACKPLANE_SUBGROUP_WORKGROUP 64 /* threads per workgroup of these kernels, and their maximum subgroup size */
#define BACKPLANE_MATRIX_GROUP 256      /* threads per workgroup with cooperative matrices */
#define BACKPLANE_MATRIX_DEPTH_BYTES 64 /* bytes along k of the tiles of such a workgroup */
#define BACKPLANE_MATRIX_TILE 64        /* rows and columns of these tiles */
#define BACKPLANE_MATRIX_LARGE_TILE 128 /* the same if there are enough large tiles */
#define BACKPLANE_ATTENTION_ROWS 8      /* queries per subgroup */
#define BACKPLANE_ATTENTION_KEYS 8      /* keys per thread in a block */
