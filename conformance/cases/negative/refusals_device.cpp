// SPDX-License-Identifier: Apache-2.0
// Illegal calls to bp_plugin_query, the plugin slots and the memory slots.
#include <cstring>

#include "cases/negative/refusals.hpp"
#include "cases/support/guarded.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

bp_status query_with(Context& context, const bp_host& host, bp_error* error) {
  const Library library(context.path());
  const bp_plugin* instance = poisoned<const bp_plugin>();
  const bp_status status = library.query(&host, &instance, error);
  if (status == BP_OK && instance != nullptr) instance->shutdown(instance);
  return require_null(context, status, instance, BP_PLUGIN_QUERY_SYMBOL);
}

// Returns a struct of a newer host, in which one byte after the current size is nonzero.
template <typename T>
GuardedStruct<T> with_tail(const T& value, size_t tail, size_t set_byte) {
  GuardedStruct<T> made(sizeof(T) + tail, value);
  made.bytes()[sizeof(T) + set_byte] = 1;
  return made;
}

bp_status open_with(Context& context, uint32_t index, const bp_device_desc* desc, bp_error* error) {
  Plugin& plugin = context.plugin();
  auto* device = poisoned<bp_device>();
  const bp_status status = plugin->device_open(plugin.get(), index, desc, &device, error);
  if (status == BP_OK && device != nullptr) plugin.slots().close(device);
  return require_null(context, status, device, "device_open");
}

bp_device_desc device_desc(const char* options = nullptr) {
  bp_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.options = options;
  return desc;
}

bp_status info_of(Context& context, uint32_t index, bp_error* error) {
  bp_device_info info;
  std::memset(&info, 0x5A, sizeof(info));
  info.struct_size = sizeof(info);
  const bp_device_info before = info;
  const bp_status status = context.plugin()->device_info(context.plugin().get(), index, &info, error);
  context.require(status == BP_OK || info.struct_size == before.struct_size,
                  "device_info failed and wrote struct_size {}", info.struct_size);
  return status;
}

bp_status memory_of(Context& context, uint32_t kind, bp_error* error) {
  bp_memory_info info = {};
  info.struct_size = sizeof(info);
  return context.device()->memory_info(context.device().get(), kind, &info, error);
}

bp_status create_buffer(Context& context, const bp_buffer_desc* desc, bp_error* error) {
  Device& device = context.device();
  auto* buffer = poisoned<bp_buffer>();
  const bp_status status = device->buffer_create(device.get(), desc, &buffer, error);
  if (status == BP_OK && buffer != nullptr) device->buffer_destroy(device.get(), buffer);
  return require_null(context, status, buffer, "buffer_create");
}

bp_buffer_desc buffer_desc(uint64_t bytes, uint32_t kind = BP_MEMORY_DEVICE, uint64_t alignment = 0) {
  bp_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.kind = kind;
  desc.bytes = bytes;
  desc.alignment = alignment;
  return desc;
}

constexpr uint32_t kUnknownKinds[] = {BP_MEMORY_KINDS, 31, 32, 63, 64, 255, UINT32_MAX};

}  // namespace

std::vector<Refusal> query_refusals() {
  const auto of_version = [](uint32_t version) {
    return [version](Context& context, bp_error* error) {
      const LogHost host(version);
      return query_with(context, host.table, error);
    };
  };
  return {
      {"query", "host_of_version_0", {BP_ABI_MISMATCH}, "BP-VER-002", of_version(0)},
      {"query",
       "host_older_than_the_oldest",
       {BP_ABI_MISMATCH},
       "BP-VER-002",
       [](Context& context, bp_error* error) {
         const uint32_t oldest = context.plugin()->abi_version_min;
         const LogHost host(oldest == 0 ? 0 : oldest - 1);
         return query_with(context, host.table, error);
       }},
  };
}

std::vector<Refusal> device_refusals() {
  std::vector<Refusal> all;
  for (const uint32_t beyond : {0u, 1u, 1000u, UINT32_MAX}) {
    const std::string what =
        beyond == UINT32_MAX ? std::string("greatest_index") : fmt::format("index_{}_past_the_count", beyond);
    const auto index_of = [beyond](Context& context) {
      return beyond == UINT32_MAX ? beyond : context.plugin().device_count() + beyond;
    };
    all.push_back(
        {"device_info", what, {BP_INVALID_ARGUMENT}, "BP-DEV-004", [index_of](Context& context, bp_error* error) {
           return info_of(context, index_of(context), error);
         }});
    all.push_back(
        {"device_open", what, {BP_INVALID_ARGUMENT}, "BP-DEV-005", [index_of](Context& context, bp_error* error) {
           return open_with(context, index_of(context), nullptr, error);
         }});
  }
  const std::pair<const char*, const char*> options_of[] = {{"unknown_option", "no_such_key=1"},
                                                            {"unknown_option_without_value", "no_such_key="},
                                                            {"unknown_option_without_sign", "no_such_key"},
                                                            {"unknown_options", "no_such_key=1;no_such_other=2"}};
  for (const auto& [what, options] : options_of) {
    all.push_back(
        {"device_open", what, {BP_UNSUPPORTED}, "BP-DEV-006", [options = options](Context& context, bp_error* error) {
           const bp_device_desc desc = device_desc(options);
           return open_with(context, context.device_index(), &desc, error);
         }});
  }
  for (const uint32_t bit : {0u, 1u, 7u, 16u, 31u}) {
    all.push_back({"device_open",
                   fmt::format("unknown_flag_{}", bit),
                   {BP_UNSUPPORTED},
                   "BP-SIZE-006",
                   [bit](Context& context, bp_error* error) {
                     bp_device_desc desc = device_desc();
                     desc.flags = 1u << bit;
                     return open_with(context, context.device_index(), &desc, error);
                   }});
  }
  all.push_back({"device_open", "unknown_tail", {BP_UNSUPPORTED}, "BP-SIZE-002", [](Context& context, bp_error* error) {
                   const auto desc = with_tail(device_desc(), 64, 0);
                   return open_with(context, context.device_index(), desc.get(), error);
                 }});
  return all;
}

std::vector<Refusal> buffer_refusals() {
  std::vector<Refusal> all;
  for (const uint32_t kind : kUnknownKinds) {
    all.push_back({"memory_info",
                   fmt::format("unknown_kind_{}", kind),
                   {BP_UNSUPPORTED},
                   "BP-MEMI-002",
                   [kind](Context& context, bp_error* error) { return memory_of(context, kind, error); }});
    all.push_back({"buffer_create",
                   fmt::format("unknown_kind_{}", kind),
                   {BP_UNSUPPORTED},
                   "BP-BUF-003",
                   [kind](Context& context, bp_error* error) {
                     const bp_buffer_desc desc = buffer_desc(64, kind);
                     return create_buffer(context, &desc, error);
                   }});
  }
  for (const uint32_t kind : {BP_MEMORY_DEVICE, BP_MEMORY_HOST, BP_MEMORY_SHARED}) {
    const auto offered = [kind](Context& context) {
      return context.device().offers(kind) ? kind : uint32_t{BP_MEMORY_DEVICE};
    };
    all.push_back({"buffer_create",
                   fmt::format("kind_{}_of_0_bytes", kind),
                   {BP_INVALID_ARGUMENT},
                   "BP-BUF-002",
                   [offered](Context& context, bp_error* error) {
                     const bp_buffer_desc desc = buffer_desc(0, offered(context));
                     return create_buffer(context, &desc, error);
                   }});
    for (const uint32_t shift : {0u, 1u, 2u}) {
      all.push_back({"buffer_create",
                     fmt::format("kind_{}_of_{}_bytes", kind, shift == 0 ? "all" : fmt::format("2_to_{}", 64 - shift)),
                     {BP_OUT_OF_MEMORY},
                     "BP-BUF-004",
                     [offered, shift](Context& context, bp_error* error) {
                       const bp_buffer_desc desc =
                           buffer_desc(shift == 0 ? UINT64_MAX : uint64_t{1} << (64 - shift), offered(context));
                       return create_buffer(context, &desc, error);
                     }});
    }
  }
  all.push_back({"buffer_create",
                 "beyond_the_greatest_buffer",
                 {BP_OUT_OF_MEMORY},
                 "BP-BUF-005",
                 [](Context& context, bp_error* error) {
                   const uint64_t most = context.device().info().max_buffer_bytes;
                   context.require(most != 0, "bp_device_info.max_buffer_bytes is 0: no buffer could be made");
                   const bp_buffer_desc desc = buffer_desc(most == UINT64_MAX ? most : most + 1);
                   return create_buffer(context, &desc, error);
                 }});
  for (const uint32_t log2 : {40u, 48u, 62u, 63u}) {
    all.push_back({"buffer_create",
                   fmt::format("alignment_2_to_{}", log2),
                   {BP_UNSUPPORTED, BP_OUT_OF_MEMORY},
                   "BP-BUF-006",
                   [log2](Context& context, bp_error* error) {
                     const bp_buffer_desc desc = buffer_desc(64, BP_MEMORY_DEVICE, uint64_t{1} << log2);
                     return create_buffer(context, &desc, error);
                   }});
  }
  all.push_back(
      {"buffer_create", "unknown_tail", {BP_UNSUPPORTED}, "BP-SIZE-002", [](Context& context, bp_error* error) {
         const auto desc = with_tail(buffer_desc(64), 64, 63);
         return create_buffer(context, desc.get(), error);
       }});
  all.push_back({"buffer_map",
                 "device_memory",
                 {BP_UNSUPPORTED},
                 "BP-BUF-009",
                 [](Context& context, bp_error* error) {
                   Device& device = context.device();
                   if (device->buffer_map == nullptr) {
                     context.require(!device.offers(BP_MEMORY_HOST) && !device.offers(BP_MEMORY_SHARED),
                                     "the device offers mapped memory and has no buffer_map");
                     context.not_claimed("the device offers no mapped memory and has no buffer_map");
                   }
                   const Buffer buffer(device, 64);
                   void* address = &device;
                   const bp_status status = device->buffer_map(device.get(), buffer.get(), &address, error);
                   return require_null(context, status, address, "buffer_map");
                 },
                 0,
                 "MAPPED_MEMORY"});
  return all;
}

}  // namespace backplane::conformance
