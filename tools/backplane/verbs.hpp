// SPDX-License-Identifier: Apache-2.0
// The verbs: their options and entry points. Each returns the exit code or throws Failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "session.hpp"

namespace tool {

struct ListOptions {
  std::string filter;  // a plugin's or device's name; empty: everything
  bool all = false;
};
int list(Session& session, const ListOptions& options);

struct InfoOptions {
  std::string device;
  bool all = false;
  bool operators = false;  // the table, in place of a device
};
int info(Session& session, const InfoOptions& options);
int info_operators(Session& session);

struct DoctorOptions {};
int doctor(Session& session, const DoctorOptions& options);

struct RunOptions {
  std::string op;
  std::string device;  // empty: as bph_device_open chooses
  std::string dtype, out_dtype;
  std::vector<std::string> shapes, out_shapes, strides, data, scalars, attributes;
  uint64_t seed = 1;
  uint32_t repeat = 10;
  bool all = false;  // whole tensors
};
int run(Session& session, const RunOptions& options);

struct BenchOptions {
  std::string null_plugin;  // path of the library; empty: where it is installed
  std::string device = "reference:0";
  uint32_t batches = 41;
  uint32_t calls = 20000;
};
int bench_dispatch(Session& session, const BenchOptions& options);

struct BenchOpsOptions {
  std::string plugin;                // a library's path or a plugin's name
  std::string device;                // plugin:index; both empty: as the library chooses
  std::vector<std::string> shapes;   // files; none: the built-in ones
  std::vector<std::string> filters;  // any of them; none: all
  std::string html;                  // file of the page; empty: none
  std::string peer_folder;           // empty: where the command's own are
  int threads = 0;                   // 0: each processor that the process may use
  double seconds = 0.5;              // a case
  bool peers = true, decomposed = false, list = false, quiet = false;
};
int bench_ops(Session& session, const BenchOpsOptions& options);

struct BenchModelOptions {
  std::string plugin, device;        // as of bench ops
  std::vector<std::string> filters;  // names of models; none: all
  std::string html;                  // file of the page; empty: none
  std::string peer_folder;           // empty: where the command's own are
  int threads = 0;                   // 0: each processor that the process may use
  double seconds = 5;                // a model
  int64_t steps = 512;               // of the decode
  bool peers = true, small = false, quiet = false;
};
int bench_model(Session& session, const BenchModelOptions& options);

struct BenchMemoryOptions {
  std::string plugin, device;  // as of bench ops
  uint64_t most_bytes = uint64_t{64} << 20;
  double seconds = 0.5;  // a size
};
int bench_memory(Session& session, const BenchMemoryOptions& options);

struct BenchCompareOptions {
  std::string before, after;  // files that `bench ops --json` or `bench memory --json` wrote
  double least_percent = 3;   // a smaller change of the median is none
};
int bench_compare(Session& session, const BenchCompareOptions& options);

struct CertifyOptions {
  std::string plugin;  // a library's path or a plugin's name
  uint32_t device = 0;
  std::string profile = "core";
  bool profile_given = false;
  std::vector<std::string> filters;
  std::optional<uint64_t> seed;  // none: drawn, and told
  unsigned jobs = 0;             // 0: a processor each
  double timeout_s = 30;         // of a case
  uint64_t memory_mib = 4096;    // of a worker process
  std::string output = "certificates";
  bool list = false, resume = false, only_failed = false, in_process = false, fail_fast = false, quiet = false;
  bool junit = false, html = false;
  std::vector<std::string> bound;  // an operator, and perhaps a dtype; none: a run
};
int certify(Session& session, const CertifyOptions& options);
// `dtype` empty: every one.
int certify_bound(Session& session, const std::string& name, const std::string& dtype);

struct VerifyOptions {
  std::string certificate;         // path of its JSON
  std::string plugin;              // a library's path or a plugin's name
  std::optional<uint32_t> device;  // none: the certificate's
  size_t sample = 200;             // cases that are run again
  std::optional<uint64_t> seed;    // of the choice and the data; none: drawn, and told
  unsigned jobs = 0;               // 0: a processor each
  double timeout_s = 30;           // of a case
  bool quiet = false;
};
int verify(Session& session, const VerifyOptions& options);

struct NewOptions {
  std::string name;
  std::string directory;  // of the project; empty: the name, here
  bool queue = false;     // for a device that is not the host
};
int new_plugin(Session& session, const NewOptions& options);

}  // namespace tool
