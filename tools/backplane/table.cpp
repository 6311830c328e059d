// SPDX-License-Identifier: Apache-2.0
// Formats tables, and decodes and escapes UTF-8 text.
#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tool {
namespace {

// Returns the length in bytes of the UTF-8 sequence at the start of `text`, and stores its code point in `code`.
// Returns 0 if the sequence is invalid.
size_t decode(std::string_view text, uint32_t* code) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xC2 && first < 0xE0 ? 2
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
  if (length == 0 || length > text.size()) return 0;
  uint32_t value = length == 1 ? first : first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  static constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return 0;
  *code = value;
  return length;
}

// Calls each(code point, bytes of the code point). An invalid byte becomes U+FFFD.
template <class Each>
void each_code_point(std::string_view text, Each each) {
  while (!text.empty()) {
    uint32_t code = 0xFFFD;
    const size_t length = decode(text, &code);
    each(code, length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length));
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

// Returns true for control characters (C0, DEL and C1), and for marks that change the direction of text.
bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

const char* escape_of(Style style) {
  switch (style) {
    case Style::good:
      return "\x1b[32m";
    case Style::bad:
      return "\x1b[31m";
    case Style::warning:
      return "\x1b[33m";
    case Style::faint:
      return "\x1b[2m";
    case Style::strong:
      return "\x1b[1m";
    case Style::plain:
      break;
  }
  return "";
}

}  // namespace

size_t display_width(std::string_view text) {
  // The library fmt pads text to a display width, so the number of blanks that it adds yields the
  // width of the text.
  const size_t field = 4 * text.size() + 1;
  return field - (fmt::formatted_size("{:<{}}", text, field) - text.size());
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  each_code_point(text, [&](uint32_t, std::string_view bytes) { out += bytes; });
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  each_code_point(text, [&](uint32_t code, std::string_view bytes) {
    if (!is_control(code)) {
      out += bytes;
    } else {
      out += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    }
  });
  return out;
}

std::string styled(std::string_view text, Style style, bool colour) {
  if (!colour || style == Style::plain) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape_of(style), text);
}

std::string Table::text(bool colour, size_t indent) const {
  std::vector<size_t> widths;
  const auto widen = [&](const std::vector<Cell>& row) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i].text));
  };
  widen(header_);
  for (const auto& row : rows_) widen(row);

  std::string out;
  const auto write = [&](const std::vector<Cell>& row, bool header) {
    size_t blanks = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      const Cell& cell = row[i];
      const size_t padding = widths[i] - display_width(cell.text);
      if (cell.right) blanks += padding;
      if (!cell.text.empty()) {
        out.append(blanks, ' ');
        blanks = 0;
        out += styled(cell.text, header ? Style::strong : cell.style, colour);
      }
      if (!cell.right) blanks += padding;
      blanks += 2;
    }
    out += '\n';
  };
  if (!header_.empty()) write(header_, true);
  for (const auto& row : rows_) write(row, false);
  return out;
}

}  // namespace tool
