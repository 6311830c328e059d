// SPDX-License-Identifier: Apache-2.0
#include "runtime/physical_device.hpp"

#include <vector>

#include "runtime/external.hpp"
#include "runtime/memory.hpp"
#include "shaders/sizes.h"

namespace backplane::vulkan {

namespace {

// Returns the names of the required features that the device lacks, separated by commas. All recent desktop drivers
// have these features.
std::string missing_features(const VkPhysicalDeviceFeatures& base, const VkPhysicalDeviceVulkan11Features& v11,
                             const VkPhysicalDeviceVulkan12Features& v12) {
  const std::pair<VkBool32, const char*> needed[] = {
      {base.shaderInt64, "shaderInt64"},
      {v11.storageBuffer16BitAccess, "storageBuffer16BitAccess"},
      {v12.storageBuffer8BitAccess, "storageBuffer8BitAccess"},
      {v12.bufferDeviceAddress, "bufferDeviceAddress"},
      {v12.scalarBlockLayout, "scalarBlockLayout"},
      {v12.timelineSemaphore, "timelineSemaphore"},
  };
  std::string out;
  for (const auto& [present, name] : needed) {
    if (present == VK_FALSE) out += (out.empty() ? "" : ", ") + std::string(name);
  }
  return out;
}

using Extensions = std::vector<VkExtensionProperties>;
kit::Result<Extensions> extensions_of(const InstanceApi& api, VkPhysicalDevice handle) {
  uint32_t count = 0;
  VkResult result = api.vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, nullptr);
  Extensions all(count);
  if (result == VK_SUCCESS) result = api.vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, all.data());
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return status_of(result, "vkEnumerateDeviceExtensionProperties");
  all.resize(count);
  return all;
}
bool lists(const Extensions& all, std::string_view name) {
  return std::ranges::any_of(all, [&](const VkExtensionProperties& each) { return name == each.extensionName; });
}

// Copies text into a zeroed field, and truncates text that is longer than the field.
template <std::size_t N>
void put_text(char (&field)[N], std::string_view text) {
  std::memcpy(field, text.data(), kit::utf8_prefix(text, N - 1));
}

// Returns whether buffers may use imported host memory.
bool imports_buffers(const InstanceApi& api, VkPhysicalDevice handle) {
  auto buffers = chained<VkPhysicalDeviceExternalBufferInfo>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO);
  buffers.usage = kBufferUsage;
  buffers.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  auto out = chained<VkExternalBufferProperties>(VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES);
  api.vkGetPhysicalDeviceExternalBufferProperties(handle, &buffers, &out);
  return (out.externalMemoryProperties.externalMemoryFeatures & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) != 0;
}

bool can_shuffle(const VkPhysicalDeviceSubgroupProperties& subgroups) {
  constexpr VkSubgroupFeatureFlags kNeeded = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  const char* given = std::getenv(kSubgroupsSetting);
  return (given == nullptr || std::string_view(given) != "off") &&
         (subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
         (subgroups.supportedOperations & kNeeded) == kNeeded && BACKPLANE_GROUP % subgroups.subgroupSize == 0;
}

bool is_tuned_as_cpu(const PhysicalDevice& device) {
  const char* given = std::getenv(kReductionsSetting);
  return given == nullptr || *given == '\0' ? device.is_cpu() : std::string_view(given) == "cpu";
}

// Returns the subgroup size that pipelines with ballots must request, or 0 if they use the device's default size,
// `usual`. If the usual size is 32, returns 16 if possible, because each thread then has more registers. If the usual
// size exceeds 32, returns 32 if possible. If the usual size exceeds 64 and 32 is not possible, returns 64 if possible.
// A size is possible if the device supports it and a workgroup may have enough subgroups of this size.
uint32_t subgroup_size_to_require(const InstanceApi& api, VkPhysicalDevice handle, uint32_t usual) {
  auto sizes = chained<VkPhysicalDeviceSubgroupSizeControlPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT);
  auto properties = chained<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &sizes);
  api.vkGetPhysicalDeviceProperties2(handle, &properties);
  if ((sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0) return 0;
  for (const uint32_t subgroup_size : {16u, 32u, 64u}) {
    const bool wanted = subgroup_size == 16 ? usual == 32 : usual > subgroup_size;
    const bool room = subgroup_size * sizes.maxComputeWorkgroupSubgroups >= BACKPLANE_SUBGROUP_WORKGROUP;
    if (wanted && room && sizes.minSubgroupSize <= subgroup_size && subgroup_size <= sizes.maxSubgroupSize)
      return subgroup_size;
  }
  return 0;
}

void find_fast_dot(const InstanceApi& api, PhysicalDevice& out) {
  auto fast = chained<VkPhysicalDeviceShaderIntegerDotProductProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES);
  auto properties = chained<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &fast);
  api.vkGetPhysicalDeviceProperties2(out.handle, &properties);
  out.fast_dot_i8 = fast.integerDotProduct4x8BitPackedSignedAccelerated == VK_TRUE;
  out.fast_dot_u8 = fast.integerDotProduct4x8BitPackedMixedSignednessAccelerated == VK_TRUE;
}

}  // namespace

PhysicalDevice PhysicalDevice::read(const InstanceApi& api, VkPhysicalDevice handle) {
  PhysicalDevice out;
  out.handle = handle;

  auto floats = chained<VkPhysicalDeviceFloatControlsProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, nullptr);
  auto driver = chained<VkPhysicalDeviceDriverProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, &floats);
  auto subgroups =
      chained<VkPhysicalDeviceSubgroupProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, &driver);
  auto limits = chained<VkPhysicalDeviceMaintenance3Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &subgroups);
  auto id = chained<VkPhysicalDeviceIDProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, &limits);
  auto properties = chained<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &id);
  api.vkGetPhysicalDeviceProperties2(handle, &properties);
  out.properties = properties.properties;
  if (out.properties.apiVersion < VK_API_VERSION_1_2) {
    out.missing = kit::text("Vulkan 1.2 (it has ", VK_API_VERSION_MAJOR(out.properties.apiVersion), ".",
                            VK_API_VERSION_MINOR(out.properties.apiVersion), ")");
    return out;
  }
  std::memcpy(out.uuid, id.deviceUUID, sizeof(out.uuid));
  std::memcpy(out.driver_uuid, id.driverUUID, sizeof(out.driver_uuid));
  out.driver = kit::text(driver.driverName, " ", driver.driverInfo);
  out.max_allocation = limits.maxMemoryAllocationSize;
  const bool compute = (subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  if (compute && (subgroups.supportedOperations & VK_SUBGROUP_FEATURE_BALLOT_BIT) != 0)
    out.subgroup_size = subgroups.subgroupSize;
  out.has_shuffle = can_shuffle(subgroups);
  out.tuned_as_cpu = is_tuned_as_cpu(out);
  // If a device has a single rounding mode or a single denormal mode for all float widths, the plugin does not request
  // that mode, because f16 arithmetic may need a different one.
  constexpr auto kNone = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  out.float_controls = {
      .round_to_even_f32 = floats.shaderRoundingModeRTEFloat32 == VK_TRUE && floats.roundingModeIndependence != kNone,
      .preserve_nan_f32 = floats.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE,
      .preserve_subnormals_f32 =
          floats.shaderDenormPreserveFloat32 == VK_TRUE && floats.denormBehaviorIndependence != kNone};
  api.vkGetPhysicalDeviceMemoryProperties(handle, &out.memory);
  auto extensions = extensions_of(api, handle);
  if (!extensions.ok()) {
    out.missing = "a list of its extensions (" + extensions.status().message() + ")";
    return out;
  }
  if (lists(extensions.value(), VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
    auto control = chained<VkPhysicalDeviceSubgroupSizeControlFeaturesEXT>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT);
    auto more = chained<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &control);
    api.vkGetPhysicalDeviceFeatures2(handle, &more);
    out.full_subgroups = control.computeFullSubgroups == VK_TRUE;
    out.varying_subgroups = control.subgroupSizeControl == VK_TRUE;
    if (out.varying_subgroups) out.required_subgroup_size = subgroup_size_to_require(api, handle, out.subgroup_size);
    if (out.required_subgroup_size != 0) out.subgroup_size = out.required_subgroup_size;
  }
  out.portability = lists(extensions.value(), kPortabilitySubset);
  if (lists(extensions.value(), VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) {
    auto sizes =
        chained<VkPhysicalDeviceMaintenance4Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
    auto more = chained<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &sizes);
    api.vkGetPhysicalDeviceProperties2(handle, &more);
    out.max_allocation = std::min(out.max_allocation, sizes.maxBufferSize);
  }
  if (lists(extensions.value(), VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
    auto host = chained<VkPhysicalDeviceExternalMemoryHostPropertiesEXT>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
    auto more = chained<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &host);
    api.vkGetPhysicalDeviceProperties2(handle, &more);
    if (imports_buffers(api, handle)) out.import_alignment = host.minImportedHostPointerAlignment;
  }

  if (out.full_subgroups)
    out.matrices = CooperativeMatrices::read(api, handle, out.properties.limits, extensions.value());
  auto dots = chained<VkPhysicalDeviceShaderIntegerDotProductFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  const bool lists_dot = lists(extensions.value(), VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  auto v12 = chained<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                       lists_dot ? &dots : nullptr);
  auto v11 = chained<VkPhysicalDeviceVulkan11Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  v11.pNext = &v12;
  auto features = chained<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11);
  api.vkGetPhysicalDeviceFeatures2(handle, &features);
  out.missing = missing_features(features.features, v11, v12);
  out.has_dot = dots.shaderIntegerDotProduct == VK_TRUE;
  if (out.has_dot) find_fast_dot(api, out);
  if (v12.subgroupBroadcastDynamicId == VK_FALSE)
    out.subgroup_size = 0;  // disables subgroup kernels: GEMMs broadcast from threads with a computed index

  uint32_t count = 0;
  api.vkGetPhysicalDeviceQueueFamilyProperties(handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.vkGetPhysicalDeviceQueueFamilyProperties(handle, &count, families.data());
  out.choose_queues(families);
  if (out.queue_count == 0 && out.missing.empty()) out.missing = "a queue family with compute";
  auto offers = offers_external();
  if (!offers.ok() && out.missing.empty()) out.missing = "an accepted setting: " + offers.status().message();
  const bool is_offered = offers.ok() && offers.value();
  if (is_offered && lists(extensions.value(), VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME))
    out.external |= shared_memory(api, handle);
  // A wait for an external semaphore blocks a whole queue. Each stream that waits therefore needs a queue of its own.
  if (is_offered && lists(extensions.value(), VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME) && out.queue_count > 1)
    out.external |= shared_semaphores(api, handle);
  if (out.memory_type(BP_MEMORY_DEVICE) < 0 && out.missing.empty()) out.missing = "memory";
  return out;
}

void PhysicalDevice::choose_queues(std::span<const VkQueueFamilyProperties> families) {
  constexpr VkQueueFlags kIgnoredFlags = VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;
  int best = -1;
  for (uint32_t i = 0; i < families.size(); ++i) {
    const VkQueueFamilyProperties& family = families[i];
    // Chooses a family that supports only transfers. Families that support copies and other
    // commands, such as video families, are not chosen.
    if ((family.queueFlags & ~kIgnoredFlags) == VK_QUEUE_TRANSFER_BIT && copy_count == 0) {
      copy_family = i;
      copy_count = family.queueCount;
    }
    if ((family.queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    // Prefers families with timestamps, and then families without graphics. Queues without graphics
    // do not block the desktop, and their work may run longer.
    const int rank =
        (family.timestampValidBits != 0 ? 2 : 0) + ((family.queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0 ? 1 : 0);
    if (rank <= best) continue;
    best = rank;
    queue_family = i;
    queue_count = family.queueCount;
    // Mesa's CPU driver (22.3) reports 64 valid bits, but its timestamps between compute commands are 0.
    timestamp_bits = is_cpu() ? 0 : family.timestampValidBits;
  }
}

int PhysicalDevice::memory_type(uint32_t kind, uint32_t allowed) const {
  constexpr VkMemoryPropertyFlags kMapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkMemoryPropertyFlags needed = 0, wanted = 0;
  if (kind == BP_MEMORY_DEVICE) wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  if (kind == BP_MEMORY_HOST) needed = kMapped, wanted = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  if (kind == BP_MEMORY_SHARED) {
    needed = kMapped | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    // The host reads the results of kernels directly from SHARED memory, so cached memory is
    // faster. SHARED memory is never cached if a bus separates device and host.
    if (unified()) wanted = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  }
  int found = -1;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if ((allowed >> i & 1u) == 0 || (flags & needed) != needed || (flags & kUnusableMemory) != 0) continue;
    if ((flags & wanted) == wanted) return static_cast<int>(i);
    if (found < 0) found = static_cast<int>(i);
  }
  return found;
}

uint64_t PhysicalDevice::heap_bytes(uint32_t kind) const {
  const int type = memory_type(kind);
  return type < 0 ? 0 : memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
}

void PhysicalDevice::describe(bp_device_info& info) const {
  switch (properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      info.type = BP_DEVICE_CPU;
      break;
    case VK_PHYSICAL_DEVICE_TYPE_OTHER:
      info.type = BP_DEVICE_OTHER;
      break;
    default:
      info.type = BP_DEVICE_GPU;
  }
  put_text(info.name, properties.deviceName);
  put_text(info.driver, driver);
  std::memcpy(info.uuid, uuid, sizeof(info.uuid));
  info.alignment = Memory::kAlignment;
  info.max_buffer_bytes = std::min(max_allocation, heap_bytes(BP_MEMORY_DEVICE));
  info.capabilities = BP_CAP_HOST_OPERANDS | BP_CAP_DETERMINISTIC;
  if (timestamp_bits != 0) info.capabilities |= BP_CAP_TIMING;
  if (!float_controls.preserve_subnormals_f32) info.capabilities |= BP_CAP_FTZ_F32;
  if (unified()) info.capabilities |= BP_CAP_UNIFIED_MEMORY;
  for (const uint32_t kind : {BP_MEMORY_DEVICE, BP_MEMORY_HOST, BP_MEMORY_SHARED}) {
    if (memory_type(kind) < 0) continue;
    info.memory_kinds |= 1u << kind;
    // DLPack receives the host address of HOST and SHARED memory. DEVICE memory has no address that
    // another framework could use.
    if (kind != BP_MEMORY_DEVICE) info.dlpack_type[kind] = 1;  // kDLCPU
  }
}

}  // namespace backplane::vulkan
