// SPDX-License-Identifier: Apache-2.0
#include "leak.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

namespace bp::conformance {

namespace {

constexpr int batches = 3;
constexpr uint64_t least_heap = 1024;                   // per batch; less are the allocator's own caches
constexpr uint64_t least_resident = uint64_t{1} << 20;  // per batch; pages come and go with arenas and stacks

uint32_t entries_of(const char* directory) {
  uint32_t count = 0;
  std::error_code ignored;
  for (auto at = std::filesystem::directory_iterator(directory, ignored); at != std::filesystem::directory_iterator();
       at.increment(ignored))
    ++count;
  return count;
}

uint64_t resident() {
  unsigned long long total = 0, pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  const int read = std::fscanf(file, "%llu %llu", &total, &pages);
  std::fclose(file);
  return read == 2 ? pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

constexpr bool quarantined =  // freed memory is kept for a while: neither figure tells
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

}  // namespace

Footprint Footprint::now() {
  Footprint print = {};
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const struct mallinfo2 heap = mallinfo2();
  print.heap_bytes = heap.uordblks + heap.hblkhd;
#endif
  print.resident_bytes = resident();
  print.descriptors = entries_of("/proc/self/fd");
  print.threads = entries_of("/proc/self/task");
  return print;
}

namespace {

// The least growth of any batch.
Footprint least_growth(unsigned count, const std::function<void()>& cycle) {
  const auto batch = [&] {
    for (unsigned i = 0; i < count; ++i) cycle();
  };
  // A joined thread leaves /proc a moment later.
  const auto settled = [&](uint32_t threads) {
    Footprint print = Footprint::now();
    for (int i = 0; i < 50 && print.threads > threads; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      print = Footprint::now();
    }
    return print;
  };
  const uint32_t threads_before = Footprint::now().threads;
  batch();
  Footprint last = settled(threads_before);
  Footprint least = {UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX};
  const auto lower = [](auto& value, auto before, auto after) {
    value = std::min(value, after > before ? after - before : 0);
  };
  for (int i = 0; i < batches; ++i) {
    batch();
    const Footprint next = settled(last.threads);
    lower(least.heap_bytes, last.heap_bytes, next.heap_bytes);
    lower(least.resident_bytes, last.resident_bytes, next.resident_bytes);
    lower(least.descriptors, last.descriptors, next.descriptors);
    lower(least.threads, last.threads, next.threads);
    last = next;
  }
  return least;
}

std::string leak_of(const Footprint& growth) {
  if (growth.descriptors != 0) return fmt::format("{} file descriptors", growth.descriptors);
  if (growth.threads != 0) return fmt::format("{} threads", growth.threads);
  if (quarantined) return {};
  if (growth.heap_bytes >= least_heap) return fmt::format("{} bytes of heap", growth.heap_bytes);
  if (growth.resident_bytes >= least_resident) return fmt::format("{} bytes of memory", growth.resident_bytes);
  return {};
}

}  // namespace

void expect_no_leak(Context& context, std::string_view what, unsigned count, const std::function<void()>& cycle) {
  if (leak_of(least_growth(count, cycle)).empty()) return;
  // Seen twice it is no chance.
  if (const std::string leak = leak_of(least_growth(count, cycle)); !leak.empty())
    context.leaked("{}: {} stay behind in {} cycles", what, leak, count);
}

}  // namespace bp::conformance
