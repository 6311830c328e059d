// SPDX-License-Identifier: Apache-2.0
// The text: reading it, splitting it, and what gzip makes of it. A character is a byte.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace char_gpt {

// The last tenth of each document is held out, from the beginning of a line on; no byte is in both parts.
struct Corpus {
  std::string train, held_out;
  size_t documents = 0;
};

// Reads files, and of directories all *.md below them, in the order of their paths.
// Throws std::runtime_error naming what is missing, empty, no text, too large, or too short to learn from: each part has to
// hold more than `context` characters.
Corpus read_corpus(const std::vector<std::filesystem::path>& paths, int64_t context);

// The documents of the repository that `program` lies in: LICENSE, README.md, docs.
// Throws std::runtime_error if no directory above it has them.
std::vector<std::filesystem::path> repository_documents(const std::filesystem::path& program);

// What `gzip -9` needs, in bytes, without a file name in the header.
size_t gzip_bytes(const std::string& text);

}  // namespace char_gpt
