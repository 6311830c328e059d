// SPDX-License-Identifier: Apache-2.0
// Event pools, events and fences of the Level Zero test driver.
#include "objects.hpp"

namespace backplane::level_zero::test_driver {

namespace {

// Ends the process if a command in flight sets the signal or waits for it.
void expect_idle(const Signal& signal, const char* function) {
  if (signal.is_pending()) {
    violation(std::string(function) + ": a command that sets the event, or waits for it, has not ended");
  }
}

ze_result_t ZE_APICALL pool_create(ze_context_handle_t context, const ze_event_pool_desc_t* desc, uint32_t count,
                                   ze_device_handle_t* devices, ze_event_pool_handle_t* out) {
  ENTER(zeEventPoolCreate, context)
  NEED(desc)
  NEED(out)
  if (desc->count == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
  for (uint32_t i = 0; i < count; ++i) object_of<Device>(devices[i]);
  const bool timed = (desc->flags & ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP) != 0;
  *out = handle_of<Pool, ze_event_pool_handle_t>(new Pool(object_of<Context>(context), desc->count, timed));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL pool_destroy(ze_event_pool_handle_t handle) {
  ENTER(zeEventPoolDestroy, handle)
  auto* pool = object_of<Pool>(handle);
  for (const bool used : pool->used) {
    if (used) violation("zeEventPoolDestroy: an event of the pool lives");
  }
  destroy(pool);
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL event_create(ze_event_pool_handle_t handle, const ze_event_desc_t* desc,
                                    ze_event_handle_t* out) {
  ENTER(zeEventCreate, handle)
  NEED(desc)
  NEED(out)
  auto* pool = object_of<Pool>(handle);
  std::lock_guard lock(pool->mutex);
  if (desc->index >= pool->used.size()) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  if (pool->used[desc->index]) violation("zeEventCreate: two events have one index of a pool");
  pool->used[desc->index] = true;
  *out = handle_of<Event, ze_event_handle_t>(new Event(pool, desc->index));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL event_destroy(ze_event_handle_t handle) {
  ENTER(zeEventDestroy, handle)
  auto* event = object_of<Event>(handle);
  expect_idle(event->signal, "zeEventDestroy");
  {
    std::lock_guard lock(event->pool->mutex);
    event->pool->used[event->index] = false;
  }
  destroy(event);
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL event_synchronize(ze_event_handle_t handle, uint64_t timeout_ns) {
  ENTER(zeEventHostSynchronize, handle)
  return object_of<Event>(handle)->signal.wait(timeout_ns) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}
ze_result_t ZE_APICALL event_status(ze_event_handle_t handle) {
  ENTER(zeEventQueryStatus, handle)
  return object_of<Event>(handle)->signal.is_set() ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}
ze_result_t ZE_APICALL event_reset(ze_event_handle_t handle) {
  ENTER(zeEventHostReset, handle)
  auto* event = object_of<Event>(handle);
  expect_idle(event->signal, "zeEventHostReset");
  event->signal.reset();
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL event_time(ze_event_handle_t handle, ze_kernel_timestamp_result_t* out) {
  ENTER(zeEventQueryKernelTimestamp, handle)
  NEED(out)
  const auto* event = object_of<Event>(handle);
  if (!event->pool->timed) violation("zeEventQueryKernelTimestamp: the pool of the event has no timestamps");
  if (!event->signal.is_set()) return ZE_RESULT_NOT_READY;
  // The driver states a kernelTimestampValidBits of 32, so timestamps wrap.
  const uint64_t time = event->signal.time() & 0xFFFFFFFFu;
  *out = {{time, time}, {time, time}};
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL fence_create(ze_command_queue_handle_t queue, const ze_fence_desc_t* desc,
                                    ze_fence_handle_t* out) {
  ENTER(zeFenceCreate, queue)
  NEED(desc)
  NEED(out)
  *out = handle_of<Fence, ze_fence_handle_t>(new Fence(object_of<Queue>(queue)));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL fence_destroy(ze_fence_handle_t handle) {
  ENTER(zeFenceDestroy, handle)
  auto* fence = object_of<Fence>(handle);
  expect_idle(fence->signal, "zeFenceDestroy");
  destroy(fence);
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL fence_synchronize(ze_fence_handle_t handle, uint64_t timeout_ns) {
  ENTER(zeFenceHostSynchronize, handle)
  return object_of<Fence>(handle)->signal.wait(timeout_ns) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}
ze_result_t ZE_APICALL fence_status(ze_fence_handle_t handle) {
  ENTER(zeFenceQueryStatus, handle)
  return object_of<Fence>(handle)->signal.is_set() ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}
ze_result_t ZE_APICALL fence_reset(ze_fence_handle_t handle) {
  ENTER(zeFenceReset, handle)
  auto* fence = object_of<Fence>(handle);
  expect_idle(fence->signal, "zeFenceReset");
  fence->signal.reset();
  return ZE_RESULT_SUCCESS;
}

}  // namespace

void fill(ze_event_pool_dditable_t& out) {
  out.pfnCreate = pool_create;
  out.pfnDestroy = pool_destroy;
}
void fill(ze_event_dditable_t& out) {
  out.pfnCreate = event_create;
  out.pfnDestroy = event_destroy;
  out.pfnHostSynchronize = event_synchronize;
  out.pfnQueryStatus = event_status;
  out.pfnHostReset = event_reset;
  out.pfnQueryKernelTimestamp = event_time;
}
void fill(ze_fence_dditable_t& out) {
  out.pfnCreate = fence_create;
  out.pfnDestroy = fence_destroy;
  out.pfnHostSynchronize = fence_synchronize;
  out.pfnQueryStatus = fence_status;
  out.pfnReset = fence_reset;
}

}  // namespace backplane::level_zero::test_driver
