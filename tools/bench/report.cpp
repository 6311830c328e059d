// SPDX-License-Identifier: Apache-2.0
#include "bench/report.hpp"

#include <algorithm>

#include "bench/target.hpp"
#include "host.hpp"
#include "report/escape.hpp"
#include "table.hpp"

namespace tool {

std::string memory_text(const Performance& one) {
  std::string text;
  if (one.device_bytes) text = bytes_text(*one.device_bytes);
  if (one.host_bytes) text += (text.empty() ? "" : ", ") + fmt::format("+{}", bytes_text(*one.host_bytes));
  return text;
}

void describe_run(const Target& target, Report& report) {
  report.device = target.name();
  report.description = target.info().name;
  report.plugin_version = target.version();
  report.threads = target.threads();
  report.takes_threads = target.takes_threads();
  report.started = now_text();
  report.machine = machine_text();
  if (!target.takes_threads()) {
    report.notes.push_back(fmt::format("{} has no option 'threads' and chooses its own number of threads; peers use {}",
                                       target.name(), target.threads()));
  }
}

void take_samples(const Samples& samples, Performance& performance) {
  performance.reason = samples.reason;
  performance.latency = figure_of(samples.latency);
  performance.throughput = figure_of(samples.throughput);
}

Json figure_json(const Figure& figure) {
  return Json::object(
      {{"p10", figure.p10}, {"median", figure.median}, {"p90", figure.p90}, {"samples", figure.samples}});
}

Json performance_json(const Performance& one, double flops) {
  Json json = Json::object({{"name", one.name}, {"measured", one.reason.empty()}, {"reason", one.reason}});
  if (one.difference) json["difference"] = *one.difference;
  if (!one.reason.empty()) return json;
  json["first_ns"] = one.first_ns;
  json["latency_ns"] = figure_json(one.latency);
  json["throughput_ns"] = figure_json(one.throughput);
  json["gflops"] = flops / one.throughput.median;
  if (one.host_bytes) json["host_peak_bytes"] = *one.host_bytes;
  if (one.device_bytes) json["device_peak_bytes"] = *one.device_bytes;
  if (one.ratio) json["ratio"] = figure_json(*one.ratio);
  return json;
}

Json head_json(const Report& report, const char* schema, const char* seconds_key) {
  Json document = Session::document(schema);
  document["device"] = report.device;
  document["description"] = report.description;
  document["plugin_version"] = report.plugin_version;
  document["machine"] = report.machine;
  document["started"] = report.started;
  document["threads"] = report.threads;
  document["takes_threads"] = report.takes_threads;
  document[seconds_key] = report.seconds;
  document["notes"] = Json::array();
  for (const std::string& note : report.notes) document["notes"].push_back(note);
  return document;
}

std::string safe_html(std::string_view text) { return backplane::conformance::escaped(valid_utf8(text)); }

std::string notes_html(const Report& report) {
  std::string notes;
  for (const std::string& note : report.notes) notes += fmt::format("<p class=\"small t\">{}</p>", safe_html(note));
  return notes;
}

std::string bar_html(const Figure& figure, double most, const char* colour) {
  constexpr double width = 400;
  const auto at = [&](double ns) { return width * std::min(ns / most, 1.0); };
  return fmt::format(
      "<svg viewBox=\"0 0 400 14\" preserveAspectRatio=\"none\" height=\"14\" role=\"img\" aria-label=\"{0}\">"
      "<rect class=\"{1}\" x=\"0\" y=\"2\" width=\"{2:.1f}\" height=\"10\"/>"
      "<path d=\"M{3:.1f} 7H{4:.1f}M{3:.1f} 4V10M{4:.1f} 4V10\" stroke=\"var(--ink)\" fill=\"none\"/></svg>",
      safe_html(time_text(figure.median)), colour, std::max(at(figure.median), 1.0), at(figure.p10), at(figure.p90));
}

}  // namespace tool
