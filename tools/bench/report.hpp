// SPDX-License-Identifier: Apache-2.0
// Common parts of the reports of `bench ops`, `model` and `memory`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/sampling.hpp"
#include "session.hpp"

namespace tool {

// One contestant's results in one case: an operator or a model.
struct Performance {
  std::string name;    // of the device or the peer
  std::string reason;  // why it was not measured; empty if it was
  // The first call: creation of the plan or primitive, and the work.
  double first_ns = 0;
  Figure latency;     // ns per call, each waited for
  Figure throughput;  // ns per call of many, with one wait
  // Growth of the process's peak memory by preparation and the first call.
  std::optional<uint64_t> host_bytes;
  // Peak of the memory that core reserved on the device, operands included. Not for peers.
  std::optional<uint64_t> device_bytes;
  // A peer's time divided by the device's, sample by sample; above 1 the device is faster. Then
  // the difference of outputs.
  std::optional<Figure> ratio;
  std::optional<double> difference;
};

struct Report {
  std::string device, description, plugin_version, started, machine;
  int threads = 0;
  bool takes_threads = false;
  double seconds = 0;                                      // per case
  std::vector<std::pair<std::string, std::string>> peers;  // name, version
  std::vector<std::string> notes;
};

std::string time_text(double ns);               // "12.3 µs"
std::string spread_text(const Figure& figure);  // "11.9 .. 13.0 µs"
// The machine, as `bench ops` and `bench memory` describe it.
std::string machine_text();
std::string now_text();

Json figure_json(const Figure& figure);
// `flops` are those of one call.
Json performance_json(const Performance& one, double flops);
// All except the peers. `seconds_key` is the key for `seconds`.
Json head_json(const Report& report, const char* schema, const char* seconds_key);

// Escapes text for HTML.
std::string safe_html(std::string_view text);
std::string notes_html(const Report& report);
// A bar from 0 to the median with a whisker from p10 to p90. The scale ends at `most`.
std::string bar_html(const Figure& figure, double most, const char* colour);

}  // namespace tool
