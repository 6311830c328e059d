// SPDX-License-Identifier: Apache-2.0
// A registry: the candidates, the plugins that were loaded from them, and the user's preferred
// devices.
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

struct Place;

class Registry final : public Object {
 public:
  static constexpr HandleType kHandleType = HandleType::registry;

  // Throws the errors that bph_registry_create returns.
  static Ref<Registry> create(const bph_registry_desc* desc);

  uint32_t candidate_count() const;
  void candidate(uint32_t index, bph_candidate* out) const;
  void examine();
  // Loads a plugin by name, or by path if the text contains '/'. Throws the errors that
  // bph_plugin_load returns.
  Ref<Plugin> load(const char* name_or_path);
  // A plugin and the index of one of its devices.
  struct Choice {
    Ref<Plugin> plugin;
    uint32_t index;
  };
  // Chooses a device by the name "plugin:index" or "plugin". Null means the user's preference.
  Choice choose_device(const char* name);
  // Returns the failures that the layer `fault` injects, or null without that layer.
  std::shared_ptr<const layers::FaultSchedule> faults() const;
  // Returns the file of the layer `trace`, or null without that layer.
  layers::TraceFile* trace_file() const;
  // Called once in the life of a registry, when the host releases its handle. Afterwards the
  // registry keeps no plugin alive. If a device loads a fallback plugin after this call, only that
  // device keeps the plugin alive.
  void close() noexcept;
  // Logs to the registry's callback, or to stderr if there is no callback. Any thread may call this
  // function, even while a plugin holds locks.
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
  void add_libraries_without_manifest(const Place& searched);
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
