// SPDX-License-Identifier: Apache-2.0
// The command `backplane` for users and plugin authors.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "command.hpp"
#include "harness/probe.hpp"

namespace {

// Returns false if NO_COLOR is set and not empty (https://no-color.org).
bool wants_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || no_color[0] == '\0');
}

}  // namespace

int main(int argc, char** argv) {
  backplane::conformance::serve_probe(argc, argv);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const tool::Answer answer = tool::command(arguments, wants_colour());
  if (answer.exit_code != 0 && answer.out.empty() && answer.err.empty()) {
    std::fputs("backplane: host memory is exhausted; free some or request less\n", stderr);
  }
  std::fwrite(answer.out.data(), 1, answer.out.size(), stdout);
  std::fwrite(answer.err.data(), 1, answer.err.size(), stderr);
  return std::fflush(stdout) == 0 ? answer.exit_code : 1;
}
