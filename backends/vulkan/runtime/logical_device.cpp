// SPDX-License-Identifier: Apache-2.0
#include "runtime/logical_device.hpp"

namespace backplane::vulkan {

namespace {
constexpr uint32_t kPushBytes = 8;  // size of the push constant, which is the address of a kernel's parameters

// Minimum size in bytes of a copy that uses the copy queue. A copy of this size takes about 40 us
// at 25 GB/s. For a shorter copy, the extra submission and semaphore may take longer than the copy.
constexpr uint64_t kCopyQueueThreshold = uint64_t{1} << 20;

constexpr VkPipelineStageFlags kStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

VkDeviceQueueCreateInfo queues_of(uint32_t family, uint32_t count, const float* priorities) {
  auto info = chained<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  info.queueFamilyIndex = family;
  info.queueCount = count;
  info.pQueuePriorities = priorities;
  return info;
}
}  // namespace

kit::Result<std::unique_ptr<LogicalDevice>> LogicalDevice::create(std::shared_ptr<const Instance> instance,
                                                                  uint32_t index) {
  std::unique_ptr<LogicalDevice> device(new LogicalDevice(std::move(instance), index));
  if (kit::Status status = device->start(); !status.ok()) return status;
  return device;
}

kit::Status LogicalDevice::choose_copy_queue() {
  const char* given = std::getenv(kCopyQueueSetting);
  const std::string_view setting = given == nullptr ? "" : given;
  if (!setting.empty() && setting != "off" && setting != "all")
    return kit::unsupported(kCopyQueueSetting, " is ", setting, "; it may be off or all, or unset");
  families_[0] = physical().queue_family;
  if (setting == "off") return {};
  if (physical().copy_count != 0) families_[family_count_++] = physical().copy_family;
  if (physical().copy_count != 0 || setting == "all")
    copy_queue_threshold_ = setting == "all" ? 0 : kCopyQueueThreshold;
  return {};
}

kit::Status LogicalDevice::start() {
  if (kit::Status status = choose_copy_queue(); !status.ok()) return status;
  const InstanceApi& api = instance_->api();
  const std::vector<float> priorities(kMaxQueues, 1.0f);
  const uint32_t counts[] = {std::min(physical().queue_count, kMaxQueues), std::min(physical().copy_count, kMaxQueues)};
  const VkDeviceQueueCreateInfo queues[] = {queues_of(families_[0], counts[0], priorities.data()),
                                            queues_of(families_[1], counts[1], priorities.data())};

  auto v12 = chained<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  v12.storageBuffer8BitAccess = VK_TRUE;
  v12.bufferDeviceAddress = VK_TRUE;
  v12.scalarBlockLayout = VK_TRUE;
  v12.timelineSemaphore = VK_TRUE;
  v12.subgroupBroadcastDynamicId = physical().subgroup_size != 0 ? VK_TRUE : VK_FALSE;
  CooperativeRequest matrices(physical().matrices, v12);
  auto subgroups = chained<VkPhysicalDeviceSubgroupSizeControlFeaturesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT, v12.pNext);
  subgroups.computeFullSubgroups = physical().full_subgroups ? VK_TRUE : VK_FALSE;
  subgroups.subgroupSizeControl = physical().varying_subgroups ? VK_TRUE : VK_FALSE;
  const bool controls_subgroups = (subgroups.computeFullSubgroups | subgroups.subgroupSizeControl) != VK_FALSE;
  if (controls_subgroups) v12.pNext = &subgroups;
  auto dots = chained<VkPhysicalDeviceShaderIntegerDotProductFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, v12.pNext);
  dots.shaderIntegerDotProduct = VK_TRUE;
  if (physical().has_dot) v12.pNext = &dots;
  auto v11 = chained<VkPhysicalDeviceVulkan11Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  v11.pNext = &v12;
  v11.storageBuffer16BitAccess = VK_TRUE;
  auto features = chained<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11);
  features.features.shaderInt64 = VK_TRUE;

  auto info = chained<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features);
  info.queueCreateInfoCount = family_count_;
  info.pQueueCreateInfos = queues;
  std::vector<const char*> extensions = matrices.extensions;
  if (physical().has_dot) extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  if (physical().import_alignment != 0) extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if ((physical().external & (BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT)) != 0)
    extensions.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  if ((physical().external & (BP_EXTERNAL_SEMAPHORE_EXPORT | BP_EXTERNAL_SEMAPHORE_IMPORT)) != 0)
    extensions.push_back(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  if (controls_subgroups) extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  if (physical().portability) extensions.push_back(kPortabilitySubset);
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  if (const VkResult result = api.vkCreateDevice(physical().handle, &info, nullptr, &handle_); result != VK_SUCCESS) {
    handle_ = VK_NULL_HANDLE;
    return status_of(result, "vkCreateDevice");
  }
  if (kit::Status status = api_.load(api, handle_); !status.ok()) return status;
  get_queues(families_[0], counts[0], queues_);
  if (family_count_ > 1) get_queues(families_[1], counts[1], copy_queues_);
  if (copy_queues_.empty()) copy_queues_ = queues_;
  for (Queue& queue : queues_) {
    queue.stages = kStages;
    queue.reads = kReads;
    queue.writes = kWrites;
  }
  for (Queue& queue : copy_queues_) {
    queue.stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
    queue.reads = VK_ACCESS_TRANSFER_READ_BIT;
    queue.writes = VK_ACCESS_TRANSFER_WRITE_BIT;
  }

  if (kit::Status status = find_buffer_types(); !status.ok()) return status;
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  auto layout = chained<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  return check(api_.vkCreatePipelineLayout(handle_, &layout, nullptr, &pipeline_layout_), "vkCreatePipelineLayout");
}

void LogicalDevice::get_queues(uint32_t family, uint32_t count, std::vector<Queue>& queues) {
  std::mutex* mutex = &queue_mutexes_[&queues == &queues_ ? 0 : kMaxQueues];
  for (uint32_t i = 0; i < count; ++i) {
    Queue& queue = queues.emplace_back();
    queue.mutex = mutex++;
    queue.family = family;
    queue.index = i;
    api_.vkGetDeviceQueue(handle_, family, i, &queue.handle);
  }
}

VkBufferCreateInfo LogicalDevice::buffer_info(uint64_t bytes) const {
  auto info = chained<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = bytes;
  info.usage = kBufferUsage;
  if (family_count_ > 1) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = family_count_;
    info.pQueueFamilyIndices = families_;
  }
  return info;
}

// Finds the memory types that buffers can use, from the memory requirements of a small buffer. The
// driver's list also contains types that buffers cannot use.
kit::Status LogicalDevice::find_buffer_types() {
  VkBuffer buffer = VK_NULL_HANDLE;
  const VkBufferCreateInfo info = buffer_info(256);
  if (kit::Status status = check(api_.vkCreateBuffer(handle_, &info, nullptr, &buffer), "vkCreateBuffer"); !status.ok())
    return status;
  VkMemoryRequirements requirements{};
  api_.vkGetBufferMemoryRequirements(handle_, buffer, &requirements);
  api_.vkDestroyBuffer(handle_, buffer, nullptr);
  buffer_types_ = requirements.memoryTypeBits;
  return {};
}

LogicalDevice::~LogicalDevice() {
  if (handle_ == VK_NULL_HANDLE || api_.vkDestroyDevice == nullptr) return;
  if (!queues_.empty()) wait_idle();  // before start() gets queues, vkDeviceWaitIdle may be null
  for (VkSemaphore semaphore : semaphores_) api_.vkDestroySemaphore(handle_, semaphore, nullptr);
  for (VkQueryPool pool : queries_) api_.vkDestroyQueryPool(handle_, pool, nullptr);
  if (pipeline_layout_ != VK_NULL_HANDLE) api_.vkDestroyPipelineLayout(handle_, pipeline_layout_, nullptr);
  api_.vkDestroyDevice(handle_, nullptr);
}

kit::Status LogicalDevice::check(VkResult result, const char* what) {
  if (result == VK_SUCCESS) return {};
  if (result == VK_ERROR_DEVICE_LOST) lost_.store(true, std::memory_order_release);
  return status_of(result, what);
}

kit::Status LogicalDevice::submit(const Queue& queue, const VkSubmitInfo& info) {
  std::lock_guard lock(*queue.mutex);
  return check(api_.vkQueueSubmit(queue.handle, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
}

void LogicalDevice::wait_idle() {
  for (std::mutex& mutex : queue_mutexes_) mutex.lock();
  (void)check(api_.vkDeviceWaitIdle(handle_), "vkDeviceWaitIdle");
  for (std::mutex& mutex : queue_mutexes_) mutex.unlock();
}

kit::Status LogicalDevice::health() const {
  if (lost()) return status_of(VK_ERROR_DEVICE_LOST, "an earlier call");
  return instance_->messages().status();
}

Queue LogicalDevice::take_queue() {
  std::lock_guard lock(lists_mutex_);
  const Queue* best = nullptr;
  for (const Queue& each : queues_) {
    if (reserved_[each.index] || (best != nullptr && users_[best->index] <= users_[each.index])) continue;
    best = &each;
  }
  ++users_[best->index];
  return *best;
}

void LogicalDevice::give_queue(const Queue& queue) {
  std::lock_guard lock(lists_mutex_);
  --users_[queue.index];
  reserved_[queue.index] = false;
}

bool LogicalDevice::reserve_queue(const Queue& queue) {
  std::lock_guard lock(lists_mutex_);
  const auto reserved = static_cast<std::size_t>(std::ranges::count(reserved_, true));
  if (users_[queue.index] != 1 || reserved + 1 >= queues_.size()) return false;
  reserved_[queue.index] = true;
  return true;
}

kit::Result<VkSemaphore> LogicalDevice::take_semaphore() {
  {
    std::lock_guard lock(lists_mutex_);
    if (!semaphores_.empty()) {
      VkSemaphore semaphore = semaphores_.back();
      semaphores_.pop_back();
      return semaphore;
    }
  }
  auto type = chained<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto info = chained<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type);
  VkSemaphore semaphore = VK_NULL_HANDLE;
  kit::Status status = check(api_.vkCreateSemaphore(handle_, &info, nullptr, &semaphore), "vkCreateSemaphore");
  if (!status.ok()) return status;
  return semaphore;
}

void LogicalDevice::give_semaphore(VkSemaphore semaphore) {
  std::lock_guard lock(lists_mutex_);
  semaphores_.push_back(semaphore);
}

kit::Result<VkQueryPool> LogicalDevice::take_query() {
  {
    std::lock_guard lock(lists_mutex_);
    if (!queries_.empty()) {
      VkQueryPool pool = queries_.back();
      queries_.pop_back();
      return pool;
    }
  }
  auto info = chained<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = 1;
  VkQueryPool pool = VK_NULL_HANDLE;
  if (kit::Status status = check(api_.vkCreateQueryPool(handle_, &info, nullptr, &pool), "vkCreateQueryPool");
      !status.ok())
    return status;
  return pool;
}

void LogicalDevice::give_query(VkQueryPool pool) {
  std::lock_guard lock(lists_mutex_);
  queries_.push_back(pool);
}

}  // namespace backplane::vulkan
