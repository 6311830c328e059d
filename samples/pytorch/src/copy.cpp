// SPDX-License-Identifier: Apache-2.0
#include "copy.hpp"

#include <ATen/core/CachingHostAllocator.h>

#include "allocator.hpp"
#include "call.hpp"
#include "devices.hpp"
#include "overloads.hpp"

namespace backplane_torch {
namespace {

uint64_t byte_offset(const at::Tensor& tensor) {
  return static_cast<uint64_t>(tensor.storage_offset()) * tensor.itemsize();
}

bph_stream* stream_for(const at::Tensor& tensor) { return current_stream_handle(tensor.device().index()); }

// Returns whether the elements of both tensors have the same order in memory, without gaps.
bool same_dense_layout(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.is_non_overlapping_and_dense();
}

void copy_from_cpu(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (same_dense_layout(to, from)) {
    // The source of a blocking copy, and of a copy from pageable memory, may change after the call.
    const bool borrowed = non_blocking && from.is_pinned();
    call(bph_copy_in, stream_for(to), buffer_of(to.storage()), byte_offset(to), from.const_data_ptr(),
         uint64_t{to.nbytes()}, borrowed ? 0u : BPH_COPY_SOURCE_FREE);
    if (borrowed)
      at::getHostAllocator(at::kPrivateUse1)
          ->record_event(from.mutable_data_ptr(), from.storage().data_ptr().get_context(),
                         current_stream(to.device().index()));
    return;
  }
  const at::Tensor dense = from.to(to.scalar_type()).expand(to.sizes()).contiguous();
  if (to.is_contiguous()) return copy_from_cpu(to, dense, false);
  const at::Tensor staged = at::empty(to.sizes(), to.options().memory_format(at::MemoryFormat::Contiguous));
  copy_from_cpu(staged, dense, false);
  copy_on_device(to, staged);
}

void copy_to_cpu(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (same_dense_layout(to, from)) {
    const bool enqueued = non_blocking && to.is_pinned();
    call(bph_copy_out, stream_for(from), to.mutable_data_ptr(), buffer_of(from.storage()), byte_offset(from),
         uint64_t{from.nbytes()}, enqueued ? BPH_COPY_ENQUEUE : 0u);
    if (enqueued)
      at::getHostAllocator(at::kPrivateUse1)
          ->record_event(to.mutable_data_ptr(), to.storage().data_ptr().get_context(),
                         current_stream(from.device().index()));
    return;
  }
  const at::Tensor dense = from.contiguous();
  const at::Tensor staged = at::empty(from.sizes(), dense.options().device(at::kCPU));
  copy_to_cpu(staged, dense, false);
  to.copy_(staged);
}

void copy_across(const at::Tensor& to, const at::Tensor& from) {
  if (same_dense_layout(to, from)) {
    return call(bph_copy_across, stream_for(to), buffer_of(to.storage()), byte_offset(to), stream_for(from),
                buffer_of(from.storage()), byte_offset(from), uint64_t{to.nbytes()}, 0u);
  }
  const at::Tensor dense = as_type(from, to.scalar_type()).contiguous();
  const at::Tensor staged = at::empty(dense.sizes(), to.options().memory_format(at::MemoryFormat::Contiguous));
  copy_across(staged, dense);
  copy_on_device(to, staged);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  if (dst.numel() == 0) return dst;
  if (self.is_cpu()) {
    copy_from_cpu(dst, self, non_blocking);
  } else if (dst.is_cpu()) {
    copy_to_cpu(dst, self.expand(dst.sizes()), non_blocking);
  } else if (self.device() == dst.device()) {
    copy_on_device(dst, self);
  } else {
    copy_across(dst, self.expand(dst.sizes()));
  }
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

// Reads the only element. Waits for the stream.
at::Scalar local_scalar(const at::Tensor& self) {
  const at::Tensor value = at::empty({}, self.options().device(at::kCPU));
  call(bph_copy_out, stream_for(self), value.mutable_data_ptr(), buffer_of(self.storage()), byte_offset(self),
       uint64_t{self.itemsize()}, 0u);
  return value.item();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "copy");
  family.add<"_copy_from", copy_from>();
  family.add<"_copy_from_and_resize", copy_from_and_resize>();
  family.add<"_local_scalar_dense", local_scalar>();
}

}  // namespace

void copy_on_device(const at::Tensor& to, const at::Tensor& from) {
  if (to.is_same(from) || to.numel() == 0) return;
  if (same_dense_layout(to, from) && dtype_of(to.scalar_type()) == 0) {  // the bytes of any dtype
    return call(bph_copy, stream_for(to), buffer_of(to.storage()), byte_offset(to), buffer_of(from.storage()),
                byte_offset(from), uint64_t{to.nbytes()}, 0u);
  }
  const bool same_type = to.scalar_type() == from.scalar_type();
  Call(same_type ? BP_OP_COPY : BP_OP_CAST, to).in(from, to.sizes()).out(to).run();
}

}  // namespace backplane_torch
