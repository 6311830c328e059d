// SPDX-License-Identifier: Apache-2.0
// Generates JUnit XML from a certificate, with one test suite per group. The counts are numbers of cases. To stay
// small, a suite has one element for each of its first kMostFailures failures. One more element stands for all passes,
// and another for all cases that are not claimed.
#include <fmt/format.h>

#include "certificate.hpp"
#include "escape.hpp"

namespace backplane::conformance {

namespace {

using Json = nlohmann::json;

constexpr size_t kMostFailures = 200;  // maximum number of failures listed per group

struct Group {
  std::string failures{};
  std::string absent{};  // reason of the first case that is not claimed
  uint64_t failed = 0;
};

uint64_t total_of(const Json& counts) {
  uint64_t sum = 0;
  for (const Json& count : counts) sum += count.get<uint64_t>();
  return sum;
}

uint64_t count_of(const Json& counts, const char* outcome) { return counts[outcome].get<uint64_t>(); }

uint64_t failures_of(const Json& counts) {
  return total_of(counts) - count_of(counts, "pass") - count_of(counts, "not_claimed");
}

std::string text_of(const Json& value) { return escaped(value.get_ref<const std::string&>()); }

std::string case_of(std::string_view group, const std::string& name, const std::string& inside) {
  return fmt::format("    <testcase classname=\"{}\" name=\"{}\">{}</testcase>\n", escaped(group), escaped(name),
                     inside);
}

void add(Group& group, std::string_view name, const Json& each) {
  if (each["outcome"] == "not_claimed") {
    if (group.absent.empty()) group.absent = text_of(each["reason"]);
    return;
  }
  if (++group.failed > kMostFailures) return;
  const std::string id = each["id"];
  std::string requirements;
  for (const Json& requirement : each["requirements"])
    requirements += (requirements.empty() ? "&#10;requirements: " : ", ") + text_of(requirement);
  group.failures += case_of(name, id.size() > name.size() ? id.substr(name.size() + 1) : id,
                            fmt::format("<failure type=\"{}\" message=\"{}\">{}</failure>", text_of(each["outcome"]),
                                        text_of(each["reason"]), text_of(each["repro"]) + requirements));
}

std::string summaries(const std::string& name, const Group& group, const Json& counts) {
  std::string result;
  if (group.failed > kMostFailures)
    result += case_of(name, fmt::format("{} more failures", group.failed - kMostFailures),
                      "<failure type=\"cut\" message=\"the certificate's JSON lists all\"/>");
  if (const uint64_t passed = count_of(counts, "pass"); passed != 0)
    result += case_of(name, fmt::format("{} cases passed", passed), "");
  if (const uint64_t absent = count_of(counts, "not_claimed"); absent != 0)
    result += case_of(name, fmt::format("{} cases not claimed", absent),
                      fmt::format("<skipped message=\"{}\"/>", group.absent));
  return result;
}

}  // namespace

std::string junit_of(const Json& certificate) {
  std::map<std::string, Group> groups;
  for (const Json& each : certificate["non_passes"]) {
    const std::string& id = each["id"].get_ref<const std::string&>();
    const std::string name = id.substr(0, id.find('.', id.find('.') + 1));
    add(groups[name], name, each);
  }
  const Json& counts = certificate["verdict"]["counts"];
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" "
      "time=\"{:.3f}\">\n",
      text_of(certificate["verdict"]["statement"]), total_of(counts), failures_of(counts),
      count_of(counts, "not_claimed"), certificate["run"]["seconds"].get<double>());
  for (const auto& [name, tally] : certificate["groups"].items()) {
    const Json& of = tally["counts"];
    const Group& group = groups[name];
    text += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{:.3f}\">\n{}{}"
        "  </testsuite>\n",
        escaped(name), total_of(of), failures_of(of), count_of(of, "not_claimed"), tally["seconds"].get<double>(),
        group.failures, summaries(name, group, of));
  }
  return text + "</testsuites>\n";
}

}  // namespace backplane::conformance
