// SPDX-License-Identifier: Apache-2.0
// Tables of logarithms, for the vector kernels of AVX-512.
#pragma once

namespace backplane::onednn {

// Entry i belongs to an interval of numbers. For i below 16, the interval is [1 + i / 32, 1 + (i + 1) / 32).
// For i from 16 on, both ends are half as large, so the intervals 16 to 31 cover [0.75, 1). inverse[i] is near
// the inverse of the interval's centre, except in the two intervals adjacent to 1, where inverse[i] is 1.
// log2[i] is -log2(inverse[i]), and log[i] is -ln(inverse[i]). The inverses are chosen so that the errors of
// the rounded logarithms are below 0.01 ULP.
struct LogTables {
  alignas(64) float inverse[32];
  alignas(64) float log2[32];
  alignas(64) float log[32];
};
inline constexpr LogTables kLogTables = {
    {1.0f,       0.95488095f, 0.9273014f, 0.9010597f, 0.87668175f, 0.85303277f, 0.8310254f, 0.80987483f,
     0.7900002f, 0.7707285f,  0.7525955f, 0.7352979f, 0.7188636f,  0.703286f,   0.6878558f, 0.67341906f,
     1.3189572f, 1.2922336f,  1.2667084f, 1.242585f,  1.2183794f,  1.1956538f,  1.1737909f, 1.152485f,
     1.1322607f, 1.1125891f,  1.093314f,  1.0749804f, 1.0571475f,  1.0402707f,  1.0232923f, 1.0f},
    {0.0f,         0.066607215f, 0.10888975f,  0.15030542f,  0.18987489f,  0.22932693f,   0.26703548f,  0.30422914f,
     0.34007508f,  0.3757053f,   0.41005346f,  0.4435992f,   0.47621003f,  0.5078166f,    0.539822f,    0.57042354f,
     -0.39939776f, -0.36986688f, -0.34108442f, -0.31334448f, -0.28496343f, -0.2577997f,   -0.23117547f, -0.20474799f,
     -0.17920615f, -0.1539209f,  -0.12870787f, -0.10431033f, -0.08017669f, -0.056958977f, -0.03321831f, 0.0f},
    {0.0f,          0.046168603f, 0.075476624f, 0.10418378f,  0.13161124f,   0.15895732f,   0.1850949f,    0.21087557f,
     0.23572208f,   0.26041907f,  0.2842274f,   0.30747953f,  0.33008364f,   0.35199165f,   0.37417608f,   0.39538747f,
     -0.27684143f,  -0.25637218f, -0.2364217f,  -0.21719384f, -0.1975216f,   -0.17869315f,  -0.16023862f,  -0.14192049f,
     -0.124216236f, -0.10668984f, -0.0892135f,  -0.07230241f, -0.055574246f, -0.039480954f, -0.023025177f, 0.0f}};

}  // namespace backplane::onednn
