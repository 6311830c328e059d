// SPDX-License-Identifier: Apache-2.0
// Writes certificates of several kinds as JSON, JUnit XML and HTML, for forms_test.py and for
// inspection. Usage: forms DIRECTORY
#include <fmt/format.h>

#include <fstream>

#include "realistic.hpp"

int main(int argc, char** argv) {
  using namespace backplane::conformance;
  using namespace backplane::conformance::test;
  if (argc != 2) return 2;
  constexpr std::pair<Kind, const char*> kinds[] = {
      {Kind::passing, "passing"}, {Kind::failing, "failing"}, {Kind::broken, "broken"}, {Kind::silent, "silent"}};
  for (const auto& [kind, name] : kinds) {
    const nlohmann::json certificate = realistic_run(kind, argv[0]).certificate;
    const std::string stem = fmt::format("{}/{}", argv[1], name);
    std::ofstream(stem + ".json") << certificate.dump(1) << '\n';
    std::ofstream(stem + ".xml") << junit_of(certificate);
    std::ofstream(stem + ".html") << html_of(certificate);
  }
  return 0;
}
