// SPDX-License-Identifier: Apache-2.0
// The functions with which the loader fills its tables. Loader 1.8 initialises only if a driver
// exports the tables of all parts of the API, including some experimental tables.
#include <level_zero/zes_ddi.h>
#include <level_zero/zet_ddi.h>

#include "objects.hpp"

namespace backplane::level_zero::test_driver {

namespace {

// Most tables of this driver are empty.
template <class Table>
void fill(Table&) {}

ze_result_t ZE_APICALL memory_modules(zes_device_handle_t device, uint32_t* count, zes_mem_handle_t* out) {
  ENTER(zesDeviceEnumMemoryModules, device)
  NEED(count)
  if (simt::test_driver::setting("ZES_ENABLE_SYSMAN") != "1") return ZE_RESULT_ERROR_UNINITIALIZED;
  if (out != nullptr && *count != 0) *out = reinterpret_cast<zes_mem_handle_t>(device);
  *count = 1;
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL memory_state(zes_mem_handle_t memory, zes_mem_state_t* out) {
  ENTER(zesMemoryGetState, memory)
  NEED(out)
  out->health = ZES_MEM_HEALTH_OK;
  out->size = machine().info<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE);
  out->free = out->size - std::min<uint64_t>(out->size, machine().allocated_bytes());
  return ZE_RESULT_SUCCESS;
}

void fill(zes_device_dditable_t& out) { out.pfnEnumMemoryModules = memory_modules; }
void fill(zes_memory_dditable_t& out) { out.pfnGetState = memory_state; }

using test_driver::fill;  // the overloads of objects.hpp

template <class Table>
ze_result_t export_table(ze_api_version_t version, Table* table) {
  if (table == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  if (ZE_MAJOR_VERSION(version) != ZE_MAJOR_VERSION(ZE_API_VERSION_CURRENT)) return ZE_RESULT_ERROR_UNSUPPORTED_VERSION;
  *table = {};
  fill(*table);
  return ZE_RESULT_SUCCESS;
}

}  // namespace

}  // namespace backplane::level_zero::test_driver

#define EXPORT_TABLE(name, type)                                                      \
  extern "C" __attribute__((visibility("default")))                                   \
  ze_result_t ZE_APICALL name##ProcAddrTable(ze_api_version_t version, type* table) { \
    return backplane::level_zero::test_driver::export_table(version, table);          \
  }

EXPORT_TABLE(zeGetGlobal, ze_global_dditable_t)
EXPORT_TABLE(zeGetDriver, ze_driver_dditable_t)
EXPORT_TABLE(zeGetDevice, ze_device_dditable_t)
EXPORT_TABLE(zeGetContext, ze_context_dditable_t)
EXPORT_TABLE(zeGetMem, ze_mem_dditable_t)
EXPORT_TABLE(zeGetCommandQueue, ze_command_queue_dditable_t)
EXPORT_TABLE(zeGetCommandList, ze_command_list_dditable_t)
EXPORT_TABLE(zeGetFence, ze_fence_dditable_t)
EXPORT_TABLE(zeGetEventPool, ze_event_pool_dditable_t)
EXPORT_TABLE(zeGetEvent, ze_event_dditable_t)
EXPORT_TABLE(zeGetModule, ze_module_dditable_t)
EXPORT_TABLE(zeGetModuleBuildLog, ze_module_build_log_dditable_t)
EXPORT_TABLE(zeGetKernel, ze_kernel_dditable_t)
EXPORT_TABLE(zesGetDevice, zes_device_dditable_t)
EXPORT_TABLE(zesGetMemory, zes_memory_dditable_t)

EXPORT_TABLE(zeGetImage, ze_image_dditable_t)
EXPORT_TABLE(zeGetSampler, ze_sampler_dditable_t)
EXPORT_TABLE(zeGetPhysicalMem, ze_physical_mem_dditable_t)
EXPORT_TABLE(zeGetVirtualMem, ze_virtual_mem_dditable_t)
EXPORT_TABLE(zetGetCommandList, zet_command_list_dditable_t)
EXPORT_TABLE(zetGetContext, zet_context_dditable_t)
EXPORT_TABLE(zetGetDebug, zet_debug_dditable_t)
EXPORT_TABLE(zetGetDevice, zet_device_dditable_t)
EXPORT_TABLE(zetGetKernel, zet_kernel_dditable_t)
EXPORT_TABLE(zetGetMetricGroup, zet_metric_group_dditable_t)
EXPORT_TABLE(zetGetMetric, zet_metric_dditable_t)
EXPORT_TABLE(zetGetMetricQueryPool, zet_metric_query_pool_dditable_t)
EXPORT_TABLE(zetGetMetricQuery, zet_metric_query_dditable_t)
EXPORT_TABLE(zetGetMetricStreamer, zet_metric_streamer_dditable_t)
EXPORT_TABLE(zetGetModule, zet_module_dditable_t)
EXPORT_TABLE(zesGetDiagnostics, zes_diagnostics_dditable_t)
EXPORT_TABLE(zesGetDriver, zes_driver_dditable_t)
EXPORT_TABLE(zesGetEngine, zes_engine_dditable_t)
EXPORT_TABLE(zesGetFabricPort, zes_fabric_port_dditable_t)
EXPORT_TABLE(zesGetFan, zes_fan_dditable_t)
EXPORT_TABLE(zesGetFirmware, zes_firmware_dditable_t)
EXPORT_TABLE(zesGetFrequency, zes_frequency_dditable_t)
EXPORT_TABLE(zesGetLed, zes_led_dditable_t)
EXPORT_TABLE(zesGetPerformanceFactor, zes_performance_factor_dditable_t)
EXPORT_TABLE(zesGetPower, zes_power_dditable_t)
EXPORT_TABLE(zesGetPsu, zes_psu_dditable_t)
EXPORT_TABLE(zesGetRas, zes_ras_dditable_t)
EXPORT_TABLE(zesGetScheduler, zes_scheduler_dditable_t)
EXPORT_TABLE(zesGetStandby, zes_standby_dditable_t)
EXPORT_TABLE(zesGetTemperature, zes_temperature_dditable_t)
EXPORT_TABLE(zetGetTracerExp, zet_tracer_exp_dditable_t)
EXPORT_TABLE(zetGetMetricGroupExp, zet_metric_group_exp_dditable_t)
