// SPDX-License-Identifier: Apache-2.0
#include "allocator.hpp"

#include <c10/core/Storage.h>

#include "devices.hpp"

namespace backplane_torch {
namespace {

using c10::CachingDeviceAllocator::DeviceStats;

void release(void* buffer) { bph_buffer_release(static_cast<bph_buffer*>(buffer)); }

// The host API does not count the bytes of all allocations so far, so `allocated` and `freed` stay 0.
void set(c10::CachingAllocator::StatArray& stats, uint64_t current, uint64_t peak) {
  c10::CachingAllocator::Stat& all = stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  all.current = static_cast<int64_t>(current);
  all.peak = static_cast<int64_t>(peak);
}

class Allocator final : public c10::DeviceAllocator {
 public:
  // Allocates on the calling thread's current device, in the order of its current stream.
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex index = current_device();
    const c10::Device device(c10::DeviceType::PrivateUse1, index);
    if (bytes == 0) return {nullptr, device};
    auto desc = backplane::detail::sized<bph_buffer_desc>();
    desc.kind = BP_MEMORY_DEVICE;
    desc.bytes = bytes;
    desc.stream = current_stream_handle(index);
    bph_buffer* buffer = nullptr;
    call(bph_buffer_create, device_handle(index), &desc, &buffer);
    auto info = backplane::detail::sized<bph_buffer_info>();
    std::unique_ptr<bph_buffer, backplane::detail::Release<bph_buffer_release>> owner(buffer);
    call(bph_buffer_get_info, buffer, &info);
    return {reinterpret_cast<void*>(info.address), owner.release(), &release, device};
  }

  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // address and context differ

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
    if (data.get_context() == nullptr) return;
    call(bph_buffer_record, static_cast<bph_buffer*>(data.get_context()), stream_handle(stream));
  }

  DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    auto from = backplane::detail::sized<bph_stats>();
    call(bph_device_stats, device_handle(index), &from);
    DeviceStats stats;
    set(stats.allocated_bytes, from.bytes_in_use, from.bytes_in_use_peak);
    set(stats.active_bytes, from.bytes_in_use, from.bytes_in_use_peak);
    set(stats.reserved_bytes, from.bytes_reserved, from.bytes_reserved_peak);
    stats.num_alloc_retries = static_cast<int64_t>(from.out_of_memory_retries);
    stats.num_device_alloc = static_cast<int64_t>(from.allocations - from.allocations_cached);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override { cannot_reset(); }
  void resetPeakStats(c10::DeviceIndex) override { cannot_reset(); }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    auto info = backplane::detail::sized<bp_memory_info>();
    call(bph_device_memory_info, device_handle(index), uint32_t{BP_MEMORY_DEVICE}, &info);
    return {info.free_bytes, info.total_bytes};
  }

 private:
  [[noreturn]] static void cannot_reset() {
    raise(BP_UNSUPPORTED, "the counters of a device cannot be reset; subtract an earlier value instead");
  }
};

}  // namespace

c10::DeviceAllocator& allocator() {
  static auto* const only = new Allocator;  // never destroyed, because tensors may outlive it
  return *only;
}

Memory memory_of(const c10::Storage& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  if (data.get() == nullptr) return {};
  if (data.get_deleter() == &release) [[likely]]
    return {static_cast<bph_buffer*>(data.get_context()), 0};
  bph_device* device = nullptr;
  Memory memory;
  call(bph_buffer_from_address, reinterpret_cast<uint64_t>(data.get()), &device, &memory.buffer, &memory.offset);
  return memory;
}

Memory memory_of(const at::TensorBase& tensor) {
  Memory memory = memory_of(tensor.storage());
  memory.offset += static_cast<uint64_t>(tensor.storage_offset()) * tensor.itemsize();
  return memory;
}

}  // namespace backplane_torch
