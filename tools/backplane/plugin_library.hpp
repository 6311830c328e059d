// SPDX-License-Identifier: Apache-2.0
// Finds a plugin's library for the subcommands that run the conformance suite.
#pragma once

#include <string>

#include "session.hpp"

namespace tool {

// Returns the path of a plugin's library. `plugin` is either that path or a name. A name yields the
// library that core would load. The function loads nothing, because a plugin may crash. Error
// messages begin with `subcommand`.
std::string library_of(const Session& session, const std::string& subcommand, const std::string& plugin);

}  // namespace tool
