// SPDX-License-Identifier: Apache-2.0
// Draws line charts with axes, ticks and lines.
#include "chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace digits {
namespace {

// The size is small, so that the text of a chart stays readable if a phone scales the chart down.
constexpr double kWidth = 400, kHeight = 240, kLeft = 44, kRight = 12, kTop = 12, kBottom = 30;

struct Axis {
  double low, high;
  bool is_log;
  std::vector<double> ticks;

  double y(double value) const {
    const auto f = [this](double v) { return is_log ? std::log10(v) : v; };
    const double clamped = std::clamp(value, low, high);
    return kTop + (kHeight - kTop - kBottom) * (f(high) - f(clamped)) / (f(high) - f(low));
  }
};

// Returns the largest number that is 1, 2 or 5 times a power of ten and does not exceed the value.
double nice_below(double value) {
  const double decade = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {5.0, 2.0})
    if (step * decade <= value) return step * decade;
  return decade;
}

Axis make_axis(double low, double high, Scale scale) {
  if (scale == Scale::linear_percent) {
    // The step is the smallest of 1, 2, 5 and 10 percentage points that divides the axis into at most six
    // parts. If there is no such step, it is 20 percentage points.
    double step = 20;
    for (const double candidate : {10.0, 5.0, 2.0, 1.0})
      if ((100 - std::floor(low / candidate) * candidate) / candidate <= 6) step = candidate;
    Axis axis{std::min(std::floor(low / step) * step, 100 - step), 100, false, {}};
    for (double tick = axis.low; tick <= 100; tick += step) axis.ticks.push_back(tick);
    return axis;
  }
  Axis axis{nice_below(std::max(low, 1e-6)), std::max(high, 1e-5), true, {}};
  const double decades = std::log10(axis.high / axis.low);
  for (double decade = 1e-6; decade <= axis.high; decade *= 10)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = decade * factor;
      if (decades > 3 && factor != 1.0) continue;
      if (tick > axis.low * 0.999 && tick <= axis.high) axis.ticks.push_back(tick);
    }
  return axis;
}

double x_of(size_t index, size_t count) {
  return kLeft +
         (kWidth - kLeft - kRight) * (count > 1 ? static_cast<double>(index) / static_cast<double>(count - 1) : 0.5);
}

}  // namespace

std::string line_chart(const std::string& label, const std::vector<Series>& series, Scale scale) {
  double low = 1e300, high = -1e300;
  for (const Series& line : series)
    for (const double value : line.values)
      if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  if (low > high) low = high = 1;
  const Axis axis = make_axis(low, high, scale);
  const size_t count = series.front().values.size();

  std::string svg =
      fmt::format(R"(<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth, kHeight, label);
  for (const double tick : axis.ticks) {
    const double y = axis.y(tick);
    svg += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft, kWidth - kRight, y, y);
    svg += fmt::format(R"(<text class="tick" text-anchor="end" x="{}" y="{:.1f}">{:g}{}</text>)", kLeft - 6, y + 4,
                       tick, axis.is_log ? "" : " %");
  }
  const size_t stride = std::max<size_t>(1, (count + 5) / 6);
  for (size_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    if (!is_last && (i % stride != 0 || count - 1 - i < (stride + 1) / 2)) continue;
    svg += fmt::format(R"(<text class="tick" text-anchor="middle" x="{:.1f}" y="{}">{}</text>)", x_of(i, count),
                       kHeight - kBottom + 18, i + 1);
  }
  for (const Series& line : series) {
    svg += fmt::format(R"(<polyline class="{}" points=")", line.css_class);
    for (size_t i = 0; i < count; ++i)
      if (std::isfinite(line.values[i])) svg += fmt::format("{:.1f},{:.1f} ", x_of(i, count), axis.y(line.values[i]));
    svg += R"("/>)";
    if (std::isfinite(line.values.back()))
      svg += fmt::format(R"(<circle class="{}" r="3" cx="{:.1f}" cy="{:.1f}"/>)", line.css_class,
                         x_of(count - 1, count), axis.y(line.values.back()));
  }
  svg += R"(</svg><p class="legend">)";
  for (const Series& line : series) svg += fmt::format(R"(<span class="{}">{}</span>)", line.css_class, line.name);
  return svg + "</p>";
}

}  // namespace digits
