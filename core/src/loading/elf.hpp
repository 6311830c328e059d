// SPDX-License-Identifier: Apache-2.0
// A look at a library's ELF header before the dynamic linker trusts it: a truncated file would kill the process there.
#pragma once

#include <string>

namespace backplane::core {

// As a manifest names it, e.g. "x86_64"; what this library was built for.
const char* host_architecture() noexcept;

// Throws Refusal "library.format", "library.architecture" or "library.truncated" unless `path` is a whole shared library
// for this machine. If `sha256` is not empty, the file must have that digest ("library.sha256").
void check_library(const std::string& path, const std::string& sha256);

}  // namespace backplane::core
