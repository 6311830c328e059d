// SPDX-License-Identifier: Apache-2.0
// Defines `backplane bench` for builds that are configured without it. The subcommand only reports an error.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "options.hpp"

namespace tool {

void add_bench(CLI::App& app, Options& /*options*/, std::function<int()>& chosen) {
  CLI::App* bench = app.add_subcommand("bench", "not in this build, which was configured with -Dbench=disabled");
  bench->prefix_command();  // accepts any arguments
  bench->callback([&] {
    chosen = []() -> int { fail_usage("this build has no bench: configure it with -Dbench=enabled and build again"); };
  });
}

}  // namespace tool
