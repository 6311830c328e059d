// SPDX-License-Identifier: Apache-2.0
#include "runtime/stream.hpp"

namespace backplane::vulkan {

kit::Status work_is_lost(const kit::Status& cause) {
  return cause.code() == BP_DEVICE_LOST ? cause
                                        : kit::Status{BP_EXECUTION_FAILED, cause.message(), cause.vendor_code()};
}

kit::Result<std::unique_ptr<Stream>> Stream::create(LogicalDevice& device, Memory& memory) {
  auto timeline = Timeline::create(device);
  if (!timeline.ok()) return timeline.status();
  std::unique_ptr<Stream> stream(new Stream(device, memory, std::move(timeline.value())));
  if (kit::Status status = stream->start(); !status.ok()) return status;
  return stream;
}

// Allocates the memory of a stream. After start(), memory is allocated only for the command pools
// of batches, at their first use, and for lists of more than kWaits entries.
kit::Status Stream::start() {
  constexpr std::size_t kWaits = 16;  // number of entries that each list can hold before it grows
  for (Batch& batch : batches_) {
    batch.waits.reserve(kWaits);
    batch.stamps.reserve(kWaits);
  }
  waits_.reserve(kWaits);
  semaphores_.reserve(kWaits);
  values_.reserve(kWaits);
  stages_.reserve(kWaits);
  const uint32_t kind = device_.memory_type(BP_MEMORY_SHARED) < 0 ? BP_MEMORY_HOST : BP_MEMORY_SHARED;
  auto params = memory_.create({sizeof(bp_buffer_desc), kind, uint64_t{kBatches} * kParamsBytes, Memory::kAlignment});
  if (!params.ok()) return params.status();
  params_ = params.value();
  auto scratch = memory_.create({sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, kScratchBytes, Memory::kAlignment});
  if (scratch.ok()) scratch_ = scratch.value();
  return scratch.status();
}

Stream::~Stream() {
  timeline_->drain(submitted_);
  for (Batch& batch : batches_) {
    for (const Commands& each : batch.of) device_.api().vkDestroyCommandPool(device_.handle(), each.pool, nullptr);
  }
  if (params_ != nullptr) memory_.destroy(params_);
  if (scratch_ != nullptr) memory_.destroy(scratch_);
  device_.give_queue(queues_[kCompute]);
}

kit::Status Stream::make(Commands& commands, QueueKind queue) {
  auto pool = chained<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  pool.queueFamilyIndex = queues_[queue].family;
  kit::Status status = device_.check(
      device_.api().vkCreateCommandPool(device_.handle(), &pool, nullptr, &commands.pool), "vkCreateCommandPool");
  if (!status.ok()) return status;
  auto info = chained<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = commands.pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  status = device_.check(device_.api().vkAllocateCommandBuffers(device_.handle(), &info, &commands.buffer),
                         "vkAllocateCommandBuffers");
  if (!status.ok()) {
    device_.api().vkDestroyCommandPool(device_.handle(), commands.pool, nullptr);
    commands = {};
  }
  return status;
}

kit::Status Stream::begin(Batch& batch, QueueKind queue) {
  Commands& commands = batch.of[queue];
  kit::Status status;
  if (commands.pool == VK_NULL_HANDLE) status = make(commands, queue);
  if (status.ok())
    status = device_.check(device_.api().vkResetCommandPool(device_.handle(), commands.pool, 0), "vkResetCommandPool");
  if (!status.ok()) return status;
  batch.queue = queue;
  batch.commands = commands.buffer;
  batch.params_used = 0;
  batch.commands_recorded = 0;
  batch.bytes = batch.operations = 0;
  batch.bound = VK_NULL_HANDLE;
  batch.waits.clear();
  batch.stamps.clear();
  auto info = chained<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  return device_.check(device_.api().vkBeginCommandBuffer(batch.commands, &info), "vkBeginCommandBuffer");
}

kit::Status Stream::open_batch(QueueKind queue) {
  if (open_ != nullptr && open_->queue == queue) return {};
  if (kit::Status status = flush(); !status.ok()) return status;
  auto batch = idle_batch();
  if (!batch.ok()) return batch.status();
  if (kit::Status status = begin(*batch.value(), queue); !status.ok()) return status;
  open_ = batch.value();
  open_->waits.swap(waits_);
  hazards_.clear();
  return {};
}

// Returns a batch that has completed, or else an unused batch. If all batches are pending, waits
// for the oldest batch. Completed batches have priority, so that a stream with frequent waits
// needs only one batch.
kit::Result<Stream::Batch*> Stream::idle_batch() {
  for (uint32_t i = 0; i < made_; ++i) {
    if (timeline_->reached(batches_[i].value)) return &batches_[i];
  }
  if (made_ < kBatches) {
    batches_[made_].params_at = uint64_t{made_} * kParamsBytes;
    return &batches_[made_++];
  }
  Batch* oldest = std::ranges::min_element(batches_, {}, &Batch::value);
  if (kit::Status status = timeline_->wait(oldest->value, BP_WAIT_FOREVER); !status.ok()) return status;
  return oldest;
}

// Records a barrier after all commands that the batch contains so far.
void Stream::barrier(const Batch& batch, VkPipelineStageFlags to, VkAccessFlags access) {
  const Queue& queue = queues_[batch.queue];
  auto memory = chained<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  memory.srcAccessMask = queue.writes;
  memory.dstAccessMask = access;
  device_.api().vkCmdPipelineBarrier(batch.commands, queue.stages, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

// Records a barrier if the accesses of the next command conflict with earlier commands of the
// batch.
void Stream::order(std::span<const Access> accesses) {
  if (hazards_.conflict(accesses)) {
    const Queue& queue = queues_[open_->queue];
    barrier(*open_, queue.stages, queue.reads | queue.writes);
    hazards_.clear();
  }
  hazards_.note(accesses);
  for (const Access& access : accesses) open_->bytes += access.end - access.begin;
}

kit::Status Stream::after_command() {
  ++enqueued_;
  const uint32_t recorded = ++open_->commands_recorded;
  const bool full = recorded >= kMaxCommands || open_->params_used + kMaxParams > kParamsBytes ||
                    open_->bytes >= kMaxBytes || open_->operations >= device_.physical().max_operations();
  if (full || (recorded % kIdleCheck == 0 && timeline_->reached(submitted_))) return flush();
  return {};
}

kit::Status Stream::flush() {
  if (open_ == nullptr) return {};  // the next batch will contain the pending waits
  Batch& batch = *open_;
  open_ = nullptr;
  kit::Status status = submit(batch);
  if (status.ok()) return status;
  timeline_->drain(submitted_);  // report the failure only after all work has completed
  return work_is_lost(status);
}

kit::Status Stream::submit(Batch& batch) {
  // The barrier makes results visible to the host once the semaphore is signalled.
  barrier(batch, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  kit::Status status = device_.check(device_.api().vkEndCommandBuffer(batch.commands), "vkEndCommandBuffer");
  if (!status.ok()) return status;
  // Timestamps are written at the end of all stages. If waits blocked only the stages of the
  // queue's commands, a timestamp could be written before a wait completes.
  status = submit(
      batch.queue, batch.waits,
      batch.stamps.empty() ? queues_[batch.queue].stages : VkPipelineStageFlags{VK_PIPELINE_STAGE_ALL_COMMANDS_BIT},
      batch.commands, {}, {});
  batch.value = submitted_;  // the value of a failed submission is never signalled
  return status;
}

kit::Status Stream::submit(QueueKind queue, std::vector<Point>& points, VkPipelineStageFlags stages,
                           VkCommandBuffer commands, External extra_wait, External extra_signal) {
  // A batch also waits for its predecessor, because queue order does not order memory accesses.
  if (submitted_ != timeline_->start()) points.push_back({timeline_, submitted_});
  semaphores_.clear();
  values_.clear();
  for (const Point& point : points) {
    semaphores_.push_back(point.timeline->semaphore());
    values_.push_back(point.value);
  }
  if (extra_wait.semaphore != VK_NULL_HANDLE) {
    semaphores_.push_back(extra_wait.semaphore);
    values_.push_back(extra_wait.value);
  }
  stages_.assign(semaphores_.size(), stages);
  const uint64_t next = submitted_ + 1;
  const VkSemaphore signals[] = {timeline_->semaphore(), extra_signal.semaphore};
  const uint64_t signal_values[] = {next, extra_signal.value};
  auto timeline = chained<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  timeline.waitSemaphoreValueCount = static_cast<uint32_t>(values_.size());
  timeline.pWaitSemaphoreValues = values_.empty() ? nullptr : values_.data();
  timeline.signalSemaphoreValueCount = extra_signal.semaphore == VK_NULL_HANDLE ? 1 : 2;
  timeline.pSignalSemaphoreValues = signal_values;
  auto info = chained<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline);
  info.waitSemaphoreCount = static_cast<uint32_t>(semaphores_.size());
  info.pWaitSemaphores = semaphores_.empty() ? nullptr : semaphores_.data();
  info.pWaitDstStageMask = stages_.empty() ? nullptr : stages_.data();
  info.commandBufferCount = commands == VK_NULL_HANDLE ? 0 : 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = timeline.signalSemaphoreValueCount;
  info.pSignalSemaphores = signals;
  kit::Status status = device_.submit(queues_[queue], info);
  if (status.ok()) submitted_ = next;
  return status;
}

kit::Status Stream::submit_semaphores(External wait, External signal) {
  if (kit::Status status = flush(); !status.ok()) return status;
  kit::Status status = submit(kCompute, waits_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_NULL_HANDLE, wait, signal);
  if (!status.ok()) {
    timeline_->drain(submitted_);  // report the failure only after all work has completed
    return work_is_lost(status);
  }
  waits_.clear();
  return {};
}

kit::Status Stream::wait(const Semaphore& semaphore, uint64_t value) {
  auto reached = semaphore.reached(value);
  if (!reached.ok()) return reached.status();
  // A submission that waits blocks all later submissions to its queue, including those of other streams.
  if (!reached.value() && !owns_queue_) {
    if (!device_.reserve_queue(queues_[kCompute])) {
      return kit::unsupported("semaphore_wait: the stream shares its queue with other streams; destroy streams, or ",
                              "wait on the host");
    }
    owns_queue_ = true;
  }
  return submit_semaphores({semaphore.handle(), value}, {});
}

kit::Status Stream::signal(Semaphore& semaphore, uint64_t value) {
  if (kit::Status status = flush(); !status.ok()) return status;
  return semaphore.raise(value, [&] { return submit_semaphores({}, {semaphore.handle(), value}); });
}

kit::Result<Point> Stream::mark(const std::shared_ptr<Stamp>& stamp) {
  // Opens a batch for pending waits, because the mark must include the waits even if no command
  // follows.
  if (stamp != nullptr || !waits_.empty()) {
    if (kit::Status status = open_batch(); !status.ok()) return status;
    if (stamp != nullptr) {
      open_->stamps.push_back(stamp);
      device_.api().vkCmdResetQueryPool(open_->commands, stamp->pool(), 0, 1);
      device_.api().vkCmdWriteTimestamp(open_->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, stamp->pool(), 0);
    }
  }
  if (kit::Status status = flush(); !status.ok()) return status;
  return Point{timeline_, submitted_};
}

kit::Status Stream::wait_for(const Point& point) {
  // Waits even for a point that has completed, because only a wait makes another queue's writes
  // visible to this queue.
  std::vector<Point>* waits = &waits_;
  if (open_ != nullptr) {
    if (point.timeline->reached(point.value)) {
      waits = &open_->waits;
    } else if (kit::Status status = flush(); !status.ok()) {  // submits earlier commands, which must not wait
      return status;
    }
  }
  for (Point& known : *waits) {
    if (known.timeline == point.timeline) {
      known.value = std::max(known.value, point.value);
      return {};
    }
  }
  waits->push_back(point);
  return {};
}

kit::Status Stream::copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                         uint64_t bytes) {
  QueueKind queue = open_ == nullptr ? kCompute : open_->queue;  // a small copy uses the open batch's queue
  // A stream that owns its queue copies on that queue, because it may wait for an external semaphore. A batch waits for
  // its predecessor, so a copy on the copy queue would block that queue for other streams.
  if (bytes >= device_.copy_queue_threshold() && !owns_queue_)
    queue = src.on_host() != dst.on_host() ? kCopy : kCompute;
  if (kit::Status status = open_batch(queue); !status.ok()) return status;
  order(Accesses{{src.address + src_offset, src.address + src_offset + bytes, false},
                 {dst.address + dst_offset, dst.address + dst_offset + bytes, true}});
  const VkBufferCopy region{src.offset + src_offset, dst.offset + dst_offset, bytes};
  device_.api().vkCmdCopyBuffer(open_->commands, src.handle, dst.handle, 1, &region);
  return after_command();
}

kit::Status Stream::enqueue(const Dispatch& dispatch, uint32_t params_bytes) {
  order(dispatch.accesses);
  Batch& batch = *open_;
  batch.operations += dispatch.operations;
  const uint64_t address = params_->address + batch.params_at + batch.params_used;
  batch.params_used += (params_bytes + kParamsAlign - 1) / kParamsAlign * kParamsAlign;
  const DeviceApi& api = device_.api();
  if (batch.bound != dispatch.pipeline) {
    api.vkCmdBindPipeline(batch.commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
    batch.bound = dispatch.pipeline;
  }
  api.vkCmdPushConstants(batch.commands, device_.pipeline_layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(address),
                         &address);
  api.vkCmdDispatch(batch.commands, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
  return after_command();
}

}  // namespace backplane::vulkan
