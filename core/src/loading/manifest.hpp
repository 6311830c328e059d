// SPDX-License-Identifier: Apache-2.0
// The manifest: a small JSON file that describes a plugin. Core reads it before the plugin's code runs.
//
//   {"manifest_version": 1, "name": "example", "library": "libexample.so", "abi": {"min": "0.1", "max": "0.1"},
//    "architectures": ["x86_64"], "sha256": "...", "description": "..."}
//
// `library` is a path relative to the manifest's directory. It may also be an absolute path,
// because shared data directories contain no libraries. The same ownership rules apply to the
// library and to the manifest. `sha256`, the digest of the library, and `description` are optional.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loading/refusal.hpp"

namespace backplane::core {

inline constexpr size_t kManifestLimit = 64 * 1024;  // maximum size of the file in bytes
inline constexpr size_t kJsonDepthLimit = 16;

struct Manifest {
  std::string name;
  std::string library;
  uint32_t abi_min = 0;
  uint32_t abi_max = 0;
  std::vector<std::string> architectures;
  std::string sha256;  // lower-case hexadecimal digits; empty if there is no digest
  std::vector<std::string> unknown_keys;
};

// Parses a manifest. Throws Refusal "manifest.*", prefixed with `path`. Sets the name as early as
// possible, so that a refused manifest can still be listed by name.
void parse_manifest(std::string_view text, const std::string& path, Manifest& out);

bool valid_name(std::string_view name) noexcept;
// Parses a version such as "0.1" into its number. Returns false if the text is not a version.
bool parse_version(std::string_view text, uint32_t* out) noexcept;
std::string version_text(uint32_t version);

}  // namespace backplane::core
