// SPDX-License-Identifier: Apache-2.0
// Generates two lists of the HTML page: the failures, each with the command that reproduces it, and
// the cases that are not claimed. Both lists are truncated to keep the page fast. The JSON contains
// all cases.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "html.hpp"

namespace backplane::conformance::page {

namespace {

constexpr size_t kFirstOfGroup = 10;  // number of cases shown in an expanded group
constexpr size_t kMostPerGroup = 100;
constexpr size_t kMostFailures = 600;
constexpr size_t kMostAbsences = 1500;
constexpr size_t kOpenGroups = 4;  // number of groups that are initially expanded

struct Group {
  std::string name{};
  std::vector<const Json*> cases{};
  std::map<std::string, uint64_t> outcomes{};
};

std::vector<Group> groups_of(const Json& non_passes, bool absent) {
  std::vector<Group> groups;
  std::map<std::string, size_t> indices;
  for (const Json& each : non_passes) {
    if ((each["outcome"] == "not_claimed") != absent) continue;
    const std::string& id = each["id"].get_ref<const std::string&>();
    const std::string name = id.substr(0, id.find('.', id.find('.') + 1));
    const auto [entry, fresh] = indices.try_emplace(name, groups.size());
    if (fresh) groups.push_back({name});
    Group& group = groups[entry->second];
    group.cases.push_back(&each);
    ++group.outcomes[each["outcome"].get<std::string>()];
  }
  return groups;
}

std::string failure(const Json& each) {
  return fmt::format(
      "<article><h4><span class=\"mark fail\"><b aria-hidden=\"true\">✕</b> {}</span> <code>{}</code></h4>"
      "<p class=\"reason t\">{}</p><p class=\"small t\">{}</p><div class=\"line\"><code>{}</code></div></article>\n",
      words(each["outcome"].get_ref<const std::string&>()), text(each["id"]), reason(each), list(each["requirements"]),
      text(each["repro"]));
}

std::string absence(const Json& each) {
  return fmt::format("<li><code>{}</code> <span class=\"t\">{}</span></li>\n", text(each["id"]), reason(each));
}

std::string outcomes_text(const Group& group) {
  std::string result;
  for (const auto& [outcome, count] : group.outcomes)
    result += fmt::format("{}{} {}", result.empty() ? "" : ", ", number(count), words(outcome));
  return result;
}

std::string more(size_t hidden, std::string_view noun) {
  return hidden == 0 ? "" : fmt::format("<p class=\"more\">{} more in the JSON.</p>\n", plural(hidden, noun));
}

}  // namespace

std::string failures(const Json& certificate) {
  const std::vector<Group> groups = groups_of(certificate["non_passes"], false);
  if (groups.empty()) return "";
  std::string parts;
  size_t total = 0, shown = 0, rank = 0;
  for (const Group& group : groups) {
    total += group.cases.size();
    const size_t listed = std::min({group.cases.size(), kMostPerGroup, kMostFailures - shown});
    std::string articles;
    for (size_t index = 0; index < listed; ++index) {
      if (index == kFirstOfGroup)
        articles += fmt::format("<details><summary>{} more</summary>\n", number(listed - kFirstOfGroup));
      articles += failure(*group.cases[index]);
    }
    if (listed > kFirstOfGroup) articles += "</details>\n";
    shown += listed;
    parts += fmt::format("<details{}><summary><strong>{}</strong> <span>{}</span></summary>\n{}{}</details>\n",
                         rank++ < kOpenGroups ? " open" : "", text(Json(group.name)), outcomes_text(group), articles,
                         more(group.cases.size() - listed, "failure"));
  }
  return fmt::format(
      "<section id=\"failures\"><h2>Failures <span class=\"count\">{}</span></h2>\n"
      "<p class=\"small\">Each command runs one case alone, with the same data.{}</p>\n{}</section>\n",
      number(total),
      shown < total ? fmt::format(" {} of {} are shown; all are in the JSON.", number(shown), number(total)) : "",
      parts);
}

// Lists all mandatory cases that are not claimed. The list uses few HTML elements, since a plugin
// without operators has thousands of such cases.
std::string mandatory(const Json& certificate) {
  Json missing = Json::array();
  for (const Json& each : certificate["non_passes"]) {
    if (each.contains("mandatory")) missing.push_back(each);
  }
  if (missing.empty()) return "";
  std::string parts;
  for (const Group& group : groups_of(missing, true)) {
    std::string ids;
    for (const Json* each : group.cases) ids += (ids.empty() ? "" : " ") + text((*each)["id"]);
    parts += fmt::format(
        "<h3>{} <span class=\"small\">{}</span></h3>\n<p class=\"small t\">{}</p><p class=\"t\"><code>{}</code></p>\n",
        text(Json(group.name)), number(group.cases.size()), reason(*group.cases.front()), ids);
  }
  return fmt::format(
      "<section id=\"mandatory\"><h2>Mandatory and not claimed <span class=\"count\">{}</span></h2>\n"
      "<p class=\"small\">Each of these cases prevents the plugin from reaching a profile. Each group shows the reason "
      "of its first case.</p>\n<details><summary>Show {}</summary>\n{}</details></section>\n",
      number(missing.size()), plural(missing.size(), "case"), parts);
}

std::string absences(const Json& certificate) {
  const std::vector<Group> groups = groups_of(certificate["non_passes"], true);
  if (groups.empty()) return "";
  std::string parts;
  size_t total = 0, shown = 0;
  for (const Group& group : groups) {
    total += group.cases.size();
    const size_t listed = std::min({group.cases.size(), kMostPerGroup, kMostAbsences - shown});
    std::string rows;
    for (size_t index = 0; index < listed; ++index) rows += absence(*group.cases[index]);
    shown += listed;
    parts += fmt::format("<h3>{} <span class=\"small\">{}</span></h3>\n<ul class=\"absent\">{}</ul>{}",
                         text(Json(group.name)), number(group.cases.size()), rows,
                         more(group.cases.size() - listed, "case"));
  }
  return fmt::format(
      "<section id=\"absent\"><h2>Not claimed <span class=\"count\">{}</span></h2>\n"
      "<p class=\"small\">The plugin does not claim the features that these cases test, and declined them with the "
      "documented error. These cases are neither failures nor passes.</p>\n"
      "<details><summary>Show {}</summary>\n{}</details></section>\n",
      number(total), plural(total, "case"), parts);
}

std::string groups(const Json& certificate) {
  std::string rows;
  for (const auto& [name, tally] : certificate["groups"].items()) {
    const Json& counts = tally["counts"];
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td></tr>\n",
        text(Json(name)), mark(tally["state"].get<std::string>()), number(counts["pass"]), number(failures_of(counts)),
        number(counts["not_claimed"]), seconds(tally["seconds"]));
  }
  return fmt::format(
      "<section id=\"groups\"><h2>Groups of cases</h2>\n<div class=\"wide\"><table class=\"plain\"><thead><tr>"
      "<th scope=\"col\">group</th><th scope=\"col\">state</th><th scope=\"col\" class=\"n\">pass</th>"
      "<th scope=\"col\" class=\"n\">failed</th><th scope=\"col\" class=\"n\">not claimed</th>"
      "<th scope=\"col\" class=\"n\">time</th></tr></thead>\n<tbody>{}</tbody></table></div></section>\n",
      rows);
}

}  // namespace backplane::conformance::page
