// SPDX-License-Identifier: Apache-2.0
// Checks the certificate as a document: its syntax, its required fields, and its differences from
// the expected document.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "report/names.hpp"
#include "report/verdict.hpp"
#include "verify.hpp"

namespace backplane::conformance {

namespace {

using Json = nlohmann::json;

// The maximum number of objects and arrays around a value. A certificate has fewer than 10.
constexpr int kMostDepth = 32;

// Rejects duplicate keys, because JSON readers disagree about their values. Also rejects deep nesting, because
// functions that traverse the document are recursive.
class DocumentLimits {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    if (depth >= kMostDepth &&
        (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start))
      throw std::runtime_error(fmt::format("objects and arrays are nested deeper than {}", kMostDepth));
    if (event == Json::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == Json::parse_event_t::key && !keys_.back().insert(value.get<std::string>()).second) {
      throw std::runtime_error(fmt::format("the key \"{}\" is there twice in one object", value.get<std::string>()));
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_{};
};

enum class Type { text, natural, number, flag, object, texts, tallies, cells, cases };

bool is_tally(const Json& json) {
  if (!json.is_object() || !json.contains("state") || !json["state"].is_string() || !json.contains("seconds") ||
      !json["seconds"].is_number() || !json.contains("counts") || !json["counts"].is_object())
    return false;
  for (int outcome = 0; outcome < kOutcomeCount; ++outcome) {
    const std::string name(name_of(static_cast<Outcome>(outcome)));
    if (!json["counts"].contains(name)) return false;
  }
  return std::all_of(json["counts"].begin(), json["counts"].end(),
                     [](const Json& count) { return count.is_number_unsigned(); });
}

bool is(const Json& json, Type type) {
  const auto all = [&](auto holds) { return std::all_of(json.begin(), json.end(), holds); };
  switch (type) {
    case Type::text:
      return json.is_string();
    case Type::natural:
      return json.is_number_unsigned();
    case Type::number:
      return json.is_number();
    case Type::flag:
      return json.is_boolean();
    case Type::object:
      return json.is_object();
    case Type::texts:
      return json.is_array() && all([](const Json& each) { return each.is_string(); });
    case Type::tallies:
      return json.is_object() && all(is_tally);
    case Type::cells:
      return json.is_array() && all(is_tally);
    case Type::cases:
      return json.is_array() && all([](const Json& each) {
               return each.is_object() && each.contains("id") && each["id"].is_string() && each.contains("outcome") &&
                      each["outcome"].is_string() && each.contains("reason") && each["reason"].is_string();
             });
  }
  return false;
}

// Returns whether first_difference ignores the field `key`. Other checks compare the digests. All
// other ignored fields are measurements, messages, or settings that do not affect results.
bool is_free(const std::string& key, const std::string& path) {
  return key == "seconds" || key == "started" || key == "jobs" || key == "resumed" || key == "digest" ||
         key == "error" || key == "max_buffer_bytes" || key == "timeout_seconds" || key == "memory_limit_mib" ||
         (key == "reason" && path.starts_with("/non_passes"));
}

std::string shown(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 200 ? text : fmt::format("{} …", text.substr(0, 200));
}

}  // namespace

Json read_certificate(const std::string& text) {
  try {
    return Json::parse(text, DocumentLimits());
  } catch (const Json::exception& error) {
    throw std::runtime_error(error.what());
  }
}

std::string form_fault(const Json& certificate) {
  if (!certificate.is_object() || !certificate.contains("schema") || certificate["schema"] != "backplane.certificate")
    return "it is no certificate: \"schema\" is not \"backplane.certificate\"";
  if (!certificate.contains("version") || certificate["version"] != 1)
    return fmt::format("its version is {}, and this program reads version 1",
                       certificate.contains("version") ? shown(certificate["version"]) : "missing");
  constexpr std::pair<const char*, Type> fields[] = {{"/digest", Type::text},
                                                     {"/suite/version", Type::text},
                                                     {"/suite/digest", Type::text},
                                                     {"/suite/cases", Type::natural},
                                                     {"/plugin/name", Type::text},
                                                     {"/plugin/version", Type::text},
                                                     {"/plugin/file", Type::text},
                                                     {"/plugin/sha256", Type::text},
                                                     {"/plugin/abi", Type::object},
                                                     {"/plugin/abi/built_for", Type::text},
                                                     {"/plugin/build_flags", Type::texts},
                                                     {"/device/index", Type::natural},
                                                     {"/device/name", Type::text},
                                                     {"/device/driver", Type::text},
                                                     {"/device/type", Type::text},
                                                     {"/device/alignment", Type::natural},
                                                     {"/device/max_buffer_bytes", Type::natural},
                                                     {"/device/memory_kinds", Type::texts},
                                                     {"/device/capabilities", Type::texts},
                                                     {"/run/profile", Type::text},
                                                     {"/run/filters", Type::texts},
                                                     {"/run/error", Type::text},
                                                     {"/run/seed", Type::natural},
                                                     {"/run/cases", Type::natural},
                                                     {"/run/not_asked", Type::natural},
                                                     {"/run/not_reached", Type::natural},
                                                     {"/run/stopped_groups", Type::texts},
                                                     {"/run/jobs", Type::natural},
                                                     {"/run/started", Type::text},
                                                     {"/run/seconds", Type::number},
                                                     {"/run/resumed", Type::flag},
                                                     {"/verdict", Type::object},
                                                     {"/verdict/level", Type::text},
                                                     {"/verdict/abi", Type::text},
                                                     {"/verdict/statement", Type::text},
                                                     {"/verdict/extensions", Type::tallies},
                                                     {"/matrix", Type::cells},
                                                     {"/groups", Type::tallies},
                                                     {"/non_passes", Type::cases}};
  for (const auto& [path, type] : fields) {
    const Json::json_pointer pointer(path);
    if (!certificate.contains(pointer)) return fmt::format("{} is missing", path);
    if (!is(certificate[pointer], type))
      return fmt::format("{} is {}, which is of another kind", path, shown(certificate[pointer]));
  }
  // Older certificates do not have these fields.
  constexpr std::pair<const char*, Type> optional_fields[] = {{"/run/in_process", Type::flag},
                                                              {"/run/timeout_seconds", Type::number},
                                                              {"/run/memory_limit_mib", Type::natural}};
  for (const auto& [path, type] : optional_fields) {
    const Json::json_pointer pointer(path);
    if (certificate.contains(pointer) && !is(certificate[pointer], type))
      return fmt::format("{} is {}, which is of another kind", path, shown(certificate[pointer]));
  }
  const double seconds = certificate["run"].value("timeout_seconds", kLeastCaseSeconds);
  if (!(seconds >= kLeastCaseSeconds && seconds <= kMostCaseSeconds))
    return fmt::format("/run/timeout_seconds is {}, and must be from {} to {}", seconds, kLeastCaseSeconds,
                       kMostCaseSeconds);
  const uint64_t mib = certificate["run"].value("memory_limit_mib", kLeastResidentMib);
  if (mib < kLeastResidentMib || mib > kMostResidentMib)
    return fmt::format("/run/memory_limit_mib is {}, and must be from {} to {}", mib, kLeastResidentMib,
                       kMostResidentMib);
  if (profile_of(certificate["run"]["profile"].get<std::string>()) == 0)
    return fmt::format("/run/profile is {}, and there is no such profile", shown(certificate["run"]["profile"]));
  if (!version_number(certificate["plugin"]["abi"]["built_for"].get<std::string>()))
    return fmt::format("/plugin/abi/built_for is {}, which is no version",
                       shown(certificate["plugin"]["abi"]["built_for"]));
  return "";
}

std::string first_difference(const Json& derived, const Json& given, const std::string& path) {
  if (derived.is_object() && given.is_object()) {
    for (const auto& [key, value] : derived.items()) {
      if (is_free(key, path)) continue;
      if (!given.contains(key)) return fmt::format("{}/{} is missing", path, key);
      if (std::string found = first_difference(value, given[key], fmt::format("{}/{}", path, key)); !found.empty())
        return found;
    }
    for (const auto& [key, value] : given.items()) {
      if (!is_free(key, path) && !derived.contains(key)) return fmt::format("{}/{} does not belong there", path, key);
    }
    return "";
  }
  if (derived.is_array() && given.is_array() && derived.size() == given.size()) {
    for (size_t index = 0; index < derived.size(); ++index) {
      if (std::string found = first_difference(derived[index], given[index], fmt::format("{}/{}", path, index));
          !found.empty())
        return found;
    }
    return "";
  }
  return derived == given ? "" : fmt::format("{} is {}; what is listed gives {}", path, shown(given), shown(derived));
}

std::string error_fault(const Json& tally) {
  if (!tally.contains("error")) return "";
  const Json& error = tally["error"];
  if (!error.is_object() || !error.contains("worst_share") || !error["worst_share"].is_number() ||
      !error.contains("bins") || !error["bins"].is_array() || error["bins"].size() != kRatioBinCount)
    return "is of another kind";
  uint64_t measured = 0, total = 0, failures = 0;
  size_t last = 0;
  for (size_t bin = 0; bin < kRatioBinCount; ++bin) {
    if (!error["bins"][bin].is_number_unsigned()) return "is of another kind";
    const uint64_t count = error["bins"][bin];
    measured += count;
    if (count != 0) last = bin;
  }
  for (const auto& [name, count] : tally["counts"].items()) {
    total += count.get<uint64_t>();
    failures += name == "pass" || name == "not_claimed" ? 0 : count.get<uint64_t>();
  }
  if (measured == 0 || measured > total) return fmt::format("is of {} cases, and there are {}", measured, total);
  const double worst = error["worst_share"];
  if (bin_of_ratio(worst) != last) return fmt::format("has the worst share {}, which is not in its last bin", worst);
  return worst > 1 && failures == 0 ? fmt::format("is {} of the bound, and nothing failed", worst) : "";
}

}  // namespace backplane::conformance
