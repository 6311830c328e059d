// SPDX-License-Identifier: Apache-2.0
// The parameters of the kernels of losses, which host and kernels share.
#pragma once
#include "tile_params.h"

// Options of the kernels of cross_entropy.
#define SIMT_LOSS_REDUCES 1  // stores the group's sums of losses and weights in its Slot (loss.h), and no single losses
#define SIMT_LOSS_MEAN 2     // divides the sum of losses by the sum of weights
#define SIMT_LOSS_DIVIDES 4  // divides gradients by the sum of the weights in the Slots (loss.h)

#define SIMT_LOSS_GROUPS 32768  // maximum number of groups of cross_entropy

static_assert(sizeof(TileParams<7, 5>) == 688, "host and kernels must agree on the layout");
