// SPDX-License-Identifier: Apache-2.0
// Checks a library's ELF header before dlopen: a truncated file would kill the process there.
#pragma once

#include <string>

namespace backplane::core {

// The architecture that this library was built for, as manifests name it, e.g. "x86_64".
const char* host_architecture() noexcept;

// Throws Refusal "library.format", "library.architecture" or "library.truncated" unless `path` is a
// complete shared library for this machine. If `sha256` is not empty, the file must have that
// digest ("library.sha256").
void check_library(const std::string& path, const std::string& sha256);

}  // namespace backplane::core
