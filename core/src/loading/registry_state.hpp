// SPDX-License-Identifier: Apache-2.0
// The state of a registry.
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

// A manifest, or a library named by path. Guarded by State::mutex once it is listed.
struct Registry::Candidate {
  const char* origin = "";
  std::string manifest_path;  // empty for a bare library
  std::string library;        // absolute; empty if the manifest names none
  Manifest manifest;
  std::optional<Refusal> refused;  // why the manifest is invalid; never changes

  std::string name;  // from the manifest, or from a bare library once it is loaded
  std::string version;
  std::optional<Refusal> failed;  // why the last load failed; the next may succeed
  Ref<Plugin> plugin;
  bool shadowed = false;
};

// One library file. The first thread loads it; others wait.
struct LibraryState {
  std::string path;
  bool loading = false;
  Ref<Plugin> plugin;
};

struct Registry::State {
  void (*log)(void* context, int32_t level, const char* message) = nullptr;
  void* log_context = nullptr;
  std::vector<Layer> layers;
  std::shared_ptr<const layers::FaultSchedule> faults;  // null without the layer `fault`
  // Null without the layer `trace`; lives as long as the process.
  layers::TraceFile* trace_file = nullptr;
  Config config;
  std::vector<Place> search_paths;

  mutable std::mutex mutex;  // never held while a plugin is called or a file is read
  std::condition_variable loaded;
  std::vector<std::unique_ptr<Candidate>> candidates;
  std::vector<std::unique_ptr<LibraryState>> libraries;
  bool closed = false;
};

}  // namespace backplane::core
