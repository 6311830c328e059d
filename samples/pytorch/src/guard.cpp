// SPDX-License-Identifier: Apache-2.0
// The current device, streams and events for PyTorch. PyTorch's events are bph_event objects, which the first
// record creates.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "allocator.hpp"
#include "devices.hpp"

namespace backplane_torch {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = c10::DeviceType::PrivateUse1;
  Guard() = default;
  explicit Guard(c10::DeviceType) {}

  c10::DeviceType type() const override { return static_type; }
  Device exchangeDevice(Device device) const override {
    const Device earlier = getDevice();
    setDevice(device);
    return earlier;
  }
  Device getDevice() const override { return {static_type, current_device()}; }
  void setDevice(Device device) const override {
    if (device.index() >= 0) set_current_device(device.index());
  }
  void uncheckedSetDevice(Device device) const noexcept override { setDevice(device); }
  DeviceIndex deviceCount() const noexcept override { return device_count(); }
  void synchronizeDevice(DeviceIndex index) const override { synchronize_device(index); }

  Stream getStream(Device device) const override { return current_stream(device.index()); }
  Stream getDefaultStream(Device device) const override { return default_stream(device.index()); }
  Stream getStreamFromGlobalPool(Device device, bool urgent) const override {
    return pooled_stream(device.index(), urgent);
  }
  // In PyTorch, urgent streams have negative priorities.
  Stream getNewStream(Device device, int priority) const override {
    return pooled_stream(device.index(), priority < 0);
  }
  Stream exchangeStream(Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(Stream stream) const override { return stream_handle(stream); }
  bool queryStream(const Stream& stream) const override { return poll(bph_stream_wait, stream_handle(stream), 0u); }
  void synchronizeStream(const Stream& stream) const override {
    call(bph_stream_wait, stream_handle(stream), BP_WAIT_FOREVER);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const override {
    allocator().recordStream(data, stream);
  }

  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    bph_event_release(static_cast<bph_event*>(event));
  }
  void record(void** event, const Stream& stream, DeviceIndex index, c10::EventFlag flag) const override {
    TORCH_CHECK(index < 0 || index == stream.device_index(), message_prefix(),
                "an event of backplane:", static_cast<int>(index),
                " cannot be recorded on a stream of backplane:", static_cast<int>(stream.device_index()),
                "; create the event on the stream's device");
    bph_stream* const on = stream_handle(stream);
    if (*event == nullptr) {
      const uint32_t flags = flag == c10::EventFlag::BACKEND_DEFAULT ? BP_EVENT_TIMING : 0u;
      bph_event* created = nullptr;
      call(bph_event_create, device_handle(stream.device_index()), flags, &created);
      *event = created;
    }
    call(bph_event_record, static_cast<bph_event*>(*event), on);
  }
  void block(void* event, const Stream& stream) const override {
    if (event != nullptr) call(bph_stream_wait_event, stream_handle(stream), static_cast<bph_event*>(event));
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || poll(bph_event_wait, static_cast<bph_event*>(event), uint64_t{0});
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) call(bph_event_wait, static_cast<bph_event*>(event), BP_WAIT_FOREVER);
  }
  // Returns the time between two events in milliseconds.
  double elapsedTime(void* begin, void* end, DeviceIndex) const override {
    TORCH_CHECK(begin != nullptr && end != nullptr, message_prefix(), "record both events before elapsed_time");
    int64_t nanoseconds = 0;
    call(bph_event_elapsed, static_cast<bph_event*>(begin), static_cast<bph_event*>(end), &nanoseconds);
    return static_cast<double>(nanoseconds) * 1e-6;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace
}  // namespace backplane_torch
