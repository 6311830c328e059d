// SPDX-License-Identifier: Apache-2.0
// Writes the report of `bench ops` as one self-contained HTML page in the style of the certificate.
#include <algorithm>
#include <cmath>

#include "bench/ops.hpp"
#include "host.hpp"
#include "report/html.hpp"
#include "table.hpp"

namespace tool {
namespace {

std::string line(const OpRow& row, const Performance& one, double most, const char* colour) {
  if (!one.reason.empty()) {
    return fmt::format("<tr><th>{}</th><td colspan=\"6\" class=\"small t\">{}</td></tr>\n", safe_html(one.name),
                       safe_html(one.reason));
  }
  const std::string ratio = one.ratio ? fmt::format("{:.2f} <span class=\"small\">{:.2f}..{:.2f}</span>",
                                                    one.ratio->median, one.ratio->p10, one.ratio->p90)
                                      : "";
  const std::string memory = one.device_bytes ? bytes_text(*one.device_bytes)
                             : one.host_bytes ? "+" + bytes_text(*one.host_bytes)
                                              : "";
  return fmt::format(
      "<tr><th>{}</th><td class=\"chart\">{}</td><td class=\"n\">{} <span class=\"small\">{}</span></td>"
      "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
      safe_html(one.name), bar_html(one.throughput, most, colour), safe_html(time_text(one.throughput.median)),
      safe_html(spread_text(one.throughput)), safe_html(time_text(one.latency.median)),
      safe_html(time_text(one.first_ns)), one.ratio ? ratio : safe_html(rate_text(row, one)), safe_html(memory));
}

std::string card(const OpRow& row) {
  double most = row.device.throughput.p90;
  for (const Performance& peer : row.peers) most = std::max(most, peer.throughput.p90);
  const std::string limit = row.of_limit ? fmt::format("{:.0f} % of the {}", 100 * row.of_limit->median,
                                                       row.memory_bound ? "copy of as many bytes" : "peak of its dtype")
                                         : "";
  std::string lines = line(row, row.device, most, "in");
  for (const Performance& peer : row.peers) lines += line(row, peer, most, "peer");
  return fmt::format(
      "<article><h4><code>{}</code> <span class=\"small\">{}{}{}</span></h4>\n<div class=\"wide\"><table "
      "class=\"plain\">"
      "<thead><tr><th></th><th></th><th class=\"n\">throughput</th><th class=\"n\">latency</th><th class=\"n\">first "
      "call</th><th class=\"n\">rate, ratio</th><th "
      "class=\"n\">memory</th></tr></thead>\n<tbody>{}</tbody></table></div></article>\n",
      safe_html(row.text), row.device.reason.empty() ? safe_html(rate_text(row, row.device)) : "",
      limit.empty() ? "" : " · ", limit, lines);
}

}  // namespace

std::string ops_html(const OpsReport& report) {
  std::string peers, peaks, body, group;
  for (const auto& [name, version] : report.peers)
    peers += fmt::format("{}{} {}", peers.empty() ? "" : ", ", name, version);
  for (const auto& [dtype, peak] : report.peaks) {
    peaks += fmt::format("<li><strong>{}</strong> {:.1f} GFLOP/s <span class=\"small\">by {} in {}</span></li>", dtype,
                         peak.gflops, safe_html(peak.by), safe_html(peak.text));
  }
  std::string together;
  for (const Summary& one : summaries_of(report)) {
    together += fmt::format(
        "<tr><th>{}</th><td class=\"n\">{}</td><td class=\"n\">{:.2f}</td><td class=\"n\">{:.2f}</td>"
        "<td class=\"small t gap\">{}</td></tr>",
        safe_html(one.what), one.cases, one.mean, one.worst, safe_html(one.worst_case));
  }
  if (!together.empty()) {
    together = fmt::format(
        "<section><h2>Together</h2><div class=\"wide\"><table class=\"plain\"><thead><tr><th></th><th "
        "class=\"n\">cases</th>"
        "<th class=\"n\">geometric mean</th><th "
        "class=\"n\">worst</th><th class=\"gap\">in</th></tr></thead><tbody>{}</tbody></table></div>"
        "</section>\n",
        together);
  }
  for (const OpRow& row : report.rows) {
    if (row.group != group) {
      if (!group.empty()) body += "</section>\n";
      group = row.group;
      body += fmt::format("<section><h2>{}</h2>\n", safe_html(group));
    }
    body += card(row);
  }
  if (!group.empty()) body += "</section>\n";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>{0}: operators</title>\n<style>{1}"
      "svg .peer{{fill:var(--none)}}.gap{{padding-left:1.5em}}.chart{{width:34%;min-width:120px}}.plain "
      "svg{{margin:0}}</style></head>\n<body><main>\n"
      "<header><p class=\"kind\">Backplane benchmark of operators</p>\n<div class=\"verdict\"><div><h1>{0}</h1>\n"
      "<p class=\"who t\">{2} <span>plugin {3}</span></p>\n<p class=\"small t\">{4} · {5} threads · "
      "{6}{7}</p></div></div>\n{8}"
      "<p class=\"statement\">Bars are the time of a call in a row of calls, to the median, with a whisker from the "
      "10th to the 90th percentile; shorter is "
      "better. A peer's ratio is the peer's time divided by the device's time, sample by sample. Above 1, the device "
      "is "
      "faster.</p></header>\n"
      "<section><h2>Peak of each dtype, in this run</h2><ul class=\"chips\">{9}</ul></section>\n{11}{10}"
      "<footer>Times are valid only for this machine and this run. They are not part of a "
      "certificate.</footer>\n</main></body></html>\n",
      safe_html(report.device), backplane::conformance::page::style(), safe_html(report.description),
      safe_html(report.plugin_version), safe_html(report.machine), report.threads, report.started,
      peers.empty() ? "" : " · compared with " + safe_html(peers), notes_html(report), peaks, body, together);
}

}  // namespace tool
