// SPDX-License-Identifier: Apache-2.0
// A line chart as inline SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace char_gpt {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;  // sorted by ascending x
};
struct Rule {
  std::string name;
  double y;
};

// Returns a line chart. Line i has the CSS class line-i, and later lines are drawn on top of earlier ones.
// `label` describes the chart for screen readers. Names are escaped. Points that are not finite are omitted.
std::string line_chart(const std::string& label, const std::string& x_name, const std::vector<Line>& lines,
                       const std::vector<Rule>& rules = {});

std::string escape_html(const std::string& text);

}  // namespace char_gpt
