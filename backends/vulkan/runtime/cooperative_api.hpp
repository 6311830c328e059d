// SPDX-License-Identifier: Apache-2.0
// Declarations of VK_KHR_cooperative_matrix and VK_KHR_shader_bfloat16. vulkan_core.h has them from
// 1.3.255 and 1.4.311 on, but Debian 12's is older. Members are in the order of vulkan_core.h.
// Names differ from those of vulkan_core.h, so that both headers can be included.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

namespace backplane::vulkan {

inline constexpr char kCooperativeMatrixExtension[] = "VK_KHR_cooperative_matrix";
inline constexpr char kBfloat16Extension[] = "VK_KHR_shader_bfloat16";

// The values of VkComponentTypeKHR and VkScopeKHR that the plugin uses.
enum class MatrixComponent : int32_t { kF16 = 0, kF32 = 1, kI8 = 3, kI32 = 5, kBf16 = 1000141000 };
inline constexpr int32_t kSubgroupScope = 3;

// NOLINTBEGIN(readability-identifier-naming): the members have the names of Vulkan's headers
// VkPhysicalDeviceCooperativeMatrixFeaturesKHR
struct CooperativeMatrixFeatures {
  static constexpr auto kType = static_cast<VkStructureType>(1000506000);
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};

// VkCooperativeMatrixPropertiesKHR
struct CooperativeMatrixProperties {
  static constexpr auto kType = static_cast<VkStructureType>(1000506001);
  VkStructureType sType;
  void* pNext;
  uint32_t MSize, NSize, KSize;
  MatrixComponent AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  int32_t scope;
};
using GetCooperativeMatrixProperties = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, CooperativeMatrixProperties*);

// VkPhysicalDeviceCooperativeMatrixPropertiesKHR
struct CooperativeMatrixStages {
  static constexpr auto kType = static_cast<VkStructureType>(1000506002);
  VkStructureType sType;
  void* pNext;
  VkShaderStageFlags cooperativeMatrixSupportedStages;
};

// VkPhysicalDeviceShaderBfloat16FeaturesKHR
struct Bfloat16Features {
  static constexpr auto kType = static_cast<VkStructureType>(1000141000);
  VkStructureType sType;
  void* pNext;
  VkBool32 shaderBFloat16Type;
  VkBool32 shaderBFloat16DotProduct;
  VkBool32 shaderBFloat16CooperativeMatrix;
};
// NOLINTEND(readability-identifier-naming)

}  // namespace backplane::vulkan
