// SPDX-License-Identifier: Apache-2.0
// Generates sections of the HTML page: the verdict, the profiles, and the properties of the plugin,
// the device and the run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "html.hpp"

namespace backplane::conformance::page {

namespace {

constexpr size_t kMostFilters = 20;

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// Returns a bar with the fractions of cases that passed, failed or are not claimed, and a legend.
std::string bar(const Json& counts) {
  const uint64_t total = std::max<uint64_t>(total_of(counts), 1);
  const std::pair<std::string_view, uint64_t> parts[] = {{"pass", counts["pass"].get<uint64_t>()},
                                                         {"fail", failures_of(counts)},
                                                         {"not_claimed", counts["not_claimed"].get<uint64_t>()}};
  std::string pieces, legend;
  for (const auto& [state, count] : parts) {
    if (count == 0) continue;
    pieces += fmt::format("<i class=\"{}\" style=\"flex:{}\"></i>", state, count);
    legend += fmt::format("<li>{} {} · {}</li>", mark(state), number(count),
                          percent(static_cast<double>(count) / static_cast<double>(total)));
  }
  return fmt::format("<div class=\"bar\" aria-hidden=\"true\">{}</div><ul class=\"legend\">{}</ul>", pieces, legend);
}

// Returns the main properties in one line. The end of the page shows all properties.
std::string brief(const Json& certificate) {
  const Json &device = certificate["device"], &run = certificate["run"];
  return fmt::format("{}{}{} · suite {} · seed {} · {}", upper(text(device["type"])),
                     device["driver"] == "" ? "" : " · ", text(device["driver"]), text(certificate["suite"]["version"]),
                     run["seed"].get<uint64_t>(), text(run["started"]).substr(0, 10));
}

std::string row(std::string_view name, const std::string& value, bool mono = false) {
  return fmt::format("<div><dt>{}</dt><dd{}>{}</dd></div>", name, mono ? " class=\"mono\"" : "",
                     value.empty() ? "none" : value);
}

std::string bytes(uint64_t count) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const auto unit = count < 1024 ? size_t{0} : static_cast<size_t>(std::log2(static_cast<double>(count)) / 10);
  return fmt::format("{:.{}f} {}", static_cast<double>(count) / std::pow(1024.0, static_cast<double>(unit)),
                     unit == 0 ? 0 : 1, units[std::min(unit, std::size(units) - 1)]);
}

}  // namespace

std::string list(const Json& names) {
  std::string result;
  for (const Json& name : names) result += (result.empty() ? "" : ", ") + text(name);
  return result;
}

std::string head(const Json& certificate) {
  const Json& verdict = certificate["verdict"];
  const auto level = verdict["level"].get<std::string>();
  const auto requested = certificate["run"]["profile"].get<std::string>();
  const double fraction = verdict["supported_fraction"];
  const bool reached = level == requested;
  const std::string title =
      level == "none" ? "Not certified" : fmt::format("Certified at {} of ABI {}", upper(level), text(verdict["abi"]));
  return fmt::format(
      "<header>\n<p class=\"kind\">Backplane conformance certificate</p>\n<div class=\"verdict {}\">\n"
      "<div><h1><b aria-hidden=\"true\">{}</b> {}</h1>\n<p class=\"who t\">{} {} <span>on</span> {}</p>\n"
      "<p class=\"small t\">{}</p></div>\n"
      "<div class=\"fraction\"><strong>{}</strong><span>of the requested cases supported; native composites are "
      "optional</span></div>\n</div>\n"
      "{}\n<p class=\"statement t\">{}.</p>\n</header>\n",
      level == "none" ? "fail"
      : reached       ? "pass"
                      : "partial",
      level == "none" ? symbol("fail")
      : reached       ? symbol("pass")
                      : symbol("partial"),
      title, text(certificate["plugin"]["name"]), text(certificate["plugin"]["version"]),
      text(certificate["device"]["name"]), brief(certificate), percent(fraction), bar(verdict["counts"]),
      text(verdict["statement"]));
}

std::string profiles(const Json& certificate) {
  const Json& verdict = certificate["verdict"];
  std::string cards, chips;
  for (const char* name : {"core", "infer", "train"}) {
    if (!verdict["profiles"].contains(name)) continue;
    const Json& state = verdict["profiles"][name];
    std::string reasons;
    for (const Json& reason : state["reasons"]) reasons += fmt::format("<li>{}</li>", text(reason));
    const bool reached = state["reached"];
    cards += fmt::format(
        "<div class=\"card\"><h3>{}</h3><p><span class=\"mark {}\"><b aria-hidden=\"true\">{}</b> {}</span></p>"
        "<p class=\"small\">{}</p>{}</div>\n",
        upper(name), reached ? "pass" : "fail", symbol(reached ? "pass" : "fail"), reached ? "reached" : "not reached",
        plural(state["mandatory"], "mandatory case"), reached ? "" : "<ul class=\"t\">" + reasons + "</ul>");
  }
  for (const auto& [name, tally] : verdict["extensions"].items()) {
    const bool mixed = tally["state"] == "fail" || tally["state"] == "partial";
    const std::string claims = mixed ? counts_text(tally["counts"]) : plural(total_of(tally["counts"]), "case");
    chips += fmt::format("<li><strong>{}</strong> {} <span class=\"small\">{}</span></li>", upper(text(Json(name))),
                         mark(tally["state"].get<std::string>()), claims);
  }
  if (!chips.empty()) chips = "<h3>Extensions</h3>\n<ul class=\"chips\">" + chips + "</ul>\n";
  return fmt::format("<section id=\"profiles\"><h2>Profiles</h2>\n<div class=\"cards\">{}</div>\n{}</section>\n", cards,
                     chips);
}

std::string facts(const Json& certificate) {
  const Json &plugin = certificate["plugin"], &device = certificate["device"], &suite = certificate["suite"],
             &run = certificate["run"];
  // A run with --only-failed has one filter per case, so the page shows only the first filters.
  const size_t all = run["filters"].size(), shown = std::min(all, kMostFilters);
  const std::string filters =
      list(Json(run["filters"].begin(), run["filters"].begin() + static_cast<ptrdiff_t>(shown))) +
      (shown == all ? "" : fmt::format(" and {} more", number(all - shown)));
  const std::string newer =
      run["not_asked"] == 0 ? "" : fmt::format("; {} of a later ABI not requested", plural(run["not_asked"], "case"));
  const std::string left = run["not_reached"] == 0
                               ? ""
                               : fmt::format("; {} not reached: the run stopped at its first failure",
                                             plural(run["not_reached"], "more case"));
  const Json& stopped = run["stopped_groups"];
  return fmt::format(
      "<section id=\"facts\"><h2>What was measured, and with what</h2>\n<div class=\"facts t\">\n"
      "<dl><dt>Plugin</dt>{}{}{}{}{}</dl>\n<dl><dt>Device</dt>{}{}{}{}{}{}</dl>\n<dl><dt>Suite</dt>{}{}{}</dl>\n"
      "<dl><dt>Run</dt>{}{}{}{}{}{}{}{}</dl>\n</div>\n"
      "<p>Anyone who has the certificate's file and the plugin's file can check this certificate:</p>\n"
      "<div class=\"line\"><code>backplane verify CERTIFICATE.json {}</code></div>\n"
      "<p class=\"small\">Times are for information only. They do not affect the verdict, and certificates are never "
      "ranked.</p>\n"
      "</section>\n",
      row("name", text(plugin["name"]) + " " + text(plugin["version"])), row("file", text(plugin["file"])),
      row("SHA-256", text(plugin["sha256"]), true),
      row("ABI", fmt::format("built for {}, oldest host {}", text(plugin["abi"]["built_for"]),
                             text(plugin["abi"]["oldest_host"]))),
      row("build", list(plugin["build_flags"])), row("name", text(device["name"])),
      row("index, type", fmt::format("{}, {}", device["index"].get<uint64_t>(), text(device["type"]))),
      row("driver", text(device["driver"])), row("capabilities", list(device["capabilities"])),
      row("memory", list(device["memory_kinds"])),
      row("alignment, largest buffer",
          fmt::format("{} B, {}", device["alignment"].get<uint64_t>(), bytes(device["max_buffer_bytes"]))),
      row("version", text(suite["version"])), row("digest", text(suite["digest"]), true),
      row("cases known", number(suite["cases"])), row("profile", upper(run["profile"].get<std::string>())),
      row("cases", number(run["cases"]) + (filters.empty() ? "" : ", of " + filters) + newer + left),
      stopped.empty() ? "" : row("groups that stopped after equal failures", list(stopped)),
      row("seed", std::to_string(run["seed"].get<uint64_t>())), row("begun", text(run["started"])),
      row("took", seconds(run["seconds"]) + (run["resumed"].get<bool>() ? ", resumed" : "")),
      run["in_process"] ? ""
                        : row("limits", fmt::format("{} per case, {} MiB per process", seconds(run["timeout_seconds"]),
                                                    number(run["memory_limit_mib"]))),
      row("processes", run["in_process"] ? "one, without limits" : number(run["jobs"])), text(plugin["file"]));
}

}  // namespace backplane::conformance::page
