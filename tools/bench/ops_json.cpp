// SPDX-License-Identifier: Apache-2.0
// Writes the report of `bench ops` as JSON, which tools/schemas/bench_ops.schema.json describes.
#include "bench/ops.hpp"

namespace tool {
namespace {

Json performance_json(const OpRow& row, const Performance& one) {
  Json json = performance_json(one, row.work.flops);
  if (one.reason.empty()) json["gigabytes_per_second"] = row.work.bytes / one.throughput.median;
  return json;
}

}  // namespace

Json ops_json(const OpsReport& report) {
  Json document = head_json(report, "backplane.bench_ops", "seconds_a_case");
  document["peers"] = Json::array();
  for (const auto& [name, version] : report.peers) {
    document["peers"].push_back(Json::object({{"name", name}, {"version", version}}));
  }
  document["peaks"] = Json::array();
  for (const auto& [dtype, peak] : report.peaks) {
    document["peaks"].push_back(
        Json::object({{"dtype", dtype}, {"gflops", peak.gflops}, {"by", peak.by}, {"case", peak.text}}));
  }
  document["summaries"] = Json::array();
  for (const Summary& one : summaries_of(report)) {
    document["summaries"].push_back(Json::object({{"what", one.what},
                                                  {"cases", one.cases},
                                                  {"geometric_mean", one.mean},
                                                  {"worst", one.worst},
                                                  {"worst_case", one.worst_case}}));
  }
  document["rows"] = Json::array();
  for (const OpRow& row : report.rows) {
    Json json = Json::object({{"group", row.group},
                              {"case", row.text},
                              {"bound", row.memory_bound ? "memory" : "compute"},
                              {"flops", row.work.flops},
                              {"bytes", row.work.bytes},
                              {"path", path_text(row.path)}});
    json["device"] = performance_json(row, row.device);
    if (row.of_limit) json["of_limit"] = figure_json(*row.of_limit);
    json["peers"] = Json::array();
    for (const Performance& peer : row.peers) json["peers"].push_back(performance_json(row, peer));
    document["rows"].push_back(std::move(json));
  }
  return document;
}

}  // namespace tool
