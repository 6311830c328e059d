// SPDX-License-Identifier: Apache-2.0
// Draws a line chart with axes, ticks and lines.
#include "chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace char_gpt {
namespace {

// The size is small, so that the text of a chart stays readable if a phone scales the chart down.
constexpr double kWidth = 460, kHeight = 270, kLeft = 40, kRight = 12, kTop = 12, kBottom = 40;

constexpr size_t kLineStyles = 8;  // number of line styles on the page; line i has style i % kLineStyles

struct Axis {
  double low, high, step;  // `low` and `high` are the ends of the axis; ticks are multiples of `step`

  double map(double value, double begin, double end) const {
    return begin + (end - begin) * (std::clamp(value, low, high) - low) / (high - low);
  }
  double first_tick() const { return std::ceil(low / step - 1e-9) * step; }
};

Axis make_axis(double low, double high, int most_ticks) {
  if (!(low < high)) high = low + 1;
  double step = std::pow(10, std::floor(std::log10((high - low) / most_ticks)));
  for (const double factor : {2.0, 2.5, 2.0})
    if ((high - low) / step > most_ticks) step *= factor;
  return {low, high, step};
}

struct Range {
  double low = HUGE_VAL, high = -HUGE_VAL;

  void take(double value) {
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  }
};

}  // namespace

std::string escape_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string line_chart(const std::string& label, const std::string& x_name, const std::vector<Line>& lines,
                       const std::vector<Rule>& rules) {
  Range x_range, y_range;
  for (const Line& line : lines)
    for (const auto& [x, y] : line.points) x_range.take(x), y_range.take(y);
  for (const Rule& rule : rules) y_range.take(rule.y);
  if (x_range.low > x_range.high) x_range = {0, 1};
  if (y_range.low > y_range.high) y_range = {0, 1};
  const double room = (y_range.high - y_range.low) * 0.04;
  const Axis x_axis = make_axis(x_range.low, x_range.high, 6), y_axis = make_axis(y_range.low - room, y_range.high, 6);
  const auto px = [&](double x) { return x_axis.map(x, kLeft, kWidth - kRight); };
  const auto py = [&](double y) { return y_axis.map(y, kHeight - kBottom, kTop); };

  std::string svg = fmt::format(R"(<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth,
                                kHeight, escape_html(label));
  for (double tick = y_axis.first_tick(); tick <= y_axis.high + 1e-9; tick += y_axis.step) {
    svg += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft, kWidth - kRight,
                       py(tick), py(tick));
    svg += fmt::format(R"(<text class="tick" text-anchor="end" x="{}" y="{:.1f}">{:.4g}</text>)", kLeft - 6,
                       py(tick) + 4, tick);
  }
  for (double tick = x_axis.first_tick(); tick <= x_axis.high + 1e-9; tick += x_axis.step)
    svg += fmt::format(R"(<text class="tick" text-anchor="middle" x="{:.1f}" y="{}">{:.6g}</text>)", px(tick),
                       kHeight - kBottom + 17, tick);
  svg += fmt::format(R"(<text class="tick" text-anchor="end" x="{}" y="{}">{}</text>)", kWidth - kRight, kHeight - 5,
                     escape_html(x_name));
  for (const Rule& rule : rules) {
    svg += fmt::format(R"(<line class="rule" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft, kWidth - kRight,
                       py(rule.y), py(rule.y));
    svg += fmt::format(R"(<text class="rule" text-anchor="end" x="{}" y="{:.1f}">{}</text>)", kWidth - kRight,
                       py(rule.y) - 4, escape_html(rule.name));
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    svg += fmt::format(R"(<polyline class="line-{}" points=")", i % kLineStyles);
    for (const auto& [x, y] : lines[i].points)
      if (std::isfinite(y)) svg += fmt::format("{:.1f},{:.1f} ", px(x), py(y));
    svg += R"("/>)";
  }
  svg += R"(</svg><p class="legend">)";
  for (size_t i = 0; i < lines.size(); ++i)
    svg += fmt::format(R"(<span class="line-{}">{}</span>)", i % kLineStyles, escape_html(lines[i].name));
  return svg + "</p>";
}

}  // namespace char_gpt
