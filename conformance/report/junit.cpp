// SPDX-License-Identifier: Apache-2.0
// JUnit XML of a certificate: a test suite a group, with what did not pass as its cases.
#include <fmt/format.h>

#include "certificate.hpp"
#include "escape.hpp"

namespace bp::conformance {

namespace {

using Json = nlohmann::json;

uint64_t failures_of(const Json& counts) {
  uint64_t sum = 0;
  for (const auto& [name, count] : counts.items())
    sum += name == "pass" || name == "not_claimed" ? 0 : count.get<uint64_t>();
  return sum;
}

uint64_t total_of(const Json& counts) {
  uint64_t sum = 0;
  for (const Json& count : counts) sum += count.get<uint64_t>();
  return sum;
}

std::string case_of(const Json& each) {
  const std::string id = each["id"], outcome = each["outcome"], reason = each["reason"];
  const size_t second = id.find('.', id.find('.') + 1);
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\">", escaped(id.substr(0, second)),
                                       escaped(second == std::string::npos ? id : id.substr(second + 1)));
  if (outcome == "not_claimed") return fmt::format("{}<skipped message=\"{}\"/></testcase>\n", head, escaped(reason));
  return fmt::format("{}<failure type=\"{}\" message=\"{}\">{}</failure></testcase>\n", head, outcome, escaped(reason),
                     escaped(each.value("repro", "")));
}

}  // namespace

std::string junit_of(const Json& certificate) {
  std::map<std::string, std::string> cases;
  for (const Json& each : certificate["non_passes"]) {
    const std::string id = each["id"];
    cases[id.substr(0, id.find('.', id.find('.') + 1))] += case_of(each);
  }
  const Json& counts = certificate["verdict"]["counts"];
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" "
      "time=\"{:.3f}\">\n",
      escaped(certificate["verdict"]["statement"].get<std::string>()), total_of(counts), failures_of(counts),
      certificate["run"]["seconds"].get<double>());
  for (const auto& [name, group] : certificate["groups"].items()) {
    text += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n{}  </testsuite>\n",
        escaped(name), total_of(group["counts"]), failures_of(group["counts"]),
        group["counts"]["not_claimed"].get<uint64_t>(), group["seconds"].get<double>(), cases[name]);
  }
  return text + "</testsuites>\n";
}

}  // namespace bp::conformance
