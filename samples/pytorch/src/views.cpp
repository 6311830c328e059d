// SPDX-License-Identifier: Apache-2.0
// Allocation of tensors, and views. Views enqueue no work.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>

#include "allocator.hpp"
#include "devices.hpp"
#include "overloads.hpp"

namespace backplane_torch {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

// Returns the device with its index. Raises an error for kinds of tensors that Backplane does not store.
c10::Device device_for(std::optional<c10::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin) {
  TORCH_CHECK(c10::layout_or_default(layout) == c10::kStrided, message_prefix(), "layout ", *layout,
              " is not supported; use torch.strided");
  TORCH_CHECK(!c10::pinned_memory_or_default(pin), message_prefix(),
              "only tensors on the CPU can be pinned; remove pin_memory");
  const c10::Device given = c10::device_or_default(device);
  return given.has_index() ? given : c10::Device(given.type(), current_device());
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  const c10::Device on = device_for(layout, device, pin);
  if (format.value_or(at::MemoryFormat::Contiguous) == at::MemoryFormat::Contiguous)
    return dense_tensor(size, c10::dtype_or_default(dtype), on);
  const c10::DeviceGuard guard(on);
  return at::detail::empty_generic(size, &allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin) {
  const c10::DeviceGuard guard(device_for(layout, device, pin));
  return at::detail::empty_strided_generic(size, stride, &allocator(), kKeys, c10::dtype_or_default(dtype));
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) { return at::native::view(self, size); }

at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}

at::Tensor unfold(const at::Tensor& self, int64_t dim, int64_t size, int64_t step) {
  return at::native::unfold(self, dim, size, step);
}

// Enlarges the storage so that it contains all elements of the tensor. The contents remain.
void grow_storage(const at::Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  const size_t bytes = at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.itemsize(),
                                                        static_cast<size_t>(self.storage_offset()));
  if (self.numel() > 0 && bytes > self.storage().nbytes())
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), bytes);
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  if (self.sizes() != size) {
    self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
    grow_storage(self);
  }
  if (format) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_source_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return self.set_(std::move(source), 0, {count}, {});
}

at::Tensor& set_source_storage_offset(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                                      at::IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  if (stride.data() != nullptr) {
    impl->set_sizes_and_strides(size, stride);
  } else {
    impl->set_sizes_contiguous(size);
  }
  grow_storage(self);
  return self;
}

at::Tensor& set_source_tensor(at::Tensor& self, const at::Tensor& source) {
  return at::native::set_tensor_(self, source);
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  allocator().recordStream(self.storage().data_ptr(), stream);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "views");
  family.add<"empty.memory_format", empty>();
  family.add<"empty_strided", empty_strided>();
  family.add<"as_strided", as_strided>();
  family.add<"view", view>();
  family.add<"_reshape_alias", reshape_alias>();
  family.add<"unfold", unfold>();
  family.add<"resize_", resize>();
  family.add<"set_.source_Storage", set_source_storage>();
  family.add<"set_.source_Storage_storage_offset", set_source_storage_offset>();
  family.add<"set_.source_Tensor", set_source_tensor>();
  family.add<"record_stream", record_stream>();
}

}  // namespace
}  // namespace backplane_torch
