// SPDX-License-Identifier: Apache-2.0
// The verbs: their options and entry points. Each returns the exit code or throws Failure.
#pragma once

#include <cstdint>
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
};
int info(Session& session, const InfoOptions& options);

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

}  // namespace tool
