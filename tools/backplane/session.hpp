// SPDX-License-Identifier: Apache-2.0
// Declares what every subcommand uses: the global options, the output, and Failure.
#pragma once

#include <fmt/format.h>
#include <concepts>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "json.hpp"

namespace tool {

// Exit codes of the command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFinding = 1;  // a finding, or an operation that failed
inline constexpr int kExitUsage = 2;

// Ends a subcommand with an exit code and one message for the user.
class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, std::string status, const std::string& message)
      : std::runtime_error(message), exit_code_(exit_code), status_(std::move(status)) {}
  int exit_code() const noexcept { return exit_code_; }
  const std::string& status() const noexcept { return status_; }

 private:
  int exit_code_;
  std::string status_;
};

// Throws a usage error, for a request that names something unknown or contradicts itself.
template <class... Args>
[[noreturn]] void fail_usage(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(kExitUsage, "INVALID_ARGUMENT", fmt::format(format, std::forward<Args>(args)...));
}

struct Session {
  bool json = false;
  bool colour = false;
  // Value of --plugin-path; if absent, the environment decides.
  std::optional<std::string> plugin_path;
  std::string out;  // text for standard output

  // Makes a JSON document for the output. The document begins with the name and version of its
  // schema.
  static Json document(const char* schema) {
    Json json;
    json["schema"] = schema;
    json["version"] = 1;
    return json;
  }
  template <std::same_as<Json> T>  // rejects types that convert to Json
  void print(const T& document) {
    out += document.text();
    out += '\n';
  }
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  }
};

}  // namespace tool
