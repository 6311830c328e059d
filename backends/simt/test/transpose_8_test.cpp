// SPDX-License-Identifier: Apache-2.0
#define SIMT_T U8
#define SIMT_T_BITS 8
#define SIMT_IS_FLOAT 0
#include "transpose_test.hpp"
