// SPDX-License-Identifier: Apache-2.0
// Counts fault points and makes them fail. A sanitizer has its own malloc, so under a sanitizer this
// file replaces the operators new and delete instead.
#include "fault_points.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace fault_points {

namespace {
struct Armed {
  unsigned kinds;
  bool forever;
  bool failed;
  uint64_t index;
  uint64_t met;
};
thread_local Armed armed;
std::atomic<int64_t> live{0};
}  // namespace

void arm(unsigned kinds, uint64_t index, bool forever) noexcept { armed = {kinds, forever, false, index, 0}; }

bool disarm() noexcept {
  armed.kinds = 0;
  return armed.failed;
}

uint64_t points_met() noexcept { return armed.met; }

int64_t live_blocks() noexcept { return live.load(std::memory_order_relaxed); }

}  // namespace fault_points

extern "C" int fault_point(unsigned kind) {
  using fault_points::armed;
  if ((armed.kinds & kind) == 0) return 0;
  const uint64_t number = armed.met++;
  const bool fails = number == armed.index || (armed.forever && number > armed.index);
  armed.failed = armed.failed || fails;
  return fails;
}

extern "C" void fault_block(int change) { fault_points::live.fetch_add(change, std::memory_order_relaxed); }

#ifdef FAULT_POINTS_OWN_NEW
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  if (fault_point(fault_points::memory)) return nullptr;
  void* block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block != nullptr) fault_block(1);
  return block;
}
void* operator new(size_t bytes) {
  void* block = operator new(bytes, std::nothrow);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return operator new(bytes, std::nothrow); }
void operator delete(void* block) noexcept {
  if (block != nullptr) fault_block(-1);
  std::free(block);
}
void operator delete[](void* block) noexcept { operator delete(block); }
void operator delete(void* block, size_t) noexcept { operator delete(block); }
void operator delete[](void* block, size_t) noexcept { operator delete(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { operator delete(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { operator delete(block); }
#endif
