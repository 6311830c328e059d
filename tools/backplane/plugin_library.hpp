// SPDX-License-Identifier: Apache-2.0
// Finds the library for verbs of the conformance suite.
#pragma once

#include <string>

#include "session.hpp"

namespace tool {

// Returns the path of a plugin's library. `plugin` may be that path, or a name: then it is the
// library that core would load. Loads nothing, because a plugin may crash. An error message begins
// with `verb`.
std::string library_of(const Session& session, const std::string& verb, const std::string& plugin);

}  // namespace tool
