// SPDX-License-Identifier: Apache-2.0
// Constants of tensor maps that host and kernels share, and the contents of a tensor map in the test driver. The
// driver of a GPU uses another format. The including file defines u32 and u64.
#pragma once

#define TENSOR_BOX 64  // elements of a line of a box
#define TENSOR_MAP_BYTES 128
#define TENSOR_MAP_ALIGNMENT 128
// A batch of matrices. A matrix consists of lines of 2-byte elements.
struct EmulatedTensorMap {
  u64 address;
  u64 extents[3];  // elements of a line, lines of a matrix, and matrices
  u64 pitches[2];  // bytes between lines and between matrices
  u32 lines;       // lines of a box. A box has 128 bytes of each line
  u32 reserved[19];
};
static_assert(sizeof(EmulatedTensorMap) == TENSOR_MAP_BYTES, "a tensor map has a fixed size");
