/* SPDX-License-Identifier: Apache-2.0 */
/* Plugin ABI 0.1 as it was introduced. Never edited: the frozen plugin and the frozen host are built from it. */
#include <stddef.h>
#include <stdint.h>

typedef int32_t bp_status;
enum { BP_OK = 0, BP_INVALID_ARGUMENT = 1, BP_UNSUPPORTED = 2, BP_OUT_OF_MEMORY = 3 };
enum { ABI_0_1 = 1, F32 = 12, OP_ADD = 20, MAX_RANK = 8, MEMORY_DEVICE = 0, MEMORY_HOST = 1, MEMORY_SHARED = 2 };
enum { CAP_SYNCHRONOUS = 1, DEVICE_CPU = 1, PLAN_ANY_SIZE = 1 };

typedef struct bp_plugin bp_plugin;
typedef struct bp_device bp_device;
typedef struct bp_stream bp_stream;
typedef struct bp_event bp_event;
typedef struct bp_plan bp_plan;
typedef struct bp_buffer bp_buffer;

typedef struct bp_error {
  uint32_t struct_size;
  bp_status status;
  int64_t vendor_code;
  uint32_t op;
  uint32_t message_length;
  char message[488];
} bp_error;

typedef struct bp_tensor_desc {
  uint16_t dtype;
  uint8_t rank;
  uint8_t alignment_log2;
  uint16_t flags;
  uint16_t alias;
  int64_t shape[MAX_RANK];
  int64_t strides[MAX_RANK];
} bp_tensor_desc;

typedef struct bp_operand {
  bp_buffer* buffer;
  uint64_t offset;
  uint64_t immediate;
} bp_operand;

typedef struct bp_op_desc {
  uint32_t struct_size;
  uint32_t op;
  uint64_t flags;
  const void* attributes;
  const bp_tensor_desc* inputs;
  const bp_tensor_desc* outputs;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t scalar_count;
  uint32_t reserved;
} bp_op_desc;

typedef struct bp_plan_info {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t stage_inputs;
  uint32_t stage_outputs;
  uint64_t workspace_bytes;
} bp_plan_info;

typedef struct bp_execution {
  uint32_t struct_size;
  uint32_t reserved;
  const bp_op_desc* desc;
  const bp_operand* inputs;
  const bp_operand* outputs;
  const bp_operand* scalars;
  bp_buffer* workspace;
  uint64_t workspace_offset;
  uint64_t workspace_bytes;
} bp_execution;

typedef struct bp_device_info {
  uint32_t struct_size;
  uint32_t type;
  char name[128];
  char driver[128];
  uint8_t uuid[16];
  int32_t dlpack_type[4];
  int32_t dlpack_id;
  uint32_t reserved;
  uint64_t alignment;
  uint64_t max_buffer_bytes;
  uint64_t memory_kinds;
  uint64_t capabilities;
} bp_device_info;

typedef struct bp_memory_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t total_bytes;
  uint64_t free_bytes;
} bp_memory_info;

typedef struct bp_device_desc {
  uint32_t struct_size;
  uint32_t flags;
  const char* options;
} bp_device_desc;

typedef struct bp_buffer_desc {
  uint32_t struct_size;
  uint32_t kind;
  uint64_t bytes;
  uint64_t alignment;
} bp_buffer_desc;

typedef struct bp_stream_desc {
  uint32_t struct_size;
  int32_t priority;
} bp_stream_desc;

typedef struct bp_device_api {
  uint32_t struct_size;
  uint32_t reserved;
  void (*close)(bp_device* device);
  bp_status (*memory_info)(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error);
  bp_status (*buffer_create)(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error);
  void (*buffer_destroy)(bp_device* device, bp_buffer* buffer);
  bp_status (*buffer_map)(bp_device* device, bp_buffer* buffer, void** out, bp_error* error);
  bp_status (*stream_create)(bp_device* device, const bp_stream_desc* desc, bp_stream** out, bp_error* error);
  void (*stream_destroy)(bp_device* device, bp_stream* stream);
  bp_status (*stream_wait)(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error);
  bp_status (*event_create)(bp_device* device, uint32_t flags, bp_event** out, bp_error* error);
  void (*event_destroy)(bp_device* device, bp_event* event);
  bp_status (*event_record)(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error);
  bp_status (*stream_wait_event)(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error);
  bp_status (*event_wait)(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error);
  bp_status (*event_elapsed)(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error);
  bp_status (*copy)(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                    uint64_t src_offset, uint64_t bytes, bp_error* error);
  bp_status (*copy_in)(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                       uint64_t bytes, bp_error* error);
  bp_status (*copy_out)(bp_device* device, bp_stream* stream, void* dst, bp_buffer* src, uint64_t src_offset,
                        uint64_t bytes, bp_error* error);
  bp_status (*plan_create)(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                           bp_error* error);
  void (*plan_destroy)(bp_device* device, bp_plan* plan);
  bp_status (*plan_execute)(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                            bp_error* error);
  bp_status (*plan_workspace)(bp_device* device, bp_plan* plan, const bp_op_desc* desc, uint64_t* out_bytes,
                              bp_error* error);
} bp_device_api;

typedef struct bp_host {
  uint32_t struct_size;
  uint32_t abi_version;
  void* context;
  void (*log)(void* context, int32_t level, const char* message);
  const void* (*get_interface)(void* context, const char* name, uint32_t version);
} bp_host;

struct bp_plugin {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t abi_version_min;
  uint32_t build_flags;
  const char* name;
  const char* version;
  const bp_device_api* device_api;
  bp_status (*device_count)(const bp_plugin* plugin, uint32_t* out, bp_error* error);
  bp_status (*device_info)(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error);
  bp_status (*device_open)(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                           bp_error* error);
  const void* (*get_interface)(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version);
  void (*shutdown)(const bp_plugin* plugin);
};
