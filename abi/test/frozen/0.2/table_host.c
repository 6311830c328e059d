/* SPDX-License-Identifier: Apache-2.0 */
/* The mirror of the frozen plugin: a host of ABI 0.2 straight on the tables, with a plugin of today ($FROZEN_HOST_PLUGIN). Every struct
 * that it passes lies in an allocation of just its size of then, so that a sanitizer sees a plugin that reaches further. */
#include <backplane/plugin.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, error->message); \
      return 1;                                                                           \
    }                                                                                     \
  } while (0)

static void silent(void* context, int32_t level, const char* message) { (void)context, (void)level, (void)message; }
static const void* nothing(void* context, const char* name, uint32_t version) {
  (void)context, (void)name, (void)version;
  return NULL;
}

static void* sized(uint32_t bytes) {
  unsigned char* memory = malloc(bytes);
  memset(memory, 0, bytes);
  memcpy(memory, &bytes, sizeof(bytes));
  return memory;
}

int main(void) {
  bp_error* error = sized(BP_ERROR_MIN_SIZE);
  void* library = dlopen(getenv("FROZEN_HOST_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  bp_status (*query)(const bp_host*, const bp_plugin**, bp_error*);
  *(void**)&query = dlsym(library, "bp_plugin_query");
  CHECK(query != NULL);
  bp_host* host = sized(BP_HOST_MIN_SIZE);
  host->abi_version = BP_VERSION(0, 2);
  host->log = silent;
  host->get_interface = nothing;
  const bp_plugin* plugin = NULL;
  CHECK(query(host, &plugin, error) == BP_OK && plugin != NULL);
  CHECK(plugin->struct_size >= BP_PLUGIN_MIN_SIZE && plugin->abi_version_min <= BP_VERSION(0, 2) &&
        plugin->device_api->struct_size >= BP_DEVICE_API_MIN_SIZE);
  const bp_device_api* api = plugin->device_api;

  uint32_t count = 0;
  CHECK(plugin->device_count(plugin, &count, error) == BP_OK && count >= 1);
  bp_device_info* info = sized(BP_DEVICE_INFO_MIN_SIZE);
  CHECK(plugin->device_info(plugin, 0, info, error) == BP_OK && info->struct_size == BP_DEVICE_INFO_MIN_SIZE &&
        info->alignment != 0);
  bp_device_desc* device_desc = sized(BP_DEVICE_DESC_MIN_SIZE);
  bp_device* device = NULL;
  CHECK(plugin->device_open(plugin, 0, device_desc, &device, error) == BP_OK && device != NULL);
  bp_memory_info* memory = sized(BP_MEMORY_INFO_MIN_SIZE);
  CHECK(api->memory_info(device, BP_MEMORY_DEVICE, memory, error) == BP_OK &&
        memory->struct_size == BP_MEMORY_INFO_MIN_SIZE);

  bp_buffer* buffers[3];
  float* mapped[3];
  for (int i = 0; i < 3; ++i) {
    bp_buffer_desc* desc = sized(BP_BUFFER_DESC_MIN_SIZE);
    desc->kind = BP_MEMORY_SHARED;
    desc->bytes = 4 * sizeof(float);
    CHECK(api->buffer_create(device, desc, &buffers[i], error) == BP_OK);
    CHECK(api->buffer_map(device, buffers[i], (void**)&mapped[i], error) == BP_OK);
    for (int k = 0; k < 4; ++k) mapped[i][k] = (float)(10 * i + k);
    free(desc);
  }
  bp_stream_desc* stream_desc = sized(BP_STREAM_DESC_MIN_SIZE);
  bp_stream* stream = NULL;
  CHECK(api->stream_create(device, stream_desc, &stream, error) == BP_OK);

  bp_tensor_desc views[3];
  memset(views, 0, sizeof(views));
  for (int i = 0; i < 3; ++i) {
    views[i].dtype = BP_F32;
    views[i].rank = 1;
    views[i].alignment_log2 = 2;
    views[i].shape[0] = 4;
    views[i].strides[0] = 1;
  }
  bp_op_desc* desc = sized(BP_OP_DESC_MIN_SIZE);
  desc->op = BP_OP_ADD;
  desc->inputs = views;
  desc->outputs = &views[2];
  desc->input_count = 2;
  desc->output_count = 1;
  bp_plan* plan = NULL;
  bp_plan_info* plan_info = sized(BP_PLAN_INFO_MIN_SIZE);
  CHECK(api->plan_create(device, desc, &plan, plan_info, error) == BP_OK &&
        plan_info->struct_size == BP_PLAN_INFO_MIN_SIZE);
  const bp_operand operands[3] = {{buffers[0], 0, 0}, {buffers[1], 0, 0}, {buffers[2], 0, 0}};
  bp_execution* execution = sized(BP_EXECUTION_MIN_SIZE);
  execution->desc = desc;
  execution->inputs = operands;
  execution->outputs = &operands[2];
  CHECK(api->plan_execute(device, stream, plan, execution, error) == BP_OK);
  CHECK(api->stream_wait(device, stream, UINT64_MAX, error) == BP_OK);
  const int computes = getenv("FROZEN_HOST_COMPUTES") != NULL;
  for (int k = 0; k < 4 && computes; ++k) CHECK(mapped[2][k] == (float)(10 + 2 * k));

  api->plan_destroy(device, plan);
  api->stream_destroy(device, stream);
  for (int i = 0; i < 3; ++i) api->buffer_destroy(device, buffers[i]);
  api->close(device);
  plugin->shutdown(plugin);
  free(error), free(host), free(info), free(device_desc), free(memory), free(stream_desc), free(desc), free(plan_info),
      free(execution);
  printf("a host of ABI 0.2 works with %s\n", getenv("FROZEN_HOST_PLUGIN"));
  return 0;
}
