// SPDX-License-Identifier: Apache-2.0
// Checks a library's ELF header before dlopen, because dlopen of a truncated file would kill the
// process.
#pragma once

#include <string>

namespace backplane::core {

// Returns the architecture for which this library was built, spelled as in manifests, such as
// "x86_64".
const char* host_architecture() noexcept;

// Throws Refusal "library.format", "library.architecture" or "library.truncated" unless `path` is a
// complete shared library for this machine. Throws Refusal "library.sha256" if `sha256` is not
// empty and the file has another digest.
void check_library(const std::string& path, const std::string& sha256);

}  // namespace backplane::core
