// SPDX-License-Identifier: Apache-2.0
#include "runtime/events.hpp"

namespace backplane::level_zero {

Events::~Events() {
  const Api& ze = context_.api();
  for (Kind& kind : kinds_) {
    for (ze_event_handle_t event : kind.all) ze.zeEventDestroy(event);
    for (ze_event_pool_handle_t pool : kind.pools) ze.zeEventPoolDestroy(pool);
  }
}

kit::Result<Mark> Events::take(bool timed) {
  std::lock_guard lock(mutex_);
  Kind& kind = kinds_[timed ? 1 : 0];
  if (kind.free.empty()) {
    if (kit::Status status = collect(kind); !status.ok()) return status;
  }
  if (kind.free.empty()) {
    if (kit::Status status = grow(kind, timed); !status.ok()) return status;
  }
  auto point = std::make_unique<Point>(Point{kind.free.back(), timed, false, {}});
  kind.free.pop_back();
  return Mark(point.release(), [this](Point* last) {
    give_back(*last);
    delete last;
  });
}

kit::Status Events::collect(Kind& kind) const {
  const Api& ze = context_.api();
  // A pending event moves to the end of `released`, so that later calls check the other events.
  for (std::size_t left = std::min<std::size_t>(kind.released.size(), kPerPool); left > 0; --left) {
    ze_event_handle_t event = kind.released.front();
    const ze_result_t code = ze.zeEventQueryStatus(event);
    if (code != ZE_RESULT_SUCCESS && code != ZE_RESULT_NOT_READY) return context_.check(code, "zeEventQueryStatus");
    kind.released.pop_front();
    if (code == ZE_RESULT_NOT_READY) {
      kind.released.push_back(event);
      continue;
    }
    if (kit::Status status = context_.check(ze.zeEventHostReset(event), "zeEventHostReset"); !status.ok()) {
      kind.released.push_front(event);
      return status;
    }
    kind.free.push_back(event);
  }
  return {};
}

kit::Status Events::grow(Kind& kind, bool timed) const {
  const Api& ze = context_.api();
  ze_event_pool_desc_t desc{ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, nullptr, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, kPerPool};
  if (timed) desc.flags |= ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP;
  ze_device_handle_t device = context_.device().id;
  ze_event_pool_handle_t pool = nullptr;
  kit::Status status =
      context_.check(ze.zeEventPoolCreate(context_.handle(), &desc, 1, &device, &pool), "zeEventPoolCreate");
  if (!status.ok()) return status;
  std::vector<ze_event_handle_t> events;
  for (uint32_t i = 0; i < kPerPool; ++i) {
    const ze_event_desc_t each{ZE_STRUCTURE_TYPE_EVENT_DESC, nullptr, i, ZE_EVENT_SCOPE_FLAG_HOST,
                               ZE_EVENT_SCOPE_FLAG_HOST};
    ze_event_handle_t event = nullptr;
    status = context_.check(ze.zeEventCreate(pool, &each, &event), "zeEventCreate");
    if (!status.ok()) break;
    events.push_back(event);
  }
  if (events.empty()) {
    ze.zeEventPoolDestroy(pool);
    return status;
  }
  kind.pools.push_back(pool);
  kind.all.insert(kind.all.end(), events.begin(), events.end());
  kind.free.insert(kind.free.end(), events.begin(), events.end());
  return {};
}

void Events::give_back(const Point& point) {
  std::lock_guard lock(mutex_);
  Kind& kind = kinds_[point.timed ? 1 : 0];
  if (point.submitted) {
    kind.released.push_back(point.event);
  } else {
    kind.free.push_back(point.event);
  }
}

}  // namespace backplane::level_zero
