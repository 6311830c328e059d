// SPDX-License-Identifier: Apache-2.0
// Writes the report of `bench model` as one self-contained HTML page in the style of the
// certificate.
#include <algorithm>

#include "bench/model.hpp"
#include "host.hpp"
#include "report/html.hpp"
#include "table.hpp"

namespace tool {
namespace {

std::string line(const std::string& name, const Figure& figure, double most, const char* colour,
                 const std::string& note) {
  return fmt::format(
      "<tr><th>{}</th><td class=\"chart\">{}</td><td class=\"n\">{} <span class=\"small\">{}</span></td><td "
      "class=\"n\">{}</td></tr>\n",
      safe_html(name), bar_html(figure, most, colour), safe_html(time_text(figure.median)),
      safe_html(spread_text(figure)), safe_html(note));
}

std::string performance_line(const Performance& one, double most, const char* colour) {
  if (!one.reason.empty()) {
    return fmt::format("<tr><th>{}</th><td colspan=\"3\" class=\"small t\">{}</td></tr>\n", safe_html(one.name),
                       safe_html(one.reason));
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
      safe_html(title), safe_html(note), lines);
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
      fmt::format("{} · {} plans in the first {} steps, {} after them · ratio {:.3f} ({:.3f}..{:.3f})",
                  decode.description, decode.plans_warm, decode.warm_steps, decode.plans_after, decode.ratio.median,
                  decode.ratio.p10, decode.ratio.p90),
      line("new length", decode.growing_ns, most, "in", "") + line("known length", decode.known_ns, most, "peer", ""));
}

}  // namespace

std::string model_html(const ModelReport& report) {
  std::string peers, body;
  for (const auto& [name, version] : report.peers) {
    const auto mean = geometric_mean(report, name);
    peers += fmt::format("<li><strong>{}</strong> {} <span class=\"small\">{}</span></li>", safe_html(name),
                         safe_html(version), mean ? fmt::format("geometric mean of ratios {:.2f}", *mean) : "ran none");
  }
  for (const ModelRow& row : report.rows) body += model_article(row);
  if (report.decode) body += decode_article(*report.decode);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>{0}: models</title>\n<style>{1}"
      "svg .peer{{fill:var(--none)}}.chart{{width:40%;min-width:120px}}.plain "
      "svg{{margin:0}}article h4 code{{display:block;flex-basis:100%}}</style></head>\n<body><main>\n"
      "<header><p class=\"kind\">Backplane benchmark of models</p>\n<div class=\"verdict\"><div><h1>{0}</h1>\n"
      "<p class=\"who t\">{2} <span>plugin {3}</span></p>\n<p class=\"small t\">{4} · {5} threads · "
      "{6}</p></div></div>\n{7}"
      "<p class=\"statement\">Bars are the latency of a run, to the median, with a whisker from the 10th to the 90th "
      "percentile; shorter "
      "is better. A peer's ratio is the peer's latency divided by the device's latency, run by run. Above 1, the "
      "device is "
      "faster.</p></header>\n"
      "<section><h2>Compared with</h2><ul class=\"chips\">{8}</ul></section>\n<section><h2>Models</h2>\n{9}</section>\n"
      "<footer>Times are valid only for this machine and this run. They are not part of a "
      "certificate.</footer>\n</main></body></html>\n",
      safe_html(report.device), backplane::conformance::page::style(), safe_html(report.description),
      safe_html(report.plugin_version), safe_html(report.machine), report.threads, report.started, notes_html(report),
      peers.empty() ? "<li>nothing</li>" : peers, body);
}

}  // namespace tool
