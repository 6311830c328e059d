// SPDX-License-Identifier: Apache-2.0
// Runs the kernels of one module on the host. Each thread of a group has a stack. A thread runs until its next barrier
// or shuffle, and then the next thread of the group runs. So all threads of a group must execute the same barriers and
// shuffles. Include this file after the source of the kernels, in one file of a test.
#pragma once

#include <ucontext.h>

#include <functional>
#include <vector>

namespace backplane::simt::test {

class HostGroup {
 public:
  explicit HostGroup(uint32_t size) : slots(size), contexts_(size), done_(size), stacks_(size) {
    for (auto& stack : stacks_) stack.resize(kStackBytes);
  }
  // Runs `body` in every thread of a group.
  void run(uint32_t group, uint32_t groups, const std::function<void()>& body) {
    current = this;
    body_ = body;
    const auto size = static_cast<uint32_t>(contexts_.size());
    for (uint32_t i = 0; i < size; ++i) {
      done_[i] = false;
      getcontext(&contexts_[i]);
      contexts_[i].uc_stack.ss_sp = stacks_[i].data();
      contexts_[i].uc_stack.ss_size = kStackBytes;
      contexts_[i].uc_link = &scheduler_;
      makecontext(&contexts_[i], begin, 0);
    }
    for (bool runs = true; runs;) {
      runs = false;
      for (uint32_t i = 0; i < size; ++i) {
        if (done_[i]) continue;
        runs = true;
        host_thread = {group, groups, size, i};
        swapcontext(&scheduler_, &contexts_[i]);
      }
    }
  }
  // Lets the other threads of the group run until their next barrier or shuffle.
  void yield() { swapcontext(&contexts_[local_id()], &scheduler_); }

  static inline HostGroup* current = nullptr;
  std::vector<uint32_t> slots;  // the values that threads shuffle

 private:
  static constexpr size_t kStackBytes = 65536;

  static void begin() {
    current->body_();
    current->done_[local_id()] = true;
  }

  std::vector<ucontext_t> contexts_;
  std::vector<bool> done_;
  std::vector<std::vector<char>> stacks_;
  ucontext_t scheduler_{};
  std::function<void()> body_;
};

// Runs `groups` groups of `size` threads, one group after the other.
template <class Body>
void run_groups(uint32_t groups, uint32_t size, const Body& body) {
  HostGroup group(size);
  for (uint32_t i = 0; i < groups; ++i) group.run(i, groups, body);
}

template <class T>
Pointer pointer_to(T* at) {
  return reinterpret_cast<Pointer>(at);
}

}  // namespace backplane::simt::test

inline void host_barrier() { backplane::simt::test::HostGroup::current->yield(); }
inline u32 host_shuffle(u32 x, u32 from) {
  auto& group = *backplane::simt::test::HostGroup::current;
  group.slots[local_id()] = x;
  group.yield();
  const u32 out = group.slots[subgroup() * width() + from];
  group.yield();
  return out;
}
inline u32 host_count(u32* counter) { return (*counter)++; }
