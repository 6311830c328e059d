// SPDX-License-Identifier: Apache-2.0
// Writes each report as an HTML page with a headline, charts, the generated text or a table, and properties of
// the run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "chart.hpp"
#include "report.hpp"

namespace char_gpt {
namespace {

constexpr const char* kPageStyle = R"(<style>
:root { --ground: #f6f7f9; --card: #fff; --text: #1b2330; --soft: #5d6878; --grid: #dfe3e9; --good: #1a7f45; --bad: #c0392b;
  --c0: #b9d2f3; --c1: #1463c8; --c2: #d0741a; --c3: #7a3fb3; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #11151b; --card: #1a2028; --text: #e6eaf0; --soft: #98a4b3; --grid: #2e3743; --good: #5bc98a; --bad: #ee7b6c;
    --c0: #2f5587; --c1: #6cabf7; --c2: #f0a860; --c3: #c39af0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 1000px; margin: 0 auto; padding: 24px 16px 40px; display: grid; gap: 16px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
header, .wide { grid-column: 1 / -1; }
h1 { font-size: 1.1rem; font-weight: 600; margin: 0; color: var(--soft); }
h2 { font-size: 1rem; margin: 0 0 10px; }
.figure { font-size: clamp(2rem, 8vw, 3.5rem); font-weight: 700; line-height: 1.15; letter-spacing: -.02em; }
header p, .note { margin: 0; color: var(--soft); }
.note { font-size: .875rem; margin-top: 10px; }
section { background: var(--card); border: 1px solid var(--grid); border-radius: 10px; padding: 16px; min-width: 0; }
.chart { display: block; width: 100%; height: auto; }
.grid { stroke: var(--grid); }
.tick { fill: var(--soft); font-size: 12px; }
line.rule { stroke: var(--soft); stroke-dasharray: 2 4; } text.rule { fill: var(--soft); font-size: 12px; }
polyline { fill: none; stroke-linejoin: round; stroke-width: 2; }
polyline.line-0 { stroke: var(--c0); stroke-width: 7; stroke-linecap: round; } polyline.line-1 { stroke: var(--c1); stroke-width: 2.5; }
polyline.line-2 { stroke: var(--c2); stroke-dasharray: 6 6; } polyline.line-3 { stroke: var(--c3); stroke-dasharray: 2 5; }
polyline.line-4 { stroke: var(--c2); } polyline.line-5 { stroke: var(--c3); stroke-dasharray: 12 4; }
polyline.line-6 { stroke: var(--c1); stroke-dasharray: 2 5; } polyline.line-7 { stroke: var(--c2); stroke-dasharray: 12 4 2 4; }
.legend { margin: 6px 0 0; display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: .875rem; color: var(--soft); }
.legend span::before { content: ""; display: inline-block; width: 22px; vertical-align: middle; margin-right: 7px; border-top: 2px solid var(--soft); }
.legend .line-0::before { border-top: 7px solid var(--c0); border-radius: 4px; } .legend .line-1::before { border-color: var(--c1); }
.legend .line-2::before { border-top: 2px dashed var(--c2); } .legend .line-3::before { border-top: 2px dotted var(--c3); }
.legend .line-4::before { border-color: var(--c2); } .legend .line-5::before { border-top: 4px dashed var(--c3); }
.legend .line-6::before { border-top: 2px dotted var(--c1); } .legend .line-7::before { border-top: 4px double var(--c2); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { padding: 5px 10px 5px 0; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); } th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 7.5em; }
.good { color: var(--good); } .bad { color: var(--bad); }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: .8125rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
pre b { color: var(--c1); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 0; font-size: .9375rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
</style>
)";

constexpr const char* kPageEnd = "</main>\n</html>\n";

std::string head(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n{}<main>\n",
      title, kPageStyle);
}

std::string fact_list(const Facts& facts, const char* css_class) {
  std::string html = fmt::format("<section class=\"{}\"><h2>The run</h2><dl>", css_class);
  for (const auto& [name, value] : facts)
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_html(name), escape_html(value));
  return html + "</dl></section>\n";
}

// Converts a curve of losses to bits per character. Averages adjacent steps, so that the line has at most
// `most` points.
Line to_line(const Curve& curve, size_t most) {
  Line line{curve.name, {}};
  const size_t stride = std::max<size_t>(1, (curve.losses.size() + most - 1) / most);
  for (size_t begin = 0; begin < curve.losses.size(); begin += stride) {
    const size_t end = std::min(begin + stride, curve.losses.size());
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += curve.losses[i];
    const auto count = static_cast<double>(end - begin);
    line.points.emplace_back(static_cast<double>(begin) + (count + 1) / 2, sum / count * std::numbers::log2e);
  }
  return line;
}

}  // namespace

std::string to_html(const TrainingReport& report) {
  Line known{"held-out text", {}};
  for (const auto& [step, bits] : report.known) known.points.emplace_back(static_cast<double>(step), bits);
  const double bits = report.known.empty() ? NAN : report.known.back().second;
  std::string html = head("char_gpt on Backplane");
  html += fmt::format(
      "<header><h1>char_gpt on Backplane</h1><div class=\"figure\">{:.3f} bits per character</div><p>of text that the "
      "model has "
      "not seen. <code>gzip -9</code> needs {:.3f}; after the text that the model learned from, "
      "{:.3f}.</p></header>\n",
      bits, report.gzip, report.gzip_behind_training);
  html += fmt::format(
      "<section><h2>Bits per character</h2>{}</section>\n",
      line_chart("Bits per character by step", "step", {to_line(report.curve, 60), known}, {{"gzip -9", report.gzip}}));
  if (!report.written.empty())
    html += fmt::format("<section><h2>What it writes</h2><pre><b>{}</b>{}</pre></section>\n",
                        escape_html(report.prompt), escape_html(report.written));
  return html + fact_list(report.facts, "wide") + kPageEnd;
}

std::string to_html(const ComparisonReport& report) {
  std::string html = head("char_gpt: the same training, several variants");
  const size_t steps = report.curves.front().losses.size();
  html += fmt::format(
      "<header><h1>char_gpt: the same training, several variants</h1><div class=\"figure {}\">{}</div><p>Loss of {} "
      "steps "
      "from the same seed, computed by {} variants.</p></header>\n",
      report.agrees() ? "good" : "bad", report.agrees() ? "The curves agree" : "The curves differ", steps,
      report.curves.size());
  std::vector<Line> lines;
  for (const Curve& curve : report.curves) lines.push_back(to_line(curve, 400));
  html += fmt::format("<section><h2>Bits per character</h2>{}</section>\n",
                      line_chart("Bits per character by step", "step", lines));
  html += fact_list(report.facts, "");
  html +=
      "<section class=\"wide\"><h2>Differences</h2><div class=\"scroll\"><table><tr><th>Way</th><th></th><th>differs "
      "by</th>"
      "<th>bound</th><th>at step</th><th>first</th><th>last</th><th>seconds</th></tr>\n";
  for (size_t i = 0; i < report.curves.size(); ++i) {
    const Curve& curve = report.curves[i];
    html += fmt::format("<tr><td>{}</td>", escape_html(curve.name));
    if (i == 0) {
      html += "<td colspan=\"4\">the others compared with this</td>";
    } else {
      const Difference& worst = report.differences[i - 1];
      const bool agrees = worst.share <= 1;
      html += fmt::format("<td class=\"{}\">{}</td><td>{:.1e}</td><td>{:.1e}</td><td>{}</td>", agrees ? "good" : "bad",
                          agrees ? "agrees" : "differs", worst.relative, loss_bound(worst.step), worst.step + 1);
    }
    html +=
        fmt::format("<td>{:.6f}</td><td>{:.6f}</td><td>{:.1f}</td></tr>\n", curve.losses.front() * std::numbers::log2e,
                    curve.losses.back() * std::numbers::log2e, curve.seconds);
  }
  html +=
      "</table></div><p class=\"note\">Differences and bounds are shares of the loss, at the step where the difference "
      "is the "
      "greatest share of its bound; the bound doubles every five steps, as training amplifies roundings. First and "
      "last: "
      "bits per character of the first and the last step.</p></section>\n";
  return html + kPageEnd;
}

}  // namespace char_gpt
