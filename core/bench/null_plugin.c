/* SPDX-License-Identifier: Apache-2.0 */
/* The null plugin conforms to the ABI, except that executions do nothing. `backplane bench` uses
 * this plugin to measure the cost of core, and core's tests load it. */
#include <backplane/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 256u

typedef struct instance {
  bp_plugin table;
  const bp_host* host;
} instance;

/* Each struct has a member, so that objects have distinct addresses. */
struct bp_device {
  const instance* owner;
};
struct bp_stream {
  bp_device* device;
};
struct bp_event {
  int recorded;
};
struct bp_plan {
  uint32_t op;
};
struct bp_buffer {
  void* memory;
  uint32_t kind;
};

static bp_status fail(bp_error* error, bp_status status, const char* message) {
  if (error != NULL && error->struct_size >= BP_ERROR_MIN_SIZE) {
    error->status = status;
    error->vendor_code = 0;
    error->op = 0;
    const int length = snprintf(error->message, sizeof(error->message), "null: %s", message);
    error->message_length = (uint32_t)length;
  }
  return status;
}

static bp_status create(void** out, size_t bytes, bp_error* error) {
  *out = calloc(1, bytes);
  return *out != NULL ? BP_OK : fail(error, BP_OUT_OF_MEMORY, "host memory is exhausted");
}

/* Writes the fields of an output struct that both sides know, and zeroes the other bytes. */
static void write_output(void* out, const void* value, size_t known) {
  uint32_t size;
  memcpy(&size, out, sizeof(size));
  const size_t shared = size < known ? size : known;
  memset(out, 0, size);
  memcpy(out, value, shared);
  memcpy(out, &size, sizeof(size));
}

static void device_close(bp_device* device) { free(device); }

static bp_status memory_info(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  (void)device;
  if (kind >= BP_MEMORY_KINDS) return fail(error, BP_UNSUPPORTED, "memory kinds are 0 to 2");
  const bp_memory_info info = {.total_bytes = UINT64_MAX, .free_bytes = UINT64_MAX};
  write_output(out, &info, sizeof(info));
  return BP_OK;
}

static bp_status buffer_create(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  (void)device;
  *out = NULL;
  if (desc->bytes == 0) return fail(error, BP_INVALID_ARGUMENT, "a buffer has at least 1 byte");
  if (desc->kind >= BP_MEMORY_KINDS) return fail(error, BP_UNSUPPORTED, "memory kinds are 0 to 2");
  const size_t alignment = desc->alignment > ALIGNMENT ? (size_t)desc->alignment : ALIGNMENT;
  if (desc->bytes > SIZE_MAX - alignment) return fail(error, BP_OUT_OF_MEMORY, "more bytes than the address space has");
  bp_buffer* buffer = calloc(1, sizeof(*buffer));
  void* memory = aligned_alloc(alignment, ((size_t)desc->bytes + alignment - 1) / alignment * alignment);
  if (buffer == NULL || memory == NULL) {
    free(buffer);
    free(memory);
    return fail(error, BP_OUT_OF_MEMORY, "host memory is exhausted");
  }
  buffer->memory = memory;
  buffer->kind = desc->kind;
  *out = buffer;
  return BP_OK;
}

static void buffer_destroy(bp_device* device, bp_buffer* buffer) {
  (void)device;
  free(buffer->memory);
  free(buffer);
}

static bp_status buffer_map(bp_device* device, bp_buffer* buffer, void** out, bp_error* error) {
  (void)device;
  *out = NULL;
  if (buffer->kind == BP_MEMORY_DEVICE) return fail(error, BP_UNSUPPORTED, "device memory is not mapped");
  *out = buffer->memory;
  return BP_OK;
}

static bp_status stream_create(bp_device* device, const bp_stream_desc* desc, bp_stream** out, bp_error* error) {
  (void)desc;
  const bp_status status = create((void**)out, sizeof(**out), error);
  if (status == BP_OK) (*out)->device = device;
  return status;
}

static void stream_destroy(bp_device* device, bp_stream* stream) {
  (void)device;
  free(stream);
}

static bp_status stream_wait(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  (void)device, (void)stream, (void)timeout_ns, (void)error;
  return BP_OK;
}

static bp_status event_create(bp_device* device, uint32_t flags, bp_event** out, bp_error* error) {
  (void)device;
  *out = NULL;
  if (flags != 0) return fail(error, BP_UNSUPPORTED, "events have no flags here");
  return create((void**)out, sizeof(**out), error);
}

static void event_destroy(bp_device* device, bp_event* event) {
  (void)device;
  free(event);
}

static bp_status event_record(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error) {
  (void)device, (void)event, (void)stream, (void)error;
  return BP_OK;
}

static bp_status stream_wait_event(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error) {
  (void)device, (void)stream, (void)event, (void)error;
  return BP_OK;
}

static bp_status event_wait(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error) {
  (void)device, (void)event, (void)timeout_ns, (void)error;
  return BP_OK;
}

static bp_status copy(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                      uint64_t src_offset, uint64_t bytes, bp_error* error) {
  (void)device, (void)stream, (void)error;
  memcpy((char*)dst->memory + dst_offset, (const char*)src->memory + src_offset, (size_t)bytes);
  return BP_OK;
}

static bp_status plan_create(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                             bp_error* error) {
  (void)device;
  if (out != NULL) {
    const bp_status status = create((void**)out, sizeof(**out), error);
    if (status != BP_OK) return status;
    (*out)->op = desc->op;
  }
  const bp_plan_info facts = {.flags = BP_PLAN_ANY_SIZE | BP_PLAN_DETERMINISTIC};
  if (info != NULL) write_output(info, &facts, sizeof(facts));
  return BP_OK;
}

static void plan_destroy(bp_device* device, bp_plan* plan) {
  (void)device;
  free(plan);
}

static bp_status plan_execute(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                              bp_error* error) {
  (void)device, (void)stream, (void)plan, (void)execution, (void)error;
  return BP_OK;
}

static const bp_device_api device_api = {
    .struct_size = sizeof(bp_device_api),
    .close = device_close,
    .memory_info = memory_info,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .buffer_map = buffer_map,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_wait = stream_wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .stream_wait_event = stream_wait_event,
    .event_wait = event_wait,
    .copy = copy,
    .plan_create = plan_create,
    .plan_destroy = plan_destroy,
    .plan_execute = plan_execute,
};

static bp_status device_count(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
  (void)plugin, (void)error;
  *out = 1;
  return BP_OK;
}

static bp_status device_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  (void)plugin;
  if (index != 0) return fail(error, BP_INVALID_ARGUMENT, "there is one device, 0");
  const bp_device_info info = {
      .type = BP_DEVICE_OTHER,
      .name = "null device",
      .driver = "none",
      .alignment = ALIGNMENT,
      .max_buffer_bytes = (uint64_t)PTRDIFF_MAX,
      .memory_kinds = 1u << BP_MEMORY_DEVICE | 1u << BP_MEMORY_HOST | 1u << BP_MEMORY_SHARED,
      .capabilities = BP_CAP_SYNCHRONOUS | BP_CAP_HOST_OPERANDS | BP_CAP_DETERMINISTIC | BP_CAP_UNIFIED_MEMORY,
  };
  write_output(out, &info, sizeof(info));
  return BP_OK;
}

static bp_status device_open(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                             bp_error* error) {
  *out = NULL;
  if (index != 0) return fail(error, BP_INVALID_ARGUMENT, "there is one device, 0");
  if (desc != NULL && desc->options != NULL && desc->options[0] != '\0') {
    return fail(error, BP_UNSUPPORTED, "a device has no options here");
  }
  const bp_status status = create((void**)out, sizeof(**out), error);
  if (status == BP_OK) (*out)->owner = (const instance*)plugin;
  return status;
}

static void shutdown_instance(const bp_plugin* plugin) { free((void*)plugin); }

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  *out = NULL;
  instance* made = calloc(1, sizeof(*made));
  if (made == NULL) return fail(error, BP_OUT_OF_MEMORY, "host memory is exhausted");
  made->host = host;
  made->table = (bp_plugin){
      .struct_size = sizeof(bp_plugin),
      .abi_version = BP_ABI_VERSION,
      .abi_version_min = BP_ABI_VERSION_OLDEST,
      .name = "null",
      .version = "1",
      .device_api = &device_api,
      .device_count = device_count,
      .device_info = device_info,
      .device_open = device_open,
      .shutdown = shutdown_instance,
  };
  *out = &made->table;
  return BP_OK;
}
