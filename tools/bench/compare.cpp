// SPDX-License-Identifier: Apache-2.0
// Implements `backplane bench compare`.
#include "bench/compare.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/ops.hpp"
#include "bench/report.hpp"
#include "subcommands.hpp"
#include "table.hpp"

namespace tool {
namespace {

using Document = nlohmann::json;

Figure read_figure(const Document& json) {
  const Figure figure{json.at("p10").get<double>(), json.at("median").get<double>(), json.at("p90").get<double>(),
                      json.at("samples").get<uint32_t>()};
  if (!(figure.p10 > 0 && figure.p10 <= figure.median && figure.median <= figure.p90)) {
    fail_usage("a figure is not 0 < p10 <= median <= p90");
  }
  return figure;
}

void add_metrics(std::vector<Metric>& metrics, const std::string& key, const Document& measured) {
  if (!measured.at("measured").get<bool>()) return;
  metrics.push_back({key + " | latency", read_figure(measured.at("latency_ns"))});
  metrics.push_back({key + " | throughput", read_figure(measured.at("throughput_ns"))});
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || text.empty()) fail_usage("{}: it cannot be read, or is empty; name a report of `bench --json`", path);
  return text;
}

std::string factor_text(double factor) {
  return factor >= 1 ? fmt::format("{:.2f} x slower", factor) : fmt::format("{:.2f} x faster", 1 / factor);
}

}  // namespace

ReportFigures read_figures(const std::string& text, const std::string& path) {
  try {
    const Document document = Document::parse(text);
    ReportFigures figures;
    figures.schema = document.at("schema").get<std::string>();
    const bool ops = figures.schema == "backplane.bench_ops", models = figures.schema == "backplane.bench_model";
    if (!ops && !models && figures.schema != "backplane.bench_memory") {
      fail_usage("it is a document of {}; compare accepts those of bench_ops, bench_model and bench_memory",
                 figures.schema);
    }
    figures.device = document.at("device").get<std::string>();
    for (const Document& row : document.at("rows")) {
      if (!ops && !models) {
        add_metrics(figures.metrics,
                    fmt::format("{} | {} B", row.at("what").get<std::string>(), row.at("bytes").get<uint64_t>()), row);
        continue;
      }
      const std::string key =
          models ? row.at("model").get<std::string>() + " | "
                 : fmt::format("{}/{} | ", row.at("group").get<std::string>(), row.at("case").get<std::string>());
      add_metrics(figures.metrics, key + "device", row.at("device"));
      for (const Document& peer : row.at("peers")) {
        add_metrics(figures.metrics, key + peer.at("name").get<std::string>(), peer);
      }
    }
    if (const auto decode = document.find("decode"); decode != document.end() && decode->at("measured").get<bool>()) {
      for (const char* length : {"growing", "known"}) {
        figures.metrics.push_back(
            {fmt::format("gpt_decode | {} length", length), read_figure(decode->at(fmt::format("{}_ns", length)))});
      }
    }
    return figures;
  } catch (const Document::exception& error) {
    fail_usage("{}: {}; give a report as `bench ops`, `model` or `memory` wrote it with --json", path, error.what());
  } catch (const Failure& failure) {
    fail_usage("{}: {}; give a report as `bench ops`, `model` or `memory` wrote it with --json", path, failure.what());
  }
}

Comparison compare_metrics(const std::vector<Metric>& before, const std::vector<Metric>& after, double least) {
  std::map<std::string, Figure> known;
  for (const Metric& metric : before) known[metric.key] = metric.ns;
  Comparison comparison;
  for (const Metric& metric : after) {
    const auto found = known.find(metric.key);
    if (found == known.end()) {
      comparison.added.push_back(metric.key);
      continue;
    }
    const Figure& was = found->second;
    const double factor = metric.ns.median / was.median;
    const bool apart = metric.ns.p10 > was.p90 || metric.ns.p90 < was.p10;
    if (apart && std::abs(std::log(factor)) > std::log1p(least)) {
      comparison.moves.push_back({metric.key, was, metric.ns, factor});
    } else {
      ++comparison.unmoved;
    }
    known.erase(found);
  }
  for (const Metric& metric : before) {
    if (known.contains(metric.key)) comparison.gone.push_back(metric.key);
  }
  std::stable_sort(comparison.moves.begin(), comparison.moves.end(), [](const Move& a, const Move& b) {
    return std::abs(std::log(a.factor)) > std::abs(std::log(b.factor));
  });
  return comparison;
}

int bench_compare(Session& session, const BenchCompareOptions& options) {
  const ReportFigures before = read_figures(read_text(options.before), options.before);
  const ReportFigures after = read_figures(read_text(options.after), options.after);
  if (before.schema != after.schema) {
    fail_usage("{} is of {} and {} of {}; compare two of one kind", options.before, before.schema, options.after,
               after.schema);
  }
  const Comparison found = compare_metrics(before.metrics, after.metrics, options.least_percent / 100);
  if (session.json) {
    Json document = Session::document("backplane.bench_compare");
    document["before"] = Json::object({{"file", options.before}, {"device", before.device}});
    document["after"] = Json::object({{"file", options.after}, {"device", after.device}});
    document["least_percent"] = options.least_percent;
    document["unmoved"] = found.unmoved;
    document["moves"] = Json::array();
    for (const Move& move : found.moves) {
      document["moves"].push_back(Json::object({{"key", move.key},
                                                {"before_ns", figure_json(move.before)},
                                                {"after_ns", figure_json(move.after)},
                                                {"factor", move.factor}}));
    }
    for (const auto& [name, keys] : {std::pair("gone", &found.gone), std::pair("added", &found.added)}) {
      document[name] = Json::array();
      for (const std::string& key : *keys) document[name].push_back(key);
    }
    session.print(document);
    return kExitOk;
  }
  session.print("{} ({}) to {} ({})\n{} figure(s) moved beyond the noise, {} did not; {} gone, {} new\n\n",
                options.before, printable(before.device), options.after, printable(after.device), found.moves.size(),
                found.unmoved, found.gone.size(), found.added.size());
  Table table({"WHAT", right("BEFORE"), right("p10..p90"), right("AFTER"), right("p10..p90"), "CHANGE"});
  for (const Move& move : found.moves) {
    table.add({move.key, right(time_text(move.before.median)), right(spread_text(move.before)),
               right(time_text(move.after.median)), right(spread_text(move.after)),
               Cell(factor_text(move.factor), move.factor < 1 ? Style::good : Style::warning)});
  }
  if (!table.empty()) session.out += table.text(session.colour);
  for (const std::string& key : found.gone) session.print("gone: {}\n", printable(key));
  for (const std::string& key : found.added) session.print("new:  {}\n", printable(key));
  return kExitOk;
}

}  // namespace tool
