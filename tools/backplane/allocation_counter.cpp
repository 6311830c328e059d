// SPDX-License-Identifier: Apache-2.0
// Counts calls of operator new, so that `bench dispatch` can show that an eager call does not
// allocate. A sanitizer has its own operator new, so the count remains 0 in sanitizer builds.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "measure.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BACKPLANE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BACKPLANE_SANITIZED 1
#endif
#endif

namespace {

std::atomic<uint64_t> count{0};

#ifndef BACKPLANE_SANITIZED
void* allocate(size_t bytes, size_t alignment) {
  count.fetch_add(1, std::memory_order_relaxed);
  const size_t wanted = bytes == 0 ? 1 : bytes;
  for (;;) {
    void* memory = alignment == 0 ? std::malloc(wanted)
                                  : std::aligned_alloc(alignment, (wanted + alignment - 1) / alignment * alignment);
    if (memory != nullptr) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
#endif

}  // namespace

uint64_t tool::allocation_count() { return count.load(std::memory_order_relaxed); }

#ifndef BACKPLANE_SANITIZED
// The standard library implements the array and nothrow forms of operator new and delete as calls of these functions,
// so the count includes those forms.
void* operator new(size_t bytes) { return allocate(bytes, 0); }
void* operator new(size_t bytes, std::align_val_t alignment) { return allocate(bytes, static_cast<size_t>(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
#endif
