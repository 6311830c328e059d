// SPDX-License-Identifier: Apache-2.0
// The parameters of the kernels of norms, which host and kernels share.
#pragma once
#include "tile_params.h"

// Options of the kernel norm_forward.
#define SIMT_NORM_CENTRED 1        // subtracts the mean
#define SIMT_NORM_REDUCES 2        // computes the statistics of rows
#define SIMT_NORM_BATCH 4          // reads and writes running statistics
#define SIMT_NORM_TRAINS 8         // updates running statistics, and normalises with the row's statistics
#define SIMT_NORM_WIDE_RUNNING 16  // running statistics are f32

static_assert(sizeof(TileParams<11, 6>) == 816 && sizeof(TileParams<7, 6>) == 784,
              "host and kernels must agree on the layout");
