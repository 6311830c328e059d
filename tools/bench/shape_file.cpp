// SPDX-License-Identifier: Apache-2.0
// Reads shape files.
#include "bench/shape_file.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "embedded_file.hpp"
#include "host.hpp"

namespace tool {
namespace {

constexpr size_t kMostBytes = 1 << 20;  // maximum size of a file in bytes
constexpr int64_t kMostStep = 1024;
constexpr double kMostElements = 1ull << 32;  // maximum number of elements of an operand
constexpr const char* kLayoutSyntax =
    "a shape may be followed by @ and its dimensions from the outermost in memory to the innermost, and by / and the "
    "stride of the innermost in elements: 64x32@1,0/2";
constexpr std::string_view kLegal = "write: OP DTYPE[:OUT_DTYPE] SHAPE.. [-> SHAPE..] [NAME=VALUE..]";

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

uint32_t dtype_named(const std::string& name) {
  const uint32_t dtype = bph_dtype_by_name(name.c_str());
  if (dtype == 0) fail_usage("there is no dtype '{}'", name);
  return dtype;
}

void check_size(const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    auto count = static_cast<double>(operand.step);
    for (const int64_t extent : operand.shape) count *= static_cast<double>(extent);
    if (operand.shape.size() > BP_MAX_RANK) fail_usage("the most dimensions are {}", BP_MAX_RANK);
    if (count > kMostElements) {
      fail_usage("an operand of {} has more than 2^32 elements", shape_text(operand.shape));
    }
  }
}

struct ShapeWord {
  Extents shape;
  std::vector<uint32_t> order;
  int64_t step = 1;
};

ShapeWord parse_shape_word(const std::string& word) {
  const size_t at = word.find('@'), slash = word.find('/');
  ShapeWord parsed{parse_shape(std::string_view(word).substr(0, std::min(at, slash))), {}, 1};
  const auto refuse = [&] { fail_usage("'{}' is not a shape; {}", word, kLayoutSyntax); };
  if (slash != std::string::npos) {
    const char* end = word.data() + word.size();
    const auto [stop, failure] = std::from_chars(word.data() + slash + 1, end, parsed.step);
    if (failure != std::errc() || stop != end || parsed.step < 1 || parsed.step > kMostStep) refuse();
  }
  if (at == std::string::npos) return parsed;
  for (const int64_t dimension : parse_strides(std::string_view(word).substr(at + 1, slash - at - 1))) {
    parsed.order.push_back(static_cast<uint32_t>(dimension));
  }
  std::vector<uint32_t> each = parsed.order;
  std::sort(each.begin(), each.end());
  if (each.size() != parsed.shape.size()) refuse();
  for (uint32_t i = 0; i < each.size(); ++i) {
    if (each[i] != i) refuse();
  }
  return parsed;
}

void lay_out(std::vector<Operand>& operands, const std::vector<ShapeWord>& words) {
  for (size_t i = 0; i < words.size() && i < operands.size(); ++i) {
    operands[i].order = words[i].order;
    operands[i].step = words[i].step;
  }
}

OpCase parse_case(const std::vector<std::string>& words) {
  if (words.size() < 2) fail_usage("'{}' has no dtype", words[0]);
  bph_op_info info = sized<bph_op_info>();
  bp_error error = fresh_error();
  if (bph_op_by_name(words[0].c_str(), &info, &error) != BP_OK) fail_usage("{}", error.message);
  OpRequest request;
  const size_t colon = words[1].find(':');
  request.dtype = dtype_named(words[1].substr(0, colon));
  if (colon != std::string::npos) request.out_dtype = dtype_named(words[1].substr(colon + 1));
  bool outputs = false;
  std::vector<ShapeWord> inputs, results;
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "->") {
      if (outputs) fail_usage("'->' appears twice");
      outputs = true;
    } else if (words[i].find('=') != std::string::npos) {
      request.attributes.push_back(words[i]);
    } else {
      const ShapeWord& word = (outputs ? results : inputs).emplace_back(parse_shape_word(words[i]));
      (outputs ? request.out_shapes : request.shapes).push_back(word.shape);
    }
  }
  if (request.shapes.empty()) fail_usage("'{}' has no shape", words[0]);
  OpCase op = make_case(info, request);
  lay_out(op.inputs.empty() ? op.outputs : op.inputs, inputs);
  lay_out(op.outputs, results);
  check_size(op.inputs);
  check_size(op.outputs);
  return op;
}

}  // namespace

std::vector<BenchCase> parse_shapes(std::string_view content, const std::string& path) {
  const std::string group = std::filesystem::path(path).stem().string();
  std::vector<BenchCase> cases;
  size_t number = 0;
  while (!content.empty()) {
    ++number;
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    line = line.substr(0, line.find('#'));
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    try {
      BenchCase one{group, fmt::format("{}", fmt::join(words, " ")), parse_case(words)};
      const auto same =
          std::find_if(cases.begin(), cases.end(), [&](const auto& each) { return each.text == one.text; });
      if (same != cases.end()) fail_usage("'{}' appears in the file already; keep one", one.text);
      cases.push_back(std::move(one));
    } catch (const Failure& failure) {
      fail_usage("{}:{}: {}; {}", path, number, failure.what(), kLegal);
    }
  }
  if (cases.empty()) fail_usage("{}: there is no case in it; {}", path, kLegal);
  return cases;
}

std::vector<BenchCase> read_shapes(const std::string& path) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure)) {
    fail_usage("{}: it is no file that can be read; name a file of shapes", path);
  }
  if (std::filesystem::file_size(path, failure) > kMostBytes) {
    fail_usage("{}: it has more than {} bytes; split it", path, kMostBytes);
  }
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) fail_usage("{}: it cannot be read; change its permissions", path);
  return parse_shapes(content, path);
}

std::vector<BenchCase> built_in_shapes() {
  std::vector<BenchCase> all;
  for (const EmbeddedFile& file : shape_files()) {
    std::vector<BenchCase> cases = parse_shapes(file.text, std::string(file.name));
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  return all;
}

bool matches_filter(std::string_view id, const std::string& filter) {
  if (filter.find_first_of("*?") != std::string::npos) {
    return fnmatch(filter.c_str(), std::string(id).c_str(), 0) == 0;
  }
  if (id.starts_with(filter)) return true;
  std::string blanks(id);
  std::replace(blanks.begin(), blanks.end(), '/', ' ');
  const std::vector<std::string> words = words_of(blanks);
  return std::find(words.begin(), words.end(), filter) != words.end();
}

}  // namespace tool
