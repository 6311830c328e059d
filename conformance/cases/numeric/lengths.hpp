// SPDX-License-Identifier: Apache-2.0
// Extents near the sizes of vectors, warps, tiles and blocks.
#pragma once

#include <cstdint>

namespace backplane::conformance::numeric {

inline constexpr int32_t kTileLengths[] = {0,  1,  2,  3,   7,   8,   9,   15,  16,  17,   31,   32,   33,
                                           63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4097};
inline constexpr int32_t kFewLengths[] = {0, 1, 3, 8, 17, 33, 64, 127, 257, 1025};
inline constexpr int32_t kLongLengths[] = {65535, 65536, 65537};

}  // namespace backplane::conformance::numeric
