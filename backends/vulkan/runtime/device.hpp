// SPDX-License-Identifier: Apache-2.0
// An open device, with the interface that the kit's queue devices require (queue_device.hpp).
#pragma once

#include "runtime/operator.hpp"

namespace backplane::vulkan {

class Native {
 public:
  using Memory = Buffer*;
  using Queue = Stream;
  struct Mark {
    Point point;
    std::shared_ptr<Stamp> stamp;  // null if the mark is not timed
  };
  using Kernel = std::shared_ptr<const Operator>;
  using Program = vulkan::Program;
  using Semaphore = vulkan::Semaphore;

  static constexpr uint64_t kMaxAlignment = vulkan::Memory::kMaxAlignment;
  static constexpr bool kWaitsForPassed = true;
  // A program is a set of pipelines. Pipelines outlive streams, so a stream need not keep alive the programs that it
  // executes.
  static constexpr bool kProgramsStay = true;

  // Opens physical device `index` of `instance`. `log` is called until the device is closed.
  static kit::Result<std::unique_ptr<Native>> open(const std::shared_ptr<const Instance>& instance, uint32_t index,
                                                   Log log);
  ~Native();  // saves compiled pipelines to the cache file; the last open device frees empty blocks of memory
  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;

  const Operators& operators() const { return shared_->operators; }
  uint32_t memory_kinds() const;
  kit::Status health() const { return logical_.health(); }

  kit::Status memory_info(uint32_t kind, bp_memory_info& out) const { return memory_.info(kind, out); }
  kit::Result<Buffer*> allocate(const bp_buffer_desc& desc) { return memory_.create(desc); }
  bool imports() const { return logical_.physical().import_alignment != 0; }
  kit::Result<Buffer*> import_memory(const bp_import_desc& desc, uint32_t& kind) {
    if (desc.type != BP_IMPORT_HOST) {
      return kit::unsupported("import_memory: type ", desc.type,
                              " is not supported; import memory of the type BP_IMPORT_HOST, or copy");
    }
    kind = BP_MEMORY_SHARED;  // every kernel accepts SHARED memory
    return memory_.import(reinterpret_cast<void*>(desc.address), desc.bytes);
  }
  std::span<const kit::ExternalType> external_types() const {
    return {&external_, logical_.physical().external == 0 ? std::size_t{0} : std::size_t{1}};
  }
  kit::Result<Buffer*> allocate_external(const bp_buffer_desc& desc, std::string_view type) {
    if (kit::Status status = check_type(type, BP_EXTERNAL_MEMORY_EXPORT); !status.ok()) return status;
    return memory_.create_external(desc);
  }
  kit::Result<bp_external_handle> export_memory(const Memory& memory, std::string_view type) const {
    if (kit::Status status = check_type(type, BP_EXTERNAL_MEMORY_EXPORT); !status.ok()) return status;
    return memory_.exported(*memory);
  }
  kit::Result<Buffer*> import_external(const bp_external_handle& handle, uint32_t& kind) {
    if (kit::Status status = check_handle(handle, BP_EXTERNAL_MEMORY_IMPORT); !status.ok()) return status;
    kind = BP_MEMORY_DEVICE;
    return memory_.import_external(handle);
  }
  kit::Result<std::unique_ptr<Semaphore>> create_semaphore(std::string_view type, uint64_t value) const {
    if (kit::Status status = check_type(type, BP_EXTERNAL_SEMAPHORE_EXPORT); !status.ok()) return status;
    return Semaphore::create(logical_, value, true);
  }
  kit::Result<bp_external_handle> export_semaphore(const Semaphore& semaphore, std::string_view type) const {
    if (kit::Status status = check_type(type, BP_EXTERNAL_SEMAPHORE_EXPORT); !status.ok()) return status;
    return semaphore.exported();
  }
  kit::Result<std::unique_ptr<Semaphore>> import_semaphore(const bp_external_handle& handle) const {
    if (kit::Status status = check_handle(handle, BP_EXTERNAL_SEMAPHORE_IMPORT); !status.ok()) return status;
    return Semaphore::open(logical_, handle);
  }
  kit::Status signal(Semaphore& semaphore, uint64_t value) const { return semaphore.raise_now(value); }
  kit::Status signal(Stream& stream, Semaphore& semaphore, uint64_t value) const {
    return stream.signal(semaphore, value);
  }
  kit::Status wait(Stream& stream, const Semaphore& semaphore, uint64_t value) const {
    return stream.wait(semaphore, value);
  }
  void free(Buffer* buffer) { memory_.destroy(buffer); }
  void* map(Buffer* buffer) const { return buffer->mapped; }
  uint64_t address(Buffer* buffer) const { return buffer->address; }

  kit::Result<bp_native_handle> device_handle(uint32_t index) const;
  kit::Result<bp_native_handle> handle(const Memory& memory) const;
  kit::Result<bp_native_handle> handle(const Mark& mark) const;

  kit::Result<std::unique_ptr<Stream>> create_queue(const bp_stream_desc&) { return Stream::create(logical_, memory_); }
  kit::Result<Mark> mark(Stream& stream, bool timed);
  kit::Status poll(const Mark& mark) const { return wait(mark, 0); }
  kit::Status wait(const Mark& mark, uint64_t timeout_ns) const {
    return mark.point.timeline->wait(mark.point.value, timeout_ns);
  }
  kit::Status wait_for(Stream& stream, const Mark& mark) const { return stream.wait_for(mark.point); }
  kit::Result<int64_t> elapsed(const Mark& begin, const Mark& end);

  kit::Status copy(Stream& stream, Buffer* dst, uint64_t dst_offset, Buffer* src, uint64_t src_offset,
                   uint64_t bytes) const {
    return stream.copy(*dst, dst_offset, *src, src_offset, bytes);
  }

  kit::Status prepare(const Kernel& op, const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const {
    return op->prepare(checked, needs);
  }
  kit::Result<Program> compile(const Kernel& op, const kit::CheckedDesc& checked, const kit::PlanForm& plan);
  kit::Status launch(Stream& stream, const Program& program, const Call& call) const;

 private:
  // State that all Native objects of one physical device share. The first Native creates this
  // state. The state exists until the device is lost, so that later Native objects reuse compiled
  // pipelines. Sharing also limits leaks, because drivers leak memory per VkDevice and, in
  // Mesa 22.3, per pipeline.
  struct Shared {
    std::unique_ptr<LogicalDevice> logical;
    vulkan::Memory memory;
    Operators operators{};
    Pipelines pipelines;
    std::atomic<uint32_t> natives{0};  // number of Native objects
  };
  static kit::Result<std::shared_ptr<Shared>> shared(const std::shared_ptr<const Instance>& instance, uint32_t index,
                                                     const Log& log);
  Native(std::shared_ptr<Shared> shared, Log log);

  // Both functions return UNSUPPORTED if the device does not support external handles of this type, or lacks the
  // operation `flag` (BP_EXTERNAL_*).
  kit::Status check_type(std::string_view type, uint32_t flag) const;
  kit::Status check_handle(const bp_external_handle& handle, uint32_t flag) const;

  std::shared_ptr<Shared> shared_;
  LogicalDevice& logical_;
  const kit::ExternalType external_;
  vulkan::Memory& memory_;
  const Log log_;
};

using Device = kit::QueueDevice<Native>;

kit::Result<Device*> open_device(const std::shared_ptr<const Instance>& instance, uint32_t index, Log log);

}  // namespace backplane::vulkan
