// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace char_gpt {

namespace bp = backplane;

namespace {

// Splits "NAME_OR_PATH" or "NAME_OR_PATH:INDEX" into name and index.
std::pair<std::string, uint32_t> split_spec(const std::string& spec) {
  const size_t colon = spec.rfind(':');
  uint32_t index = 0;
  if (colon != std::string::npos && colon > 0) {
    const char* end = spec.data() + spec.size();
    const auto [stop, error] = std::from_chars(spec.data() + colon + 1, end, index);
    if (error == std::errc() && stop == end) return {spec.substr(0, colon), index};
  }
  return {spec, 0};
}

bp::Device open(const bp::Registry& registry, const std::string& spec, const bph_device_desc* desc) {
  if (spec.empty()) return registry.open(nullptr, desc);
  const auto [name, index] = split_spec(spec);
  return registry.load(name).open(index, desc);
}

bp::Device open_with_threads(const bp::Registry& registry, const std::string& spec, int threads) {
  const std::string option = fmt::format("threads={}", threads);
  auto desc = bp::detail::sized<bph_device_desc>();
  desc.options = option.c_str();
  try {
    return open(registry, spec, &desc);
  } catch (const bp::Error&) {
    return open(registry, spec, nullptr);  // throws the actual error if the option is not the cause
  }
}

}  // namespace

Target::Target(const bp::Registry& registry, const std::string& spec, int threads, bool native)
    : device(open_with_threads(registry, spec, threads)) {
  name = device.name() + (native ? ", native" : ", decomposed");
  repeats = (device.info().capabilities & BP_CAP_DETERMINISTIC) != 0;
  call_flags = (repeats ? BP_OP_FLAG_DETERMINISTIC : 0) | (native ? 0 : BPH_CALL_NO_NATIVE);
}

}  // namespace char_gpt
