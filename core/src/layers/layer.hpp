// SPDX-License-Identifier: Apache-2.0
// Layers: what stands between a host and a plugin. A layer is shaped like a plugin: its table is used as the plugin's own, its
// device handles are its own, and its shutdown ends the plugin too. Buffers, streams, events and plans keep the plugin's handles.
#pragma once

#include <backplane/plugin.h>

#include <memory>

namespace bp {
class Object;
}

namespace bp::layers {

struct FaultPlan;
class TraceFile;

// `inner` with every call checked: rules.def. A caller's fault is answered INVALID_ARGUMENT and not passed on, a plugin's fault
// INTERNAL; both name the rule. What cannot answer is logged. `host` gets the lines and outlives the layer: `keeper`, if it is not null, is
// what ends both, and is kept while a line is told that came from another of the layer's plugins. Throws bad_alloc; then `inner` is as
// it was.
const bp_plugin* validation(const bp_plugin* inner, const bp_host* host, Object* keeper = nullptr);

// `inner` with what the plan says going wrong. Throws bad_alloc.
const bp_plugin* fault(const bp_plugin* inner, const bp_host* host, std::shared_ptr<const FaultPlan> plan);

// `inner` with every call of its devices written to `file`, which lives as long as the process. Throws bad_alloc.
const bp_plugin* trace(const bp_plugin* inner, const bp_host* host, TraceFile& file);

// The plugin's device behind a device that was opened through `depth` layers.
bp_device* inner_device(bp_device* device, unsigned depth) noexcept;

}  // namespace bp::layers
