// SPDX-License-Identifier: Apache-2.0
// An in-order stream: commands are recorded into batches, and a batch is submitted when it is waited on, full, or when the
// device has nothing else of this stream.
#pragma once

#include <functional>

#include "hazards.hpp"
#include "memory.hpp"
#include "params.hpp"
#include "timeline.hpp"

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

class Stream {
 public:
  static kit::Result<Stream*> create(LogicalDevice& device, Memory& memory);
  ~Stream();  // waits for what was submitted
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Submits, and waits until all has ended.
  kit::Status wait(uint64_t timeout_ns);
  // Submits; the point behind all work so far. With a `stamp`, its time is taken there.
  kit::Result<Point> mark(const std::shared_ptr<Stamp>& stamp);
  // Later work starts after `point`.
  kit::Status wait_for(const Point& point);
  // The failure that every later call is answered with; OK while there is none.
  kit::Status failure() const;
  // Commands enqueued so far: who enqueues several, and cannot go on after the first, fails the stream.
  uint64_t enqueued() const { return enqueued_; }
  kit::Status fail(const kit::Status& cause);
  // A point that stands for the stream's failure.
  Point never() const { return {timeline_, Timeline::kNever}; }

  // Where an execution is bound; kept, so that no call allocates.
  kit::Call& call() { return call_; }

  kit::Status copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes);

  // One kernel: `fill(Params&)` writes what it is told, with `params_address` for what it addresses in them.
  struct Dispatch {
    VkPipeline pipeline = VK_NULL_HANDLE;
    uint32_t groups[3] = {1, 1, 1};
    std::span<const Access> accesses;
  };
  kit::Status dispatch(const Dispatch& dispatch, const std::function<void(Params&, uint64_t params_address)>& fill);

 private:
  // A command buffer with what its commands refer to.
  struct Batch {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    Buffer* params = nullptr;
    uint32_t params_used = 0;
    uint32_t work = 0;                             // commands recorded
    uint64_t value = 0;                            // of the timeline, when it has ended
    std::vector<Point> waits;                      // before it starts
    std::vector<std::shared_ptr<Stamp>> stamps{};  // that it writes
  };
  static constexpr uint32_t kBatches = 8;
  static constexpr uint32_t kParamsBytes = 64 * 1024;
  static constexpr uint32_t kMostWork = 112;  // commands of a batch
  static constexpr uint32_t kIdleCheck = 16;  // after so many commands an idle device is given the batch

  Stream(LogicalDevice& device, Memory& memory, std::shared_ptr<Timeline> timeline)
      : device_(device),
        memory_(memory),
        queue_(device.next_queue()),
        timeline_(std::move(timeline)),
        submitted_(timeline_->start()) {}

  // The batch that is recorded, begun if there is none.
  kit::Result<Batch*> open_batch();
  kit::Status make(Batch& batch);
  kit::Status begin(Batch& batch);
  void order(Batch& batch, std::span<const Access> accesses);
  kit::Status after_work(Batch& batch);
  kit::Status flush();
  kit::Status submit(Batch& batch);
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags reads);

  LogicalDevice& device_;
  Memory& memory_;
  const VkQueue queue_;
  std::shared_ptr<Timeline> timeline_;
  std::vector<Batch> batches_;
  Batch* open_ = nullptr;
  uint64_t submitted_;
  uint64_t enqueued_ = 0;
  std::vector<Point> waits_;  // of the next batch
  Hazards hazards_;
  kit::Call call_;
};

}  // namespace backplane::vulkan
