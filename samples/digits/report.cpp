// SPDX-License-Identifier: Apache-2.0
// Writes the HTML page: a headline, charts, the confusion matrix, the misclassified digits, and properties of
// the run.
#include "report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "chart.hpp"

namespace digits {
namespace {

constexpr const char* kPageHead = R"(<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Digits on Backplane</title>
<style>
:root { --ground: #f6f7f9; --card: #fff; --text: #1b2330; --soft: #5d6878; --line: #dfe3e9;
  --test: #1463c8; --train: #b8761a; --good: 20 99 200; --bad: 205 50 50; --ink: #1b2330; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #11151b; --card: #1a2028; --text: #e6eaf0; --soft: #98a4b3; --line: #2e3743;
    --test: #6cabf7; --train: #e2a955; --good: 70 140 230; --bad: 235 90 90; --ink: #e6eaf0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 1000px; margin: 0 auto; padding: 24px 16px 40px; display: grid; gap: 16px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
header, .wide { grid-column: 1 / -1; }
h1 { font-size: 1.1rem; font-weight: 600; margin: 0; color: var(--soft); }
h2 { font-size: 1rem; margin: 0 0 10px; }
.figure { font-size: clamp(2.6rem, 9vw, 4rem); font-weight: 700; line-height: 1.15; letter-spacing: -.02em; }
header p, .note { margin: 0; color: var(--soft); }
.note { font-size: .875rem; margin-top: 10px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px; min-width: 0; }
.chart { display: block; width: 100%; height: auto; }
.chart .grid { stroke: var(--line); }
.chart .tick { fill: var(--soft); font-size: 12px; }
.chart polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
polyline.test { stroke: var(--test); } circle.test { fill: var(--test); }
polyline.train { stroke: var(--train); stroke-dasharray: 5 3; } circle.train { fill: var(--train); }
.legend { margin: 6px 0 0; display: flex; gap: 18px; font-size: .875rem; color: var(--soft); }
.legend span::before { content: ""; display: inline-block; width: 22px; vertical-align: middle; margin-right: 7px; border-top: 2px solid var(--test); }
.legend .train::before { border-top: 2px dashed var(--train); }
table { border-collapse: separate; border-spacing: 2px; width: 100%; table-layout: fixed; font-size: .875rem; text-align: center; }
th { font-weight: 600; color: var(--soft); }
td { height: 30px; border-radius: 4px; padding: 0; }
td.zero { color: var(--line); }
td.right { background: rgb(var(--good) / calc(.4 * var(--share))); }
td.wrong { background: rgb(var(--bad) / calc(.25 + .75 * var(--share))); }
.digits { display: grid; grid-template-columns: repeat(auto-fill, minmax(84px, 1fr)); gap: 12px; margin: 0; padding: 0; list-style: none; }
.digits svg { display: block; width: 100%; border: 1px solid var(--line); border-radius: 6px; fill: var(--ink); }
.digits li { font-size: .8125rem; text-align: center; color: var(--soft); }
.digits b { color: var(--text); } .digits .wrong { color: rgb(var(--bad)); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 0; font-size: .9375rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
</style>
<main>
)";

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::vector<double> column(const std::vector<Epoch>& epochs, Totals Epoch::*part, double Totals::*figure,
                           double factor) {
  std::vector<double> values;
  for (const Epoch& epoch : epochs) values.push_back(epoch.*part.*figure * factor);
  return values;
}

std::string charts(const Result& result) {
  const auto make = [&](const char* label, double Totals::*figure, double factor, Scale scale) {
    return line_chart(label,
                      {{"test", "test", column(result.epochs, &Epoch::test, figure, factor)},
                       {"train", "train", column(result.epochs, &Epoch::train, figure, factor)}},
                      scale);
  };
  return fmt::format("<section><h2>Loss by epoch</h2>{}</section>\n<section><h2>Accuracy by epoch</h2>{}</section>\n",
                     make("Loss by epoch, logarithmic", &Totals::loss, 1, Scale::logarithmic),
                     make("Accuracy by epoch", &Totals::correct, 100, Scale::linear_percent));
}

std::string confusion_matrix(const Images& test, const Result& result) {
  std::array<std::array<int, kClasses>, kClasses> counts{};
  std::array<int, kClasses> of_label{};
  for (size_t i = 0; i < test.labels.size(); ++i) {
    const size_t label = static_cast<size_t>(test.labels[i]);
    ++counts[label][static_cast<size_t>(result.predicted[i])];
    ++of_label[label];
  }
  std::string html = "<section><h2>Confusion matrix</h2><table><tr><th></th>";
  for (int64_t digit = 0; digit < kClasses; ++digit) html += fmt::format(R"(<th scope="col">{}</th>)", digit);
  for (size_t label = 0; label < kClasses; ++label) {
    html += fmt::format(R"(</tr><tr><th scope="row">{}</th>)", label);
    for (size_t guess = 0; guess < kClasses; ++guess) {
      const int count = counts[label][guess];
      const double share = of_label[label] ? static_cast<double>(count) / of_label[label] : 0;
      if (count == 0)
        html += R"(<td class="zero">·</td>)";
      else
        html += fmt::format(R"(<td class="{}" style="--share:{:.2f}">{}</td>)", label == guess ? "right" : "wrong",
                            share, count);
    }
  }
  return html + R"(</tr></table><p class="note">Rows: the true digit. Columns: the prediction.</p></section>)"
                "\n";
}

std::string digit_image(const uint8_t* image) {
  std::string svg = R"(<svg viewBox="0 0 8 8" shape-rendering="crispEdges" aria-hidden="true">)";
  for (int64_t i = 0; i < kPixels; ++i)
    if (image[i])
      svg += fmt::format(R"(<rect x="{}" y="{}" width="1" height="1" opacity="{:.2f}"/>)", i % kSide, i / kSide,
                         static_cast<double>(image[i]) / kPixelMax);
  return svg + "</svg>";
}

std::string wrong_digits(const Images& test, const Result& result) {
  constexpr int most = 60;  // limits the page, because an untrained network misclassifies hundreds of digits
  std::string items;
  int count = 0;
  for (size_t i = 0; i < test.labels.size(); ++i) {
    if (test.labels[i] == result.predicted[i] || ++count > most) continue;
    items += fmt::format("<li>{}<b>{}</b> read as <b class=\"wrong\">{}</b></li>\n",
                         digit_image(&test.pixels[i * kPixels]), test.labels[i], result.predicted[i]);
  }
  if (count == 0) return "<section class=\"wide\"><h2>Misread digits</h2><p class=\"note\">None.</p></section>\n";
  return fmt::format(
      "<section class=\"wide\"><h2>Misread digits: {} of {}{}</h2><ul class=\"digits\">{}</ul></section>\n", count,
      test.count(), count > most ? fmt::format(", the first {}", most) : "", items);
}

std::string fact_list(const Facts& facts) {
  std::string html = "<section><h2>The run</h2><dl>";
  for (const auto& [name, value] : facts) html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value));
  return html + "</dl></section>\n";
}

}  // namespace

std::string html_report(const Images& test, const Result& result, const Facts& facts) {
  std::string html = kPageHead;
  html += fmt::format(
      "<header><h1>Digits on Backplane</h1><div class=\"figure\">{:.2f} %</div><p>of {} handwritten digits that "
      "the network had not seen, read correctly after {} {} and {:.1f} seconds.</p></header>\n",
      result.accuracy() * 100, test.count(), result.epochs.size(), result.epochs.size() == 1 ? "epoch" : "epochs",
      result.seconds);
  html += charts(result) + confusion_matrix(test, result) + fact_list(facts) + wrong_digits(test, result);
  html +=
      "<p class=\"note wide\">The train figures are measured with dropout and shifts while the weights change, so "
      "they may be worse than the test figures. Data: Optical Recognition of Handwritten Digits, E. Alpaydin and C. "
      "Kaynak, UCI Machine Learning "
      "Repository, 1998, CC BY 4.0.</p>\n</main>\n</html>\n";
  return html;
}

void check_writable(const std::filesystem::path& file) {
  std::error_code ignored;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (std::filesystem::is_directory(file, ignored) || file.empty())
    throw std::runtime_error(fmt::format("report: {} is a directory; name a file with --html", file.string()));
  const auto& checked = std::filesystem::exists(file, ignored) ? file : folder;
  if (access(checked.c_str(), W_OK) != 0)
    throw std::runtime_error(fmt::format("report: cannot write {}: {}; choose another place with --html", file.string(),
                                         std::strerror(errno)));
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(fmt::format("report: writing {} failed: {}", file.string(), std::strerror(errno)));
}

}  // namespace digits
