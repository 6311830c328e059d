// SPDX-License-Identifier: Apache-2.0
// What a registry holds.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "layers/fault/schedule.hpp"
#include "layers/layer_list.hpp"
#include "loading/config.hpp"
#include "loading/manifest.hpp"
#include "loading/refusal.hpp"
#include "loading/registry.hpp"
#include "loading/search.hpp"

namespace backplane::core {

// A manifest, or a library that was named by its path. Guarded by State::mutex, but for what is written before it is
// listed.
struct Registry::Candidate {
  const char* origin = "";
  std::string manifest_path;  // empty: a bare library
  std::string library;        // as the manifest says, made absolute; empty if it does not
  Manifest manifest;
  std::optional<Refusal> refused;  // final: what is wrong with the manifest itself

  std::string name;  // the manifest's, or the library's own once loaded
  std::string version;
  std::optional<Refusal> failed;  // how the last load ended; the next may go better
  Ref<Plugin> plugin;
  bool shadowed = false;
};

// One library file: whoever comes first loads it, others wait for that.
struct LibraryState {
  std::string path;
  bool loading = false;
  Ref<Plugin> plugin;
};

struct Registry::State {
  void (*log)(void* context, int32_t level, const char* message) = nullptr;
  void* log_context = nullptr;
  std::vector<Layer> layers;
  std::shared_ptr<const layers::FaultSchedule> faults;  // of the layer `fault`, null without it
  layers::TraceFile* trace_file = nullptr;          // of the layer `trace`, null without it; never ends
  Config config;
  std::vector<Place> places;

  mutable std::mutex mutex;  // never held while a plugin is called or a file is read
  std::condition_variable loaded;
  std::vector<std::unique_ptr<Candidate>> candidates;
  std::vector<std::unique_ptr<LibraryState>> libraries;
  bool closed = false;
};

}  // namespace backplane::core
