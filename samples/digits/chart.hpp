// SPDX-License-Identifier: Apache-2.0
// Draws line charts as inline SVG.
#pragma once

#include <string>
#include <vector>

namespace digits {

struct Series {
  std::string name;
  std::string css_class;
  std::vector<double> values;  // one value per epoch
};

enum class Scale { linear_percent, logarithmic };

// `label` describes the chart for screen readers.
std::string line_chart(const std::string& label, const std::vector<Series>& series, Scale scale);

}  // namespace digits
