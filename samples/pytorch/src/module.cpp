// SPDX-License-Identifier: Apache-2.0
// The C++ functions behind the Python package, as operators of the namespace `backplane`.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "devices.hpp"
#include "fallback.hpp"
#include "generator.hpp"
#include "overloads.hpp"

namespace backplane_torch {
namespace {

std::vector<std::string> flattened(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string> texts;
  for (const auto& [first, second] : pairs) texts.insert(texts.end(), {first, second});
  return texts;
}

c10::DeviceIndex device_index(int64_t index) { return static_cast<c10::DeviceIndex>(index); }

at::Generator generator(int64_t index) { return default_generator(device_index(index)); }

TORCH_LIBRARY(backplane, library) {
  library.def("devices() -> str[]", [] { return device_names(); });
  library.def("unusable_plugins() -> str[]", [] { return unusable_plugins(); });
  library.def("fallbacks() -> Dict(str, int)", [] {
    c10::Dict<std::string, int64_t> counts;
    for (const auto& [name, count] : fallback_counts()) counts.insert(name, count);
    return counts;
  });
  library.def("reset_fallbacks() -> ()", [] { reset_fallback_counts(); });
  library.def("forbid_fallbacks(bool forbidden) -> ()", [](bool forbidden) { forbid_fallbacks(forbidden); });
  // Returns the pairs (family, overload) as a flat list: family, overload, family, overload, ...
  library.def("overloads() -> str[]", [] { return flattened(registered_overloads()); });
  library.def("version() -> str", [] { return std::string(bph_version()); });
  library.def("manual_seed(int index, int seed) -> ()",
              [](int64_t index, int64_t seed) { generator(index).set_current_seed(static_cast<uint64_t>(seed)); });
  library.def("initial_seed(int index) -> int",
              [](int64_t index) { return static_cast<int64_t>(generator(index).current_seed()); });
  library.def("rng_state(int index) -> Tensor", [](int64_t index) { return generator(index).get_state(); });
  library.def("set_rng_state(int index, Tensor state) -> ()",
              [](int64_t index, const at::Tensor& state) { generator(index).set_state(state); });
  library.def("device_stats(int index) -> Dict(str, int)", [](int64_t index) {
    auto stats = backplane::detail::sized<bph_stats>();
    call(bph_device_stats, device_handle(device_index(index)), &stats);
    c10::Dict<std::string, int64_t> counters;
    const auto add = [&](const char* name, uint64_t value) { counters.insert(name, static_cast<int64_t>(value)); };
    add("executions", stats.executions);
    add("plan_hits", stats.plan_hits);
    add("plans_created", stats.plans_created);
    add("decomposed_executions", stats.decomposed_executions);
    add("staged_operands", stats.staged_operands);
    add("host_staged_copies", stats.host_staged_copies);
    add("allocations", stats.allocations);
    add("allocations_cached", stats.allocations_cached);
    add("bytes_in_use", stats.bytes_in_use);
    add("bytes_in_use_peak", stats.bytes_in_use_peak);
    add("bytes_reserved", stats.bytes_reserved);
    add("workspace_bytes", stats.workspace_bytes);
    return counters;
  });
}

}  // namespace
}  // namespace backplane_torch
