// SPDX-License-Identifier: Apache-2.0
// From a library's path to a negotiated plugin.
#pragma once

#include <string>
#include <vector>

#include "layers/layer_list.hpp"
#include "loading/manifest.hpp"
#include "loading/plugin.hpp"
#include "loading/versions.hpp"

namespace backplane::core {

// Opens, queries, negotiates, checks and completes. Queries the plugin as a host of each spoken major, until it takes
// one. `manifest` is null for a bare library. Throws Refusal with the rule, and shuts down an instance that the plugin
// gave before. An instance of another ABI, or one that is too small, is left alone: its shutdown is not known.
Ref<Plugin> load_plugin(Ref<Registry> registry, const std::string& library, const Manifest* manifest,
                        const std::vector<Layer>& layers);

// What a manifest says about this machine and this host. Throws Refusal "abi.range", "manifest.architecture".
void check_manifest(const Manifest& manifest, const std::string& path);

// What a manifest says against what the plugin says. Throws Refusal "name.mismatch", "abi.manifest".
void check_promise(const Manifest& manifest, const Plugin& plugin);

}  // namespace backplane::core
