/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of ABI 0.1 as it was introduced: adds dense f32 on the CPU. Never edited; today's core must always load it,
 * or say that the version is too old. */
#include "frozen_abi_0_1.h"

#include <stdlib.h>
#include <string.h>

struct bp_device {
  int unused;
};
struct bp_stream {
  int unused;
};
struct bp_event {
  int unused;
};
struct bp_plan {
  int unused;
};
struct bp_buffer {
  void* memory;
  uint32_t kind;
};

static bp_status fail(bp_error* error, bp_status status, const char* message) {
  if (error != NULL && error->struct_size >= 512) {
    error->status = status;
    error->vendor_code = 0;
    error->op = 0;
    error->message_length = (uint32_t)strlen(message);
    memcpy(error->message, message, strlen(message) + 1);
  }
  return status;
}

/* An output struct: what both know, the rest zero. */
static void put(void* out, const void* value, uint32_t known) {
  uint32_t size;
  memcpy(&size, out, sizeof(size));
  memset(out, 0, size);
  memcpy(out, value, size < known ? size : known);
  memcpy(out, &size, sizeof(size));
}

static bp_status object(void** out, bp_error* error) {
  *out = calloc(1, sizeof(int));
  return *out != NULL ? BP_OK : fail(error, BP_OUT_OF_MEMORY, "frozen: no memory");
}

static void device_close(bp_device* device) { free(device); }

static bp_status memory_info(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  (void)device;
  if (kind > MEMORY_SHARED) return fail(error, BP_UNSUPPORTED, "frozen: no such kind of memory");
  const bp_memory_info info = {0, 0, UINT64_MAX, UINT64_MAX};
  put(out, &info, sizeof(info));
  return BP_OK;
}

static bp_status buffer_create(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  (void)device;
  *out = NULL;
  const size_t alignment = desc->alignment < 64 ? 64 : (size_t)desc->alignment;
  bp_buffer* buffer = calloc(1, sizeof(*buffer));
  if (buffer == NULL) return fail(error, BP_OUT_OF_MEMORY, "frozen: no memory");
  buffer->kind = desc->kind;
  buffer->memory = aligned_alloc(alignment, ((size_t)desc->bytes + alignment - 1) / alignment * alignment);
  if (buffer->memory == NULL) {
    free(buffer);
    return fail(error, BP_OUT_OF_MEMORY, "frozen: no memory");
  }
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
  *out = buffer->kind == MEMORY_DEVICE ? NULL : buffer->memory;
  return *out != NULL ? BP_OK : fail(error, BP_UNSUPPORTED, "frozen: device memory is not mapped");
}

static bp_status stream_create(bp_device* device, const bp_stream_desc* desc, bp_stream** out, bp_error* error) {
  (void)device, (void)desc;
  return object((void**)out, error);
}
static void stream_destroy(bp_device* device, bp_stream* stream) { (void)device, free(stream); }
static bp_status stream_wait(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  (void)device, (void)stream, (void)timeout_ns, (void)error;
  return BP_OK;
}

static bp_status event_create(bp_device* device, uint32_t flags, bp_event** out, bp_error* error) {
  (void)device;
  *out = NULL;
  return flags == 0 ? object((void**)out, error) : fail(error, BP_UNSUPPORTED, "frozen: events are not timed");
}
static void event_destroy(bp_device* device, bp_event* event) { (void)device, free(event); }
static bp_status event_record(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error) {
  (void)device, (void)event, (void)stream, (void)error;
  return BP_OK;
}
static bp_status stream_wait_event(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error) {
  (void)device, (void)event, (void)stream, (void)error;
  return BP_OK;
}
static bp_status event_wait(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error) {
  (void)device, (void)event, (void)timeout_ns, (void)error;
  return BP_OK;
}

static bp_status copy(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                      uint64_t src_offset, uint64_t bytes, bp_error* error) {
  (void)device, (void)stream, (void)error;
  memcpy((char*)dst->memory + dst_offset, (char*)src->memory + src_offset, (size_t)bytes);
  return BP_OK;
}

static uint64_t elements(const bp_tensor_desc* view) {
  uint64_t count = 1;
  for (int i = 0; i < view->rank; ++i) count *= (uint64_t)view->shape[i];
  return count;
}

static int dense(const bp_tensor_desc* view) {
  int64_t stride = 1;
  for (int i = view->rank; i-- > 0;) {
    if (view->shape[i] > 1 && view->strides[i] != stride) return 0;
    stride *= view->shape[i];
  }
  return view->flags == 0;
}

static bp_status plan_create(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                             bp_error* error) {
  (void)device;
  if (out != NULL) *out = NULL;
  if (desc->op != OP_ADD || desc->outputs[0].dtype != F32)
    return fail(error, BP_UNSUPPORTED, "frozen: only add of f32");
  uint32_t stage_inputs = 0;
  if (!dense(&desc->inputs[0])) stage_inputs |= 1;
  if (!dense(&desc->inputs[1])) stage_inputs |= 2;
  const bp_plan_info facts = {0, PLAN_ANY_SIZE, stage_inputs, dense(&desc->outputs[0]) ? 0 : 1, 0};
  if (info != NULL) put(info, &facts, sizeof(facts));
  return out != NULL ? object((void**)out, error) : BP_OK;
}
static void plan_destroy(bp_device* device, bp_plan* plan) { (void)device, free(plan); }

static float* data(const bp_operand* operand) { return (float*)((char*)operand->buffer->memory + operand->offset); }

static bp_status plan_execute(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                              bp_error* error) {
  (void)device, (void)stream, (void)plan, (void)error;
  const uint64_t count = elements(&execution->desc->outputs[0]);
  if (count == 0) return BP_OK;
  const float *a = data(&execution->inputs[0]), *b = data(&execution->inputs[1]);
  float* out = data(&execution->outputs[0]);
  for (uint64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
  return BP_OK;
}

static const bp_device_api api = {sizeof(bp_device_api),
                                  0,
                                  device_close,
                                  memory_info,
                                  buffer_create,
                                  buffer_destroy,
                                  buffer_map,
                                  stream_create,
                                  stream_destroy,
                                  stream_wait,
                                  event_create,
                                  event_destroy,
                                  event_record,
                                  stream_wait_event,
                                  event_wait,
                                  NULL,
                                  copy,
                                  NULL,
                                  NULL,
                                  plan_create,
                                  plan_destroy,
                                  plan_execute,
                                  NULL};

static bp_status device_count(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
  (void)plugin, (void)error;
  *out = 1;
  return BP_OK;
}

static bp_status device_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  (void)plugin;
  if (index != 0) return fail(error, BP_INVALID_ARGUMENT, "frozen: there is one device, 0");
  bp_device_info info = {0};
  info.type = DEVICE_CPU;
  strcpy(info.name, "frozen");
  strcpy(info.driver, "none");
  info.alignment = 64;
  info.max_buffer_bytes = (uint64_t)1 << 40;
  info.memory_kinds = 7;
  info.capabilities = CAP_SYNCHRONOUS;
  put(out, &info, sizeof(info));
  return BP_OK;
}

static bp_status device_open(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                             bp_error* error) {
  (void)plugin, (void)desc;
  *out = NULL;
  return index == 0 ? object((void**)out, error) : fail(error, BP_INVALID_ARGUMENT, "frozen: there is one device, 0");
}

static void shutdown_plugin(const bp_plugin* plugin) { (void)plugin; }

static const bp_plugin frozen = {sizeof(bp_plugin), ABI_0_1,     ABI_0_1,     0,    "frozen",       "0.1", &api,
                                 device_count,      device_info, device_open, NULL, shutdown_plugin};

__attribute__((visibility("default"))) bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out,
                                                                 bp_error* error);
bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  (void)host, (void)error;
  *out = &frozen;
  return BP_OK;
}
