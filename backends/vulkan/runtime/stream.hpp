// SPDX-License-Identifier: Apache-2.0
// What a stream of the kit enqueues to: commands are recorded into batches, and a batch is submitted when it is marked, full, or when
// the device has nothing else of this stream.
#pragma once

#include <array>

#include "runtime/hazards.hpp"
#include "runtime/memory.hpp"
#include "runtime/params.hpp"
#include "runtime/timeline.hpp"

namespace backplane::vulkan {

// A timestamp of the device; its query goes back to the device's list when event and batch have left it.
class Stamp {
 public:
  Stamp(LogicalDevice& device, VkQueryPool pool) : device_(device), pool_(pool) {}
  ~Stamp() { device_.give_query(pool_); }
  Stamp(const Stamp&) = delete;
  Stamp& operator=(const Stamp&) = delete;
  VkQueryPool pool() const { return pool_; }

 private:
  LogicalDevice& device_;
  VkQueryPool pool_;
};

// The failure of a call that takes accepted work along: it ends the kit's stream.
kit::Status work_is_lost(const kit::Status& cause);

class Stream {
 public:
  static kit::Result<std::unique_ptr<Stream>> create(LogicalDevice& device, Memory& memory);
  ~Stream();  // waits for what was submitted
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Submits; the point behind all work so far. With a `stamp`, its time is taken there.
  kit::Result<Point> mark(const std::shared_ptr<Stamp>& stamp);
  // Later work starts after `point`.
  kit::Status wait_for(const Point& point);
  // Commands enqueued so far.
  uint64_t enqueued() const { return enqueued_; }
  kit::Status copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes);

  // One kernel. `fill(Block&, uint64_t address)` writes what the shader reads at `address`, which it is pushed: Params, or a
  // plain struct of the kernel's own. The memory holds what it held before, and is written only: it may be uncached.
  struct Dispatch {
    VkPipeline pipeline = VK_NULL_HANDLE;
    uint32_t groups[3] = {1, 1, 1};
    std::span<const Access> accesses;
    uint64_t operations = 0;  // where they, not the bytes touched, say how long it takes
  };
  template <class Block = Params, class Fill>
  kit::Status dispatch(const Dispatch& dispatch, const Fill& fill) {
    static_assert(std::is_trivially_copyable_v<Block> && sizeof(Block) <= kMaxParams && alignof(Block) <= kParamsAlign);
    if (kit::Status status = open_batch(); !status.ok()) return status;
    const uint64_t at = open_->params_at + open_->params_used;
    fill(*reinterpret_cast<Block*>(params_->mapped + at), params_->address + at);
    return enqueue(dispatch, sizeof(Block));
  }
  static constexpr uint32_t kMaxParams = 2048;  // bytes of a block
  static constexpr uint32_t kParamsAlign = 64;

  // A batch that touches so much is submitted, for drivers take one of some seconds for hung: half a second of a device of
  // 16 GB/s. So is one of PhysicalDevice::most_operations.
  static constexpr uint64_t kMaxBytes = uint64_t{8} << 30;

  // Device memory of the stream's own for what kernels of an execution hand on, kScratchBytes at a multiple of 256. Who
  // dispatches names the bytes among the accesses, as an operand's: that is what orders executions that use them.
  uint64_t scratch() const { return scratch_->address; }
  static constexpr uint64_t kScratchBytes = uint64_t{8} << 20;

 private:
  enum QueueKind : uint32_t { kCompute, kCopy, kQueueKinds };  // which of the stream's queues

  struct Commands {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer buffer = VK_NULL_HANDLE;
  };
  // A command buffer with what its commands refer to.
  struct Batch {
    Commands of[kQueueKinds];  // made when first needed
    QueueKind queue = kCompute;
    VkCommandBuffer commands = VK_NULL_HANDLE;  // the lane's
    VkPipeline bound = VK_NULL_HANDLE;
    uint64_t params_at = 0;  // in the stream's parameters, kParamsBytes of them
    uint32_t params_used = 0;
    uint32_t commands_recorded = 0;              // commands recorded
    uint64_t bytes = 0, operations = 0;          // that they touch, and do
    uint64_t value = 0;                          // of the timeline, when it has ended
    std::vector<Point> waits;                    // before it starts
    std::vector<std::shared_ptr<Stamp>> stamps;  // that it writes
  };
  static constexpr uint32_t kBatches = 8;
  static constexpr uint32_t kParamsBytes = 80 * 1024;
  static constexpr uint32_t kMaxCommands = 112;  // commands of a batch
  static constexpr uint32_t kIdleCheck = 16;     // after so many commands an idle device is given the batch

  Stream(LogicalDevice& device, Memory& memory, std::shared_ptr<Timeline> timeline)
      : device_(device),
        memory_(memory),
        queues_{device.next_queue(), device.next_copy_queue()},
        timeline_(std::move(timeline)),
        submitted_(timeline_->start()) {}

  kit::Status start();
  // Begins a batch if none of the lane is recorded; then `open_` is one.
  kit::Status open_batch(QueueKind queue = kCompute);
  kit::Result<Batch*> idle_batch();
  kit::Status make(Commands& commands, QueueKind queue);
  kit::Status begin(Batch& batch, QueueKind queue);
  void order(std::span<const Access> accesses);
  kit::Status enqueue(const Dispatch& dispatch, uint32_t params_bytes);
  kit::Status after_command();
  kit::Status flush();
  kit::Status submit(Batch& batch);
  void barrier(const Batch& batch, VkPipelineStageFlags to, VkAccessFlags access);

  LogicalDevice& device_;
  Memory& memory_;
  const Queue queues_[kQueueKinds];
  std::shared_ptr<Timeline> timeline_;
  Buffer* params_ = nullptr;  // of all batches
  Buffer* scratch_ = nullptr;
  std::array<Batch, kBatches> batches_;
  uint32_t made_ = 0;  // batches that were used
  Batch* open_ = nullptr;
  uint64_t submitted_;
  uint64_t enqueued_ = 0;
  std::vector<Point> waits_;  // of the next batch
  Hazards hazards_;
  // Kept, so that no call allocates: what a submission lists.
  std::vector<VkSemaphore> semaphores_;
  std::vector<uint64_t> values_;
  std::vector<VkPipelineStageFlags> stages_;
};

}  // namespace backplane::vulkan
