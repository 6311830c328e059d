// SPDX-License-Identifier: Apache-2.0
// What the reports of `bench ops`, `model` and `memory` have in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/sampling.hpp"
#include "session.hpp"

namespace tool {

// One contestant in one case, of operators or of a model.
struct Performance {
  std::string name;                      // the device's, or the peer's
  std::string reason;                    // why it was not measured; empty: it was
  double first_ns = 0;                   // the first call: plan or primitive, and the work
  Figure latency;                        // ns a call that is waited for
  Figure throughput;                     // ns a call of many behind each other
  std::optional<uint64_t> host_bytes;    // by which making it ready and its first call raised the process's peak
  std::optional<uint64_t> device_bytes;  // of a device: most that core held from the plugin, operands included
  // Of a peer: its time over the device's, sample by sample: above 1 the device is faster. And how far the outputs differ.
  std::optional<Figure> ratio;
  std::optional<double> difference;
};

struct Report {
  std::string device, description, plugin_version, started, machine;
  int threads = 0;
  bool takes_threads = false;
  double seconds = 0;                                      // a case
  std::vector<std::pair<std::string, std::string>> peers;  // name, version
  std::vector<std::string> notes;
};

std::string time_text(double ns);               // "12.3 µs"
std::string spread_text(const Figure& figure);  // "11.9 .. 13.0 µs"
// What both `bench ops` and `bench memory` say of a run.
std::string machine_text();
std::string now_text();

Json figure_json(const Figure& figure);
// `flops` are a call's.
Json performance_json(const Performance& one, double flops);
// All but the peers; `seconds_key` names what `seconds` are for.
Json head_json(const Report& report, const char* schema, const char* seconds_key);

// Text as HTML shows it.
std::string safe_html(std::string_view text);
std::string notes_html(const Report& report);
// A bar from 0 to the median with a whisker from p10 to p90, on a scale whose end is `most`.
std::string bar_html(const Figure& figure, double most, const char* colour);

}  // namespace tool
