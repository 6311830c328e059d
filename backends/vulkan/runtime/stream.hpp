// SPDX-License-Identifier: Apache-2.0
// The queue of a kit stream, which records commands in batches. A batch is for the kernels' queue or for the copy
// queue. A batch is submitted when mark() or a wait of the stream requires it, when the batch is full, or when the next
// command is for the other queue. A batch is also submitted when the device has completed all earlier batches of the
// stream.
#pragma once

#include <array>

#include "runtime/external.hpp"
#include "runtime/hazards.hpp"
#include "runtime/memory.hpp"
#include "runtime/params.hpp"
#include "runtime/timeline.hpp"

namespace backplane::vulkan {

// A device timestamp. Events and batches share ownership of the Stamp. The destructor returns the
// query pool to the device for reuse.
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

// Returns the status of a stream whose accepted work was lost by the failure `cause`: DEVICE_LOST if `cause` is
// DEVICE_LOST, otherwise EXECUTION_FAILED. After either status, the stream fails permanently.
kit::Status work_is_lost(const kit::Status& cause);

class Stream {
 public:
  static kit::Result<std::unique_ptr<Stream>> create(LogicalDevice& device, Memory& memory);
  ~Stream();  // waits for submitted work
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Submits all recorded commands and returns the point after these commands. If `stamp` is not
  // null, the device also records the time at that point.
  kit::Result<Point> mark(const std::shared_ptr<Stamp>& stamp);
  // Makes all later commands of this stream wait for `point`.
  kit::Status wait_for(const Point& point);
  // Makes all later commands wait until the semaphore has reached `value`. Returns UNSUPPORTED if the wait would also
  // block other streams, or if no unreserved queue would be left for new streams.
  kit::Status wait(const Semaphore& semaphore, uint64_t value);
  // Raises the semaphore to `value` when all earlier commands have completed.
  kit::Status signal(Semaphore& semaphore, uint64_t value);
  uint64_t enqueued() const { return enqueued_; }
  kit::Status copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes);

  // One execution of a kernel.
  struct Dispatch {
    VkPipeline pipeline = VK_NULL_HANDLE;
    uint32_t groups[3] = {1, 1, 1};
    std::span<const Access> accesses;
    uint64_t operations = 0;  // number of arithmetic operations; 0 if the kernel is memory-bound
  };
  // Enqueues a kernel. `fill(Block&, uint64_t address)` writes the parameter block that the shader
  // reads at `address`. Block is Params or another plain struct. The memory of the block is
  // uninitialised and may be uncached, so `fill` must only write to it.
  template <class Block = Params, class Fill>
  kit::Status dispatch(const Dispatch& dispatch, const Fill& fill) {
    static_assert(std::is_trivially_copyable_v<Block> && sizeof(Block) <= kMaxParams && alignof(Block) <= kParamsAlign);
    if (kit::Status status = open_batch(); !status.ok()) return status;
    const uint64_t at = open_->params_at + open_->params_used;
    fill(*reinterpret_cast<Block*>(params_->mapped + at), params_->address + at);
    return enqueue(dispatch, sizeof(Block));
  }
  static constexpr uint32_t kMaxParams = 2048;  // maximum size of a parameter block in bytes
  static constexpr uint32_t kParamsAlign = 64;

  // A batch is submitted once its commands access kMaxBytes bytes (0.5 s at 16 GB/s), because a
  // driver may consider a longer batch hung. PhysicalDevice::max_operations limits operations for
  // the same reason.
  static constexpr uint64_t kMaxBytes = uint64_t{8} << 30;

  // The device address of the stream's scratch memory for intermediate results. The memory has
  // kScratchBytes bytes and is aligned to 256 bytes. A dispatch must list the scratch memory that
  // it uses in `accesses`, so that executions that share this memory are ordered.
  uint64_t scratch() const { return scratch_->address; }
  static constexpr uint64_t kScratchBytes = uint64_t{8} << 20;

 private:
  enum QueueKind : uint32_t { kCompute, kCopy, kQueueKinds };

  struct Commands {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer buffer = VK_NULL_HANDLE;
  };
  // The command buffers of a batch, the objects that its commands use, and the counts that limit
  // its size.
  struct Batch {
    Commands of[kQueueKinds];  // command buffer per queue, created at the first use
    QueueKind queue = kCompute;
    VkCommandBuffer commands = VK_NULL_HANDLE;  // the command buffer of `queue`
    VkPipeline bound = VK_NULL_HANDLE;
    uint64_t params_at = 0;  // offset of this batch's parameters in params_
    uint32_t params_used = 0;
    uint32_t commands_recorded = 0;
    uint64_t bytes = 0, operations = 0;          // total bytes accessed, and total operations
    uint64_t value = 0;                          // the timeline's value once this batch has completed
    std::vector<Point> waits;                    // points that the device waits for before this batch starts
    std::vector<std::shared_ptr<Stamp>> stamps;  // timestamps that this batch writes
  };
  static constexpr uint32_t kBatches = 8;
  static constexpr uint32_t kParamsBytes = 80 * 1024;
  static constexpr uint32_t kMaxCommands = 112;  // maximum number of commands per batch
  static constexpr uint32_t kIdleCheck = 16;     // number of commands between two checks for an idle device

  Stream(LogicalDevice& device, Memory& memory, std::shared_ptr<Timeline> timeline)
      : device_(device),
        memory_(memory),
        queues_{device.take_queue(), device.next_copy_queue()},
        timeline_(std::move(timeline)),
        submitted_(timeline_->start()) {}

  kit::Status start();
  // Opens a batch for `queue` and sets `open_` to this batch. Does nothing if the open batch is for
  // `queue`.
  kit::Status open_batch(QueueKind queue = kCompute);
  kit::Result<Batch*> idle_batch();
  kit::Status make(Commands& commands, QueueKind queue);
  kit::Status begin(Batch& batch, QueueKind queue);
  void order(std::span<const Access> accesses);
  kit::Status enqueue(const Dispatch& dispatch, uint32_t params_bytes);
  kit::Status after_command();
  kit::Status flush();
  kit::Status submit(Batch& batch);
  // Submits `commands` to `queue`. Execution starts when all of `points` and `extra_wait` are reached, and ends with
  // signals of the stream's timeline and of `extra_signal`. `commands` and the extra semaphores may be null.
  struct External {
    VkSemaphore semaphore = VK_NULL_HANDLE;
    uint64_t value = 0;
  };
  kit::Status submit(QueueKind queue, std::vector<Point>& points, VkPipelineStageFlags stages, VkCommandBuffer commands,
                     External extra_wait, External extra_signal);
  // Flushes the open batch, and then submits the pending waits, `wait` and `signal` without commands. The semaphores of
  // `wait` and `signal` may be null.
  kit::Status submit_semaphores(External wait, External signal);
  void barrier(const Batch& batch, VkPipelineStageFlags to, VkAccessFlags access);

  LogicalDevice& device_;
  Memory& memory_;
  const Queue queues_[kQueueKinds];
  std::shared_ptr<Timeline> timeline_;
  Buffer* params_ = nullptr;  // memory for the parameters of all batches
  Buffer* scratch_ = nullptr;
  std::array<Batch, kBatches> batches_;
  uint32_t made_ = 0;  // number of batches that have been used
  Batch* open_ = nullptr;
  bool owns_queue_ = false;  // no other stream uses the queue of kCompute
  uint64_t submitted_;
  uint64_t enqueued_ = 0;
  std::vector<Point> waits_;  // points that the next batch waits for
  Hazards hazards_;
  // Arguments of vkQueueSubmit. The lists are members, so that a submission need not allocate memory.
  std::vector<VkSemaphore> semaphores_;
  std::vector<uint64_t> values_;
  std::vector<VkPipelineStageFlags> stages_;
};

}  // namespace backplane::vulkan
