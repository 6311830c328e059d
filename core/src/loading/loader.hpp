// SPDX-License-Identifier: Apache-2.0
// Loads a library and negotiates the ABI version with its plugin.
#pragma once

#include <string>
#include <vector>

#include "layers/layer_list.hpp"
#include "loading/manifest.hpp"
#include "loading/plugin.hpp"
#include "loading/versions.hpp"

namespace backplane::core {

// Opens the library. Queries the plugin as a host of each supported major version until the plugin
// accepts a version. Checks the plugin's table, and fills missing optional slots in core's copy
// with stubs. `manifest` is null for a library without a manifest. On failure, throws Refusal with
// the violated rule, and shuts down the plugin instance if there is one. Does not shut down an
// instance whose struct is too small or whose ABI is unsupported, because its shutdown slot is
// unknown.
Ref<Plugin> load_plugin(Ref<Registry> registry, const std::string& library, const Manifest* manifest,
                        const std::vector<Layer>& layers);

// Checks the manifest against this machine and this host. Throws Refusal "abi.range" or
// "manifest.architecture".
void check_manifest(const Manifest& manifest, const std::string& path);

// Checks the manifest against the loaded plugin. Throws Refusal "name.mismatch" or "abi.manifest".
void check_promise(const Manifest& manifest, const Plugin& plugin);

}  // namespace backplane::core
