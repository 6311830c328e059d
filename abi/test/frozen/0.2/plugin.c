/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of ABI 0.2 in plain C, compiled against the headers beside it: today's core must always load it and work with it. It trusts
 * each precondition that 0.2 states. Edited only while 0.2 is unfinished. */
#include <backplane/plugin.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic.h"

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
  if (error != NULL && error->struct_size >= BP_ERROR_MIN_SIZE) {
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
  if (kind > BP_MEMORY_SHARED) return fail(error, BP_UNSUPPORTED, "frozen: no such kind of memory");
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
  *out = buffer->kind == BP_MEMORY_DEVICE ? NULL : buffer->memory;
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

/* What 0.2 has and this plugin does not; the rest is what its operators may be asked for. */
static int takes(const bp_tensor_desc* view) {
  return view->dtype != BP_F16 && view->dtype != BP_BF16 && view->dtype != BP_F64 && view->dtype != BP_I64 &&
         view->dtype != BP_I8;
}

static bp_status plan_create(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                             bp_error* error) {
  (void)device;
  if (out != NULL) *out = NULL;
  int taken = frozen_knows(desc->op) && (desc->op == BP_OP_ADAMW || desc->output_count == 1);
  for (uint32_t i = 0; i < desc->input_count; ++i) taken = taken && takes(&desc->inputs[i]);
  for (uint32_t i = 0; i < desc->output_count; ++i) taken = taken && takes(&desc->outputs[i]);
  if ((desc->flags & BP_OP_FLAG_DEVICE_SCALARS) != 0) taken = 0;
  if (!taken) return fail(error, BP_UNSUPPORTED, "frozen: it has not this operator, or not in this dtype");
  const bp_plan_info facts = {.flags = BP_PLAN_ANY_SIZE};
  if (info != NULL) put(info, &facts, sizeof(facts));
  return out != NULL ? object((void**)out, error) : BP_OK;
}
static void plan_destroy(bp_device* device, bp_plan* plan) { (void)device, free(plan); }

static frozen_view view_of(const bp_tensor_desc* desc, const bp_operand* operand) {
  frozen_view view = {.dtype = desc->dtype, .rank = desc->rank};
  const int immediate = (desc->flags & BP_DESC_IMMEDIATE) != 0;
  memcpy(view.shape, desc->shape, sizeof(view.shape));
  if (!immediate) memcpy(view.strides, desc->strides, sizeof(view.strides));
  if (immediate) view.data = (unsigned char*)(uintptr_t)&operand->immediate;
  if (!immediate && operand->buffer != NULL) view.data = (unsigned char*)operand->buffer->memory + operand->offset;
  return view;
}

static bp_status plan_execute(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                              bp_error* error) {
  (void)device, (void)stream, (void)plan, (void)error;
  const bp_op_desc* desc = execution->desc;
  frozen_call call = {
      .op = desc->op, .inputs = desc->input_count, .outputs = desc->output_count, .attributes = desc->attributes};
  for (uint32_t i = 0; i < desc->input_count; ++i) call.in[i] = view_of(&desc->inputs[i], &execution->inputs[i]);
  for (uint32_t i = 0; i < desc->output_count; ++i) call.out[i] = view_of(&desc->outputs[i], &execution->outputs[i]);
  for (uint32_t i = 0; i < desc->scalar_count && i < 4; ++i)
    memcpy(&call.scalars[i], &execution->scalars[i].immediate, sizeof(call.scalars[i]));
  frozen_run(&call);
  return BP_OK;
}

/* Private fields behind a table, and a struct_size that counts them: a slip that is easily made. No later host may take them for slots. */
typedef struct derived_api {
  bp_device_api table;
  const char* secret[8];
} derived_api;

static const derived_api api = {{.struct_size = sizeof(derived_api),
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
                                 .plan_execute = plan_execute},
                                {"no", "slots", "here", "but", "private", "fields", "of", "this plugin"}};

static bp_status device_count(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
  (void)plugin, (void)error;
  *out = 1;
  return BP_OK;
}

static bp_status device_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  (void)plugin;
  if (index != 0) return fail(error, BP_INVALID_ARGUMENT, "frozen: there is one device, 0");
  bp_device_info info = {0};
  info.type = BP_DEVICE_CPU;
  strcpy(info.name, "frozen");
  strcpy(info.driver, "none");
  info.alignment = 64;
  info.max_buffer_bytes = (uint64_t)1 << 40;
  info.memory_kinds = 7;
  info.capabilities = BP_CAP_SYNCHRONOUS;
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

static const bp_plugin frozen = {.struct_size = sizeof(bp_plugin),
                                 .abi_version = BP_ABI_VERSION,
                                 .abi_version_min = BP_ABI_VERSION_OLDEST,
                                 .name = "frozen",
                                 .version = "0.2",
                                 .device_api = &api.table,
                                 .device_count = device_count,
                                 .device_info = device_info,
                                 .device_open = device_open,
                                 .shutdown = shutdown_plugin};

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  *out = NULL;
  if (host->abi_version >> 16 != BP_ABI_VERSION_MAJOR || host->abi_version < BP_ABI_VERSION_OLDEST)
    return fail(error, BP_ABI_MISMATCH, "frozen: it works with hosts of ABI 0.2 or a later 0.x; update the older side");
  *out = &frozen;
  const char* claim =
      getenv("FROZEN_CLAIMS"); /* a version that it was not built for: for a test of what the version is good for */
  static bp_plugin claims;
  if (claim != NULL) {
    claims = frozen;
    claims.abi_version = (uint32_t)strtoul(claim, NULL, 0);
    *out = &claims;
  }
  return BP_OK;
}
