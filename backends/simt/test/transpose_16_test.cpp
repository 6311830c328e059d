// SPDX-License-Identifier: Apache-2.0
#define SIMT_T F16
#define SIMT_T_BITS 16
#define SIMT_IS_FLOAT 1
#include "transpose_test.hpp"
