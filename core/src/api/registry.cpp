// SPDX-License-Identifier: Apache-2.0
// The C functions of registries and plugins.
#include <algorithm>
#include <cstring>

#include "base/structs.hpp"
#include "loading/registry_state.hpp"

namespace {

using namespace bp;

constexpr uint32_t candidate_min_size = 3336;
constexpr uint32_t plugin_info_min_size = 1168;
static_assert(sizeof(bph_candidate) >= candidate_min_size && sizeof(bph_plugin_info) >= plugin_info_min_size);

// Text into a fixed field of zeroes, cut on a character.
template <size_t N>
void copy_text(char (&field)[N], std::string_view text) noexcept {
  size_t length = std::min(text.size(), N - 1);
  if (length < text.size()) {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0u) == 0x80u) --length;
  }
  std::memcpy(field, text.data(), length);
}

template <class T>
T& need_out(T* out, const char* function) {
  if (out == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: out is null; pass where the result goes", function);
  return *out;
}

template <class T>
T* take(const void* handle) noexcept {
  return static_cast<T*>(HandleTable::instance().remove(T::handle_type, reinterpret_cast<uint64_t>(handle)));
}

}  // namespace

namespace bp {

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
    const Fault* fault = candidate.refused ? &*candidate.refused : candidate.failed ? &*candidate.failed : nullptr;
    if (fault != nullptr) {
      result.status = fault->status();
      copy_text(result.rule, fault->rule);
      copy_text(result.side, fault->side);
      copy_text(result.message, fault->what());
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
  write_output(out, result, "bph_registry_candidate", "bph_candidate", candidate_min_size);
}

}  // namespace bp

bp_status bph_registry_create(const bph_registry_desc* desc, bph_registry** out, bp_error* error) {
  return guard(error, [&] {
    need_out(out, "bph_registry_create") = nullptr;
    Ref<Registry> registry = Registry::create(desc);
    *out = reinterpret_cast<bph_registry*>(HandleTable::instance().insert(HandleType::registry, registry.get()));
    registry.detach();
  });
}

void bph_registry_release(bph_registry* registry) {
  Registry* object = take<Registry>(registry);
  if (object == nullptr) return;
  object->close();
  object->release();
}

bp_status bph_registry_candidate_count(bph_registry* registry, uint32_t* out, bp_error* error) {
  return guard(error, [&] {
    need_out(out, "bph_registry_candidate_count") = 0;
    *out = require<Registry>(registry, "bph_registry_candidate_count").candidate_count();
  });
}

bp_status bph_registry_candidate(bph_registry* registry, uint32_t index, bph_candidate* out, bp_error* error) {
  return guard(error, [&] { require<Registry>(registry, "bph_registry_candidate").candidate(index, out); });
}

bp_status bph_registry_examine(bph_registry* registry, bp_error* error) {
  return guard(error, [&] { require<Registry>(registry, "bph_registry_examine").examine(); });
}

bp_status bph_plugin_load(bph_registry* registry, const char* name_or_path, bph_plugin** out, bp_error* error) {
  return guard(error, [&] {
    need_out(out, "bph_plugin_load") = nullptr;
    Ref<Plugin> plugin = require<Registry>(registry, "bph_plugin_load").load(name_or_path);
    *out = reinterpret_cast<bph_plugin*>(HandleTable::instance().insert(HandleType::plugin, plugin.get()));
    plugin.detach();
  });
}

void bph_plugin_release(bph_plugin* plugin) {
  Plugin* object = take<Plugin>(plugin);
  if (object != nullptr) object->release();
}

bp_status bph_plugin_get_info(bph_plugin* plugin, bph_plugin_info* out, bp_error* error) {
  return guard(error, [&] {
    const Plugin& object = require<Plugin>(plugin, "bph_plugin_get_info");
    bph_plugin_info info = {};
    info.abi_version = object.instance->abi_version;
    info.abi_version_min = object.instance->abi_version_min;
    info.build_flags = object.instance->build_flags;
    copy_text(info.name, object.name);
    copy_text(info.version, object.version);
    copy_text(info.library, object.library);
    write_output(out, info, "bph_plugin_get_info", "bph_plugin_info", plugin_info_min_size);
  });
}

bp_status bph_plugin_device_count(bph_plugin* plugin, uint32_t* out, bp_error* error) {
  return guard(error, [&] {
    need_out(out, "bph_plugin_device_count") = 0;
    *out = require<Plugin>(plugin, "bph_plugin_device_count").device_count();
  });
}

bp_status bph_plugin_device_info(bph_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  return guard(error, [&] {
    const bp_device_info info = require<Plugin>(plugin, "bph_plugin_device_info").device_info(index);
    write_output(out, info, "bph_plugin_device_info", "bp_device_info", BP_DEVICE_INFO_MIN_SIZE);
  });
}
