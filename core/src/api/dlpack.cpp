// SPDX-License-Identifier: Apache-2.0
// Exchanges tensors with other libraries through DLPack.
#include <backplane/backplane.h>

#include <algorithm>
#include <memory>

#include "api/boundary.hpp"
#include "api/dlpack.hpp"
#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/op_table.hpp"
#include "base/strided_view.hpp"
#include "loading/device.hpp"
#include "loading/plugin.hpp"
#include "memory/buffer.hpp"
#include "memory/pool.hpp"
#include "memory/transfer.hpp"
#include "streams/stream.hpp"

using namespace backplane::core;

namespace {

struct DtypeCode {
  uint32_t dtype;
  uint8_t code, bits;
};
constexpr DtypeCode kDtypeCodes[] = {
    {BP_I8, 0, 8},   {BP_I32, 0, 32}, {BP_I64, 0, 64}, {BP_U8, 1, 8},    {BP_U32, 1, 32},
    {BP_F16, 2, 16}, {BP_F32, 2, 32}, {BP_F64, 2, 64}, {BP_BF16, 4, 16}, {BP_BOOL, 6, 8},
};

// A tensor that was exported to another library.
struct Exported {
  DLManagedTensorVersioned managed;
  int64_t shape[BP_MAX_RANK];
  int64_t strides[BP_MAX_RANK];
  Buffer* buffer;  // the buffer that this export keeps alive
};

void end_export(DLManagedTensorVersioned* managed) {
  const std::unique_ptr<Exported> own(static_cast<Exported*>(managed->manager_ctx));
  if (own->buffer != nullptr) own->buffer->end_hold();
}

void end_import(void* context) {
  auto* const managed = static_cast<DLManagedTensorVersioned*>(context);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

bp_tensor_desc view_of(uint32_t dtype, uint32_t rank, const int64_t* shape, const int64_t* strides) {
  bp_tensor_desc view = {};
  view.dtype = static_cast<uint16_t>(dtype);
  view.rank = static_cast<uint8_t>(rank);
  std::copy_n(shape, rank, view.shape);
  std::copy_n(strides, rank, view.strides);
  return view;
}

// Returns the byte range of a view. Throws INVALID_ARGUMENT if the view is not valid.
Extent extent_of_view(const char* function, const bp_tensor_desc& view) {
  if (std::any_of(view.shape, view.shape + view.rank, [](int64_t extent) { return extent < 0; })) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the shape has a negative extent", function);
  }
  Extent extent = {};
  if (!extent_of(view, dtype_bytes(view.dtype), &extent)) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the view reaches further than 63 bits count", function);
  }
  return extent;
}

// The arithmetic is unsigned, because a signed difference overflows if `extent.lo` is near -2^63.
uint64_t span_of(const Extent& extent) { return static_cast<uint64_t>(extent.hi) - static_cast<uint64_t>(extent.lo); }

// ---- Export -------------------------------------------------------------------------------------

constexpr const char* kExportName = "bph_dlpack_export";

const DtypeCode& code_of(uint32_t dtype) {
  const auto found = std::find_if(std::begin(kDtypeCodes), std::end(kDtypeCodes),
                                  [&](const DtypeCode& each) { return each.dtype == dtype; });
  if (found == std::end(kDtypeCodes)) {
    throw Error(BP_UNSUPPORTED, "{}: DLPack has no dtype for {} ({}); cast first", kExportName, dtype_name(dtype),
                dtype);
  }
  return *found;
}

// Returns the DLPack device for a buffer's memory. Throws UNSUPPORTED if there is none.
DLDevice device_of(const Buffer& buffer) {
  const bp_device_info& info = buffer.device->info;
  const int32_t type = info.dlpack_type[buffer.kind];
  if (type == 0) {
    throw Error(BP_UNSUPPORTED,
                "{}: {} names no DLPack device for memory of kind {} (bp_device_info.dlpack_type); copy to memory "
                "of a kind that has one",
                kExportName, buffer.device->name, buffer.kind);
  }
  return {type, buffer.kind == BP_MEMORY_DEVICE ? info.dlpack_id : 0};
}

void hand_over(Buffer& buffer, Stream* producer, Stream* consumer) {
  if (producer != nullptr && producer->device.get() != buffer.device) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the producer is a stream of {}, the buffer of {}", kExportName,
                producer->device->name, buffer.device->name);
  }
  if (consumer != nullptr) {
    consumer->device.get() == buffer.device ? buffer.record(*consumer) : buffer.record_foreign(*consumer);
  }
  if (producer == nullptr || producer == consumer) return;
  if (consumer != nullptr && consumer->device.get() == buffer.device) {
    order(kExportName, *producer, *consumer);
  } else {
    producer->wait(BP_WAIT_FOREVER);
  }
}

void export_tensor(const bph_tensor& tensor, Stream* producer, Stream* consumer, DLManagedTensorVersioned** out) {
  if ((tensor.flags & BPH_TENSOR_IMMEDIATE) != 0) {
    throw Error(BP_UNSUPPORTED, "{}: the tensor is an immediate, which has no memory; fill a buffer with it",
                kExportName);
  }
  if (tensor.flags != 0) {
    throw Error(BP_UNSUPPORTED, "{}: the tensor's flags {:#x} are unknown", kExportName, tensor.flags);
  }
  if (tensor.rank > BP_MAX_RANK) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the tensor has rank {}; the most is {}", kExportName, tensor.rank,
                BP_MAX_RANK);
  }
  const DtypeCode& code = code_of(tensor.dtype);
  auto own = std::make_unique<Exported>();
  DLTensor& view = own->managed.dl_tensor;
  const Extent extent = extent_of_view(kExportName, view_of(tensor.dtype, tensor.rank, tensor.shape, tensor.strides));
  Buffer& buffer = require<Buffer>(tensor.buffer, kExportName);
  view.device = device_of(buffer);
  if (extent.hi != 0) {
    const uint64_t start = tensor.offset + static_cast<uint64_t>(extent.lo);
    if (start > buffer.bytes || span_of(extent) > buffer.bytes - start) {
      throw Error(BP_INVALID_ARGUMENT,
                  "{}: the view touches bytes {} to {} around offset {}, which its buffer of {} does "
                  "not hold",
                  kExportName, extent.lo, extent.hi, tensor.offset, buffer.bytes);
    }
    const Buffer::Address address = buffer.address();
    if (buffer.kind == BP_MEMORY_DEVICE && (address.flags & BPH_BUFFER_ADDRESS_NATIVE) == 0) {
      throw Error(BP_UNSUPPORTED,
                  "{}: memory of {} has no address that others can use; copy to HOST or SHARED memory first",
                  kExportName, buffer.device->name);
    }
    view.data = reinterpret_cast<void*>(address.value + tensor.offset);
  }
  own->managed.version = {dlpack::kMajor, 0};
  own->managed.flags = buffer.read_only ? dlpack::kReadOnly : 0;
  own->managed.manager_ctx = own.get();
  own->managed.deleter = end_export;
  view.ndim = tensor.rank;
  view.dtype = {code.code, code.bits, 1};
  std::copy_n(tensor.shape, tensor.rank, own->shape);
  std::copy_n(tensor.strides, tensor.rank, own->strides);
  view.shape = own->shape;
  view.strides = own->strides;
  hand_over(buffer, producer, consumer);
  buffer.hold();
  own->buffer = &buffer;
  *out = &own.release()->managed;
}

// ---- Import -------------------------------------------------------------------------------------

constexpr const char* kImportName = "bph_dlpack_import";

uint32_t dtype_of(const DLDataType& type) {
  const auto found = std::find_if(std::begin(kDtypeCodes), std::end(kDtypeCodes), [&](const DtypeCode& each) {
    return each.code == type.code && each.bits == type.bits;
  });
  if (found == std::end(kDtypeCodes) || type.lanes != 1) {
    throw Error(BP_UNSUPPORTED,
                "{}: the DLPack dtype of code {}, {} bits and {} lanes is not supported; convert it first", kImportName,
                type.code, type.bits, type.lanes);
  }
  return found->dtype;
}

// Returns whether this library exported the tensor from a device whose plugin is also the plugin of `device`.
bool is_own_export(const Device& device, const DLManagedTensorVersioned& managed) {
  if (managed.deleter != end_export) return false;
  return static_cast<const Exported*>(managed.manager_ctx)->buffer->device->plugin.get() == device.plugin.get();
}

// Returns the BP_IMPORT_* type with which `device` imports the tensor's memory. Throws UNSUPPORTED
// if `device` cannot access this memory.
uint32_t import_type_of(const Device& device, const DLManagedTensorVersioned& managed) {
  const bp_device_info& info = device.info;
  const DLDevice& from = managed.dl_tensor.device;
  const auto is = [&](uint32_t kind) {
    return info.dlpack_type[kind] != 0 && info.dlpack_type[kind] == from.device_type;
  };
  if (from.device_type == dlpack::kExtDev && !is_own_export(device, managed)) {
    throw Error(BP_UNSUPPORTED,
                "{}: the tensor is on a DLPack extension device (type {}), which each library defines for itself, and "
                "{} did not export it; copy it to host memory first",
                kImportName, from.device_type, device.plugin->name);
  }
  if (from.device_type == dlpack::kCpu || is(BP_MEMORY_HOST) || is(BP_MEMORY_SHARED)) return BP_IMPORT_HOST;
  if (is(BP_MEMORY_DEVICE) && info.dlpack_id == from.device_id) return BP_IMPORT_DEVICE;
  throw Error(BP_UNSUPPORTED, "{}: {} cannot reach memory of the DLPack device {}:{}; copy it to host memory first",
              kImportName, device.name, from.device_type, from.device_id);
}

// Returns the lowest address that the view's elements have. Throws INVALID_ARGUMENT if their
// addresses exceed 64 bits, and UNSUPPORTED if element 0 is not aligned for its dtype.
uint64_t first_byte(const DLTensor& view, uint32_t dtype, const Extent& extent) {
  if (view.data == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: the tensor has elements and no data", kImportName);
  const auto data = reinterpret_cast<uint64_t>(view.data);
  const uint64_t element = data + view.byte_offset;
  const uint64_t below = 0 - static_cast<uint64_t>(extent.lo);
  const auto above = static_cast<uint64_t>(extent.hi);
  if (element < data || below > element || above > UINT64_MAX - element) {
    throw Error(BP_INVALID_ARGUMENT,
                "{}: the view touches bytes {} to {} around data {:#x} plus byte_offset {}, which 64-bit addresses do "
                "not reach",
                kImportName, extent.lo, extent.hi, data, view.byte_offset);
  }
  const uint32_t needed = backplane::rules::natural_alignment(dtype_bytes(dtype));
  if (element % needed != 0) {
    throw Error(BP_UNSUPPORTED, "{}: element 0 is at {:#x}, and {} needs a multiple of {} bytes; copy the tensor",
                kImportName, element, dtype_name(dtype), needed);
  }
  return element - below;
}

void import_tensor(Device& device, DLManagedTensorVersioned& managed, Stream* consumer, bph_tensor& out) {
  if (consumer != nullptr && consumer->device.get() != &device) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the consumer is a stream of {}, and the device is {}{}; use a stream of it",
                kImportName, consumer->device->name, device.name,
                consumer->device->name == device.name ? " as opened another time" : "");
  }
  if (managed.version.major != dlpack::kMajor) {
    throw Error(BP_UNSUPPORTED, "{}: the tensor is of DLPack {}.{}, this library knows version {}", kImportName,
                managed.version.major, managed.version.minor, dlpack::kMajor);
  }
  if ((managed.flags & ~dlpack::kKnownFlags) != 0) {
    throw Error(BP_UNSUPPORTED, "{}: the tensor's flags {:#x} have bits of a later DLPack; this library knows {:#x}",
                kImportName, managed.flags, dlpack::kKnownFlags);
  }
  const DLTensor& view = managed.dl_tensor;
  if (view.ndim < 0 || (view.ndim != 0 && view.shape == nullptr)) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the tensor has {} dimensions, and {} shape", kImportName, view.ndim,
                view.shape == nullptr ? "no" : "a");
  }
  if (view.ndim > BP_MAX_RANK) {
    throw Error(BP_UNSUPPORTED, "{}: the tensor has {} dimensions; the most is {}: merge some", kImportName, view.ndim,
                BP_MAX_RANK);
  }
  const uint32_t dtype = dtype_of(view.dtype);
  const auto rank = static_cast<uint32_t>(view.ndim);
  const int64_t none[BP_MAX_RANK] = {};
  bp_tensor_desc desc =
      view_of(dtype, rank, rank != 0 ? view.shape : none, view.strides != nullptr ? view.strides : none);
  if (view.strides == nullptr) {
    (void)extent_of_view(kImportName, desc);
    make_dense(desc);
  }
  const Extent extent = extent_of_view(kImportName, desc);
  bph_import_desc import = {};
  import.type = import_type_of(device, managed);
  import.flags = (managed.flags & dlpack::kReadOnly) != 0 ? BPH_IMPORT_READ_ONLY : 0;
  if (extent.hi != 0) {
    import.address = first_byte(view, dtype, extent);
    import.bytes = span_of(extent);
  }
  import.release = end_import;
  import.context = &managed;
  out.buffer = reinterpret_cast<bph_buffer*>(Buffer::import(device, import, consumer).public_handle);
  out.offset = 0 - static_cast<uint64_t>(extent.lo);
  out.dtype = static_cast<uint16_t>(dtype);
  out.rank = static_cast<uint8_t>(rank);
  std::copy_n(desc.shape, rank, out.shape);
  std::copy_n(desc.strides, rank, out.strides);
}

Stream* stream_or_null(bph_stream* stream, const char* function) {
  return stream == nullptr ? nullptr : &require<Stream>(stream, function);
}

}  // namespace

bp_status bph_dlpack_export(const bph_tensor* tensor, bph_stream* producer, bph_stream* consumer,
                            DLManagedTensorVersioned** out, bp_error* error) {
  return guard(error, [&] {
    start_output(out, kExportName);
    if (tensor == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: the tensor is null; pass one", kExportName);
    export_tensor(*tensor, stream_or_null(producer, kExportName), stream_or_null(consumer, kExportName), out);
  });
}

bp_status bph_dlpack_import(bph_device* device, DLManagedTensorVersioned* managed, bph_stream* consumer,
                            bph_tensor* out, bp_error* error) {
  return guard(error, [&] {
    start_output(out, kImportName);
    Device& target = require<Device>(device, kImportName);
    if (managed == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: the managed tensor is null; pass one", kImportName);
    import_tensor(target, *managed, stream_or_null(consumer, kImportName), *out);
  });
}
