// SPDX-License-Identifier: Apache-2.0
// Writes the report of `bench ops` as text for a terminal.
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>

#include "bench/ops.hpp"
#include "host.hpp"
#include "table.hpp"

namespace tool {
namespace {

struct Unit {
  double ns;
  const char* name;
};
Unit unit_of(double ns) {
  if (ns >= 1e9) return {1e9, "s"};
  if (ns >= 1e6) return {1e6, "ms"};
  if (ns >= 1e3) return {1e3, "µs"};
  return {1, "ns"};
}

// Formats a number with two decimals below 10, with one decimal from 10 to 100, and with none above.
std::string digits(double value) { return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2); }

std::string share_text(const Figure& figure) { return fmt::format("{:.0f} %", 100 * figure.median); }

// Shortens the text of a case for a column. --json prints the whole text.
std::string short_text(const std::string& text) {
  constexpr size_t most = 48;
  return text.size() <= most ? text : fmt::format("{}…", text.substr(0, most - 1));
}

// Returns the cells for a contestant that was not measured. The columns of figures are empty, and the last cell
// contains the reason.
std::vector<Cell> reason_cells(const std::string& text, const Performance& one) {
  std::vector<Cell> cells(11, "");
  cells[0] = text;
  cells[1] = one.name;
  cells[10] = Cell(one.reason, Style::faint);
  return cells;
}

std::vector<Cell> measured_cells(const OpRow& row, const Performance& one) {
  return {right(time_text(one.first_ns)), right(time_text(one.latency.median)), right(spread_text(one.latency)),
          right(time_text(one.throughput.median)), right(rate_text(row, one))};
}

}  // namespace

std::string time_text(double ns) {
  const Unit unit = unit_of(ns);
  return fmt::format("{} {}", digits(ns / unit.ns), unit.name);
}

std::string spread_text(const Figure& figure) {
  if (figure.samples < 2) return "one sample";
  const Unit unit = unit_of(figure.median);
  return fmt::format("{}..{}", digits(figure.p10 / unit.ns), digits(figure.p90 / unit.ns));
}

std::string path_text(uint32_t path) {
  switch (path) {
    case BPH_PATH_NATIVE:
      return "native";
    case BPH_PATH_DECOMPOSED:
      return "decomposed";
    case BPH_PATH_FALLBACK:
      return "fallback";
    default:
      return "none";
  }
}

std::string rate_text(const OpRow& row, const Performance& one) {
  return fmt::format("{} {}", digits(row.rate(one)), row.counts_flops() ? "GFLOP/s" : "GB/s");
}

std::string machine_text() {
  utsname about{};
  uname(&about);
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line, model = about.machine;
  while (std::getline(cpuinfo, line)) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  double load[3] = {};
  if (getloadavg(load, 3) < 1) return model;
  return fmt::format("{}, load {:.1f} at the start", model, load[0]);
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string ops_text(const OpsReport& report, bool colour) {
  std::string out = fmt::format("{} ({}), plugin {}, {} thread(s)\n{}\n", report.device, printable(report.description),
                                printable(report.plugin_version), report.threads, printable(report.machine));
  for (const auto& [dtype, peak] : report.peaks) {
    out += fmt::format("peak of {}: {:.1f} GFLOP/s, by {} in {}\n", dtype, peak.gflops, peak.by, short_text(peak.text));
  }
  for (const std::string& note : report.notes) out += styled(printable(note), Style::warning, colour) + "\n";
  std::string group;
  std::optional<Table> table;
  const auto flush = [&] {
    if (table) out += "\n" + styled(group, Style::strong, colour) + "\n" + table->text(colour);
  };
  for (const OpRow& row : report.rows) {
    if (!table || row.group != group) {
      flush();
      group = row.group;
      table.emplace(std::vector<Cell>{"CASE", "BY", right("FIRST"), right("LATENCY"), right("p10..p90"),
                                      right("THROUGHPUT"), right("RATE"), right("OF LIMIT"), right("PEER/DEVICE"),
                                      "MEMORY", ""});
    }
    if (!row.device.reason.empty()) {
      table->add(reason_cells(short_text(row.text), row.device));
      continue;
    }
    std::vector<Cell> cells = {short_text(row.text),
                               row.device.name + (row.path == BPH_PATH_NATIVE ? "" : ", " + path_text(row.path))};
    for (Cell& cell : measured_cells(row, row.device)) cells.push_back(std::move(cell));
    cells.push_back(
        right(row.of_limit ? fmt::format("{} {}", share_text(*row.of_limit), row.memory_bound ? "copy" : "peak") : ""));
    cells.push_back("");
    cells.push_back(memory_text(row.device));
    table->add(std::move(cells));
    for (const Performance& peer : row.peers) {
      if (!peer.reason.empty()) {
        table->add(reason_cells("", peer));
        continue;
      }
      cells = {"", peer.name};
      for (Cell& cell : measured_cells(row, peer)) cells.push_back(std::move(cell));
      cells.push_back("");
      cells.push_back(
          right(fmt::format("{:.2f} ({:.2f}..{:.2f})", peer.ratio->median, peer.ratio->p10, peer.ratio->p90)));
      cells.push_back(memory_text(peer));
      table->add(std::move(cells));
    }
  }
  flush();
  const std::vector<Summary> summaries = summaries_of(report);
  if (!summaries.empty()) {
    Table bars({"TOGETHER", right("CASES"), right("GEOMETRIC MEAN"), right("WORST"), "IN"});
    for (const Summary& one : summaries) {
      bars.add({one.what, right(fmt::format("{}", one.cases)), right(fmt::format("{:.2f}", one.mean)),
                right(fmt::format("{:.2f}", one.worst)), short_text(one.worst_case)});
    }
    out += "\n" + bars.text(colour);
  }
  out +=
      "\nFIRST: plan or primitive, and one call. LATENCY: a call that is waited for. THROUGHPUT: of many, one wait "
      "at the end.\n"
      "OF LIMIT: of its operations at the peak of their dtype, or of a copy of as many bytes, whichever takes longer, "
      "in this run. PEER/DEVICE: above 1 the device "
      "is "
      "faster.\n";
  return out;
}

}  // namespace tool
