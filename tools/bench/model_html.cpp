// SPDX-License-Identifier: Apache-2.0
// The report of `bench model` as one page without any reference to the outside, in the look of the certificate.
#include <algorithm>

#include "bench/model.hpp"
#include "host.hpp"
#include "report/escape.hpp"
#include "report/html.hpp"
#include "table.hpp"

namespace tool {
namespace {

std::string safe(std::string_view text) { return bp::conformance::escaped(valid_utf8(text)); }

// A bar from 0 to the median with a whisker from p10 to p90, on a scale whose end is `most`.
std::string bar(const Figure& figure, double most, const char* colour) {
  constexpr double width = 400;
  const auto at = [&](double ns) { return width * std::min(ns / most, 1.0); };
  return fmt::format(
      "<svg viewBox=\"0 0 400 14\" preserveAspectRatio=\"none\" height=\"14\" role=\"img\" aria-label=\"{0}\">"
      "<rect class=\"{1}\" x=\"0\" y=\"2\" width=\"{2:.1f}\" height=\"10\"/>"
      "<path d=\"M{3:.1f} 7H{4:.1f}M{3:.1f} 4V10M{4:.1f} 4V10\" stroke=\"var(--ink)\" fill=\"none\"/></svg>",
      safe(time_text(figure.median)), colour, std::max(at(figure.median), 1.0), at(figure.p10), at(figure.p90));
}

std::string line(const std::string& name, const Figure& figure, double most, const char* colour,
                 const std::string& note) {
  return fmt::format(
      "<tr><th>{}</th><td class=\"chart\">{}</td><td class=\"n\">{} <span class=\"small\">{}</span></td><td "
      "class=\"n\">{}</td></tr>\n",
      safe(name), bar(figure, most, colour), safe(time_text(figure.median)), safe(spread_text(figure)), safe(note));
}

std::string performance_line(const Performance& one, double most, const char* colour) {
  if (!one.reason.empty()) {
    return fmt::format("<tr><th>{}</th><td colspan=\"3\" class=\"small t\">{}</td></tr>\n", safe(one.name),
                       safe(one.reason));
  }
  const std::string ratio =
      one.ratio ? fmt::format("{:.2f} ({:.2f}..{:.2f}), ", one.ratio->median, one.ratio->p10, one.ratio->p90) : "";
  return line(one.name, one.latency, most, colour, ratio + "first " + time_text(one.first_ns));
}

std::string article(const std::string& title, const std::string& note, const std::string& lines) {
  return fmt::format(
      "<article><h4><code>{}</code> <span class=\"small\">{}</span></h4>\n<div class=\"wide\"><table "
      "class=\"plain\"><tbody>{}"
      "</tbody></table></div></article>\n",
      safe(title), safe(note), lines);
}

std::string model_article(const ModelRow& row) {
  double most = row.device.latency.p90;
  for (const Performance& peer : row.peers) most = std::max(most, peer.latency.p90);
  std::string lines = performance_line(row.device, most, "in");
  for (const Performance& peer : row.peers) lines += performance_line(peer, most, "peer");
  return article(
      row.name,
      fmt::format(
          "{} · {} operators, {:.0f} run as primitives · {} plans in the first run, {} later · {:.1f} heap allocations "
          "a run",
          row.description, row.operators, row.decomposed, row.plans_first, row.plans_after, row.heap_allocations),
      lines);
}

std::string decode_article(const DecodeReport& decode) {
  if (!decode.reason.empty()) return article("gpt_decode", decode.description + ": " + decode.reason, "");
  const double most = std::max(decode.growing_ns.p90, decode.known_ns.p90);
  return article(
      "gpt_decode",
      fmt::format("{} · {} plans in the first {} steps, {} behind them · ratio {:.3f} ({:.3f}..{:.3f})",
                  decode.description, decode.plans_warm, decode.warm_steps, decode.plans_after, decode.ratio.median,
                  decode.ratio.p10, decode.ratio.p90),
      line("new length", decode.growing_ns, most, "in", "") + line("known length", decode.known_ns, most, "peer", ""));
}

}  // namespace

std::string model_html(const ModelReport& report) {
  std::string peers, notes, body;
  for (const auto& [name, version] : report.peers) {
    const auto mean = geometric_mean(report, name);
    peers += fmt::format("<li><strong>{}</strong> {} <span class=\"small\">{}</span></li>", safe(name), safe(version),
                         mean ? fmt::format("geometric mean of ratios {:.2f}", *mean) : "ran none");
  }
  for (const std::string& note : report.notes) notes += fmt::format("<p class=\"small t\">{}</p>", safe(note));
  for (const ModelRow& row : report.rows) body += model_article(row);
  if (report.decode) body += decode_article(*report.decode);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>{0}: models</title>\n<style>{1}"
      "svg .peer{{fill:var(--none)}}.chart{{width:40%;min-width:120px}}.plain "
      "svg{{margin:0}}</style></head>\n<body><main>\n"
      "<header><p class=\"kind\">Backplane benchmark of models</p>\n<div class=\"verdict\"><div><h1>{0}</h1>\n"
      "<p class=\"who t\">{2} <span>plugin {3}</span></p>\n<p class=\"small t\">{4} · {5} threads · "
      "{6}</p></div></div>\n{7}"
      "<p class=\"statement\">Bars are the latency of a run, to the median, with a whisker from the 10th to the 90th "
      "percentile; shorter "
      "is better. A peer's ratio is its latency over the device's, run by run: above 1 the device is "
      "faster.</p></header>\n"
      "<section><h2>Beside</h2><ul class=\"chips\">{8}</ul></section>\n<section><h2>Models</h2>\n{9}</section>\n"
      "<footer>Times are of this machine and this run. They are no part of a "
      "certificate.</footer>\n</main></body></html>\n",
      safe(report.device), bp::conformance::page::style(), safe(report.description), safe(report.plugin_version),
      safe(report.machine), report.threads, report.started, notes, peers.empty() ? "<li>nothing</li>" : peers, body);
}

}  // namespace tool
