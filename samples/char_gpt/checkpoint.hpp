// SPDX-License-Identifier: Apache-2.0
// Stores the state of a training run in a file.
#pragma once

#include <cstdint>
#include <filesystem>

#include "parameters.hpp"
#include "training.hpp"

namespace char_gpt {

// The file is little-endian and has no padding. It contains:
//   8 bytes "BPCHRGPT"; u32 version, 1; u32 bytes of this header;
//   i64 context, width, heads, blocks; i64 steps, batch, streams; f64 peak rate; u64 seed;
//   u64 XXH3 of the training text; i64 steps done;
//   u64 bytes after the header; u64 XXH3 of these bytes;
//   u64 XXH3 of all preceding fields of the header;
//   f32 parameters; f32 first moments; f32 second moments, each in the order of Weights
struct Checkpoint {
  Config config;
  Schedule schedule;
  uint64_t text_hash = 0;
  State state;
};

// Replaces `file` atomically, so that a crash leaves either the old or the new file. On failure, throws
// std::runtime_error with the system's reason, and leaves the old file unchanged.
void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

// Throws std::runtime_error if the file is missing, truncated or damaged, or has another format or
// version.
Checkpoint load_checkpoint(const std::filesystem::path& file);

}  // namespace char_gpt
