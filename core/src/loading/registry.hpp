// SPDX-License-Identifier: Apache-2.0
// The registry: the candidates found, the plugins loaded from them, and the user's device
// preference.
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
  // Chooses a plugin and a device index by "plugin:index" or "plugin"; null means the user's
  // preference.
  struct Choice {
    Ref<Plugin> plugin;
    uint32_t index;
  };
  Choice choose_device(const char* name);
  // The failures that the layer `fault` injects; null without that layer.
  std::shared_ptr<const layers::FaultSchedule> faults() const;
  // The file of the layer `trace`; null without that layer.
  layers::TraceFile* trace_file() const;
  // Call once, when the host releases its handle. Afterwards a plugin lives only as long as its
  // users. A plugin that a device loads later, as its fallback, belongs to that device alone.
  void close() noexcept;
  // Logs to the registry's callback, or to stderr without one. Callable from any thread, also while
  // a plugin holds locks.
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
  std::string found() const;           // the candidates' names, for an error message
  std::string searched_paths() const;  // the searched directories, for an error message

  std::unique_ptr<State> state_;
};

}  // namespace backplane::core
