// SPDX-License-Identifier: Apache-2.0
// The structs and flags of DLPack 1.x, a format for the exchange of tensors. The declarations are
// from include/dlpack/dlpack.h of github.com/dmlc/dlpack (Apache-2.0, Copyright (c) 2017 by
// Contributors). Their layout is frozen for major version 1; minor versions add values.
#pragma once

#include <cstddef>
#include <cstdint>

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // null means dense row-major
  uint64_t byte_offset;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensorVersioned) == 80);
static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

namespace backplane::core::dlpack {

inline constexpr uint32_t kMajor = 1;
// Bits of DLManagedTensorVersioned.flags.
inline constexpr uint64_t kReadOnly = 1;
inline constexpr uint64_t kCopied = 2;         // the memory is a copy that only the consumer uses
inline constexpr uint64_t kPaddedSubbyte = 4;  // no effect on dtypes of whole bytes
inline constexpr uint64_t kKnownFlags = kReadOnly | kCopied | kPaddedSubbyte;
inline constexpr int32_t kCpu = 1;      // kDLCPU in dlpack.h
inline constexpr int32_t kExtDev = 12;  // kDLExtDev, whose meaning each library defines for itself

}  // namespace backplane::core::dlpack
