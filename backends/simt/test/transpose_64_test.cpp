// SPDX-License-Identifier: Apache-2.0
#define SIMT_T I64
#define SIMT_T_BITS 64
#define SIMT_IS_FLOAT 0
#include "transpose_test.hpp"
