// SPDX-License-Identifier: Apache-2.0
#include "watched_driver.hpp"

#include <algorithm>
#include <typeindex>
#include <utility>

namespace backplane::vulkan::test::watched {

std::function<void(VkPhysicalDeviceFeatures2&)> change_features;
std::function<void(VkPhysicalDeviceProperties2&)> change_properties;
std::function<void(VkComputePipelineCreateInfo&)> change_pipeline;
std::function<VkDeviceAddress(VkDeviceAddress)> change_address;

namespace {

// The only intercepted function that functions.def does not contain.
constexpr const char* kOfExtension = "vkGetMemoryHostPointerPropertiesEXT";

PFN_vkGetInstanceProcAddr real_instance_lookup = nullptr;
PFN_vkGetDeviceProcAddr real_device_lookup = nullptr;
PFN_vkGetSemaphoreCounterValue real_counter_value = nullptr;

int64_t calls_left = INT64_MAX;
VkResult failure = VK_SUCCESS;
bool sticky = false;
std::string first_failed;

bool fails(const char* name) {
  const int64_t left = calls_left--;
  if (left > 0 || (left < 0 && !sticky)) return false;
  if (first_failed.empty()) first_failed = name;
  return true;
}

// The key of an object consists of its type and handle, because handles of different types may be
// equal.
using Key = std::pair<std::type_index, const void*>;
struct Object {
  const char* made_by;
  const void* owner;  // the device or instance to which the object belongs
};
std::map<Key, Object> objects;
std::string complaints;

// The device of each timeline semaphore, and the highest value that the host waited for.
std::map<const void*, std::pair<VkDevice, uint64_t>> passed;

void note_made(const char* by, const void* owner, std::type_index type, const void* handle) {
  objects.insert_or_assign({type, handle}, Object{by, owner});
}

void note_ended(const char* by, std::type_index type, const void* handle) {
  if (handle == nullptr) return;
  passed.erase(handle);
  if (objects.erase({type, handle}) == 0) complaints += std::string(by) + " of an absent object\n";
  for (auto at = objects.begin(); at != objects.end();) {
    if (at->second.owner != handle) {
      ++at;
      continue;
    }
    complaints += std::string(at->second.made_by) + " made what is left at " + by + "\n";
    at = objects.erase(at);
  }
}

// Returns the owner of the object that a call creates, from the call's first argument: the VkDevice, or null if the
// call creates an instance or a device.
template <class Owner>
const void* owner_of(Owner handle) {
  return std::is_same_v<Owner, VkDevice> ? static_cast<const void*>(handle) : nullptr;
}
template <class Info>
const void* owner_of(const Info*) {
  return nullptr;
}

void change(VkPhysicalDevice, VkPhysicalDeviceFeatures2* out) {
  if (change_features) change_features(*out);
}
void change(VkPhysicalDevice, VkPhysicalDeviceProperties2* out) {
  if (change_properties) change_properties(*out);
}
void change(VkDevice device, const VkSemaphoreCreateInfo*, const VkAllocationCallbacks*, VkSemaphore* out) {
  passed[*out] = {device, 0};
}
void change(VkDevice, const VkSemaphoreWaitInfo* info, uint64_t) {
  for (uint32_t i = 0; i < info->semaphoreCount; ++i) {
    uint64_t& known = passed.at(info->pSemaphores[i]).second;
    known = std::max(known, info->pValues[i]);
  }
}
void change(VkDevice, VkSemaphore semaphore, uint64_t* out) { *out = std::min(*out, passed.at(semaphore).second); }
void change(VkDevice idle) {
  for (auto& [semaphore, known] : passed) {
    const auto handle = static_cast<VkSemaphore>(const_cast<void*>(semaphore));
    if (known.first == idle) real_counter_value(idle, handle, &known.second);
  }
}
template <class... Arguments>
void change(const Arguments&...) {}

// The changed create info of a pipeline. The functions below change the arguments of a call before
// the driver receives them.
VkComputePipelineCreateInfo changed_pipeline;
void change_arguments(VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo*& given,
                      const VkAllocationCallbacks*, VkPipeline*) {
  if (!change_pipeline) return;
  changed_pipeline = *given;
  change_pipeline(changed_pipeline);
  given = &changed_pipeline;
}
template <class... Arguments>
void change_arguments(const Arguments&...) {}

template <auto Slot>
struct Watch;
template <class Api, class Result, class... Arguments, Result (VKAPI_PTR* Api::*Slot)(Arguments...)>
struct Watch<Slot> {
  using Function = Result(VKAPI_PTR*)(Arguments...);
  static constexpr bool can_fail = std::is_same_v<Result, VkResult>;
  static inline Function real = nullptr;
  static inline const char* name = "";

  static Result VKAPI_CALL call(Arguments... arguments) {
    const std::string_view called(name);
    auto list = std::tie(arguments...);
    if constexpr (can_fail) {
      if (fails(name)) return failure;
      change_arguments(arguments...);
      const VkResult result = real(arguments...);
      if (result == VK_SUCCESS) change(arguments...);
      // Command buffers are not counted, because they are destroyed with their pool.
      const bool makes = called.starts_with("vkCreate") || called == "vkAllocateMemory";
      if constexpr (std::is_pointer_v<std::tuple_element_t<sizeof...(Arguments) - 1, std::tuple<Arguments...>>>) {
        const auto out = std::get<sizeof...(Arguments) - 1>(list);
        using Handle = std::remove_pointer_t<decltype(out)>;
        if constexpr (std::is_pointer_v<Handle>) {
          if (makes && result == VK_SUCCESS) note_made(name, owner_of(std::get<0>(list)), typeid(Handle), *out);
        }
      }
      return result;
    } else {
      if constexpr (std::is_void_v<Result> && sizeof...(Arguments) >= 2) {
        auto handle = std::get<sizeof...(Arguments) - 2>(list);
        if constexpr (std::is_pointer_v<decltype(handle)>) {
          if (called.starts_with("vkDestroy") || called == "vkFreeMemory") note_ended(name, typeid(handle), handle);
        }
      }
      if constexpr (std::is_void_v<Result>) {
        real(arguments...);
        change(arguments...);
      } else {
        const Result found = real(arguments...);
        if constexpr (std::is_same_v<Result, VkDeviceAddress>)
          if (change_address) return change_address(found);
        return found;
      }
    }
  }

  static Function watch(Function found, const char* of) {
    real = found;
    name = of;
    return call;
  }
};

template <auto Slot, class Function>
PFN_vkVoidFunction watched(Function found, const char* name) {
  return reinterpret_cast<PFN_vkVoidFunction>(Watch<Slot>::watch(found, name));
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_lookup(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = real_device_lookup(device, name);
  if (found == nullptr) return found;
  if (std::string_view(name) == "vkGetSemaphoreCounterValue")
    real_counter_value = reinterpret_cast<PFN_vkGetSemaphoreCounterValue>(found);
#define BP_VK_GLOBAL(slot)
#define BP_VK_INSTANCE(slot)
#define BP_VK_DEVICE(slot) \
  if (std::string_view(name) == #slot) return watched<&DeviceApi::slot>(reinterpret_cast<PFN_##slot>(found), #slot);
#include "runtime/functions.def"
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  if (std::string_view(name) == kOfExtension)
    return watched<&DeviceApi::vkGetMemoryHostPointerPropertiesEXT>(
        reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(found), kOfExtension);
  return found;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_lookup(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = real_instance_lookup(instance, name);
  if (std::string_view(name) == "vkGetDeviceProcAddr") {
    real_device_lookup = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(device_lookup);
  }
#define BP_VK_INSTANCE(slot) \
  if (std::string_view(name) == #slot) return watched<&InstanceApi::slot>(reinterpret_cast<PFN_##slot>(found), #slot);
#define BP_VK_DEVICE(slot)
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  return found;
}

}  // namespace

kit::Result<std::shared_ptr<const Instance>> instance() {
  auto library = Library::open();
  if (!library.ok()) return library.status();
  real_instance_lookup = std::exchange(library.value()->get, instance_lookup);
#define BP_VK_GLOBAL(slot) library.value()->slot = Watch<&Library::slot>::watch(library.value()->slot, #slot);
#define BP_VK_INSTANCE(slot)
#define BP_VK_DEVICE(slot)
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  return Instance::create(library.value());
}

void arm(int64_t after, VkResult result, bool forever) {
  calls_left = after;
  failure = result;
  sticky = forever;
  first_failed.clear();
}

void disarm() { calls_left = INT64_MAX; }

std::string failed_call() { return first_failed; }

std::set<std::string> fallible() {
  std::set<std::string> out{kOfExtension};
  const auto add = [&](bool can_fail, const char* name) {
    if (can_fail) out.insert(name);
  };
#define BP_VK_GLOBAL(slot) add(Watch<&Library::slot>::can_fail, #slot);
#define BP_VK_INSTANCE(slot) add(Watch<&InstanceApi::slot>::can_fail, #slot);
#define BP_VK_DEVICE(slot) add(Watch<&DeviceApi::slot>::can_fail, #slot);
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  return out;
}

std::map<std::string, int> living() {
  std::map<std::string, int> out;
  for (const auto& [key, object] : objects) ++out[object.made_by];
  return out;
}

std::string forgotten() { return std::exchange(complaints, {}); }

}  // namespace backplane::vulkan::test::watched
