// SPDX-License-Identifier: Apache-2.0
// The manifest: a small JSON file that says what a plugin is before its code is run.
//
//   {"manifest_version": 1, "name": "example", "library": "libexample.so", "abi": {"min": "0.1", "max": "0.1"},
//    "architectures": ["x86_64"], "sha256": "...", "description": "..."}
//
// `library` is relative to the manifest's own folder and stays below it; or absolute, because shared data directories
// hold no libraries. Either way the library is held to the same rules of ownership as the manifest. `sha256` (of the
// library) and `description` are optional.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loading/refusal.hpp"

namespace backplane::core {

inline constexpr size_t kManifestLimit = 64 * 1024;  // bytes
inline constexpr size_t kJsonDepthLimit = 16;

struct Manifest {
  std::string name;
  std::string library;
  uint32_t abi_min = 0;
  uint32_t abi_max = 0;
  std::vector<std::string> architectures;
  std::string sha256;  // lower case, empty if none
  std::vector<std::string> unknown_keys;
};

// Reads the text of a manifest. Throws Refusal "manifest.*" with `path` in front; the name is filled in as early as it is
// known, so that a refused manifest can still be called by it.
void parse_manifest(std::string_view text, const std::string& path, Manifest& out);

bool valid_name(std::string_view name) noexcept;
// "0.1" as the ABI's number; false if it is no version.
bool parse_version(std::string_view text, uint32_t* out) noexcept;
std::string version_text(uint32_t version);

}  // namespace backplane::core
