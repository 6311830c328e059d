// SPDX-License-Identifier: Apache-2.0
// Stores the state of a training in a file.
#pragma once

#include <cstdint>
#include <filesystem>

#include "parameters.hpp"
#include "training.hpp"

namespace char_gpt {

// The file, little-endian, no padding:
//   8 bytes "BPCHRGPT"; u32 version, 1; u32 bytes of this header;
//   i64 context, width, heads, blocks; i64 steps, batch, streams; f64 peak rate; u64 seed;
//   u64 XXH3 of the text learned from; i64 steps done; u64 bytes that follow the header; u64 XXH3 of them;
//   u64 XXH3 of the header up to here
// then f32 parameters, first moments, second moments, each in the order of Weights.
struct Checkpoint {
  Config config;
  Schedule schedule;
  uint64_t text_hash = 0;
  State state;
};

// Replaces `file` atomically, so that after a crash it is the old or the new file. Throws
// std::runtime_error with the system's reason; the old file is then unchanged.
void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

// Throws std::runtime_error if the file is missing, truncated, damaged, or of
// another format or version.
Checkpoint load_checkpoint(const std::filesystem::path& file);

}  // namespace char_gpt
