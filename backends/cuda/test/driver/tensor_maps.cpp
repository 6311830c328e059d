// SPDX-License-Identifier: Apache-2.0
// Tensor maps of the CUDA test driver, in the format that emulated kernels read.
#include <cstring>

#include "call.hpp"
#include "gpu_host/test_driver/memory.hpp"

namespace backplane::cuda::test_driver {

namespace {

using gpu_host::test_driver::violate;
using u32 = uint32_t;
using u64 = uint64_t;
#include "kernels/tensor_map.h"

// Returns whether a tensor map has the only form that the plugin's kernels use.
bool is_known_form(CUtensorMapDataType type, cuuint32_t rank, CUtensorMapInterleave interleave,
                   CUtensorMapSwizzle swizzle, CUtensorMapFloatOOBfill fill) {
  return (type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 || type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16) && rank == 3 &&
         interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && swizzle == CU_TENSOR_MAP_SWIZZLE_128B &&
         fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
}

// Returns the rule of cuTensorMapEncodeTiled that the map violates, or null.
const char* violated_rule(const void* address, const cuuint64_t* extents, const cuuint64_t* pitches,
                          const cuuint32_t* box, const cuuint32_t* steps) {
  if (reinterpret_cast<uintptr_t>(address) % 16 != 0) return "the address of a tensor map is not a multiple of 16";
  for (int i = 0; i < 2; ++i) {
    if (pitches[i] % 16 != 0 || pitches[i] >= uint64_t{1} << 40) {
      return "a stride of a tensor map is not a multiple of 16, or not below 2^40";
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (extents[i] == 0 || extents[i] > uint64_t{1} << 32) return "an extent of a tensor map is not 1 to 2^32";
    if (box[i] == 0 || box[i] > 256) return "an extent of a box is not 1 to 256";
    if (steps[i] != 1) return "the test driver copies adjacent elements";
  }
  if (box[0] != TENSOR_BOX || box[2] != 1) return "the test driver copies boxes of 128 bytes of lines of one matrix";
  return nullptr;
}

}  // namespace

CUresult CUDAAPI entry_cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank,
                                              void* address, const cuuint64_t* extents, const cuuint64_t* pitches,
                                              const cuuint32_t* box, const cuuint32_t* steps,
                                              CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  return run("cuTensorMapEncodeTiled", Needs::kContext, [&](Call&) {
    if (out == nullptr || reinterpret_cast<uintptr_t>(out) % alignof(CUtensorMap) != 0) {
      return violate(Result::kInvalidValue, "the result is not aligned");
    }
    if (!is_known_form(type, rank, interleave, swizzle, fill)) {
      return violate(Result::kInvalidValue, "the test driver does not know this form of tensor maps");
    }
    if (const char* const rule = violated_rule(address, extents, pitches, box, steps); rule != nullptr) {
      return violate(Result::kInvalidValue, rule);
    }
    EmulatedTensorMap map{};
    map.address = reinterpret_cast<uintptr_t>(address);
    std::copy_n(extents, 3, map.extents);
    std::copy_n(pitches, 2, map.pitches);
    map.lines = box[1];
    static_assert(sizeof(map) == sizeof(*out));
    std::memcpy(out, &map, sizeof(map));
    return Result::kSuccess;
  });
}

}  // namespace backplane::cuda::test_driver
