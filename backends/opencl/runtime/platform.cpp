// SPDX-License-Identifier: Apache-2.0
#include "runtime/platform.hpp"

#include <mutex>

#include "limits.hpp"

namespace backplane::opencl {

namespace {

class Query {
 public:
  Query(const Api& api, cl_device_id device) : api_(api), device_(device) {}

  // Returns a zeroed value if the device does not know `name`.
  template <class T>
  T get(cl_device_info name) const {
    T out{};
    return api_.clGetDeviceInfo(device_, name, sizeof(out), &out, nullptr) == CL_SUCCESS ? out : T{};
  }
  std::string text(cl_device_info name) const {
    const std::vector<char> all = list<char>(name);
    return {all.begin(), std::find(all.begin(), all.end(), '\0')};
  }
  template <class T>
  std::vector<T> list(cl_device_info name) const {
    std::size_t bytes = 0;
    if (api_.clGetDeviceInfo(device_, name, 0, nullptr, &bytes) != CL_SUCCESS) return {};
    std::vector<T> out(bytes / sizeof(T));
    return api_.clGetDeviceInfo(device_, name, bytes, out.data(), nullptr) == CL_SUCCESS ? out : std::vector<T>{};
  }

 private:
  const Api& api_;
  cl_device_id device_;
};

bool contains(const std::string& list, const char* word) {
  return (" " + list + " ").find(kit::text(" ", word, " ")) != std::string::npos;
}

// Returns the reason why the kernels cannot run on a device, or an empty string.
std::string objection_to(const Query& query) {
  if (query.get<cl_bool>(CL_DEVICE_AVAILABLE) == CL_FALSE) return "the driver says that it is not available";
  if (query.get<cl_bool>(CL_DEVICE_COMPILER_AVAILABLE) == CL_FALSE) return "its driver has no compiler";
  const std::string il = query.text(CL_DEVICE_IL_VERSION);
  const auto takes = [&](const char* version) { return contains(il, version); };
  if (!takes("SPIR-V_1.3") && !takes("SPIR-V_1.4") && !takes("SPIR-V_1.5") && !takes("SPIR-V_1.6")) {
    return "its driver does not accept SPIR-V 1.3, which the kernels use; install a newer driver";
  }
  if (query.get<cl_uint>(CL_DEVICE_ADDRESS_BITS) != 64) return "its addresses do not have 64 bits";
  if (query.get<cl_uint>(CL_DEVICE_MAX_NUM_SUB_GROUPS) == 0) return "it has no sub-groups";
  const auto floats = query.get<cl_device_fp_config>(CL_DEVICE_SINGLE_FP_CONFIG);
  if ((floats & CL_FP_ROUND_TO_NEAREST) == 0 || (floats & CL_FP_INF_NAN) == 0) {
    return "its f32 does not round to nearest, or has no infinities";
  }
  return {};
}

// Fills the fields of a device. Returns the reason why the kernels cannot run on the device, or an
// empty string.
std::string describe_device(const Query& query, PhysicalDevice& out) {
  const auto type = query.get<cl_device_type>(CL_DEVICE_TYPE);
  const std::string extensions = query.text(CL_DEVICE_EXTENSIONS);
  out.is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
  out.limits.is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
  out.driver = query.text(CL_DRIVER_VERSION);
  if (!contains(extensions, "cl_intel_required_subgroup_size")) {
    return "its driver cannot fix the width of sub-groups (cl_intel_required_subgroup_size), on which the kernels "
           "depend";
  }
  if (!contains(extensions, "cl_khr_subgroup_shuffle")) {
    return "its driver cannot exchange values between the threads of a sub-group (cl_khr_subgroup_shuffle)";
  }
  out.limits.width = simt::choose_width(query.list<std::size_t>(CL_DEVICE_SUB_GROUP_SIZES_INTEL), kWidthSetting);
  if (out.limits.width == 0) {
    return kit::text("it does not offer the width of sub-groups that ", kWidthSetting,
                     " requests; set 8, 16, 32 or 64, as far as the device offers them");
  }
  const auto group_size = query.get<std::size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE);
  out.limits.max_group_size = static_cast<uint32_t>(std::min<std::size_t>(group_size, 1024));
  if (group_size < 256) return "its groups have fewer than 256 threads";
  out.limits.local_bytes =
      static_cast<uint32_t>(std::min<cl_ulong>(query.get<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE), uint64_t{1} << 20));
  if (out.limits.local_bytes < 32768) return "it has less than 32 KiB of local memory";
  out.limits.compute_units = query.get<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS);
  out.flushes_subnormals = (query.get<cl_device_fp_config>(CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_DENORM) == 0;
  out.alignment = std::max<uint64_t>(query.get<cl_uint>(CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, 64);
  out.max_buffer_bytes = query.get<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  out.total_bytes = query.get<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE);
  out.svm = query.get<cl_device_svm_capabilities>(CL_DEVICE_SVM_CAPABILITIES);
  if (contains(extensions, "cl_intel_unified_shared_memory")) {
    using Capabilities = cl_device_unified_shared_memory_capabilities_intel;
    constexpr Capabilities kConcurrent =
        CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL | CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ACCESS_INTEL;
    const auto host = query.get<Capabilities>(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL);
    const auto shared = query.get<Capabilities>(CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL);
    out.usm_host = (host & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL) != 0;
    out.usm_shared = out.usm_host && (shared & kConcurrent) == kConcurrent;
  }
  return {};
}

kit::Result<const Platforms*> find_devices() {
  auto api = Api::load();
  if (!api.ok()) return api.status();
  const Api& cl = *api.value();
  auto found = std::make_unique<Platforms>();
  cl_uint count = 0;
  std::vector<cl_platform_id> platforms;
  if (cl.clGetPlatformIDs(0, nullptr, &count) == CL_SUCCESS) platforms.resize(count);
  if (count != 0 && cl.clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) platforms.clear();
  for (cl_platform_id platform : platforms) {
    count = 0;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS) continue;
    for (cl_device_id id : ids) {
      const Query query(cl, id);
      PhysicalDevice device;
      device.platform = platform;
      device.id = id;
      device.name = query.text(CL_DEVICE_NAME);
      std::string objection = objection_to(query);
      if (objection.empty()) objection = describe_device(query, device);
      if (objection.empty()) {
        found->devices.push_back(std::move(device));
      } else {
        found->refused += kit::text(": ", device.name, ": ", objection);
      }
    }
  }
  if (!found->devices.empty()) return found.release();
  return kit::Status{BP_UNAVAILABLE,
                     kit::text("opencl: no driver has a device that can run the kernels; install a driver "
                               "that accepts SPIR-V, and see what clinfo says",
                               found->refused)};
}

}  // namespace

uint32_t PhysicalDevice::memory_kinds() const {
  const uint32_t shared = has_shared_memory() ? 1u << BP_MEMORY_SHARED : 0u;
  return 1u << BP_MEMORY_DEVICE | 1u << BP_MEMORY_HOST | shared;
}

void PhysicalDevice::describe(bp_device_info& info) const {
  info.type = is_gpu ? BP_DEVICE_GPU : limits.is_cpu ? BP_DEVICE_CPU : BP_DEVICE_OTHER;
  std::strncpy(info.name, name.c_str(), sizeof(info.name) - 1);
  std::strncpy(info.driver, kit::text("OpenCL, driver ", driver, ", sub-groups of ", limits.width).c_str(),
               sizeof(info.driver) - 1);
  info.alignment = alignment;
  info.max_buffer_bytes = max_buffer_bytes;
  info.memory_kinds = memory_kinds();
  info.capabilities = BP_CAP_DETERMINISTIC | (flushes_subnormals ? BP_CAP_FTZ_F32 : 0);
}

kit::Result<const Platforms*> Platforms::shared() {
  // The mutex and the platforms are never destroyed, because no destructor may run at exit.
  static auto* const mutex = new std::mutex;
  static const Platforms* known = nullptr;
  std::lock_guard lock(*mutex);
  if (known != nullptr) return known;
  auto found = find_devices();
  if (found.ok()) known = found.value();
  return found;
}

}  // namespace backplane::opencl
