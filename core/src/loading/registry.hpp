// SPDX-License-Identifier: Apache-2.0
// The registry: candidates found by search, plugins loaded from them, and the order in which a user wants devices.
#pragma once

#include <backplane/backplane.h>

#include <memory>
#include <string>

#include "base/handle.hpp"
#include "base/ref.hpp"
#include "loading/plugin.hpp"

namespace backplane::core {

namespace layers {
struct FaultSchedule;
class TraceFile;
}  // namespace layers

class Registry final : public Object {
 public:
  static constexpr HandleType kHandleType = HandleType::registry;

  // Throws; see bph_registry_create.
  static Ref<Registry> create(const bph_registry_desc* desc);

  uint32_t candidate_count() const;
  void candidate(uint32_t index, bph_candidate* out) const;
  void examine();
  // By name, or by path if it contains '/'. Throws; see bph_plugin_load.
  Ref<Plugin> load(const char* name_or_path);
  // "plugin:index", "plugin", or null for the user's choice: the plugin and the device's index.
  struct Choice {
    Ref<Plugin> plugin;
    uint32_t index;
  };
  Choice choose_device(const char* name);
  // What the layer `fault` makes go wrong; null without it.
  std::shared_ptr<const layers::FaultSchedule> faults() const;
  // Where the layer `trace` writes; null without it.
  layers::TraceFile* trace_file() const;
  // Called once, when the host lets go of its handle: plugins now live only as long as what uses them, and what a
  // living device still loads (its fallback) belongs to it alone.
  void close() noexcept;
  // For the user: through the registry's callback, else stderr. Callable from any thread, under any lock of a plugin's.
  void log(int32_t level, const char* message) const noexcept;

  ~Registry() override;

 private:
  Registry();
  struct Candidate;
  struct State;

  void read_layers(const bph_registry_desc& desc);
  void read_faults(const bph_registry_desc& desc, bool wanted);
  void read_trace(const bph_registry_desc& desc, bool wanted);
  void search();
  Candidate& add_manifest(const std::string& path, const char* origin);
  Candidate& candidate_by_path(const std::string& path);
  Candidate* candidate_by_name(const std::string& name);
  Ref<Plugin> load_candidate(Candidate& candidate);
  Ref<Plugin> load_library(Candidate& candidate, const std::string& library);
  Choice choose_named(const std::string& name);
  Choice choose_configured();
  Choice choose_first();
  std::string found() const;   // the names, for an error
  std::string places() const;  // where was searched, for an error

  std::unique_ptr<State> state_;
};

}  // namespace backplane::core
