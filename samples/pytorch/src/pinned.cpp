// SPDX-License-Identifier: Apache-2.0
#include "pinned.hpp"

#include "devices.hpp"

namespace backplane_torch {
namespace {

void release_pinned(void* buffer) { bph_buffer_release(static_cast<bph_buffer*>(buffer)); }

// Allocates pinned memory for PyTorch. libbackplane caches this memory, and counts it in the statistics of the
// device.
class PinnedAllocator final : public at::HostAllocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, at::kCPU};
    auto desc = backplane::detail::sized<bph_buffer_desc>();
    desc.kind = BP_MEMORY_HOST;
    desc.bytes = bytes;
    bph_buffer* buffer = nullptr;
    call(bph_buffer_create, device_handle(current_device()), &desc, &buffer);
    std::unique_ptr<bph_buffer, backplane::detail::Release<bph_buffer_release>> owner(buffer);
    void* address = nullptr;
    call(bph_buffer_map, buffer, &address);
    return {address, owner.release(), &release_pinned, at::kCPU};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  // Records nothing, because libbackplane itself reuses memory safely: only after all work that was pending
  // when the buffer was released has completed.
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}  // empty, because torch.accelerator.empty_cache trims the memory of all kinds
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

}  // namespace

at::HostAllocator& pinned_allocator() {
  static auto* const only = new PinnedAllocator;  // never destroyed, because tensors may outlive static objects
  return *only;
}

bool is_pinned(const void* address) {
  bph_device* device = nullptr;
  bph_buffer* buffer = nullptr;
  uint64_t offset = 0;
  auto info = backplane::detail::sized<bph_buffer_info>();
  return bph_buffer_from_address(reinterpret_cast<uint64_t>(address), &device, &buffer, &offset, nullptr) == BP_OK &&
         bph_buffer_get_info(buffer, &info, nullptr) == BP_OK && info.kind == BP_MEMORY_HOST;
}

}  // namespace backplane_torch
