/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the host's C++ and the kernels' GLSL must agree on. */
#define BACKPLANE_GROUP 128      /* threads of a workgroup: the least that Vulkan guarantees */
#define BACKPLANE_ROW_RANK 9     /* dimensions of rows and within them, together (rows.glsl) */
#define BACKPLANE_ROW_HELD 8     /* elements of a row that a thread keeps in registers */
#define BACKPLANE_ROW_PARTIAL 16 /* bytes that are kept of a part of a row */
