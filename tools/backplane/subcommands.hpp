// SPDX-License-Identifier: Apache-2.0
// The options and entry points of the subcommands. Each entry point returns the exit code or throws
// Failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "session.hpp"

namespace tool {

struct ListOptions {
  std::string filter;  // name of a plugin or device; empty means all
  bool all = false;
};
int list(Session& session, const ListOptions& options);

struct InfoOptions {
  std::string device;
  bool all = false;
  bool operators = false;  // print the SDK's operator table instead of facts about a device
};
int info(Session& session, const InfoOptions& options);
int info_operators(Session& session);

struct DoctorOptions {};
int doctor(Session& session, const DoctorOptions& options);

struct RunOptions {
  std::string op;
  std::string device;  // name of the device; empty means that bph_device_open chooses
  std::string dtype, out_dtype;
  std::vector<std::string> shapes, out_shapes, strides, data, scalars, attributes;
  uint64_t seed = 1;
  uint32_t repeat = 10;
  bool all = false;  // print whole tensors
};
int run(Session& session, const RunOptions& options);

struct BenchOptions {
  std::string null_plugin;  // path of the null plugin's library; empty means the installed library
  std::string device = "reference:0";
  uint32_t batches = 41;
  uint32_t calls = 20000;
};
int bench_dispatch(Session& session, const BenchOptions& options);

struct BenchOpsOptions {
  std::string plugin;  // path of a library or name of a plugin
  // Name of the device, "plugin:index". If `plugin` and `device` are empty, the library chooses.
  std::string device;
  std::vector<std::string> shapes;   // shape files; empty means the built-in shapes
  std::vector<std::string> filters;  // a case must match one filter; empty means all cases
  std::string html;                  // path of the HTML page; empty means none
  std::string peer_folder;           // folder of the peers; empty means the command's own peers
  int threads = 0;                   // 0 means every processor that the process may use
  double seconds = 0.5;              // measuring time per case
  bool peers = true, decomposed = false, packed = false, list = false, quiet = false;
};
int bench_ops(Session& session, const BenchOpsOptions& options);

struct BenchModelOptions {
  std::string plugin, device;        // as in BenchOpsOptions
  std::vector<std::string> filters;  // model names; empty means all models
  std::string html;                  // path of the HTML page; empty means none
  std::string peer_folder;           // folder of the peers; empty means the command's own peers
  int threads = 0;                   // 0 means every processor that the process may use
  double seconds = 5;                // measuring time per model
  int64_t steps = 512;               // number of decode steps
  bool peers = true, packed = false, graph = false, small = false, quiet = false;
};
int bench_model(Session& session, const BenchModelOptions& options);

struct BenchMemoryOptions {
  std::string plugin, device;  // as in BenchOpsOptions
  uint64_t most_bytes = uint64_t{64} << 20;
  double seconds = 0.5;  // measuring time per size
};
int bench_memory(Session& session, const BenchMemoryOptions& options);

struct BenchCompareOptions {
  std::string before, after;  // paths of JSON reports of `bench ops`, `bench model` or `bench memory`
  double least_percent = 3;   // smaller changes of a median are ignored
};
int bench_compare(Session& session, const BenchCompareOptions& options);

struct CertifyOptions {
  std::string plugin;  // path of a library or name of a plugin
  uint32_t device = 0;
  std::string profile = "core";
  bool profile_given = false;
  std::vector<std::string> filters;
  std::optional<uint64_t> seed;  // if absent, a random seed is chosen and logged
  unsigned jobs = 0;             // 0 means one job per processor
  double timeout_s = 30;         // time limit of a case, in seconds
  uint64_t memory_mib = 4096;    // memory limit of a worker process, in MiB
  // Number of equal failures after which a group's remaining cases are skipped. 0 means no limit.
  int equal_failures = 8;
  std::string output = "certificates";
  bool list = false, resume = false, only_failed = false, in_process = false, fail_fast = false, quiet = false;
  bool junit = false, html = false;
  // An operator and optionally a dtype, for --bound. If the list is empty, the suite runs.
  std::vector<std::string> bound;
};
int certify(Session& session, const CertifyOptions& options);
// Prints the error bound of an operator. An empty `dtype` selects all dtypes.
int certify_bound(Session& session, const std::string& name, const std::string& dtype);

struct VerifyOptions {
  std::string certificate;         // path of the JSON file
  std::string plugin;              // path of a library or name of a plugin
  std::optional<uint32_t> device;  // index of the device; if absent, the index in the certificate
  size_t sample = 200;             // number of cases to run again
  // Seed that selects the cases and their data. If absent, a random seed is chosen and logged.
  std::optional<uint64_t> seed;
  unsigned jobs = 0;  // 0 means one job per processor
  // Time limit of a case in seconds, and memory limit of a worker process in MiB. If absent, the limits of the
  // certificate's run.
  std::optional<double> timeout_s;
  std::optional<uint64_t> memory_mib;
  bool quiet = false;
};
int verify(Session& session, const VerifyOptions& options);

struct NewOptions {
  std::string name;
  // Directory of the project. An empty path means a directory with the plugin's name.
  std::string directory;
  bool queue = false;  // whether the project is for a device with its own queues and memory
};
int new_plugin(Session& session, const NewOptions& options);

}  // namespace tool
