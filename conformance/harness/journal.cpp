// SPDX-License-Identifier: Apache-2.0
#include "journal.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace backplane::conformance {

namespace {

using Json = nlohmann::json;

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

Journal::Journal(std::string path, const std::string& key, bool resume) : path_(std::move(path)) {
  if (resume) read(key);
  file_.reset(std::fopen(path_.c_str(), resume && !kept_.empty() ? "ae" : "we"));
  if (file_ == nullptr)
    throw std::runtime_error(
        fmt::format("the journal {} cannot be written: {}; choose another --output", path_, std::strerror(errno)));
  if (kept_.empty()) std::fputs(line_of({{"key", key}}).c_str(), file_.get());
  std::fflush(file_.get());
}

// Skips lines that are not valid JSON, because a killed run may leave a truncated last line.
void Journal::read(const std::string& key) {
  std::ifstream file(path_);
  if (!file) return;
  std::string line;
  std::getline(file, line);
  const Json head = Json::parse(line, nullptr, false);
  const std::string found = head.is_object() ? head.value("key", "") : "";
  if (found != key)
    throw std::runtime_error(
        fmt::format("{} is of another run ({}), and this one is {}; run without --resume to start again", path_,
                    found.empty() ? "it cannot be read" : found, key));
  while (std::getline(file, line)) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("id")) continue;
    Result result;
    const int outcome = json.value("outcome", -1);
    if (outcome < 0 || outcome >= kOutcomeCount) continue;
    result.outcome = static_cast<Outcome>(outcome);
    result.message = json.value("message", "");
    result.nanoseconds = json.value("nanoseconds", uint64_t{0});
    result.error_ratio = json.value("error_share", -1.0);
    kept_[json.value("id", "")] = std::move(result);
  }
}

void Journal::add(const std::string& id, const Result& result) {
  std::fputs(line_of({{"id", id},
                      {"outcome", static_cast<int>(result.outcome)},
                      {"message", result.message},
                      {"nanoseconds", result.nanoseconds},
                      {"error_share", result.error_ratio}})
                 .c_str(),
             file_.get());
  std::fflush(file_.get());
}

void Journal::remove() {
  file_.reset();
  std::remove(path_.c_str());
}

}  // namespace backplane::conformance
