// SPDX-License-Identifier: Apache-2.0
// Reads the digits with zlib.
#include "data.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <charconv>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>

namespace digits {
namespace {

constexpr size_t kMaxBytes = 64u << 20;  // maximum size of the data set

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw std::runtime_error(fmt::format(format, std::forward<Args>(args)...));
}

std::string read_text(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) fail("data: no file {}; name one with --data", file.string());
  std::unique_ptr<gzFile_s, decltype(&gzclose_r)> input(gzopen(file.c_str(), "rb"), gzclose_r);
  if (!input) fail("data: cannot open {}", file.string());
  std::string text;
  std::array<char, 1 << 16> chunk;
  int count = 0;
  while ((count = gzread(input.get(), chunk.data(), chunk.size())) > 0) {
    text.append(chunk.data(), static_cast<size_t>(count));
    if (text.size() > kMaxBytes)
      fail("data: {} unpacks to more than {} MiB: not a table of digits", file.string(), kMaxBytes >> 20);
  }
  if (count < 0 || gzclose_r(input.release()) != Z_OK)
    fail("data: {} is damaged or cut short (zlib cannot unpack it)", file.string());
  return text;
}

int parse_field(std::string_view& line, const std::filesystem::path& file, size_t line_number, int limit) {
  int value = -1;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || value < 0 || value > limit)
    fail("data: {}, line {}: expected 64 pixels of 0 to {} and a label of 0 to 9, with commas between", file.string(),
         line_number, kPixelMax);
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  return value;
}

}  // namespace

Images read_images(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  Images images;
  size_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++line_number;
    for (int64_t i = 0; i < kPixels; ++i) {
      images.pixels.push_back(static_cast<uint8_t>(parse_field(line, file, line_number, kPixelMax)));
      if (line.starts_with(',')) line.remove_prefix(1);
    }
    images.labels.push_back(parse_field(line, file, line_number, static_cast<int>(kClasses) - 1));
    if (line.starts_with('\r')) line.remove_prefix(1);
    if (!line.empty()) fail("data: {}, line {}: more than 65 numbers", file.string(), line_number);
  }
  if (images.count() < 100) fail("data: {} has {} digits; at least 100 are needed", file.string(), images.count());
  return images;
}

Split split(const Images& images, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<int32_t> order = shuffled(images.count(), random);
  Split result;
  for (size_t i = 0; i < order.size(); ++i) {
    Images& part = i < order.size() / 5 ? result.test : result.train;
    const auto from = images.pixels.begin() + order[i] * kPixels;
    part.pixels.insert(part.pixels.end(), from, from + kPixels);
    part.labels.push_back(images.labels[static_cast<size_t>(order[i])]);
  }
  return result;
}

}  // namespace digits
