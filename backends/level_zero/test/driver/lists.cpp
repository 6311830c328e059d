// SPDX-License-Identifier: Apache-2.0
// Command queues and command lists of the Level Zero test driver. An immediate list executes
// commands as they are appended. A regular list records commands. In both, only barriers and events
// order commands.
#include <algorithm>

#include "objects.hpp"

namespace backplane::level_zero::test_driver {

namespace {

using Command = std::function<ze_result_t(Work&)>;

ze_result_t append(List& list, const Command& command) {
  if (list.closed) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  if (list.work != nullptr) return command(*list.work);
  list.commands.push_back(command);
  return ZE_RESULT_SUCCESS;
}

std::vector<Signal*> signals_of(uint32_t count, ze_event_handle_t* events) {
  std::vector<Signal*> out;
  for (uint32_t i = 0; i < count; ++i) out.push_back(&object_of<Event>(events[i])->signal);
  return out;
}
Signal* signal_of(ze_event_handle_t event) {
  if (event == nullptr) return nullptr;
  Signal& signal = object_of<Event>(event)->signal;
  if (signal.is_set()) violation("a command sets an event that is already set; reset it first");
  return &signal;
}

void expect_memory(const void* address, std::size_t bytes, const char* role) {
  if (lacks("system") && !machine().contains(address, bytes)) {
    violation(std::string(role) + " is not in memory that the device can access");
  }
}

ze_result_t ZE_APICALL queue_create(ze_context_handle_t context, ze_device_handle_t device,
                                    const ze_command_queue_desc_t* desc, ze_command_queue_handle_t* out) {
  ENTER(zeCommandQueueCreate, context)
  NEED(desc)
  NEED(out)
  object_of<Device>(device);
  if (desc->ordinal != 0 || desc->index != 0) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  *out = handle_of<Queue, ze_command_queue_handle_t>(new Queue(object_of<Context>(context)));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL queue_destroy(ze_command_queue_handle_t handle) {
  ENTER(zeCommandQueueDestroy, handle)
  auto* queue = object_of<Queue>(handle);
  if (queue->fences != 0) violation("zeCommandQueueDestroy: a fence of the queue lives");
  destroy(queue);
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL queue_execute(ze_command_queue_handle_t handle, uint32_t count, ze_command_list_handle_t* lists,
                                     ze_fence_handle_t fence) {
  ENTER(zeCommandQueueExecuteCommandLists, handle)
  NEED(lists)
  if (count == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
  auto* queue = object_of<Queue>(handle);
  std::vector<Signal*> ends;
  for (uint32_t i = 0; i < count; ++i) {
    auto* list = object_of<List>(lists[i]);
    if (list->work != nullptr) return ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE;
    if (!list->closed) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (list->in_flight()) violation("zeCommandQueueExecuteCommandLists: the list is already in flight");
    for (const Command& command : list->commands) {
      if (const ze_result_t code = command(queue->work); code != ZE_RESULT_SUCCESS) return code;
    }
    list->executions.push_back(std::make_shared<Signal>(machine()));
    ends.push_back(list->executions.back().get());
  }
  if (fence != nullptr) {
    ends.push_back(&object_of<Fence>(fence)->signal);
    if (ends.back()->is_set()) violation("zeCommandQueueExecuteCommandLists: the fence is set; reset it first");
  }
  return result_of(queue->work.set(ends));
}

ze_result_t ZE_APICALL list_create(ze_context_handle_t context, ze_device_handle_t device,
                                   const ze_command_list_desc_t* desc, ze_command_list_handle_t* out) {
  ENTER(zeCommandListCreate, context)
  NEED(desc)
  NEED(out)
  object_of<Device>(device);
  if (desc->commandQueueGroupOrdinal != 0) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  *out = handle_of<List, ze_command_list_handle_t>(new List(object_of<Context>(context), false));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL list_create_immediate(ze_context_handle_t context, ze_device_handle_t device,
                                             const ze_command_queue_desc_t* desc, ze_command_list_handle_t* out) {
  ENTER(zeCommandListCreateImmediate, context)
  NEED(desc)
  NEED(out)
  object_of<Device>(device);
  if (lacks("immediate")) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
  if (desc->ordinal != 0 || desc->index != 0) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  *out = handle_of<List, ze_command_list_handle_t>(new List(object_of<Context>(context), true));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL list_destroy(ze_command_list_handle_t handle) {
  ENTER(zeCommandListDestroy, handle)
  auto* list = object_of<List>(handle);
  if (list->in_flight()) violation("zeCommandListDestroy: the list is in flight");
  destroy(list);
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL list_close(ze_command_list_handle_t handle) {
  ENTER(zeCommandListClose, handle)
  auto* list = object_of<List>(handle);
  const Exclusive one(list->busy, "zeCommandListClose");
  list->closed = true;
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL list_reset(ze_command_list_handle_t handle) {
  ENTER(zeCommandListReset, handle)
  auto* list = object_of<List>(handle);
  const Exclusive one(list->busy, "zeCommandListReset");
  if (list->in_flight()) return ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
  list->commands.clear();
  list->executions.clear();
  list->closed = false;
  return ZE_RESULT_SUCCESS;
}

// Appends a command that waits for `waits` first, and sets `signal` after it has ended.
ze_result_t append_with(List& list, const char* function, const Command& command, ze_event_handle_t signal,
                        uint32_t count, ze_event_handle_t* waits) {
  const Exclusive one(list.busy, function);
  std::vector<Signal*> before = signals_of(count, waits);
  Signal* after = signal_of(signal);
  return append(list, [command, before, after](Work& work) {
    if (!before.empty()) {
      if (const cl_int code = work.barrier(before); code != CL_SUCCESS) return result_of(code);
    }
    if (const ze_result_t code = command(work); code != ZE_RESULT_SUCCESS) return code;
    return after == nullptr ? ZE_RESULT_SUCCESS : result_of(work.set({&after, 1}));
  });
}

ze_result_t ZE_APICALL append_barrier(ze_command_list_handle_t handle, ze_event_handle_t signal, uint32_t count,
                                      ze_event_handle_t* waits) {
  ENTER(zeCommandListAppendBarrier, handle)
  if (count != 0 && waits == nullptr) return ZE_RESULT_ERROR_INVALID_SIZE;
  // With events, the barrier does not wait for earlier commands.
  const bool waits_for_all = count == 0;
  const Command barrier = [waits_for_all](Work& work) {
    return waits_for_all ? result_of(work.barrier({})) : ZE_RESULT_SUCCESS;
  };
  return append_with(*object_of<List>(handle), "zeCommandListAppendBarrier", barrier, signal, count, waits);
}
ze_result_t ZE_APICALL append_copy(ze_command_list_handle_t handle, void* to, const void* from, std::size_t bytes,
                                   ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits) {
  ENTER(zeCommandListAppendMemoryCopy, handle)
  NEED(to)
  NEED(from)
  if (count != 0 && waits == nullptr) return ZE_RESULT_ERROR_INVALID_SIZE;
  expect_memory(to, bytes, "the destination of a copy");
  expect_memory(from, bytes, "the source of a copy");
  const Command copy = [=](Work& work) { return result_of(work.copy(to, from, bytes)); };
  return append_with(*object_of<List>(handle), "zeCommandListAppendMemoryCopy", copy, signal, count, waits);
}
ze_result_t ZE_APICALL append_launch(ze_command_list_handle_t handle, ze_kernel_handle_t kernel_handle,
                                     const ze_group_count_t* groups, ze_event_handle_t signal, uint32_t count,
                                     ze_event_handle_t* waits) {
  ENTER(zeCommandListAppendLaunchKernel, handle)
  if (kernel_handle == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  NEED(groups)
  if (count != 0 && waits == nullptr) return ZE_RESULT_ERROR_INVALID_SIZE;
  auto* kernel = object_of<Kernel>(kernel_handle);
  const Exclusive one(kernel->busy, "zeCommandListAppendLaunchKernel");
  if (std::find(kernel->is_set.begin(), kernel->is_set.end(), false) != kernel->is_set.end()) {
    violation("zeCommandListAppendLaunchKernel: an argument of the kernel is not set");
  }
  if (kernel->module->spill_bytes != 0)
    violation("zeCommandListAppendLaunchKernel: the kernel spills; use the large register file");
  if (kernel->group_size[0] == 0) violation("zeCommandListAppendLaunchKernel: the group size is not set");
  if (groups->groupCountX == 0 || groups->groupCountY == 0 || groups->groupCountZ == 0) {
    violation("zeCommandListAppendLaunchKernel: a launch without groups");
  }
  struct Launch {
    std::shared_ptr<simt::test_driver::Kernel> kernel;
    simt::test_driver::Arguments arguments;
    uint32_t groups[3], group_size[3];
  };
  const Launch launch{kernel->code,
                      kernel->arguments,
                      {groups->groupCountX, groups->groupCountY, groups->groupCountZ},
                      {kernel->group_size[0], kernel->group_size[1], kernel->group_size[2]}};
  const Command run = [launch](Work& work) {
    return result_of(work.launch(*launch.kernel, launch.groups, launch.group_size, launch.arguments));
  };
  return append_with(*object_of<List>(handle), "zeCommandListAppendLaunchKernel", run, signal, count, waits);
}

}  // namespace

void fill(ze_command_queue_dditable_t& out) {
  out.pfnCreate = queue_create;
  out.pfnDestroy = queue_destroy;
  out.pfnExecuteCommandLists = queue_execute;
}
void fill(ze_command_list_dditable_t& out) {
  out.pfnCreate = list_create;
  out.pfnCreateImmediate = list_create_immediate;
  out.pfnDestroy = list_destroy;
  out.pfnClose = list_close;
  out.pfnReset = list_reset;
  out.pfnAppendBarrier = append_barrier;
  out.pfnAppendMemoryCopy = append_copy;
  out.pfnAppendLaunchKernel = append_launch;
}

}  // namespace backplane::level_zero::test_driver
