// SPDX-License-Identifier: Apache-2.0
// Helpers for the host API that several subcommands share.
#include "host.hpp"

#include <algorithm>

namespace tool {

Registry open_registry(const Session& session, bool log) {
  bph_registry_desc desc = sized<bph_registry_desc>();
  if (!log) desc.log = [](void*, int32_t, const char*) {};
  if (session.plugin_path) desc.search_path = session.plugin_path->c_str();
  return Registry(desc);
}

Registry open_registry(const Session& session, Messages& messages) {
  bph_registry_desc desc = sized<bph_registry_desc>();
  desc.log = [](void* to, int32_t, const char* line) {
    Messages& all = *static_cast<Messages*>(to);
    const std::lock_guard lock(all.mutex);
    all.lines.emplace_back(line);
  };
  desc.log_context = &messages;
  if (session.plugin_path) desc.search_path = session.plugin_path->c_str();
  return Registry(desc);
}

std::vector<bph_candidate> candidates(const Registry& registry) {
  std::vector<bph_candidate> all;
  for (uint32_t i = 0; i < registry.candidate_count(); ++i) all.push_back(registry.candidate(i));
  return all;
}

std::vector<bph_op_info> operators() {
  std::vector<bph_op_info> all;
  for (uint32_t index = 0;; ++index) {
    bph_op_info info = sized<bph_op_info>();
    bp_error error = fresh_error();
    if (bph_op_by_index(index, &info, &error) != BP_OK) return all;
    all.push_back(info);
  }
}

std::string uuid_text(const uint8_t (&uuid)[16]) {
  if (std::all_of(std::begin(uuid), std::end(uuid), [](uint8_t byte) { return byte == 0; })) return "";
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    fmt::format_to(std::back_inserter(text), "{:02x}", uuid[i]);
  }
  return text;
}

std::string bytes_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace tool
