/* SPDX-License-Identifier: Apache-2.0 */
/* The null plugin with one fault, which a macro FAULT_* selects. The plugin has the name "faulty"
 * and logs its shutdown. */
#define bp_plugin_query honest_query
#include "bench/null_plugin.c"
#undef bp_plugin_query

#include <time.h>

static void logged_shutdown(const bp_plugin* plugin) {
  const bp_host* host = ((const instance*)plugin)->host;
  host->log(host->context, BP_LOG_INFO, "shut down");
  free((void*)plugin->device_api);
  shutdown_instance(plugin);
}

#if defined(FAULT_NO_DEVICES)
static bp_status no_devices(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
  (void)plugin;
  *out = 0;
  return fail(error, BP_UNAVAILABLE, "the driver library is missing; install it");
}
#endif

#if defined(FAULT_LONG_TABLES)
struct long_plugin {
  instance known;
  void* unknown[8];
};
struct long_api {
  bp_device_api known;
  void* unknown[8];
};
#define INSTANCE struct long_plugin
#define API struct long_api
#else
#define INSTANCE instance
#define API bp_device_api
#endif

static void spoil(bp_plugin* table, bp_device_api* api) {
  (void)table, (void)api;
#if defined(FAULT_TINY_TABLE)
  table->struct_size = 8;
#elif defined(FAULT_SHORT_TABLE)
  table->struct_size = BP_PLUGIN_MIN_SIZE - 8;
#elif defined(FAULT_SHORT_API)
  api->struct_size = BP_DEVICE_API_MIN_SIZE - 8;
#elif defined(FAULT_NULL_SLOT)
  api->plan_execute = NULL;
#elif defined(FAULT_NULL_OPEN)
  table->device_open = NULL;
#elif defined(FAULT_NULL_API)
  free(api);
  table->device_api = NULL;
#elif defined(FAULT_NULL_SHUTDOWN)
  table->shutdown = NULL;
#elif defined(FAULT_MAJOR)
  table->abi_version = table->abi_version_min = 1u << 16;
#elif defined(FAULT_FUTURE)
  table->abi_version = table->abi_version_min = BP_ABI_VERSION + 1;
#elif defined(FAULT_PAST)
  table->abi_version = table->abi_version_min = BP_ABI_VERSION_OLDEST - 1;
#elif defined(FAULT_MIN_ABOVE)
  table->abi_version_min = BP_ABI_VERSION + 1;
#elif defined(FAULT_NULL_NAME)
  table->name = NULL;
#elif defined(FAULT_BAD_NAME)
  table->name = "Fau\x01lty \xFF";
#elif defined(FAULT_LONG_NAME)
  /* A name without a terminating NUL. */
  static const char endless[70] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  table->name = endless;
#elif defined(FAULT_OTHER_NAME)
  table->name = "other";
#elif defined(FAULT_NULL_VERSION)
  table->version = NULL;
#elif defined(FAULT_NO_DEVICES)
  table->device_count = no_devices;
#elif defined(FAULT_LONG_TABLES)
  table->struct_size = sizeof(struct long_plugin);
  api->struct_size = sizeof(struct long_api);
  memset((char*)table + sizeof(instance), 0xA5, sizeof(struct long_plugin) - sizeof(instance));
  memset((char*)api + sizeof(*api), 0xA5, sizeof(struct long_api) - sizeof(*api));
#endif
}

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  (void)host, (void)out, (void)error;
#if defined(FAULT_STATUS)
  *out = NULL;
  return fail(error, BP_UNAVAILABLE, "no licence");
#elif defined(FAULT_ODD_STATUS)
  /* A message without a NUL, and with a wrong length. */
  memset(error->message, 'x', sizeof(error->message));
  error->message_length = UINT32_MAX;
  return 77;
#elif defined(FAULT_NULL_TABLE)
  *out = NULL;
  return BP_OK;
#else
#if defined(FAULT_SLEEP)
  nanosleep(&(struct timespec){.tv_nsec = 150000000}, NULL);
#elif defined(FAULT_FLOAT)
  /* Sets flush-to-zero and denormals-are-zero. */
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);
#endif
  const bp_plugin* honest = NULL;
  const bp_status status = honest_query(host, &honest, error);
  if (status != BP_OK) return status;
  INSTANCE* made = calloc(1, sizeof(*made));
  API* api = calloc(1, sizeof(*api));
  memcpy((void*)made, honest, sizeof(instance));
  memcpy((void*)api, honest->device_api, sizeof(bp_device_api));
  shutdown_instance(honest);
  bp_plugin* table = (bp_plugin*)made;
  table->name = "faulty";
  table->device_api = (const bp_device_api*)api;
  table->shutdown = logged_shutdown;
  spoil(table, (bp_device_api*)api);
  /* Keeps the table reachable. Otherwise a leak checker would report a table that the host must not
   * shut down. */
  static const bp_plugin* volatile abandoned;
  abandoned = table;
  (void)abandoned;
  *out = table;
  return BP_OK;
#endif
}
