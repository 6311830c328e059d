// SPDX-License-Identifier: Apache-2.0
// Implements `backplane certify --bound OP [DTYPE]`, which prints the error bound that
// docs/spec/operators.md states.
#include <backplane/rules/op_table.hpp>
#include <regex>

#include "embedded_file.hpp"
#include "host.hpp"
#include "subcommands.hpp"
#include "table.hpp"

namespace tool {
namespace {

namespace rules = backplane::rules;

struct Line {
  std::string dtypes;  // for example "f32, f64"
  std::string part;    // output names, for example "mean, rstd"; empty for the whole operator
  std::string bound;
};

// Returns the text of a Markdown table cell without escapes and bold marks. A link becomes "text
// (target)".
std::string plain(const std::string& cell) {
  std::string text = std::regex_replace(cell, std::regex(R"(\[([^\]]*)\]\(([^)]*)\))"), "$1 ($2)");
  text = std::regex_replace(text, std::regex(R"(\*\*)"), "");
  return std::regex_replace(text, std::regex(R"(\\\|)"), "|");
}

// Returns the table rows of the form `| bound of DTYPES[: PART] | BOUND |` in the operator's section of operators.md.
std::vector<Line> lines_of(const std::string& op) {
  const std::string_view page = spec_files().at(0).text;
  const std::string heading = fmt::format("\n### {}\n", op);
  const size_t from = page.find(heading);
  const size_t to = from == std::string_view::npos ? from : page.find("\n### ", from + heading.size());
  const std::string section(from == std::string_view::npos ? "" : page.substr(from, to - from));
  static const std::regex row(R"(\n\| bound of ([^|:]+)(?:: ([^|]+))? \| ([^\n]+) \|(?=\n))");
  std::vector<Line> lines;
  for (std::sregex_iterator at(section.begin(), section.end(), row), end; at != end; ++at) {
    lines.push_back({(*at)[1], (*at)[2], plain((*at)[3])});
  }
  return lines;
}

const rules::OpInfo& operator_named(const std::string& name) {
  for (const rules::OpInfo& op : rules::op_rows()) {
    if (name == op.name) return op;
  }
  fail_usage("certify: there is no operator '{}'; see: backplane info --operators", name);
}

}  // namespace

int certify_bound(Session& session, const std::string& name, const std::string& dtype) {
  const rules::OpInfo& op = operator_named(name);
  if (!dtype.empty() && !rules::in_set(op.dtypes, rules::dtype_by_name(dtype))) {
    fail_usage("certify: {} has no dtype '{}'; it has {}", name, dtype, rules::dtype_list(op.dtypes));
  }
  constexpr const char* explained = "share/doc/backplane/spec/accuracy.md";
  const std::string corners = fmt::format("share/doc/backplane/spec/operators.md#{}", name);
  Json document = Session::document("backplane.bound");
  document["operator"] = name;
  document["accuracy"] = op.accuracy.text;
  document["bounds"] = Json::array();
  Table table({});
  for (const Line& line : lines_of(name)) {
    if (!dtype.empty() && (", " + line.dtypes + ",").find(", " + dtype + ",") == std::string::npos) continue;
    document["bounds"].push_back(Json::object({{"dtypes", line.dtypes}, {"part", line.part}, {"bound", line.bound}}));
    table.add({line.dtypes, line.part, line.bound});
  }
  document["terms"] = explained;
  document["corners"] = corners;
  if (session.json) {
    session.print(document);
  } else {
    session.print("{}, class {}: how far a result may be from the exact one\n{}", name, op.accuracy.text,
                  table.text(session.colour, 2));
    session.print("Terms: {}. Corners: {}\n", explained, corners);
  }
  return kExitOk;
}

}  // namespace tool
