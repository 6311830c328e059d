/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin in plain C11, without the kit. It implements the minimum that the ABI requires, and one
 * operator, `add` for f32. Its device is the host. Every call is synchronous, so streams and events
 * need no state. */
#include <backplane/plugin.h>

#include <fenv.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64u
#define MAX_ALIGNMENT (1u << 21)
#define DEVICE_BYTES (UINT64_C(1) << 30) /* memory limit of the device, in bytes */

/* Bytes of the buffers of all open devices, which share the hardware; at most DEVICE_BYTES. */
static _Atomic uint64_t used_bytes;

struct bp_device {
  _Atomic uint64_t* used;
};
struct bp_buffer {
  char* memory;
  uint64_t bytes;
  uint32_t kind;
};
struct bp_stream {
  char none;
};
struct bp_event {
  char none;
};
struct bp_plan {
  char none;
};

/* [structs] */
/* Fills the caller's error record if the caller passed one. Returns `status`. */
static bp_status fail(bp_error* error, bp_status status, uint32_t op, const char* format, ...) {
  if (error == NULL || error->struct_size < BP_ERROR_MIN_SIZE) return status;
  memset((char*)error + sizeof(error->struct_size), 0, error->struct_size - sizeof(error->struct_size));
  va_list values;
  va_start(values, format);
  vsnprintf(error->message, sizeof(error->message), format, values);
  va_end(values);
  error->status = status;
  error->op = op;
  error->message_length = (uint32_t)strlen(error->message);
  return status;
}

/* Reads an input struct of the caller. Copies the fields that this plugin knows to `known`. All other fields
 * come from a newer host, and must be zero. */
static bp_status read_input(const void* in, void* known, uint32_t size, uint32_t least, bp_error* error) {
  uint32_t given = 0;
  memset(known, 0, size);
  if (in != NULL) memcpy(&given, in, sizeof(given));
  if (given < least)
    return fail(error, BP_INVALID_ARGUMENT, 0, "plain_c: a struct_size is %u, at least %u is needed; set it to sizeof",
                given, least);
  if (given > BP_STRUCT_LIMIT)
    return fail(error, BP_INVALID_ARGUMENT, 0,
                "plain_c: a struct_size is %u, more than any struct has; set it to sizeof", given);
  for (uint32_t i = size; i < given; ++i)
    if (((const char*)in)[i] != 0)
      return fail(error, BP_UNSUPPORTED, 0, "plain_c: a struct has a field at byte %u, unknown here; update the plugin",
                  i);
  memcpy(known, in, given < size ? given : size);
  return BP_OK;
}

/* Writes an output struct of the caller. Writes the fields that both sides know. Fields that only the caller
 * knows become zero. */
static bp_status write_output(void* out, const void* value, uint32_t size, uint32_t least, bp_error* error) {
  uint32_t given = 0;
  if (out != NULL) memcpy(&given, out, sizeof(given));
  if (given < least)
    return fail(error, BP_INVALID_ARGUMENT, 0, "plain_c: a struct_size is %u, at least %u is needed; set it to sizeof",
                given, least);
  memset(out, 0, given);
  memcpy(out, value, given < size ? given : size);
  memcpy(out, &given, sizeof(given));
  return BP_OK;
}
/* [/structs] */

static bp_status no_memory(bp_error* error, uint64_t bytes) {
  return fail(error, BP_OUT_OF_MEMORY, 0, "plain_c: no room for %llu bytes; free some buffers",
              (unsigned long long)bytes);
}

/* ---- Memory ---- */

static bp_status memory_info(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  if (kind >= BP_MEMORY_KINDS) return fail(error, BP_UNSUPPORTED, 0, "plain_c: memory of kind %u is not offered", kind);
  const bp_memory_info info = {.total_bytes = DEVICE_BYTES, .free_bytes = DEVICE_BYTES - atomic_load(device->used)};
  return write_output(out, &info, sizeof(info), BP_MEMORY_INFO_MIN_SIZE, error);
}

/* Counts `bytes` as used and returns true. Returns false and counts nothing if they exceed the limit. */
static bool take(bp_device* device, uint64_t bytes) {
  uint64_t used = atomic_load(device->used);
  do {
    if (bytes > DEVICE_BYTES - used) return false;
  } while (!atomic_compare_exchange_weak(device->used, &used, used + bytes));
  return true;
}

static bp_status buffer_create(bp_device* device, const bp_buffer_desc* given, bp_buffer** out, bp_error* error) {
  *out = NULL;
  bp_buffer_desc desc;
  const bp_status status = read_input(given, &desc, sizeof(desc), BP_BUFFER_DESC_MIN_SIZE, error);
  if (status != BP_OK) return status;
  const uint64_t alignment = desc.alignment == 0 ? ALIGNMENT : desc.alignment;
  if (desc.bytes == 0) return fail(error, BP_INVALID_ARGUMENT, 0, "plain_c: a buffer of 0 bytes; at least 1 is needed");
  if (desc.kind >= BP_MEMORY_KINDS)
    return fail(error, BP_UNSUPPORTED, 0, "plain_c: memory of kind %u is not offered", desc.kind);
  if (alignment > MAX_ALIGNMENT || (alignment & (alignment - 1)) != 0)
    return fail(error, BP_UNSUPPORTED, 0, "plain_c: an alignment is a power of two up to %u", MAX_ALIGNMENT);
  if (!take(device, desc.bytes)) return no_memory(error, desc.bytes);
  const size_t least = alignment < ALIGNMENT ? ALIGNMENT : (size_t)alignment;
  bp_buffer* buffer = malloc(sizeof(*buffer));
  char* memory = aligned_alloc(least, (desc.bytes + least - 1) / least * least);
  if (buffer == NULL || memory == NULL) {
    free(buffer);
    free(memory);
    atomic_fetch_sub(device->used, desc.bytes);
    return no_memory(error, desc.bytes);
  }
  *buffer = (bp_buffer){memory, desc.bytes, desc.kind};
  *out = buffer;
  return BP_OK;
}

static void buffer_destroy(bp_device* device, bp_buffer* buffer) {
  atomic_fetch_sub(device->used, buffer->bytes);
  free(buffer->memory);
  free(buffer);
}

static bp_status buffer_map(bp_device* device, bp_buffer* buffer, void** out, bp_error* error) {
  (void)device;
  *out = buffer->kind == BP_MEMORY_DEVICE ? NULL : buffer->memory;
  return *out != NULL ? BP_OK : fail(error, BP_UNSUPPORTED, 0, "plain_c: DEVICE memory is not mapped; copy it");
}

/* ---- Streams and events ---- */

/* The device declares BP_CAP_SYNCHRONOUS, so all earlier work is complete when a call begins. */
static bp_status stream_create(bp_device* device, const bp_stream_desc* given, bp_stream** out, bp_error* error) {
  (void)device;
  *out = NULL;
  bp_stream_desc desc;
  const bp_status status = read_input(given, &desc, sizeof(desc), BP_STREAM_DESC_MIN_SIZE, error);
  if (status != BP_OK) return status;
  *out = malloc(sizeof(**out));
  return *out != NULL ? BP_OK : no_memory(error, sizeof(**out));
}
static void stream_destroy(bp_device* device, bp_stream* stream) { (void)device, free(stream); }
static bp_status stream_wait(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  (void)device, (void)stream, (void)timeout_ns, (void)error;
  return BP_OK;
}

static bp_status event_create(bp_device* device, uint32_t flags, bp_event** out, bp_error* error) {
  (void)device;
  *out = NULL;
  if (flags != 0) return fail(error, BP_UNSUPPORTED, 0, "plain_c: events have no timing, and no flags");
  *out = malloc(sizeof(**out));
  return *out != NULL ? BP_OK : no_memory(error, sizeof(**out));
}
static void event_destroy(bp_device* device, bp_event* event) { (void)device, free(event); }
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
  memcpy(dst->memory + dst_offset, src->memory + src_offset, bytes);
  return BP_OK;
}

/* ---- Operators ---- */

/* [plan] */
/* Checks whether the plugin supports a descriptor. The plan serves every size, so it stores no data. */
static bp_status plan_create(bp_device* device, const bp_op_desc* given, bp_plan** out, bp_plan_info* info,
                             bp_error* error) {
  (void)device;
  if (out != NULL) *out = NULL;
  bp_op_desc desc;
  const bp_status status = read_input(given, &desc, sizeof(desc), BP_OP_DESC_MIN_SIZE, error);
  if (status != BP_OK) return status;
  if (desc.op != BP_OP_ADD)
    return fail(error, BP_UNSUPPORTED, desc.op, "plain_c: operator %u is not supported; add is", desc.op);
  /* Absent operands at the end of the lists do not count. */
  while (desc.input_count > 2 && desc.inputs[desc.input_count - 1].dtype == 0) --desc.input_count;
  while (desc.output_count > 1 && desc.outputs[desc.output_count - 1].dtype == 0) --desc.output_count;
  if (desc.input_count != 2 || desc.output_count != 1)
    return fail(error, BP_UNSUPPORTED, desc.op, "plain_c: add takes 2 inputs and gives 1 output");
  /* add has no attributes. The caller passes null, or a struct of zeros. */
  bp_no_attributes none = {0};
  const bp_status read =
      desc.attributes == NULL ? BP_OK : read_input(desc.attributes, &none, sizeof(none), BP_ATTRIBUTES_MIN_SIZE, error);
  if (read != BP_OK) return read;
  if (none.reserved != 0)
    return fail(error, BP_UNSUPPORTED, desc.op, "plain_c: add has an attribute, unknown here; update the plugin");
  if (none.struct_size % 8 != 0)
    return fail(error, BP_INVALID_ARGUMENT, desc.op, "plain_c: the size of attributes is no multiple of 8");
  if ((desc.flags & ~(uint64_t)BP_OP_FLAGS_ALL) != 0 || desc.scalar_count != 0)
    return fail(error, BP_UNSUPPORTED, desc.op,
                "plain_c: add has no scalars, and an unknown flag is set; update the plugin");
  const bp_tensor_desc* views[] = {&desc.inputs[0], &desc.inputs[1], &desc.outputs[0]};
  for (int i = 0; i < 3; ++i)
    if (views[i]->dtype != BP_F32 || (views[i]->flags & ~(BP_DESC_IMMEDIATE | BP_DESC_HINTS)) != 0)
      return fail(error, BP_UNSUPPORTED, desc.op, "plain_c: add takes f32 without view flags; cast, or copy");
  const bp_plan_info facts = {.flags = BP_PLAN_ANY_SIZE | BP_PLAN_DETERMINISTIC};
  const bp_status written = write_output(info, &facts, sizeof(facts), BP_PLAN_INFO_MIN_SIZE, error);
  if (written != BP_OK || out == NULL) return written;
  *out = malloc(sizeof(**out));
  return *out != NULL ? BP_OK : no_memory(error, sizeof(**out));
}
static void plan_destroy(bp_device* device, bp_plan* plan) { (void)device, free(plan); }
/* [/plan] */

/* Returns the address of element 0. An immediate operand contains the element's value instead of an address. */
static const float* element(const bp_tensor_desc* view, const bp_operand* operand) {
  const void* at = (view->flags & BP_DESC_IMMEDIATE) != 0 ? (const char*)&operand->immediate
                                                          : operand->buffer->memory + operand->offset;
  return at;
}

/* [execute] */
/* Adds elements along dimension `axis` and all later dimensions, with any strides. */
static void add(const bp_op_desc* desc, int axis, const float* a, const float* b, float* out) {
  if (axis == desc->outputs[0].rank) {
    *out = *a + *b;
    return;
  }
  for (int64_t i = 0; i < desc->outputs[0].shape[axis]; ++i)
    add(desc, axis + 1, a + i * desc->inputs[0].strides[axis], b + i * desc->inputs[1].strides[axis],
        out + i * desc->outputs[0].strides[axis]);
}

static bp_status plan_execute(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* given,
                              bp_error* error) {
  (void)device, (void)stream, (void)plan;
  bp_execution execution;
  bp_op_desc desc;
  bp_status status = read_input(given, &execution, sizeof(execution), BP_EXECUTION_MIN_SIZE, error);
  if (status == BP_UNSUPPORTED) /* an execution never returns this status */
    return fail(error, BP_INVALID_ARGUMENT, 0,
                "plain_c: bp_execution has a field that the plan did not request; clear it");
  if (status == BP_OK) status = read_input(execution.desc, &desc, sizeof(desc), BP_OP_DESC_MIN_SIZE, error);
  if (status != BP_OK) return status;
  const bp_tensor_desc* view = &desc.outputs[0];
  for (int i = 0; i < view->rank; ++i)
    if (view->shape[i] == 0) return BP_OK; /* a buffer may be null if its view has no elements */
  /* The work runs in the caller's thread, whose rounding mode or flush-to-zero mode may differ from the
   * default. */
  fenv_t callers;
  fegetenv(&callers);
  fesetenv(FE_DFL_ENV);
  add(&desc, 0, element(&desc.inputs[0], &execution.inputs[0]), element(&desc.inputs[1], &execution.inputs[1]),
      (float*)element(view, &execution.outputs[0]));
  fesetenv(&callers);
  return BP_OK;
}
/* [/execute] */

/* ---- Plugin and device ---- */

static void device_close(bp_device* device) { free(device); }

static const bp_device_api api = {.struct_size = sizeof(bp_device_api),
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
                                  .plan_execute = plan_execute};

static bp_status device_count(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
  (void)plugin, (void)error;
  *out = 1;
  return BP_OK;
}

static bp_status device_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  if (index != 0) return fail(error, BP_INVALID_ARGUMENT, 0, "plain_c: device %u requested, there is one, 0", index);
  bp_device_info info = {
      .type = BP_DEVICE_CPU,
      .dlpack_type = {1, 1, 1}, /* kDLCPU */
      .alignment = ALIGNMENT,
      .max_buffer_bytes = DEVICE_BYTES,
      .memory_kinds = 1u << BP_MEMORY_DEVICE | 1u << BP_MEMORY_HOST | 1u << BP_MEMORY_SHARED,
      .capabilities = BP_CAP_SYNCHRONOUS | BP_CAP_HOST_OPERANDS | BP_CAP_DETERMINISTIC | BP_CAP_UNIFIED_MEMORY};
  snprintf(info.name, sizeof(info.name), "%s", plugin->name);
  snprintf(info.driver, sizeof(info.driver), "%s %s", plugin->name, plugin->version);
  return write_output(out, &info, sizeof(info), BP_DEVICE_INFO_MIN_SIZE, error);
}

static bp_status device_open(const bp_plugin* plugin, uint32_t index, const bp_device_desc* given, bp_device** out,
                             bp_error* error) {
  (void)plugin;
  *out = NULL;
  bp_device_desc desc = {0};
  const bp_status status =
      given == NULL ? BP_OK : read_input(given, &desc, sizeof(desc), BP_DEVICE_DESC_MIN_SIZE, error);
  if (status != BP_OK) return status;
  if (index != 0) return fail(error, BP_INVALID_ARGUMENT, 0, "plain_c: device %u requested, there is one, 0", index);
  if (desc.flags != 0 || (desc.options != NULL && desc.options[0] != 0))
    return fail(error, BP_UNSUPPORTED, 0, "plain_c: the device has no options and no flags; leave them out");
  bp_device* device = malloc(sizeof(*device));
  if (device == NULL) return no_memory(error, sizeof(*device));
  device->used = &used_bytes;
  *out = device;
  return BP_OK;
}

static void end_instance(const bp_plugin* plugin) { free((void*)plugin); }

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  *out = NULL;
  if (host->abi_version >> 16 != BP_ABI_VERSION_MAJOR || host->abi_version < BP_ABI_VERSION_OLDEST)
    return fail(error, BP_ABI_MISMATCH, 0,
                "plain_c: made for hosts of ABI %u.%u or later of that major; update the older side",
                BP_ABI_VERSION_OLDEST >> 16, BP_ABI_VERSION_OLDEST & 0xFFFFu);
  bp_plugin* instance = malloc(sizeof(*instance));
  if (instance == NULL) return no_memory(error, sizeof(*instance));
  *instance = (bp_plugin){.struct_size = sizeof(*instance),
                          .abi_version = BP_ABI_VERSION,
                          .abi_version_min = BP_ABI_VERSION_OLDEST,
                          .name = "plain_c",
                          .version = PLUGIN_VERSION,
                          .device_api = &api,
                          .device_count = device_count,
                          .device_info = device_info,
                          .device_open = device_open,
                          .shutdown = end_instance};
  *out = instance;
  return BP_OK;
}
