// SPDX-License-Identifier: Apache-2.0
// A plugin that loads, and then throws from every slot of its plugin table.
#include <backplane/plugin.h>

#include <stdexcept>

namespace {

bp_device_api api = {};

void fill() {
  api.struct_size = sizeof(api);
  api.close = [](bp_device*) {};
  api.memory_info = [](bp_device*, uint32_t, bp_memory_info*, bp_error*) { return BP_INTERNAL; };
  api.buffer_create = [](bp_device*, const bp_buffer_desc*, bp_buffer**, bp_error*) { return BP_INTERNAL; };
  api.buffer_destroy = [](bp_device*, bp_buffer*) {};
  api.stream_create = [](bp_device*, const bp_stream_desc*, bp_stream**, bp_error*) { return BP_INTERNAL; };
  api.stream_destroy = [](bp_device*, bp_stream*) {};
  api.stream_wait = [](bp_device*, bp_stream*, uint64_t, bp_error*) { return BP_INTERNAL; };
  api.event_create = [](bp_device*, uint32_t, bp_event**, bp_error*) { return BP_INTERNAL; };
  api.event_destroy = [](bp_device*, bp_event*) {};
  api.event_record = [](bp_device*, bp_event*, bp_stream*, bp_error*) { return BP_INTERNAL; };
  api.stream_wait_event = [](bp_device*, bp_stream*, bp_event*, bp_error*) { return BP_INTERNAL; };
  api.event_wait = [](bp_device*, bp_event*, uint64_t, bp_error*) { return BP_INTERNAL; };
  api.copy = [](bp_device*, bp_stream*, bp_buffer*, uint64_t, bp_buffer*, uint64_t, uint64_t, bp_error*) {
    return BP_INTERNAL;
  };
  api.plan_create = [](bp_device*, const bp_op_desc*, bp_plan**, bp_plan_info*, bp_error*) { return BP_INTERNAL; };
  api.plan_destroy = [](bp_device*, bp_plan*) {};
  api.plan_execute = [](bp_device*, bp_stream*, bp_plan*, const bp_execution*, bp_error*) { return BP_INTERNAL; };
}

}  // namespace

BP_EXPORT bp_status bp_plugin_query(const bp_host*, const bp_plugin** out, bp_error*) {
  fill();
  static bp_plugin plugin = {};
  plugin.struct_size = sizeof(plugin);
  plugin.abi_version = plugin.abi_version_min = BP_ABI_VERSION;
  plugin.name = "faulty";
  plugin.version = "1";
  plugin.device_api = &api;
  plugin.device_count = [](const bp_plugin*, uint32_t*, bp_error*) -> bp_status { throw std::runtime_error("count"); };
  plugin.device_info = [](const bp_plugin*, uint32_t, bp_device_info*, bp_error*) -> bp_status { throw 1; };
  plugin.device_open = [](const bp_plugin*, uint32_t, const bp_device_desc*, bp_device**, bp_error*) -> bp_status {
    throw std::runtime_error("open");
  };
  plugin.get_interface = [](const bp_plugin*, bp_device*, const char*, uint32_t) -> const void* { throw 2; };
  plugin.shutdown = [](const bp_plugin*) { throw std::runtime_error("shutdown"); };
  *out = &plugin;
  return BP_OK;
}
