// SPDX-License-Identifier: Apache-2.0
// The library that a verb of the conformance suite is about.
#pragma once

#include <string>

#include "session.hpp"

namespace tool {

// A library by path, or the plugin of that name that the library would load. Nothing is loaded here: a plugin may crash.
// `verb` begins the message of what is wrong.
std::string library_of(const Session& session, const std::string& verb, const std::string& plugin);

}  // namespace tool
