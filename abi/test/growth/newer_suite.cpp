// SPDX-License-Identifier: Apache-2.0
// Runs today's suite and a possible suite of the next minor version: newer_suite PLUGIN. The second
// suite has a case for the later ABI. Prints one verdict per line.
#include <cstdio>

#include "cases/catalogue.hpp"
#include "harness/context.hpp"
#include "report/certificate.hpp"

namespace {

using namespace backplane::conformance;

// Returns the cases that check a plugin's version, because these cases are quick.
Catalogue suite_of_today() {
  Catalogue catalogue;
  for (Case& each : enumerate()) {
    if (each.id.starts_with("abi.version.")) catalogue.push_back(std::move(each));
  }
  return catalogue;
}

Case later_case(const char* id, bool passes) {
  Case later;
  later.id = id;
  later.requirements = {"BP-VER-001"};
  later.since = BP_ABI_VERSION + 1;
  later.run = [passes](Context&) {
    if (!passes) end_case(Outcome::fail, "the plugin lacks later additions");
  };
  return later;
}

void report(const char* name, const Catalogue& catalogue, const char* plugin) {
  const Target target = {plugin, 0};
  const Facts facts = query_facts(target);
  // Tests the plugin at the plugin's own ABI version, which may be the next minor version.
  const Selection requested = {BP_PROFILE_CORE, {}, facts.abi_version == 0 ? BP_ABI_VERSION : facts.abi_version};
  const std::vector<size_t> selection = select(catalogue, requested);
  RunOptions options;
  options.target = target;
  const std::vector<Result> results = run(catalogue, selection, options);
  const Verdict verdict = judge(catalogue, selection, results, requested, facts);
  std::printf("%s\t%s; %zu of %zu cases requested\n", name, verdict.statement.c_str(), selection.size(),
              catalogue.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  Catalogue catalogue = suite_of_today();
  report("today", catalogue, arguments[1]);
  catalogue.push_back(later_case("abi.growth.has_it", true));
  report("later, kept", catalogue, arguments[1]);
  catalogue.push_back(later_case("abi.growth.has_it_not", false));
  report("later, broken", catalogue, arguments[1]);
  return 0;
}
