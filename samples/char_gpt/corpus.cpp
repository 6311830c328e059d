// SPDX-License-Identifier: Apache-2.0
// Reads documents and splits them into training and held-out text.
#include "corpus.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

namespace char_gpt {

namespace fs = std::filesystem;

namespace {

constexpr uintmax_t kMostBytes = 64u << 20;  // maximum size of a document

template <class... Args>
[[noreturn]] void fail_corpus(fmt::format_string<Args...> format, Args&&... args) {
  throw std::runtime_error("text: " + fmt::format(format, std::forward<Args>(args)...));
}

std::vector<fs::path> files_of(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};
  if (!fs::is_directory(path, error)) fail_corpus("no file or directory {}; name others with --text", path.string());
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".md" && at->is_regular_file(error)) files.push_back(at->path());
  if (error) fail_corpus("cannot list {}: {}", path.string(), error.message());
  if (files.empty()) fail_corpus("no *.md below {}", path.string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_document(const fs::path& file) {
  std::error_code error;
  const uintmax_t size = fs::file_size(file, error);
  if (error) fail_corpus("cannot read {}: {}", file.string(), error.message());
  if (size > kMostBytes)
    fail_corpus("{} has {} MiB; a document has at most {}", file.string(), size >> 20, kMostBytes >> 20);
  std::ifstream input(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(input), {}};
  if (!input || text.size() != size) fail_corpus("cannot read {} to its end", file.string());
  if (text.empty()) fail_corpus("{} is empty", file.string());
  if (const size_t zero = text.find('\0'); zero != std::string::npos)
    fail_corpus("{} is no text: byte {} is zero", file.string(), zero);
  return text;
}

}  // namespace

Corpus read_corpus(const std::vector<fs::path>& paths, int64_t context) {
  Corpus corpus;
  for (const fs::path& path : paths)
    for (const fs::path& file : files_of(path)) {
      const std::string text = read_document(file);
      const size_t line_end = text.find('\n', text.size() - text.size() / 10 - 1);
      const size_t cut = line_end == std::string::npos ? text.size() : line_end + 1;
      corpus.train.append(text, 0, cut);
      corpus.held_out.append(text, cut);
      ++corpus.documents;
    }
  const auto least = static_cast<size_t>(context) + 2;
  for (const auto& [name, part] : {std::pair("learn from", &corpus.train), std::pair("hold out", &corpus.held_out)})
    if (part->size() < least)
      fail_corpus("{} documents leave {} characters to {}; a context of {} needs {}", corpus.documents, part->size(),
                  name, context, least);
  return corpus;
}

std::vector<fs::path> repository_documents(const fs::path& program) {
  std::error_code ignored;
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (fs::is_regular_file(folder / "LICENSE", ignored) && fs::is_directory(folder / "docs", ignored))
      return {folder / "LICENSE", folder / "README.md", folder / "docs"};
  fail_corpus("no directory above {} has LICENSE and docs; name documents with --text", program.string());
}

size_t gzip_bytes(const std::string& text) {
  z_stream stream{};
  constexpr int gzip_window = 15 + 16, most_memory = 9;  // the settings of `gzip -9`; + 16 selects the gzip format
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, gzip_window, most_memory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("text: zlib has run out of memory");
  const std::unique_ptr<z_stream, decltype(&deflateEnd)> end(&stream, deflateEnd);
  std::vector<Bytef> packed(deflateBound(&stream, text.size()));
  std::string input = text;  // a copy, because zlib needs a pointer to bytes that are not const
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("text: zlib cannot compress it");
  return stream.total_out;
}

}  // namespace char_gpt
