// SPDX-License-Identifier: Apache-2.0
#include "allocator.hpp"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/Storage.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>

#include "devices.hpp"

namespace backplane_torch {
namespace {

using c10::CachingDeviceAllocator::DeviceStats;

// A count that several threads change. The fields of PyTorch's Stat are not atomic, so this struct replaces
// them. An allocation or a release is one atomic addition, and a new peak is one more atomic operation.
struct Counter {
  std::atomic<int64_t> allocated{0}, freed{0}, peak{0};
  // The values of `allocated` and `freed` at the last reset.
  std::atomic<int64_t> allocated_before{0}, freed_before{0};

  int64_t current() const { return allocated.load(std::memory_order_relaxed) - freed.load(std::memory_order_relaxed); }
  void increase(int64_t amount) {
    const int64_t sum = allocated.fetch_add(amount, std::memory_order_relaxed) + amount;
    const int64_t now = sum - freed.load(std::memory_order_relaxed);
    int64_t highest = peak.load(std::memory_order_relaxed);
    while (now > highest && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
    }
  }
  void decrease(int64_t amount) { freed.fetch_add(amount, std::memory_order_relaxed); }
  void reset_peak() { peak.store(current()); }
  void reset_accumulated() {
    allocated_before.store(allocated.load());
    freed_before.store(freed.load());
  }
  void write_to(c10::CachingAllocator::StatArray& stats) const {
    c10::CachingAllocator::Stat& all = stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    all.current = current();
    all.peak = peak.load();
    all.allocated = allocated.load() - allocated_before.load();
    all.freed = freed.load() - freed_before.load();
  }
};

// The allocations of tensors on one device. libbackplane's own counters are not suitable, because they include
// its workspaces, and cannot be reset.
struct Counters {
  Counter number, bytes;
  // Values of libbackplane's counters at the last reset.
  std::atomic<uint64_t> retries{0}, plugin_allocations{0};
};

Counters& counters_of(c10::DeviceIndex index) {
  static constinit std::array<Counters, std::numeric_limits<c10::DeviceIndex>::max()> all;
  return all[static_cast<size_t>(index)];
}

struct Allocation {
  std::unique_ptr<bph_buffer, backplane::detail::Release<bph_buffer_release>> buffer;
  int64_t bytes;
  Counters& counters;
  bool readable;  // the host may read the memory at its address
};

void release(void* context) {
  const std::unique_ptr<Allocation> allocation(static_cast<Allocation*>(context));
  allocation->counters.number.decrease(1);
  allocation->counters.bytes.decrease(allocation->bytes);
}

bph_stats stats_of(c10::DeviceIndex index) {
  auto stats = backplane::detail::sized<bph_stats>();
  call(bph_device_stats, device_handle(index), &stats);
  return stats;
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override { return allocate_on(current_device(), bytes); }

  // Returns null. Raw allocation requires that the address of a DataPtr is also its context, which is not true
  // of this allocator.
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void* dst, const void* src, size_t bytes) const override {
    bph_device* device = nullptr;
    bph_buffer *to = nullptr, *from = nullptr;
    uint64_t to_offset = 0, from_offset = 0;
    call(bph_buffer_from_address, reinterpret_cast<uint64_t>(dst), &device, &to, &to_offset);
    call(bph_buffer_from_address, reinterpret_cast<uint64_t>(src), &device, &from, &from_offset);
    call(bph_copy, current_stream_handle(current_device()), to, to_offset, from, from_offset, uint64_t{bytes}, 0u);
  }

  bool initialized() override { return device_count() > 0; }

  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex i = 0; i < device_count(); ++i)
      call(bph_device_trim, device_handle(i), 0u, static_cast<uint64_t*>(nullptr));
  }

  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    if (bph_buffer* buffer = memory_of(data).buffer) call(bph_buffer_record, buffer, stream_handle(stream));
  }

  DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    const bph_stats from = stats_of(index);
    const Counters& counters = counters_of(index);
    DeviceStats stats;
    counters.number.write_to(stats.allocation);
    for (auto* const bytes : {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes})
      counters.bytes.write_to(*bytes);
    auto& reserved = stats.reserved_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    reserved.current = static_cast<int64_t>(from.bytes_reserved);
    reserved.peak = static_cast<int64_t>(from.bytes_reserved_peak);  // the peak since the device was opened
    stats.num_alloc_retries = static_cast<int64_t>(from.out_of_memory_retries - counters.retries.load());
    stats.num_device_alloc =
        static_cast<int64_t>(from.allocations - from.allocations_cached - counters.plugin_allocations.load());
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    const bph_stats now = stats_of(index);
    Counters& counters = counters_of(index);
    counters.number.reset_accumulated();
    counters.bytes.reset_accumulated();
    counters.retries.store(now.out_of_memory_retries);
    counters.plugin_allocations.store(now.allocations - now.allocations_cached);
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    device_handle(index);  // raises an error if the index does not exist
    counters_of(index).number.reset_peak();
    counters_of(index).bytes.reset_peak();
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    auto info = backplane::detail::sized<bp_memory_info>();
    call(bph_device_memory_info, device_handle(index), uint32_t{BP_MEMORY_DEVICE}, &info);
    if (info.free_bytes == UINT64_MAX)  // the driver does not report free memory
      info.free_bytes = info.total_bytes - std::min(stats_of(index).bytes_reserved, info.total_bytes);
    return {info.free_bytes, info.total_bytes};
  }
};

}  // namespace

// [allocate]
c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes) {
  const c10::Device device(c10::DeviceType::PrivateUse1, index);
  if (bytes == 0) return {nullptr, device};
  auto desc = backplane::detail::sized<bph_buffer_desc>();
  desc.kind = BP_MEMORY_DEVICE;
  desc.bytes = bytes;
  desc.stream = current_stream_handle(index);
  bph_buffer* buffer = nullptr;
  call(bph_buffer_create, device_handle(index), &desc, &buffer);
  std::unique_ptr<bph_buffer, backplane::detail::Release<bph_buffer_release>> owner(buffer);
  auto info = backplane::detail::sized<bph_buffer_info>();
  call(bph_buffer_get_info, buffer, &info);
  Counters& counters = counters_of(index);
  const bool readable = (info.flags & BPH_BUFFER_ADDRESS_NATIVE) != 0 && has_host_memory(index);
  auto* const allocation = new Allocation{std::move(owner), static_cast<int64_t>(bytes), counters, readable};
  counters.number.increase(1);
  counters.bytes.increase(allocation->bytes);
  return {reinterpret_cast<void*>(info.address), allocation, &release, device};
}
// [/allocate]

at::Tensor dense_tensor(at::IntArrayRef shape, at::ScalarType type, c10::Device device) {
  at::detail::check_size_nonnegative(shape);
  const size_t bytes = at::detail::computeStorageNbytesContiguous(shape, c10::elementSize(type));
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       allocate_on(device.index(), bytes), &allocator(), true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKey::PrivateUse1,
                                                               c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  return tensor;
}

c10::DeviceAllocator& allocator() {
  static auto* const only = new Allocator;  // never destroyed, because tensors may outlive static objects
  return *only;
}

Memory memory_of(const c10::DataPtr& data) {
  if (data.get() == nullptr) return {};
  if (data.get_deleter() == &release) [[likely]]
    return {static_cast<Allocation*>(data.get_context())->buffer.get(), 0};
  bph_device* device = nullptr;
  Memory memory;
  call(bph_buffer_from_address, reinterpret_cast<uint64_t>(data.get()), &device, &memory.buffer, &memory.offset);
  return memory;
}

Memory memory_of(const at::TensorBase& tensor) {
  Memory memory = memory_of(tensor.storage().data_ptr());
  memory.offset += static_cast<uint64_t>(tensor.storage_offset()) * tensor.itemsize();
  return memory;
}

const void* host_address(const at::TensorBase& tensor) {
  const c10::DataPtr& data = tensor.storage().data_ptr();
  if (data.get_deleter() != &release || !static_cast<const Allocation*>(data.get_context())->readable) return nullptr;
  return static_cast<const char*>(data.get()) + tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
}

}  // namespace backplane_torch
