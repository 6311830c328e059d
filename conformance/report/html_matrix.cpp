// SPDX-License-Identifier: Apache-2.0
// Generates the HTML page's matrix of operators and dtypes.
#include <backplane/ops.h>
#include <fmt/format.h>

#include <map>
#include <vector>

#include "html.hpp"
#include "names.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::page {

namespace {

using Cells = std::map<std::pair<std::string, std::string>, const Json*>;

std::string cell(const std::string& op, const std::string& dtype, const Json& tally) {
  const auto state = tally["state"].get<std::string>();
  std::string error;
  if (tally.contains("error")) {
    const double worst = tally["error"]["worst_share"];
    error = worst == 0 ? " No error." : fmt::format(" Worst error: {} of the bound.", ratio_text(worst));
  }
  const std::string whole = fmt::format("{} {}: {}. {}.{} {}.", op, dtype, words(state), counts_text(tally["counts"]),
                                        error, seconds(tally["seconds"]));
  const uint64_t failed = failures_of(tally["counts"]);
  return fmt::format(
      "<td class=\"{}\" title=\"{}\"><b aria-hidden=\"true\">{}</b><span class=\"hidden\">{}</span> <i>{}</i></td>",
      state, text(Json(whole)), symbol(state), words(state),
      failed != 0 ? fmt::format("{}/{}", failed, total_of(tally["counts"]))
                  : fmt::format("{}", tally["counts"]["pass"].get<uint64_t>()));
}

std::string row(const std::string& op, const std::vector<std::string>& dtypes, const Cells& cells) {
  std::string result = fmt::format("<tr><th scope=\"row\">{}</th>", text(Json(op)));
  for (const std::string& dtype : dtypes) {
    const auto found = cells.find({op, dtype});
    if (found != cells.end()) {
      result += cell(op, dtype, *found->second);
      continue;
    }
    result += "<td class=\"void\"></td>";
  }
  return result + "</tr>\n";
}

std::string body(uint32_t kind, std::string_view title, const std::vector<std::string>& dtypes, const Cells& cells) {
  std::string rows;
  for (const oracle::Operator& each : oracle::kOperators) {
    const std::string op(each.name);
    const auto first = cells.lower_bound({op, ""});
    if (each.kind == kind && first != cells.end() && first->first.first == op) rows += row(op, dtypes, cells);
  }
  if (rows.empty()) return "";
  return fmt::format("<tbody><tr class=\"part\"><th scope=\"rowgroup\" colspan=\"{}\">{}</th></tr>\n{}</tbody>\n",
                     dtypes.size() + 1, title, rows);
}

}  // namespace

std::string matrix(const Json& certificate) {
  Cells cells;
  for (const Json& each : certificate["matrix"])
    cells[{each["op"].get<std::string>(), each["dtype"].get<std::string>()}] = &each;
  if (cells.empty()) return "";
  std::vector<std::string> dtypes;
  for (const std::string_view name : dtype_names()) {
    for (const auto& [key, tally] : cells) {
      if (key.second != name) continue;
      dtypes.emplace_back(name);
      break;
    }
  }
  std::string columns;
  for (const std::string& dtype : dtypes) columns += fmt::format("<th scope=\"col\">{}</th>", dtype);
  // Adds a column if some cases have an operator but no dtype.
  for (const auto& [key, tally] : cells) {
    if (!key.second.empty()) continue;
    dtypes.emplace_back();
    columns += "<th scope=\"col\">any</th>";
    break;
  }
  return fmt::format(
      "<section id=\"matrix\"><h2>Operators and dtypes</h2>\n"
      "<p class=\"small\">{} every case passes, with their number · {} some failed, of how many · {} some pass, the "
      "others are not "
      "claimed · {} nothing is claimed · blank: not requested. Point at a cell, or tap it, for counts and the worst "
      "error.</p>\n"
      "<p id=\"detail\" class=\"t\" role=\"status\" hidden></p>\n"
      "<div class=\"wide\"><table class=\"matrix\"><thead><tr><td></td>{}</tr></thead>\n{}{}</table></div></section>\n",
      mark("pass"), mark("fail"), mark("partial"), mark("not_claimed"), columns,
      body(BP_KIND_PRIMITIVE, "primitives", dtypes, cells), body(BP_KIND_COMPOSITE, "composites", dtypes, cells));
}

}  // namespace backplane::conformance::page
