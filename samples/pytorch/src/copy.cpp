// SPDX-License-Identifier: Apache-2.0
#include "copy.hpp"

#include <ATen/Dispatch_v2.h>

#include <array>
#include <cstddef>

#include "allocator.hpp"
#include "call.hpp"
#include "devices.hpp"
#include "overloads.hpp"

namespace backplane_torch {
namespace {

bph_stream* stream_for(const at::Tensor& tensor) { return current_stream_handle(tensor.device().index()); }

// Returns whether both tensors have the same dtype and shape, and store their elements in the same order without
// gaps. A stride does not matter if its dimension has the extent 1, and the strides of contiguous tensors may differ
// there.
bool same_dense_layout(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() || !a.is_non_overlapping_and_dense()) return false;
  for (int64_t dim = 0; dim < a.dim(); ++dim) {
    if (a.size(dim) != 1 && a.stride(dim) != b.stride(dim)) return false;
  }
  return true;
}

// Reads a scalar from host memory.
at::Scalar scalar_of(const void* address, at::ScalarType type) {
  return AT_DISPATCH_V2(type, "_local_scalar_dense",
                        AT_WRAP([&] { return at::Scalar(*static_cast<const scalar_t*>(address)); }),
                        AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                        AT_EXPAND(AT_FLOAT8_TYPES), at::kComplexHalf, at::kHalf, at::kBool, at::kBFloat16);
}

// Enqueues a copy between pinned memory and a device, and does not wait. Does nothing and returns false if the
// copy must block, or if the host's memory is pageable.
bool copied_pinned(const at::Tensor& host, bool non_blocking, const at::Tensor& on, bool to_host) {
  if (!non_blocking || !host.is_pinned()) return false;
  const Memory pinned = memory_of(host), device = memory_of(on);
  const Memory &to = to_host ? pinned : device, &from = to_host ? device : pinned;
  call(bph_copy, stream_for(on), to.buffer, to.offset, from.buffer, from.offset, uint64_t{host.nbytes()}, 0u);
  return true;
}

void copy_from_cpu(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (same_dense_layout(to, from)) {
    if (copied_pinned(from, non_blocking, to, false)) return;
    const Memory memory = memory_of(to);
    return call(bph_copy_in, stream_for(to), memory.buffer, memory.offset, from.const_data_ptr(), uint64_t{to.nbytes()},
                BPH_COPY_SOURCE_FREE);
  }
  const at::Tensor dense = from.to(to.scalar_type()).expand(to.sizes()).contiguous();
  if (to.is_contiguous()) return copy_from_cpu(to, dense, false);
  const at::Tensor staged = at::empty(to.sizes(), to.options().memory_format(at::MemoryFormat::Contiguous));
  copy_from_cpu(staged, dense, false);
  copy_on_device(to, staged);
}

void copy_to_cpu(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (same_dense_layout(to, from)) {
    if (copied_pinned(to, non_blocking, from, true)) return;
    const Memory memory = memory_of(from);
    return call(bph_copy_out, stream_for(from), to.mutable_data_ptr(), memory.buffer, memory.offset,
                uint64_t{from.nbytes()}, 0u);
  }
  const at::Tensor dense = from.contiguous();
  const at::Tensor staged = at::empty(from.sizes(), dense.options().device(at::kCPU));
  copy_to_cpu(staged, dense, false);
  to.copy_(staged);
}

void copy_across(const at::Tensor& to, const at::Tensor& from) {
  if (same_dense_layout(to, from)) {
    const Memory target = memory_of(to), source = memory_of(from);
    return call(bph_copy_across, stream_for(to), target.buffer, target.offset, stream_for(from), source.buffer,
                source.offset, uint64_t{to.nbytes()}, 0u);
  }
  const at::Tensor dense = as_type(from, to.scalar_type()).contiguous();
  const at::Tensor staged = at::empty(dense.sizes(), to.options().memory_format(at::MemoryFormat::Contiguous));
  copy_across(staged, dense);
  copy_on_device(to, staged);
}

// Returns a view of the numbers as they are stored in memory. If PyTorch conjugates or negates `tensor` lazily, the
// view omits this step.
at::Tensor stored(at::Tensor tensor) {
  if (tensor.is_conj()) tensor = tensor.conj();
  return tensor.is_neg() ? tensor._neg_view() : tensor;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  if (dst.numel() == 0) return dst;
  const bool conjugates = self.is_conj() != dst.is_conj(), negates = self.is_neg() != dst.is_neg();
  if (conjugates || negates) {  // computed on the CPU, because devices have no complex arithmetic
    const at::Tensor numbers = at::empty(self.sizes(), self.options().device(at::kCPU));
    numbers.copy_(stored(self));
    if (conjugates) numbers.conj_physical_();
    if (negates) numbers.neg_();
    stored(dst).copy_(numbers);
    return dst;
  }
  const at::Tensor from = stored(self), to = stored(dst);
  if (from.is_cpu()) {
    copy_from_cpu(to, from, non_blocking);
  } else if (to.is_cpu()) {
    copy_to_cpu(to, from.expand(to.sizes()), non_blocking);
  } else if (from.device() == to.device()) {
    copy_on_device(to, from);
  } else {
    copy_across(to, from.expand(to.sizes()));
  }
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

// Reads the only element of a tensor. Waits for the stream.
at::Scalar local_scalar(const at::Tensor& self) {
  if (const void* const address = host_address(self)) {
    call(bph_stream_wait, stream_for(self), BP_WAIT_FOREVER);
    return scalar_of(address, self.scalar_type());
  }
  alignas(c10::complex<double>) std::array<std::byte, sizeof(c10::complex<double>)> value;
  const Memory memory = memory_of(self);
  call(bph_copy_out, stream_for(self), static_cast<void*>(value.data()), memory.buffer, memory.offset,
       uint64_t{self.itemsize()}, 0u);
  return scalar_of(value.data(), self.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "copy");
  family.add<"_copy_from", copy_from>();
  family.add<"_copy_from_and_resize", copy_from_and_resize>();
  family.add<"_local_scalar_dense", local_scalar>();
}

// Without these fallthroughs, PyTorch would first copy a conjugated or negated view to make it an ordinary
// tensor. This copy would call _copy_from again, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) { library.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, library) { library.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace

void copy_on_device(const at::Tensor& to, const at::Tensor& from) {
  if (to.is_same(from) || to.numel() == 0) return;
  // Copies only the bytes, because Backplane does not have the dtype.
  if (same_dense_layout(to, from) && dtype_of(to.scalar_type()) == 0) {
    const Memory target = memory_of(to), source = memory_of(from);
    return call(bph_copy, stream_for(to), target.buffer, target.offset, source.buffer, source.offset,
                uint64_t{to.nbytes()}, 0u);
  }
  const bool same_type = to.scalar_type() == from.scalar_type();
  Call(same_type ? BP_OP_COPY : BP_OP_CAST, to).in(from, to.sizes()).out(to).run();
}

}  // namespace backplane_torch
