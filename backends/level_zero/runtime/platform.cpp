// SPDX-License-Identifier: Apache-2.0
#include "runtime/platform.hpp"

#include <mutex>

#include "limits.hpp"

namespace backplane::level_zero {

namespace {

// Returns all handles or properties that the function `list` lists, or an empty list if `list` fails. The first call of
// `list` returns their number, and the second call returns the elements.
template <class T, class List>
std::vector<T> list_of(T initial, const List& list) {
  uint32_t count = 0;
  if (list(&count, static_cast<T*>(nullptr)) != ZE_RESULT_SUCCESS) return {};
  std::vector<T> out(count, initial);
  if (count != 0 && list(&count, out.data()) != ZE_RESULT_SUCCESS) return {};
  out.resize(std::min<std::size_t>(count, out.size()));
  return out;
}

template <class Properties>
Properties empty(ze_structure_type_t type) {
  Properties out{};
  out.stype = type;
  return out;
}

bool has_extension(const Api& ze, ze_driver_handle_t driver, const char* name) {
  const auto all = list_of(ze_driver_extension_properties_t{}, [&](uint32_t* count, auto* out) {
    return ze.zeDriverGetExtensionProperties(driver, count, out);
  });
  return std::any_of(all.begin(), all.end(), [&](const auto& each) { return std::strcmp(each.name, name) == 0; });
}

uint32_t type_of(ze_device_type_t type) {
  switch (type) {
    case ZE_DEVICE_TYPE_GPU:
      return BP_DEVICE_GPU;
    case ZE_DEVICE_TYPE_CPU:
      return BP_DEVICE_CPU;
    default:
      return BP_DEVICE_OTHER;
  }
}

// Reads the properties of a device. read() returns the reason why the kernels cannot run on the device, or an empty
// string if they can.
class Reader {
 public:
  Reader(const Api& ze, PhysicalDevice& out) : ze_(ze), out_(out) {}

  std::string read() {
    std::string objection = read_device();
    if (objection.empty()) objection = read_compute();
    if (objection.empty()) objection = read_module();
    if (objection.empty()) objection = read_queues();
    if (objection.empty()) read_memory();
    return objection;
  }

 private:
  static std::string failed(ze_result_t code, const char* call) { return status_of(code, call).message(); }

  std::string read_device() {
    auto device = empty<ze_device_properties_t>(ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2);
    const ze_result_t code = ze_.zeDeviceGetProperties(out_.id, &device);
    if (code != ZE_RESULT_SUCCESS) return failed(code, "zeDeviceGetProperties");
    device.name[sizeof(device.name) - 1] = '\0';
    out_.name = device.name;
    out_.type = type_of(device.type);
    out_.limits.is_cpu = device.type == ZE_DEVICE_TYPE_CPU;
    out_.limits.compute_units =
        std::max(device.numEUsPerSubslice * device.numSubslicesPerSlice * device.numSlices, uint32_t{1});
    out_.is_integrated = (device.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED) != 0;
    out_.is_tile = (device.flags & ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE) != 0;
    if (out_.is_tile) out_.name += kit::text(", tile ", device.subdeviceId);
    out_.limit_bytes = device.maxMemAllocSize;
    // Drivers report the frequency in Hz. Drivers older than Level Zero 1.2 report nanoseconds per
    // tick. A value of at least 10,000 is taken as a frequency.
    const auto resolution = static_cast<double>(device.timerResolution);
    out_.tick_ns = resolution >= 10000 ? 1e9 / resolution : resolution;
    if (device.kernelTimestampValidBits != 0) out_.timer_bits = device.kernelTimestampValidBits;
    static_assert(sizeof(out_.uuid) == sizeof(device.uuid.id));
    std::memcpy(out_.uuid, device.uuid.id, sizeof(out_.uuid));
    return {};
  }

  std::string read_compute() {
    auto compute = empty<ze_device_compute_properties_t>(ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES);
    const ze_result_t code = ze_.zeDeviceGetComputeProperties(out_.id, &compute);
    if (code != ZE_RESULT_SUCCESS) return failed(code, "zeDeviceGetComputeProperties");
    const uint32_t count = std::min<uint32_t>(compute.numSubGroupSizes, ZE_SUBGROUPSIZE_COUNT);
    const std::vector<std::size_t> widths(compute.subGroupSizes, compute.subGroupSizes + count);
    out_.limits.width = simt::choose_width(widths, kWidthSetting);
    if (out_.limits.width == 0) {
      return kit::text("it offers no sub-groups of 8 to 64 threads, or not the width that ", kWidthSetting,
                       " requests");
    }
    const uint32_t group_size = std::min(compute.maxTotalGroupSize, compute.maxGroupSizeX);
    if (group_size < 256) return "its groups have fewer than 256 threads";
    out_.limits.max_group_size = std::min(group_size, 1024u);
    out_.limits.local_bytes = std::min(compute.maxSharedLocalMemory, 1u << 20);
    if (out_.limits.local_bytes < 32768) return "it has less than 32 KiB of local memory";
    if (compute.maxGroupCountX < 65535) return "a launch has fewer than 65535 groups";
    return {};
  }

  std::string read_module() {
    auto module = empty<ze_device_module_properties_t>(ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES);
    const ze_result_t code = ze_.zeDeviceGetModuleProperties(out_.id, &module);
    if (code != ZE_RESULT_SUCCESS) return failed(code, "zeDeviceGetModuleProperties");
    // Intel's drivers state SPIR-V 1.2, but also compile the instructions of SPIR-V 1.3 that the kernels contain.
    if (module.spirvVersionSupported < ZE_MAKE_VERSION(1, 2)) {
      return "its driver does not accept SPIR-V 1.2; install a newer driver";
    }
    constexpr ze_device_fp_flags_t kNeeded = ZE_DEVICE_FP_FLAG_INF_NAN | ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST;
    if ((module.fp32flags & kNeeded) != kNeeded) return "its f32 does not round to nearest, or has no infinities";
    if (module.maxArgumentsSize < 1024) return "its kernels take fewer than 1024 bytes of arguments";
    out_.flushes_subnormals = (module.fp32flags & ZE_DEVICE_FP_FLAG_DENORM) == 0;
    out_.has_f16 = (module.flags & ZE_DEVICE_MODULE_FLAG_FP16) != 0;
    out_.has_f64 = (module.flags & ZE_DEVICE_MODULE_FLAG_FP64) != 0;
    return {};
  }

  std::string read_queues() {
    const auto groups = list_of(
        empty<ze_command_queue_group_properties_t>(ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES),
        [&](uint32_t* count, auto* out) { return ze_.zeDeviceGetCommandQueueGroupProperties(out_.id, count, out); });
    for (uint32_t i = 0; i < groups.size(); ++i) {
      if ((groups[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE) == 0) continue;
      out_.queue_group = i;
      return {};
    }
    return "it has no queues that run kernels";
  }

  void read_memory() {
    const auto memories =
        list_of(empty<ze_device_memory_properties_t>(ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES),
                [&](uint32_t* count, auto* out) { return ze_.zeDeviceGetMemoryProperties(out_.id, count, out); });
    for (const auto& memory : memories) out_.total_bytes += memory.totalSize;
    auto access = empty<ze_device_memory_access_properties_t>(ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES);
    if (ze_.zeDeviceGetMemoryAccessProperties(out_.id, &access) != ZE_RESULT_SUCCESS) return;
    constexpr ze_memory_access_cap_flags_t kConcurrent =
        ZE_MEMORY_ACCESS_CAP_FLAG_RW | ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT;
    out_.has_host_operands = (access.hostAllocCapabilities & ZE_MEMORY_ACCESS_CAP_FLAG_RW) != 0;
    out_.has_shared_memory = (access.sharedSingleDeviceAllocCapabilities & kConcurrent) == kConcurrent;
    out_.has_system_memory = (access.sharedSystemAllocCapabilities & kConcurrent) == kConcurrent;
  }

  const Api& ze_;
  PhysicalDevice& out_;
};

void add_devices(const Api& ze, ze_driver_handle_t driver, Platforms& out) {
  auto properties = empty<ze_driver_properties_t>(ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES);
  if (ze.zeDriverGetProperties(driver, &properties) != ZE_RESULT_SUCCESS) return;
  const bool relaxes = has_extension(ze, driver, ZE_RELAXED_ALLOCATION_LIMITS_EXP_NAME);
  const auto handles = [&](const auto& list) { return list_of(ze_device_handle_t{}, list); };
  for (ze_device_handle_t root :
       handles([&](uint32_t* count, auto* found) { return ze.zeDeviceGet(driver, count, found); })) {
    std::vector<ze_device_handle_t> ids =
        handles([&](uint32_t* count, auto* found) { return ze.zeDeviceGetSubDevices(root, count, found); });
    if (ids.empty()) ids.push_back(root);
    for (ze_device_handle_t id : ids) {
      PhysicalDevice device;
      device.driver = driver;
      device.id = id;
      device.version = kit::text(properties.driverVersion);
      device.relaxes_limits = relaxes;
      const std::string objection = Reader(ze, device).read();
      if (objection.empty()) {
        out.devices.push_back(std::move(device));
      } else {
        out.refused += kit::text(": ", device.name, ": ", objection);
      }
    }
  }
}

kit::Result<const Platforms*> find_all() {
  auto api = Api::load();
  if (!api.ok()) return api.status();
  const Api& ze = *api.value();
  if (kit::Status status = status_of(ze.zeInit(0), "zeInit"); !status.ok()) {
    return kit::Status{BP_UNAVAILABLE, status.message(), status.vendor_code()};
  }
  auto found = std::make_unique<Platforms>();
  for (ze_driver_handle_t driver :
       list_of(ze_driver_handle_t{}, [&](uint32_t* count, auto* out) { return ze.zeDriverGet(count, out); })) {
    add_devices(ze, driver, *found);
  }
  if (!found->devices.empty()) return found.release();
  return kit::Status{BP_UNAVAILABLE,
                     kit::text("level_zero: no driver has a device that can run the kernels; install the driver of "
                               "the device, such as intel-opencl-icd",
                               found->refused)};
}

}  // namespace

uint32_t PhysicalDevice::memory_kinds() const {
  const uint32_t shared = has_shared_memory ? 1u << BP_MEMORY_SHARED : 0u;
  return 1u << BP_MEMORY_DEVICE | 1u << BP_MEMORY_HOST | shared;
}

void PhysicalDevice::describe(bp_device_info& info) const {
  info.type = type;
  std::strncpy(info.name, name.c_str(), sizeof(info.name) - 1);
  std::strncpy(info.driver, kit::text("Level Zero, driver ", version, ", sub-groups of ", limits.width).c_str(),
               sizeof(info.driver) - 1);
  static_assert(sizeof(info.uuid) == sizeof(uuid));
  std::memcpy(info.uuid, uuid, sizeof(uuid));
  info.max_buffer_bytes = max_buffer_bytes();
  info.memory_kinds = memory_kinds();
  info.capabilities = BP_CAP_DETERMINISTIC | BP_CAP_PROCESS_ADDRESSES;
  if (flushes_subnormals) info.capabilities |= BP_CAP_FTZ_F32;
  if (has_host_operands) info.capabilities |= BP_CAP_HOST_OPERANDS;
  if (is_integrated) info.capabilities |= BP_CAP_UNIFIED_MEMORY;
}

kit::Result<const Platforms*> Platforms::shared() {
  // The mutex and the platforms are never destroyed, because no destructor may run at exit.
  static auto* const mutex = new std::mutex;
  static const Platforms* known = nullptr;
  std::lock_guard lock(*mutex);
  if (known != nullptr) return known;
  auto found = find_all();
  if (found.ok()) known = found.value();
  return found;
}

}  // namespace backplane::level_zero
