// SPDX-License-Identifier: Apache-2.0
// Additions to backplane.hpp: functions that the classes of that header lack, and helpers that
// several subcommands share.
#pragma once

#include <backplane/backplane.hpp>
#include <mutex>
#include <string>
#include <vector>

#include "report/names.hpp"
#include "session.hpp"

namespace tool {

using backplane::Buffer;
using backplane::Device;
using backplane::Graph;
using backplane::Plugin;
using backplane::Registry;
using backplane::Stream;

// Returns a struct of the host API that is zero except for its struct_size.
template <class T>
T sized() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

inline bp_error fresh_error() { return sized<bp_error>(); }

// Calls `function(arguments..., &error)`, and throws if the call fails.
template <class... Parameters, class... Args>
void call(bp_status (*function)(Parameters...), Args&&... args) {
  bp_error error = fresh_error();
  const bp_status status = function(std::forward<Args>(args)..., &error);
  if (status != BP_OK) throw backplane::Error(status, error);
}

// Opens a registry. If `log` is true, warnings of the library are written to stderr. Subcommands
// that report candidates themselves pass false.
Registry open_registry(const Session& session, bool log);
// The lines that the library and the plugins log. The mutex protects the lines, because a driver's threads may also
// log.
struct Messages {
  std::mutex mutex;
  std::vector<std::string> lines;
};
// Opens a registry that logs to `messages`, which must outlive the registry.
Registry open_registry(const Session& session, Messages& messages);
// Returns every candidate in search order.
std::vector<bph_candidate> candidates(const Registry& registry);
// Returns every operator in order of id.
std::vector<bph_op_info> operators();

using backplane::conformance::capability_names;
using backplane::conformance::device_type_name;
using backplane::conformance::memory_kind_name;
using backplane::conformance::version_text;
std::string uuid_text(const uint8_t (&uuid)[16]);
std::string bytes_text(uint64_t bytes);

}  // namespace tool
