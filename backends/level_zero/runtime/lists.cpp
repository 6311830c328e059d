// SPDX-License-Identifier: Apache-2.0
#include "runtime/lists.hpp"

#include <cstdlib>

namespace backplane::level_zero {

namespace {

ze_command_queue_desc_t queue_desc(const Context& context) {
  return {ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
          nullptr,
          context.device().queue_group,
          0,
          0,
          ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
          ZE_COMMAND_QUEUE_PRIORITY_NORMAL};
}

// An immediate command list, whose commands the driver submits as they are appended.
class ImmediateList : public Lists {
 public:
  // Wraps `borrowed`, unless it is null.
  explicit ImmediateList(const Context& context, ze_command_list_handle_t borrowed = nullptr)
      : context_(context), list_(borrowed), is_borrowed_(borrowed != nullptr) {}
  ~ImmediateList() override {
    if (list_ != nullptr && !is_borrowed_) context_.api().zeCommandListDestroy(list_);
  }

  ze_result_t create() {
    const ze_command_queue_desc_t desc = queue_desc(context_);
    return context_.api().zeCommandListCreateImmediate(context_.handle(), context_.device().id, &desc, &list_);
  }
  kit::Result<ze_command_list_handle_t> open(bool& is_new) override {
    is_new = false;
    return list_;
  }
  kit::Status submit() override { return {}; }
  bool is_full(uint32_t) const override { return false; }
  ze_command_list_handle_t immediate_list() const override { return list_; }

 private:
  const Context& context_;
  ze_command_list_handle_t list_;
  const bool is_borrowed_;
};

// Lists that a command queue executes. A list is reused after its fence has been signaled.
class RegularLists : public Lists {
 public:
  // Wraps `borrowed`, unless it is null.
  explicit RegularLists(const Context& context, ze_command_queue_handle_t borrowed = nullptr)
      : context_(context), queue_(borrowed), is_borrowed_(borrowed != nullptr) {}
  ~RegularLists() override {
    const Api& ze = context_.api();
    for (const List& list : all_) {
      // The device signals the event at the end of a list before the list has ended. Only the fence
      // shows that the list has ended.
      if (list.in_flight) ze.zeFenceHostSynchronize(list.fence, UINT64_MAX);
      if (list.fence != nullptr) ze.zeFenceDestroy(list.fence);
      if (list.handle != nullptr) ze.zeCommandListDestroy(list.handle);
    }
    if (queue_ != nullptr && !is_borrowed_) ze.zeCommandQueueDestroy(queue_);
  }

  kit::Status create() {
    const ze_command_queue_desc_t desc = queue_desc(context_);
    return context_.check(context_.api().zeCommandQueueCreate(context_.handle(), context_.device().id, &desc, &queue_),
                          "zeCommandQueueCreate");
  }

  kit::Result<ze_command_list_handle_t> open(bool& is_new) override {
    is_new = false;
    if (open_ == nullptr) {
      kit::Status status = reuse();
      if (status.ok() && open_ == nullptr) status = add();
      if (!status.ok()) return status;
      is_new = true;
    }
    return open_->handle;
  }

  kit::Status submit() override {
    const Api& ze = context_.api();
    if (open_ == nullptr) return {};
    kit::Status status = context_.check(ze.zeCommandListClose(open_->handle), "zeCommandListClose");
    if (status.ok()) {
      status = context_.check(ze.zeCommandQueueExecuteCommandLists(queue_, 1, &open_->handle, open_->fence),
                              "zeCommandQueueExecuteCommandLists");
    }
    // If a list cannot be submitted, accepted commands never run, so the stream must fail.
    if (!status.ok() && status.code() != BP_DEVICE_LOST) {
      return {BP_EXECUTION_FAILED, status.message(), status.vendor_code()};
    }
    open_->in_flight = status.ok();
    open_->needs_reset = true;
    open_ = nullptr;
    return status;
  }
  bool is_full(uint32_t commands) const override { return commands >= kMaxCommands; }
  ze_command_queue_handle_t command_queue() const override { return queue_; }

 private:
  static constexpr uint32_t kMaxCommands = 512;
  struct List {
    ze_command_list_handle_t handle = nullptr;
    ze_fence_handle_t fence = nullptr;
    bool in_flight = false;
    bool needs_reset = false;
  };

  // Opens the list that was submitted first, if the device has executed it.
  kit::Status reuse() {
    if (all_.empty()) return {};
    const Api& ze = context_.api();
    List& first = all_.front();
    if (first.in_flight) {
      const ze_result_t code = ze.zeFenceQueryStatus(first.fence);
      if (code == ZE_RESULT_NOT_READY) return {};
      kit::Status status = context_.check(code, "zeFenceQueryStatus");
      if (status.ok()) status = context_.check(ze.zeFenceReset(first.fence), "zeFenceReset");
      if (!status.ok()) return status;
      first.in_flight = false;  // the fence is unsignaled again, so nothing may wait for it
    }
    if (first.needs_reset) {
      kit::Status status = context_.check(ze.zeCommandListReset(first.handle), "zeCommandListReset");
      if (!status.ok()) return status;
      first.needs_reset = false;
    }
    all_.push_back(first);
    all_.pop_front();
    open_ = &all_.back();
    return {};
  }

  kit::Status add() {
    const Api& ze = context_.api();
    List list;
    const ze_command_list_desc_t desc{ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, nullptr, context_.device().queue_group, 0};
    kit::Status status = context_.check(
        ze.zeCommandListCreate(context_.handle(), context_.device().id, &desc, &list.handle), "zeCommandListCreate");
    if (!status.ok()) return status;
    const ze_fence_desc_t fence{ZE_STRUCTURE_TYPE_FENCE_DESC, nullptr, 0};
    status = context_.check(ze.zeFenceCreate(queue_, &fence, &list.fence), "zeFenceCreate");
    if (!status.ok()) {
      ze.zeCommandListDestroy(list.handle);
      return status;
    }
    all_.push_back(list);
    open_ = &all_.back();
    return {};
  }

  const Context& context_;
  ze_command_queue_handle_t queue_;
  const bool is_borrowed_;
  std::deque<List> all_;  // in the order of submission; the open list is the last
  List* open_ = nullptr;
};

bool wants_regular() {
  const char* setting = std::getenv(kListsSetting);
  return setting != nullptr && std::strcmp(setting, "regular") == 0;
}

}  // namespace

std::unique_ptr<Lists> Lists::wrap(const Context& context, ze_command_list_handle_t immediate_list) {
  return std::make_unique<ImmediateList>(context, immediate_list);
}

std::unique_ptr<Lists> Lists::wrap(const Context& context, ze_command_queue_handle_t queue) {
  return std::make_unique<RegularLists>(context, queue);
}

kit::Result<std::unique_ptr<Lists>> Lists::create(const Context& context) {
  if (!wants_regular()) {
    auto immediate = std::make_unique<ImmediateList>(context);
    const ze_result_t code = immediate->create();
    if (code == ZE_RESULT_SUCCESS) return std::unique_ptr<Lists>(std::move(immediate));
    if (code != ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) return context.check(code, "zeCommandListCreateImmediate");
  }
  auto regular = std::make_unique<RegularLists>(context);
  if (kit::Status status = regular->create(); !status.ok()) return status;
  return std::unique_ptr<Lists>(std::move(regular));
}

}  // namespace backplane::level_zero
