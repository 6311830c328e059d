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
constexpr uint64_t least_heap_per_cycle = 16;           // the smallest block that malloc gives
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

void expect_no_leak(Context& context, std::string_view what, unsigned count, const std::function<void()>& cycle) {
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
  batch();
  Footprint last = settled(Footprint::now().threads);
  uint64_t least_heap = UINT64_MAX, least_pages = UINT64_MAX;
  uint32_t least_descriptors = UINT32_MAX, least_threads = UINT32_MAX;
  const auto growth = [](auto before, auto after) { return after > before ? after - before : 0; };
  for (int i = 0; i < batches; ++i) {
    batch();
    const Footprint next = settled(last.threads);
    least_heap = std::min<uint64_t>(least_heap, growth(last.heap_bytes, next.heap_bytes));
    least_pages = std::min<uint64_t>(least_pages, growth(last.resident_bytes, next.resident_bytes));
    least_descriptors = std::min<uint32_t>(least_descriptors, growth(last.descriptors, next.descriptors));
    least_threads = std::min<uint32_t>(least_threads, growth(last.threads, next.threads));
    last = next;
  }
  if (least_descriptors != 0)
    context.leaked("{}: {} file descriptors stay behind in {} cycles", what, least_descriptors, count);
  if (least_threads != 0) context.leaked("{}: {} threads stay behind in {} cycles", what, least_threads, count);
  if (quarantined) return;
  if (least_heap >= least_heap_per_cycle * count)
    context.leaked("{}: {} bytes of heap stay behind in {} cycles", what, least_heap, count);
  if (least_pages >= least_resident)
    context.leaked("{}: {} bytes of memory stay behind in {} cycles", what, least_pages, count);
}

}  // namespace bp::conformance
