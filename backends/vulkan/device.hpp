// SPDX-License-Identifier: Apache-2.0
// An open device: what kit::DeviceTable makes the C table of.
#pragma once

#include "event.hpp"
#include "operator.hpp"

namespace backplane::vulkan {

class Device {
 public:
  using Buffer = vulkan::Buffer;
  using Stream = vulkan::Stream;
  using Event = vulkan::Event;
  using Plan = vulkan::Plan;

  // Opens physical device `index` of `instance`. `log` is called until the device is closed.
  static kit::Result<Device*> open(const std::shared_ptr<const Instance>& instance, uint32_t index, Log log);
  ~Device();  // keeps the pipelines that were compiled
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  kit::Status memory_info(uint32_t kind, bp_memory_info& out) const { return memory_.info(kind, out); }
  kit::Result<Buffer*> create_buffer(const bp_buffer_desc& desc) { return memory_.create(desc); }
  bool imports() const { return logical_.physical().import_alignment != 0; }
  kit::Result<Buffer*> import_memory(const bp_import_desc& desc, uint32_t& kind) {
    if (desc.type != BP_IMPORT_HOST) {
      return kit::unsupported("import_memory: type ", desc.type, " is not taken, BP_IMPORT_HOST is; copy instead");
    }
    kind = BP_MEMORY_SHARED;  // all kernels take it
    return memory_.import(reinterpret_cast<void*>(desc.address), desc.bytes);
  }
  void destroy(Buffer* buffer) { memory_.destroy(buffer); }
  kit::Result<void*> map(const Buffer& buffer) const;
  kit::Result<uint64_t> address(const Buffer& buffer) const { return buffer.address; }

  kit::Result<Stream*> create_stream(const bp_stream_desc&) { return Stream::create(logical_, memory_); }
  void destroy(Stream* stream) { delete stream; }
  kit::Status wait(Stream& stream, uint64_t timeout_ns) { return stream.wait(timeout_ns); }

  kit::Result<Event*> create_event(uint32_t flags) const;
  void destroy(Event* event) { delete event; }
  kit::Status record(Event& event, Stream& stream);
  kit::Status wait(const Event& event, uint64_t timeout_ns) const;
  kit::Status wait_event(Stream& stream, const Event& event);
  kit::Result<int64_t> elapsed(const Event& begin, const Event& end) const;

  kit::Status copy(Stream& stream, const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                   uint64_t bytes);

  kit::Status create_plan(const bp_op_desc* desc, Plan** out, bp_plan_info& info);
  void destroy(Plan* plan) { delete plan; }
  kit::Status execute(Stream& stream, const Plan& plan, const bp_execution* execution);

 private:
  // What all opens of a physical device share. A process makes it once and keeps it, unless it is lost: a second open finds
  // the pipelines compiled, and drivers leave memory behind with each device that they end (Mesa 22.3: with each pipeline).
  struct Shared {
    std::unique_ptr<LogicalDevice> logical;
    kit::Kernels kernels{};
    Pipelines pipelines;
  };
  static kit::Result<std::shared_ptr<Shared>> shared(const std::shared_ptr<const Instance>& instance, uint32_t index,
                                                     const Log& log);
  Device(std::shared_ptr<Shared> shared, Log log);

  std::shared_ptr<Shared> shared_;
  LogicalDevice& logical_;
  Memory memory_;
  const Log log_;
};

}  // namespace backplane::vulkan
