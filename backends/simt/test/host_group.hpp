// SPDX-License-Identifier: Apache-2.0
// Runs the kernels of one module on the host. Each thread of a group is a thread of the host, so kernels may use
// barriers, shuffles and local memory. Include this file after the source of the kernels, in one file of a test.
#pragma once

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

namespace backplane::simt::test {

struct HostGroup {
  explicit HostGroup(uint32_t size) : all(size), slots(size) {
    for (uint32_t i = 0; i < size; i += width()) {
      subgroups.push_back(std::make_unique<std::barrier<>>(width()));
    }
  }
  std::barrier<> all;
  std::vector<std::unique_ptr<std::barrier<>>> subgroups;
  std::vector<uint32_t> slots;
};
inline HostGroup* current = nullptr;

// Runs `groups` groups of `size` threads, one group after the other.
template <class Body>
void run_groups(uint32_t groups, uint32_t size, const Body& body) {
  HostGroup group(size);
  current = &group;
  std::vector<std::jthread> threads;
  for (uint32_t i = 0; i < size; ++i) {
    threads.emplace_back([&, i] {
      for (uint32_t g = 0; g < groups; ++g) {
        host_thread = {g, groups, size, i};
        body();
        group.all.arrive_and_wait();
      }
    });
  }
}

template <class T>
Pointer pointer_to(T* at) {
  return reinterpret_cast<Pointer>(at);
}

}  // namespace backplane::simt::test

inline void host_barrier() { backplane::simt::test::current->all.arrive_and_wait(); }
inline u32 host_shuffle(u32 x, u32 from) {
  auto& group = *backplane::simt::test::current;
  group.slots[local_id()] = x;
  group.subgroups[subgroup()]->arrive_and_wait();
  const u32 out = group.slots[subgroup() * width() + from];
  group.subgroups[subgroup()]->arrive_and_wait();
  return out;
}
inline u32 host_count(u32* counter) { return std::atomic_ref(*counter)++; }
