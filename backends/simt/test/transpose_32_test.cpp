// SPDX-License-Identifier: Apache-2.0
#define SIMT_T U32
#define SIMT_T_BITS 32
#define SIMT_IS_FLOAT 0
#include "transpose_test.hpp"
