// SPDX-License-Identifier: Apache-2.0
// A bounded hash table of reference-counted items. If the table is full, an insertion evicts the
// least recently used item. The table is not thread-safe. It allocates memory only during
// construction, because the items contain the list links.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/ref.hpp"

namespace backplane::core {

template <class T>
struct LruLinks {
  uint64_t hash = 0;
  T* chain = nullptr;
  T* newer = nullptr;
  T* older = nullptr;
};

// T derives from Object and has a member `LruLinks<T> links`.
template <class T>
class LruTable {
 public:
  explicit LruTable(uint32_t capacity) : capacity_(capacity), buckets_(std::bit_ceil(capacity) * size_t{2}) {}
  LruTable(const LruTable&) = delete;
  LruTable& operator=(const LruTable&) = delete;
  ~LruTable() { clear(); }

  uint32_t size() const noexcept { return size_; }

  // Prefetches the item that the next insert evicts if the table is full.
  void prefetch_oldest() const noexcept { __builtin_prefetch(oldest_, 1); }

  template <class Matches>
  T* find(uint64_t hash, Matches&& matches) noexcept {
    for (T* item = buckets_[slot(hash)]; item != nullptr; item = item->links.chain) {
      if (item->links.hash == hash && matches(*item)) {
        unlink_order(item);
        link_newest(item);
        return item;
      }
    }
    return nullptr;
  }

  // Adds a reference to `item`. Returns the evicted item, if any, so that the caller can release
  // that item without a lock.
  Ref<T> insert(uint64_t hash, T* item) noexcept {
    item->retain();
    item->links.hash = hash;
    item->links.chain = buckets_[slot(hash)];
    buckets_[slot(hash)] = item;
    link_newest(item);
    if (++size_ <= capacity_) return {};
    return remove(oldest_);
  }

  // Removes the matching item from the table, and returns the item. Returns null if no item matches.
  template <class Matches>
  Ref<T> take(uint64_t hash, Matches&& matches) noexcept {
    T* item = find(hash, matches);
    return item == nullptr ? Ref<T>() : remove(item);
  }

  // Removes the least recently used item, and returns the item. Returns null if the table is empty.
  Ref<T> pop_oldest() noexcept { return oldest_ == nullptr ? Ref<T>() : remove(oldest_); }

  void clear() noexcept {
    while (oldest_ != nullptr) remove(oldest_);
  }

 private:
  size_t slot(uint64_t hash) const noexcept { return hash & (buckets_.size() - 1); }

  Ref<T> remove(T* item) noexcept {
    T** link = &buckets_[slot(item->links.hash)];
    while (*link != item) link = &(*link)->links.chain;
    *link = item->links.chain;
    unlink_order(item);
    --size_;
    return Ref<T>(kAdopt, item);
  }
  void link_newest(T* item) noexcept {
    item->links.older = newest_;
    item->links.newer = nullptr;
    (newest_ != nullptr ? newest_->links.newer : oldest_) = item;
    newest_ = item;
  }
  void unlink_order(T* item) noexcept {
    (item->links.newer != nullptr ? item->links.newer->links.older : newest_) = item->links.older;
    (item->links.older != nullptr ? item->links.older->links.newer : oldest_) = item->links.newer;
  }

  uint32_t capacity_;
  uint32_t size_ = 0;
  T* newest_ = nullptr;
  T* oldest_ = nullptr;
  std::vector<T*> buckets_;
};

}  // namespace backplane::core
