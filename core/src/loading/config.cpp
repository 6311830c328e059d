// SPDX-License-Identifier: Apache-2.0
// Reads and checks the config file.
#include "loading/config.hpp"

#include <unistd.h>

#include "loading/file.hpp"
#include "loading/json.hpp"
#include "loading/manifest.hpp"
#include "loading/search.hpp"

namespace backplane::core {

namespace {

constexpr size_t kConfigLimit = 64 * 1024;  // maximum size of the file in bytes

void check_device(const std::string& device, const std::string& path) {
  const size_t colon = device.find(':');
  const std::string_view name = std::string_view(device).substr(0, colon);
  bool good = valid_name(name);
  if (colon != std::string::npos) {
    const std::string_view index = std::string_view(device).substr(colon + 1);
    good =
        good && !index.empty() && index.size() < 6 && index.find_first_not_of("0123456789") == std::string_view::npos;
  }
  if (!good) {
    throw Error(BP_INVALID_ARGUMENT, "{}: device \"{:.80}\" is not \"plugin\" or \"plugin:index\"; correct it",
                shown(path), device);
  }
}

}  // namespace

Config read_config(const char* file) {
  Config config;
  config.path = file != nullptr ? file : default_config_file();
  if (config.path.empty() || (file == nullptr && access(config.path.c_str(), F_OK) != 0)) return {};
  const std::string text = read_file(config.path, kConfigRules, kConfigLimit);
  const Json root = parse_json(text, config.path, "config.json", kJsonDepthLimit);
  const auto malformed = [&](const char* what) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {}; write {{\"devices\": [\"plugin:0\", ...]}}", shown(config.path), what);
  };
  if (root.type != Json::object) malformed("the top is no object");
  const Json* devices = root.find("devices");
  if (devices == nullptr) return config;
  if (devices->type != Json::array) malformed("\"devices\" is no list");
  for (const Json& device : devices->children) {
    if (device.type != Json::string) malformed("a device is no string");
    config.devices.push_back(device.text);
    check_device(config.devices.back(), config.path);
  }
  return config;
}

}  // namespace backplane::core
