// SPDX-License-Identifier: Apache-2.0
// Writes the report of `bench model` as JSON, which tools/schemas/bench_model.schema.json
// describes.
#include "bench/model.hpp"

namespace tool {
namespace {

Json performance_json(const ModelRow& row, const Performance& one) {
  Json json = performance_json(one, row.flops);
  if (one.reason.empty()) json["runs_per_second"] = 1e9 / one.throughput.median;
  return json;
}

Json decode_json(const DecodeReport& decode) {
  Json json = Json::object({{"description", decode.description},
                            {"measured", decode.reason.empty()},
                            {"reason", decode.reason},
                            {"steps", decode.steps},
                            {"warm_steps", decode.warm_steps}});
  if (!decode.reason.empty()) return json;
  json["plans_warm"] = decode.plans_warm;
  json["plans_after"] = decode.plans_after;
  json["class_hits"] = decode.class_hits;
  json["heap_allocations"] = decode.heap_allocations;
  json["growing_ns"] = figure_json(decode.growing_ns);
  json["known_ns"] = figure_json(decode.known_ns);
  json["ratio"] = figure_json(decode.ratio);
  return json;
}

}  // namespace

Json model_json(const ModelReport& report) {
  Json document = head_json(report, "backplane.bench_model", "seconds_a_model");
  document["small"] = report.small;
  document["peers"] = Json::array();
  for (const auto& [name, version] : report.peers) {
    Json peer = Json::object({{"name", name}, {"version", version}});
    if (const auto mean = geometric_mean(report, name)) peer["geometric_mean"] = *mean;
    document["peers"].push_back(std::move(peer));
  }
  document["rows"] = Json::array();
  for (const ModelRow& row : report.rows) {
    Json json = Json::object({{"model", row.name},
                              {"description", row.description},
                              {"flops", row.flops},
                              {"weight_bytes", row.weight_bytes},
                              {"operators", row.operators}});
    json["device"] = performance_json(row, row.device);
    if (row.device.reason.empty()) {
      json["plans_first"] = row.plans_first;
      json["plans_after"] = row.plans_after;
      json["decomposed"] = row.decomposed;
      json["staged"] = row.staged;
      json["heap_allocations"] = row.heap_allocations;
    }
    json["peers"] = Json::array();
    for (const Performance& peer : row.peers) json["peers"].push_back(performance_json(row, peer));
    document["rows"].push_back(std::move(json));
  }
  if (report.decode) document["decode"] = decode_json(*report.decode);
  return document;
}

}  // namespace tool
