// SPDX-License-Identifier: Apache-2.0
// Text for people: aligned tables, optional colour, and strings that are safe for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tool {

enum class Style { plain, good, bad, warning, faint, strong };

// Returns the number of columns that UTF-8 `text` occupies on a terminal.
size_t display_width(std::string_view text);
// Escapes control characters, because a plugin or manifest must not control the terminal. Bytes
// that are not UTF-8 become U+FFFD.
std::string printable(std::string_view text);
// Replaces bytes that are not UTF-8 with U+FFFD.
std::string valid_utf8(std::string_view text);
std::string styled(std::string_view text, Style style, bool colour);

struct Cell {
  std::string text;
  Style style = Style::plain;
  bool right = false;

  Cell(std::string_view content, Style cell_style = Style::plain, bool align_right = false)
      : text(printable(content)), style(cell_style), right(align_right) {}
  Cell(const std::string& content) : Cell(std::string_view(content)) {}
  Cell(const char* content) : Cell(std::string_view(content)) {}
};

// Makes a cell that is aligned to the right, as numbers are.
inline Cell right(std::string_view content, Style style = Style::plain) { return Cell(content, style, true); }

class Table {
 public:
  explicit Table(std::vector<Cell> header) : header_(std::move(header)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  // Returns the table as text. Each line is indented by `indent` and has no trailing blanks.
  std::string text(bool colour, size_t indent = 0) const;

 private:
  std::vector<Cell> header_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tool
