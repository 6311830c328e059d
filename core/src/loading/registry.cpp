// SPDX-License-Identifier: Apache-2.0
// Finds, loads and releases candidates.
#include "loading/registry.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/structs.hpp"
#include "layers/trace/file.hpp"
#include "loading/file.hpp"
#include "loading/loader.hpp"
#include "loading/registry_state.hpp"
#include "memory/address_map.hpp"
#include "streams/stream_lock.hpp"

namespace backplane::core {

namespace {

constexpr uint32_t kCandidateMinSize = 3336;
static_assert(sizeof(bph_candidate) >= kCandidateMinSize);

// Locks the handle table and the address map during fork, so that the child's copies of both tables
// are consistent. The child then empties its copies.
void watch_fork() {
  static std::once_flag once;
  std::call_once(once, [] {
    const int code = pthread_atfork(
        [] {
          HandleTable::instance().mutex().lock();
          AddressMap::instance().lock();
        },
        [] {
          AddressMap::instance().unlock();
          HandleTable::instance().mutex().unlock();
        },
        [] {
          AddressMap::instance().forget_after_fork();
          AddressMap::instance().unlock();
          HandleTable::instance().forget_after_fork();
          HandleTable::instance().mutex().unlock();
        });
    if (code != 0) throw std::bad_alloc();
  });
}

std::string library_path(const std::string& manifest_path, const std::string& library) {
  if (library.front() == '/') return library;
  return manifest_path.substr(0, manifest_path.rfind('/') + 1) + library;
}

}  // namespace

Registry::Registry() : state_(std::make_unique<State>()) {}
Registry::~Registry() = default;

Ref<Registry> Registry::create(const bph_registry_desc* given) {
  bph_registry_desc desc = {};
  if (given != nullptr)
    desc = read_input(given, BPH_REGISTRY_DESC_MIN_SIZE, "bph_registry_create", "bph_registry_desc");
  if ((desc.flags & ~BPH_REGISTRY_NO_DEFAULT_PATHS) != 0) {
    throw Error(BP_INVALID_ARGUMENT,
                "bph_registry_create: flags are {:#x}, BPH_REGISTRY_NO_DEFAULT_PATHS is all there is", desc.flags);
  }
  watch_fork();
  Ref<Registry> registry(kAdopt, new Registry);
  State& state = *registry->state_;
  state.log = desc.log;
  state.log_context = desc.log_context;
  registry->read_layers(desc);
  state.config = read_config(desc.config_file);
  state.search_paths = search_places(desc.search_path, (desc.flags & BPH_REGISTRY_NO_DEFAULT_PATHS) == 0);
  if (runs_privileged()) {
    registry->log(BP_LOG_INFO,
                  "backplane: the program is privileged (set-uid): environment and user directories do not count");
  }
  registry->search();
  return registry;
}

void Registry::read_layers(const bph_registry_desc& desc) {
  const char* names = desc.layers != nullptr ? desc.layers : trusted_environment("BACKPLANE_LAYERS");
  if (names != nullptr) state_->layers = parse_layers(names);
  const auto named = [&](std::string_view name) {
    return std::any_of(state_->layers.begin(), state_->layers.end(),
                       [&](const Layer& layer) { return layer.name == name; });
  };
  read_faults(desc, named("fault"));
  read_trace(desc, named("trace"));
}

void Registry::read_faults(const bph_registry_desc& desc, bool wanted) {
  const char* source = desc.faults != nullptr ? "bph_registry_desc.faults" : "BACKPLANE_FAULT";
  const char* text = desc.faults != nullptr ? desc.faults : trusted_environment("BACKPLANE_FAULT");
  if (text != nullptr) {
    auto plan = std::make_shared<const layers::FaultSchedule>(layers::parse_faults(text, source));
    if (wanted) state_->faults = std::move(plan);
  }
  if (wanted == (text != nullptr)) return;
  if (wanted) {
    throw Error(BP_INVALID_ARGUMENT,
                "bph_registry_create: the layer fault is named without a schedule; set BACKPLANE_FAULT, as \"fail "
                "copy 3 OUT_OF_MEMORY\"");
  }
  log(BP_LOG_WARNING,
      Error(BP_OK, "{} is given and the layer fault is not named; name it in BACKPLANE_LAYERS", source).what());
}

void Registry::read_trace(const bph_registry_desc& desc, bool wanted) {
  const char* source = desc.trace != nullptr ? "bph_registry_desc.trace" : "BACKPLANE_TRACE";
  const char* path = desc.trace != nullptr ? desc.trace : trusted_environment("BACKPLANE_TRACE");
  if (wanted && path != nullptr) state_->trace_file = &layers::TraceFile::open(path, source);
  if (wanted == (path != nullptr)) return;
  if (wanted) {
    throw Error(BP_INVALID_ARGUMENT,
                "bph_registry_create: the layer trace is named without a file; set BACKPLANE_TRACE to a "
                "file, as \"trace.json\"");
  }
  log(BP_LOG_WARNING,
      Error(BP_OK, "{} is given and the layer trace is not named; name it in BACKPLANE_LAYERS", source).what());
}

layers::TraceFile* Registry::trace_file() const { return state_->trace_file; }

std::shared_ptr<const layers::FaultSchedule> Registry::faults() const { return state_->faults; }

void Registry::search() {
  for (const Place& searched : state_->search_paths) {
    try {
      for (const std::string& path : list_manifests(searched)) add_manifest(path, searched.origin);
    } catch (const Refusal& refusal) {
      // Default directories may be missing, but directories that the user named must exist.
      if (std::string_view(refusal.rule) == "place.missing" && std::string_view(searched.origin) != "search_path")
        continue;
      auto candidate = std::make_unique<Candidate>();
      candidate->origin = searched.origin;
      candidate->manifest_path = searched.path;
      candidate->refused = refusal;
      state_->candidates.push_back(std::move(candidate));
      log(BP_LOG_WARNING, refusal.what());
    }
  }
  for (const Place& searched : state_->search_paths) {
    if (std::string_view(searched.origin) == "search_path") add_libraries_without_manifest(searched);
  }
}

// For each library in a directory, adds a refused candidate if no manifest names the library, because only a manifest
// makes a plugin loadable by its name. Adds none if the directory has a defective manifest without a library name,
// because the candidate of that manifest already states a defect.
void Registry::add_libraries_without_manifest(const Place& searched) {
  constexpr size_t begin = std::string_view("/libbackplane_").size(), end = std::string_view(".so").size();
  for (const std::string& path : list_libraries(searched)) {
    const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
    const std::string resolved = real != nullptr ? real.get() : path;
    const auto explains = [&](const auto& candidate) {
      const bool is_defective = candidate->library.empty() && candidate->manifest_path.starts_with(searched.path + "/");
      return is_defective || candidate->library == path || candidate->library == resolved;
    };
    if (std::any_of(state_->candidates.begin(), state_->candidates.end(), explains)) continue;
    auto candidate = std::make_unique<Candidate>();
    candidate->origin = searched.origin;
    candidate->library = path;
    const size_t name_at = path.rfind('/') + begin;
    candidate->name = path.substr(name_at, path.size() - name_at - end);
    candidate->refused =
        Refusal(BP_UNAVAILABLE, "manifest.absent", "user",
                "{}: no manifest names this library; add its manifest {:.64}.json to the directory, or "
                "load the library by its path",
                shown(path), candidate->name);
    log(BP_LOG_WARNING, candidate->refused->what());
    state_->candidates.push_back(std::move(candidate));
  }
}

Registry::Candidate& Registry::add_manifest(const std::string& path, const char* origin) {
  auto made = std::make_unique<Candidate>();
  Candidate& candidate = *made;
  candidate.origin = origin;
  candidate.manifest_path = path;
  try {
    const std::string resolved = resolve_trusted(path, kManifestRules);
    parse_manifest(read_file(resolved, kManifestRules, kManifestLimit), path, candidate.manifest);
    candidate.library = library_path(resolved, candidate.manifest.library);
    check_manifest(candidate.manifest, path);
    for (const std::string& key : candidate.manifest.unknown_keys) {
      log(BP_LOG_INFO, Error(BP_OK, "{}: unknown key \"{:.64}\" is ignored", shown(path), key).what());
    }
  } catch (const Refusal& refusal) {
    candidate.refused = refusal;
    log(BP_LOG_WARNING, refusal.what());
  }
  candidate.name = candidate.manifest.name;
  if (!candidate.refused) {
    try {
      (void)resolve_trusted(candidate.library, kLibraryRules);
    } catch (const Refusal& refusal) {
      candidate.failed = refusal;
    }
  }
  const std::lock_guard lock(state_->mutex);
  candidate.shadowed = !candidate.name.empty() && candidate_by_name(candidate.name) != nullptr;
  state_->candidates.push_back(std::move(made));
  return candidate;
}

// Returns the first candidate that may be loaded by `name`, or null. The caller holds State::mutex.
Registry::Candidate* Registry::candidate_by_name(const std::string& name) {
  for (const auto& candidate : state_->candidates) {
    if (candidate->name == name && !candidate->shadowed && !candidate->refused) return candidate.get();
  }
  return nullptr;
}

Registry::Candidate& Registry::candidate_by_path(const std::string& path) {
  const bool is_manifest = path.ends_with(".json");
  const FileRuleNames& rules = is_manifest ? kManifestRules : kLibraryRules;
  const std::string resolved = resolve_trusted(path, rules);
  std::vector<std::pair<Candidate*, std::string>> known;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& candidate : state_->candidates) {
      if (!is_manifest && candidate->refused) continue;
      known.emplace_back(candidate.get(), is_manifest ? candidate->manifest_path : candidate->library);
    }
  }
  for (const auto& [candidate, file] : known) {
    if (file == resolved) return *candidate;
  }
  for (const auto& [candidate, file] : known) {
    try {
      if (!file.empty() && resolve_trusted(file, rules) == resolved) return *candidate;
    } catch (const Refusal&) {
      continue;  // resolve_trusted refused this file, so it is not `resolved`; its candidate reports the refusal
    }
  }
  if (is_manifest) return add_manifest(resolved, "explicit");
  auto made = std::make_unique<Candidate>();
  made->origin = "explicit";
  made->library = resolved;
  const std::lock_guard lock(state_->mutex);
  state_->candidates.push_back(std::move(made));
  return *state_->candidates.back();
}

Ref<Plugin> Registry::load(const char* name_or_path) {
  if (name_or_path == nullptr || *name_or_path == '\0') {
    throw Error(BP_INVALID_ARGUMENT, "bph_plugin_load: the name is {}; pass a plugin's name, or a path with '/'",
                name_or_path == nullptr ? "null" : "empty");
  }
  const std::string wanted = name_or_path;
  if (wanted.find('/') != std::string::npos) return load_candidate(candidate_by_path(wanted));
  Candidate* candidate = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    candidate = candidate_by_name(wanted);
    if (candidate == nullptr) {
      for (const auto& other : state_->candidates) {
        if (other->name == wanted && other->refused) throw Refusal(*other->refused);
      }
    }
  }
  if (candidate == nullptr) {
    throw Error(BP_UNAVAILABLE, "no plugin is named \"{:.64}\"; found: {:.120}; searched: {}", wanted, found(),
                searched_paths());
  }
  return load_candidate(*candidate);
}

Ref<Plugin> Registry::load_candidate(Candidate& candidate) {
  if (candidate.refused) throw Refusal(*candidate.refused);
  try {
    Ref<Plugin> plugin = load_library(candidate, resolve_trusted(candidate.library, kLibraryRules));
    std::string name = plugin->name;
    std::string version = plugin->version;
    const std::lock_guard lock(state_->mutex);
    if (candidate.manifest_path.empty() && candidate.name.empty()) {
      candidate.shadowed = candidate_by_name(name) != nullptr;
      candidate.name = std::move(name);
    }
    candidate.version = std::move(version);
    candidate.failed.reset();
    if (!state_->closed) candidate.plugin = plugin;
    return plugin;
  } catch (const Refusal& refusal) {
    const std::lock_guard lock(state_->mutex);
    candidate.failed = refusal;
    throw;
  }
}

Ref<Plugin> Registry::load_library(Candidate& candidate, const std::string& path) {
  const Manifest* manifest = candidate.manifest_path.empty() ? nullptr : &candidate.manifest;
  LibraryState* library = nullptr;
  {
    std::unique_lock lock(state_->mutex);
    for (const auto& known : state_->libraries) {
      if (known->path == path) library = known.get();
    }
    if (library == nullptr) {
      auto made = std::make_unique<LibraryState>();
      made->path = path;
      library = made.get();
      state_->libraries.push_back(std::move(made));
    }
    state_->loaded.wait(lock, [&] { return !library->loading; });
    if (library->plugin) {
      Ref<Plugin> plugin = library->plugin;
      lock.unlock();
      if (manifest != nullptr) check_promise(*manifest, *plugin);
      return plugin;
    }
    library->loading = true;
  }
  struct Done {
    State& state;
    LibraryState& library;
    Ref<Plugin> plugin;
    ~Done() {
      const std::lock_guard lock(state.mutex);
      library.loading = false;
      if (!state.closed) library.plugin = plugin;
      state.loaded.notify_all();
    }
  } done{*state_, *library, {}};
  done.plugin = load_plugin(Ref<Registry>(this), path, manifest, state_->layers);
  return done.plugin;
}

uint32_t Registry::candidate_count() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<uint32_t>(state_->candidates.size());
}

void Registry::candidate(uint32_t index, bph_candidate* out) const {
  bph_candidate result = {};
  {
    const std::lock_guard lock(state_->mutex);
    if (index >= state_->candidates.size()) {
      throw Error(BP_INVALID_ARGUMENT, "bph_registry_candidate: index {} is past the last of {} candidates", index,
                  state_->candidates.size());
    }
    const Candidate& candidate = *state_->candidates[index];
    const Refusal* refusal = candidate.refused ? &*candidate.refused : candidate.failed ? &*candidate.failed : nullptr;
    if (refusal != nullptr) {
      result.status = refusal->status();
      copy_text(result.rule, refusal->rule);
      copy_text(result.side, refusal->side);
      copy_text(result.message, refusal->what());
    }
    result.loaded = candidate.plugin ? 1 : 0;
    result.shadowed = candidate.shadowed ? 1 : 0;
    if (candidate.plugin) result.device_count = candidate.plugin->known_devices.load(std::memory_order_relaxed);
    copy_text(result.name, candidate.name);
    copy_text(result.version, candidate.version);
    copy_text(result.origin, candidate.origin);
    copy_text(result.manifest, candidate.manifest_path);
    copy_text(result.library, candidate.library);
  }
  write_output(out, result, "bph_registry_candidate", "bph_candidate", kCandidateMinSize);
}

void Registry::examine() {
  for (size_t i = 0;; ++i) {
    Candidate* candidate;
    {
      const std::lock_guard lock(state_->mutex);
      if (i >= state_->candidates.size()) return;
      candidate = state_->candidates[i].get();
    }
    try {
      const Ref<Plugin> plugin = load_candidate(*candidate);
      (void)plugin->device_count();
    } catch (const Refusal& refusal) {
      if (!candidate->refused) log(BP_LOG_WARNING, refusal.what());
    } catch (const Error& error) {
      const std::lock_guard lock(state_->mutex);
      candidate->failed = Refusal(error.status(), "device.count", "system", "{}", error.what());
    }
  }
}

void Registry::close() noexcept {
  const auto take_one = [this]() -> Ref<Plugin> {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    for (const auto& candidate : state_->candidates) {
      if (candidate->plugin) return std::move(candidate->plugin);
    }
    for (const auto& library : state_->libraries) {
      if (library->plugin) return std::move(library->plugin);
    }
    return {};
  };
  // Each reference is released without the lock, because the release may shut a plugin down.
  while (take_one()) continue;
}

void Registry::log(int32_t level, const char* message) const noexcept {
  if (StreamLock::held_by_thread() && StreamLock::defer_log(*this, level, message)) return;
  if (state_->log != nullptr) {
    state_->log(state_->log_context, level, message);
  } else if (level <= BP_LOG_WARNING) {
    std::fprintf(stderr, "backplane: %s: %s\n", level <= BP_LOG_ERROR ? "error" : "warning", message);
  }
}

}  // namespace backplane::core
