// SPDX-License-Identifier: Apache-2.0
// Common parts of the reports of `bench ops`, `bench model` and `bench memory`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/sampling.hpp"
#include "session.hpp"

namespace tool {

// The results of one contestant in one case. A case is an operator or a model.
struct Performance {
  std::string name;    // name of the device or of the peer
  std::string reason;  // why the contestant was not measured; empty if it was measured
  // Time of the first call in nanoseconds, including the creation of the plan or primitive.
  double first_ns = 0;
  Figure latency;     // nanoseconds per call if every call is waited for
  Figure throughput;  // nanoseconds per call if many calls share one wait
  // Growth of the process's peak memory during preparation and the first call, in bytes.
  std::optional<uint64_t> host_bytes;
  // Peak of the memory that core reserved on the device, including operands, in bytes. Has no value
  // for peers.
  std::optional<uint64_t> device_bytes;
  // The ratio is a peer's time divided by the device's time, sample by sample. A ratio above 1
  // means that the device is faster. The difference compares the peer's outputs with the device's
  // outputs.
  std::optional<Figure> ratio;
  std::optional<double> difference;
};

class Target;
struct Report {
  std::string device, description, plugin_version, started, machine;
  int threads = 0;
  bool takes_threads = false;
  double seconds = 0;                                      // measuring time per case
  std::vector<std::pair<std::string, std::string>> peers;  // name and version of each peer
  std::vector<std::string> notes;
};

std::string time_text(double ns);                 // for example "12.3 µs"
std::string spread_text(const Figure& figure);    // for example "11.9..13.0", in the unit of the median
std::string memory_text(const Performance& one);  // device memory, then growth of host memory: "3 MiB, +1 MiB"
// Describes the target, the machine and the start time in `report`. Adds a note if the target does
// not accept a number of threads.
void describe_run(const Target& target, Report& report);
// Copies the results of one contestant to its row.
void take_samples(const Samples& samples, Performance& performance);
// Returns a description of the machine for the reports.
std::string machine_text();
std::string now_text();

Json figure_json(const Figure& figure);
// Returns the results of a contestant. `flops` is the number of operations of one call, from which the rate follows.
Json performance_json(const Performance& one, double flops);
// Returns the fields of `report` except its peers. `seconds_key` is the JSON key for `seconds`.
Json head_json(const Report& report, const char* schema, const char* seconds_key);

// Escapes text for HTML.
std::string safe_html(std::string_view text);
std::string notes_html(const Report& report);
// Returns a bar from 0 to the median, with a whisker from p10 to p90. The scale ends at `most`.
std::string bar_html(const Figure& figure, double most, const char* colour);

}  // namespace tool
