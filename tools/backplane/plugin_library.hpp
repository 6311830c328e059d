// SPDX-License-Identifier: Apache-2.0
// Finds a plugin's library for the subcommands that run the conformance suite.
#pragma once

#include <string>

#include "session.hpp"

namespace tool {

// Returns the path of a plugin's library. `plugin` is either that path or a name. If `plugin` is a
// name, returns the library that core would load. Loads nothing, because a plugin may crash. Error
// messages begin with `subcommand`.
std::string library_of(const Session& session, const std::string& subcommand, const std::string& plugin);

}  // namespace tool
