// SPDX-License-Identifier: Apache-2.0
// Reads and splits the text, and measures its size after compression by gzip. A character is a byte.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace char_gpt {

// A text in two parts. The last tenth of each document is held out. It starts at the beginning of a line. No
// byte is in both parts.
struct Corpus {
  std::string train, held_out;
  size_t documents = 0;
};

// Reads files and directories. In a directory, reads all *.md files, including those in its subdirectories, in
// the order of their paths. Throws std::runtime_error if a file is missing, empty, not text, or too large. Also
// throws if the training text or the held-out text has fewer than `context` + 2 characters.
Corpus read_corpus(const std::vector<std::filesystem::path>& paths, int64_t context);

// Returns the paths of LICENSE, README.md and docs in the repository that contains `program`. Throws
// std::runtime_error if no directory above `program` contains LICENSE and docs.
std::vector<std::filesystem::path> repository_documents(const std::filesystem::path& program);

// Returns the size of the output of `gzip -9` whose header contains no file name.
size_t gzip_bytes(const std::string& text);

}  // namespace char_gpt
