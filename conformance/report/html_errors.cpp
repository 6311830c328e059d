// SPDX-License-Identifier: Apache-2.0
// Generates the HTML page's error distributions, with one histogram of error ratios per operator.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "html.hpp"
#include "oracle/table.hpp"
#include "verdict.hpp"

namespace backplane::conformance::page {

namespace {

constexpr size_t kBinCount = kRatioBinCount;
constexpr double kBarWidth = 15;  // width of a bar in SVG units
constexpr double kHeight = 46;    // height of the highest bar
constexpr double kLeft = 4, kTop = 4;

struct Distribution {
  std::array<uint64_t, kBinCount> bins{};
  double worst = -1;
  std::string worst_dtype{};
  uint64_t cases() const {
    uint64_t sum = 0;
    for (const uint64_t count : bins) sum += count;
    return sum;
  }
};

// Draws the bars. The heights of the bars are logarithmic, so that one case near its bound is
// visible next to ten thousand exact cases.
std::string bars(const Distribution& of) {
  const double most = std::log2(1.0 + static_cast<double>(*std::max_element(of.bins.begin(), of.bins.end())));
  std::string result;
  for (size_t bin = 0; bin < kBinCount; ++bin) {
    if (of.bins[bin] == 0) continue;
    const double tall = std::max(2.0, kHeight * std::log2(1.0 + static_cast<double>(of.bins[bin])) / most);
    result += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
                          bin == kBinCount - 1 ? "over" : "in", kLeft + kBarWidth * static_cast<double>(bin) + 1,
                          kTop + kHeight - tall, kBarWidth - 2, tall);
  }
  return result;
}

std::string picture(const std::string& op, const Distribution& of) {
  const double bound = kLeft + kBarWidth * (kBinCount - 1), end = kLeft + kBarWidth * kBinCount, base = kTop + kHeight;
  std::string label =
      fmt::format("{}: error over bound in {} cases. Exact or at most 2^-10: {}", op, of.cases(), of.bins[0]);
  for (size_t bin = 1; bin + 1 < kBinCount; ++bin) {
    if (of.bins[bin] != 0) label += fmt::format("; up to 2^{}: {}", static_cast<int>(bin) - 10, of.bins[bin]);
  }
  label += fmt::format("; over the bound: {}.", of.bins[kBinCount - 1]);
  return fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} 70\" role=\"img\" aria-label=\"{1}\"><title>{1}</title>"
      "<rect class=\"beyond\" x=\"{2:.1f}\" y=\"0\" width=\"{3:.1f}\" height=\"{4:.1f}\"/>{5}"
      "<path class=\"axis\" d=\"M{6} {4:.1f}H{7:.1f}\"/><path class=\"bound\" d=\"M{2:.1f} 0V{8:.1f}\"/>"
      "<text x=\"{6}\" y=\"65\">0</text><text x=\"{9:.1f}\" y=\"65\" class=\"mid\">1/32</text>"
      "<text x=\"{2:.1f}\" y=\"65\" class=\"mid strong\">bound</text></svg>",
      end + kLeft, text(Json(label)), bound, kBarWidth, base, bars(of), kLeft, end, base + 3, kLeft + kBarWidth * 6);
}

}  // namespace

std::string errors(const Json& certificate) {
  std::map<std::string, Distribution> operators;
  for (const Json& cell : certificate["matrix"]) {
    if (!cell.contains("error")) continue;
    Distribution& of = operators[cell["op"].get<std::string>()];
    const Json& error = cell["error"];
    for (size_t bin = 0; bin < kBinCount; ++bin) of.bins[bin] += error["bins"][bin].get<uint64_t>();
    const double worst = error["worst_share"];
    if (worst > of.worst) {
      of.worst = worst;
      of.worst_dtype = cell["dtype"].get<std::string>();
    }
  }
  std::string figures, exact;
  for (const oracle::Operator& row : oracle::kOperators) {
    const std::string op(row.name);
    const auto found = operators.find(op);
    if (found == operators.end()) continue;
    const Distribution& of = found->second;
    if (of.worst == 0) {
      exact += fmt::format("{}{}", exact.empty() ? "" : ", ", op);
      continue;
    }
    figures +=
        fmt::format("<figure><figcaption><strong>{}</strong> <span{}>worst {} in {}</span></figcaption>{}</figure>\n",
                    op, of.worst > 1 ? " class=\"bad\"" : "", ratio_text(of.worst), of.worst_dtype, picture(op, of));
  }
  if (figures.empty() && exact.empty()) return "";
  if (!exact.empty())
    exact = fmt::format("<p class=\"small\">Operators with exact results in all cases: {}.</p>\n", exact);
  return fmt::format(
      "<section id=\"errors\"><h2>Errors against their bounds</h2>\n"
      "<p class=\"small\">Each case counts once, with its maximum ratio of an error to its bound. Each bar stands for "
      "twice the ratio of the bar to its left. Heights are logarithmic. The vertical line is the bound, and cases to "
      "the right of it fail.</p>\n"
      "<div class=\"figures\">{}</div>\n{}</section>\n",
      figures, exact);
}

}  // namespace backplane::conformance::page
