// SPDX-License-Identifier: Apache-2.0
// The report of `bench model` for programs: tools/schemas/bench_model.schema.json.
#include "bench/json_figure.hpp"
#include "bench/model.hpp"

namespace tool {
namespace {

Json performance_json(const ModelRow& row, const Performance& one) {
  Json json = Json::object({{"name", one.name}, {"measured", one.reason.empty()}, {"reason", one.reason}});
  if (one.difference) json["difference"] = *one.difference;
  if (!one.reason.empty()) return json;
  json["first_ns"] = one.first_ns;
  json["latency_ns"] = figure_json(one.latency);
  json["throughput_ns"] = figure_json(one.throughput);
  json["runs_per_second"] = 1e9 / one.throughput.median;
  json["gflops"] = row.flops / one.throughput.median;
  if (one.host_bytes) json["host_peak_bytes"] = *one.host_bytes;
  if (one.device_bytes) json["device_peak_bytes"] = *one.device_bytes;
  if (one.ratio) json["ratio"] = figure_json(*one.ratio);
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
  Json document = Session::document("backplane.bench_model");
  document["device"] = report.device;
  document["description"] = report.description;
  document["plugin_version"] = report.plugin_version;
  document["machine"] = report.machine;
  document["started"] = report.started;
  document["threads"] = report.threads;
  document["takes_threads"] = report.takes_threads;
  document["small"] = report.small;
  document["seconds_a_model"] = report.seconds;
  document["notes"] = Json::array();
  for (const std::string& note : report.notes) document["notes"].push_back(note);
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
