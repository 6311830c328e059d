// SPDX-License-Identifier: Apache-2.0
// Generates the HTML page's list of the causes of failures.
#include <fmt/format.h>

#include <algorithm>

#include "html.hpp"

namespace backplane::conformance::page {

namespace {

constexpr size_t kMostCauses = 50;

std::string outcomes_text(const Json& outcomes) {
  std::string result;
  for (const auto& [name, count] : outcomes.items())
    result += fmt::format("{}{} {}", result.empty() ? "" : ", ", number(count), words(name));
  return result;
}

std::string groups_text(const Json& groups) {
  std::string result;
  for (const auto& [name, count] : groups.items())
    result += fmt::format("{}{} {}", result.empty() ? "" : ", ", text(Json(name)), number(count));
  return result;
}

std::string cause_row(std::string_view name, const std::string& value) {
  return value.empty() ? "" : fmt::format("<p class=\"small t\">{}: {}</p>", name, value);
}

std::string cause(const Json& each) {
  return fmt::format(
      "<article><h4><span class=\"mark fail\"><b aria-hidden=\"true\">✕</b> {}</span> <code>{}</code></h4>"
      "<p class=\"reason t\">{}</p>{}{}{}{}{}<div class=\"line\"><code>{}</code></div></article>\n",
      outcomes_text(each["outcomes"]), text(each["first"]), reason(each), cause_row("Slot", text(each["slot"])),
      cause_row("Requirement", list(each["requirements"])), cause_row("Remedy", text(each["remedy"])),
      cause_row("Guide", text(each["guide"])), cause_row("Where", groups_text(each["groups"])), text(each["repro"]));
}

}  // namespace

std::string causes(const Json& certificate) {
  const Json& all = certificate["causes"];
  if (all.empty()) return "";
  const size_t shown = std::min(all.size(), kMostCauses);
  std::string articles;
  for (size_t index = 0; index < shown; ++index) articles += cause(all[index]);
  const size_t hidden = all.size() - shown;
  return fmt::format(
      "<section id=\"causes\"><h2>Causes <span class=\"count\">{}</span></h2>\n"
      "<p class=\"small\">Failures with the same reason form one cause. The most frequent cause comes "
      "first.</p>\n{}{}</section>\n",
      number(all.size()), articles,
      hidden == 0 ? "" : fmt::format("<p class=\"more\">{} more in the JSON.</p>\n", plural(hidden, "cause")));
}

}  // namespace backplane::conformance::page
