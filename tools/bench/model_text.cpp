// SPDX-License-Identifier: Apache-2.0
// Writes the report of `bench model` as text for a terminal.
#include "bench/model.hpp"
#include "host.hpp"
#include "table.hpp"

namespace tool {
namespace {

std::vector<Cell> cells_of(const std::string& model, const ModelRow& row, const Performance& one) {
  std::vector<Cell> cells = {model, one.name};
  if (!one.reason.empty()) {
    cells.resize(9, "");
    cells.emplace_back(one.reason, Style::faint);
    return cells;
  }
  cells.push_back(right(time_text(one.first_ns)));
  cells.push_back(right(time_text(one.latency.median)));
  cells.push_back(right(spread_text(one.latency)));
  cells.push_back(right(time_text(one.throughput.median)));
  cells.push_back(right(fmt::format("{:.1f}", row.flops / one.throughput.median)));
  cells.push_back(right(
      one.ratio ? fmt::format("{:.2f} ({:.2f}..{:.2f})", one.ratio->median, one.ratio->p10, one.ratio->p90) : ""));
  cells.emplace_back(memory_text(one));
  cells.emplace_back("");
  return cells;
}

std::string decode_text(const DecodeReport& decode) {
  if (!decode.reason.empty()) return fmt::format("\n{}: not measured: {}\n", decode.description, decode.reason);
  return fmt::format(
      "\n{}\n"
      "  plans made: {} in the first {} steps, {} in the {} after them; {} new descriptors found a plan of any size\n"
      "  a step of a new length {} ({}), of a known one {} ({}): ratio {:.3f} ({:.3f}..{:.3f})\n"
      "  heap allocations of a step of a known length: {:.1f}\n",
      decode.description, decode.plans_warm, decode.warm_steps, decode.plans_after, decode.steps - decode.warm_steps,
      decode.class_hits, time_text(decode.growing_ns.median), spread_text(decode.growing_ns),
      time_text(decode.known_ns.median), spread_text(decode.known_ns), decode.ratio.median, decode.ratio.p10,
      decode.ratio.p90, decode.heap_allocations);
}

}  // namespace

std::string model_text(const ModelReport& report, bool colour) {
  std::string out = fmt::format("{} ({}), plugin {}, {} thread(s)\n{}\n", report.device, printable(report.description),
                                printable(report.plugin_version), report.threads, printable(report.machine));
  for (const std::string& note : report.notes) out += styled(printable(note), Style::warning, colour) + "\n";
  if (!report.rows.empty()) {
    Table table({"MODEL", "BY", right("FIRST"), right("LATENCY"), right("p10..p90"), right("THROUGHPUT"),
                 right("GFLOP/s"), right("PEER/DEVICE"), "MEMORY", ""});
    for (const ModelRow& row : report.rows) {
      table.add(cells_of(row.name, row, row.device));
      for (const Performance& peer : row.peers) table.add(cells_of("", row, peer));
    }
    out += "\n" + table.text(colour);
    for (const auto& [name, version] : report.peers) {
      if (const auto mean = geometric_mean(report, name)) {
        out += fmt::format("geometric mean of {} {}: {:.2f}\n", name, version, *mean);
      }
    }
    out += "\n";
  }
  for (const ModelRow& row : report.rows) {
    if (!row.device.reason.empty()) continue;
    out += fmt::format(
        "{}: {}\n  {} operators a run, {:.0f} of them composites run as primitives, {:.0f} operands staged, {:.1f} "
        "heap allocations; "
        "{} plans made in the first run, {} in all others\n",
        row.name, row.description, row.operators, row.decomposed, row.staged, row.heap_allocations, row.plans_first,
        row.plans_after);
  }
  if (report.decode) out += decode_text(*report.decode);
  return out +
         "\nFIRST: plans, or the peer's model made ready, and one run. LATENCY: a run that is waited for. THROUGHPUT: "
         "of many, one wait "
         "at the end. PEER/DEVICE: latencies, run by run; above 1 the device is faster.\n";
}

}  // namespace tool
