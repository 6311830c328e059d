// SPDX-License-Identifier: Apache-2.0
// Reads and splits the text, and measures its size after gzip. A character is a byte.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace char_gpt {

// A text in two parts. The last tenth of each document is held out, and begins at the beginning of
// a line. No byte is in both parts.
struct Corpus {
  std::string train, held_out;
  size_t documents = 0;
};

// Reads files and directories. Reads every *.md file in and below a directory, in the order of the
// paths. Throws std::runtime_error if a file is missing, empty, not text, or too large. Also throws
// if the training text or the held-out text has fewer than `context` + 2 characters.
Corpus read_corpus(const std::vector<std::filesystem::path>& paths, int64_t context);

// Returns the documents of the repository that contains `program`: LICENSE, README.md and docs.
// Throws std::runtime_error if no directory above `program` has these documents.
std::vector<std::filesystem::path> repository_documents(const std::filesystem::path& program);

// Returns the size of the output of `gzip -9` without a file name in the header.
size_t gzip_bytes(const std::string& text);

}  // namespace char_gpt
