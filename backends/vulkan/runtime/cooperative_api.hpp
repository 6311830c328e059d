// SPDX-License-Identifier: Apache-2.0
// Declarations of the extensions VK_KHR_cooperative_matrix and VK_KHR_shader_bfloat16, which the
// vulkan_core.h of Debian 12 lacks. vulkan_core.h declares VK_KHR_cooperative_matrix from version
// 1.3.255 on, and VK_KHR_shader_bfloat16 from version 1.4.311 on. Struct members have the same
// order as in vulkan_core.h. The types have different names, so that a source file can include this
// header and a newer vulkan_core.h.
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

// Equivalent of VkPhysicalDeviceCooperativeMatrixFeaturesKHR.
struct CooperativeMatrixFeatures {
  static constexpr auto kType = static_cast<VkStructureType>(1000506000);
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};

// Equivalent of VkCooperativeMatrixPropertiesKHR.
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

// Equivalent of VkPhysicalDeviceCooperativeMatrixPropertiesKHR.
struct CooperativeMatrixStages {
  static constexpr auto kType = static_cast<VkStructureType>(1000506002);
  VkStructureType sType;
  void* pNext;
  VkShaderStageFlags cooperativeMatrixSupportedStages;
};

// Equivalent of VkPhysicalDeviceShaderBfloat16FeaturesKHR.
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
