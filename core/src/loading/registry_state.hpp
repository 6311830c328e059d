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

// A manifest, or a library that the user named by path. State::mutex guards every candidate in
// State::candidates.
struct Registry::Candidate {
  const char* origin = "";
  std::string manifest_path;  // empty for a library without a manifest
  std::string library;        // absolute path; empty if the manifest names no library
  Manifest manifest;
  std::optional<Refusal> refused;  // the reason why the manifest is invalid; never changes

  // The name in the manifest, in the loaded library, or in the file name of a library without a manifest.
  std::string name;
  std::string version;
  std::optional<Refusal> failed;  // the reason why the last load failed; the next load may succeed
  Ref<Plugin> plugin;
  bool shadowed = false;
};

// A library file. The first thread that needs the file loads it, and other threads wait.
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
  // Null without the layer `trace`. The object exists until the process ends.
  layers::TraceFile* trace_file = nullptr;
  Config config;
  std::vector<Place> search_paths;

  mutable std::mutex mutex;  // never held during a plugin call or while a file is read
  std::condition_variable loaded;
  std::vector<std::unique_ptr<Candidate>> candidates;
  std::vector<std::unique_ptr<LibraryState>> libraries;
  bool closed = false;
};

}  // namespace backplane::core
