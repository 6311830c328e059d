// SPDX-License-Identifier: Apache-2.0
// Intrusive reference counting. Objects own their parents through Ref, so callers may release
// handles in any order.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace backplane::core {

class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  // Upgrades a weak pointer to a reference. Returns false if the last reference was released.
  bool try_retain() noexcept {
    uint32_t count = references_.load(std::memory_order_relaxed);
    while (count != 0 && !references_.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) {
    }
    return count != 0;
  }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose();
  }

 protected:
  virtual ~Object() = default;
  // Called when the last reference was released, while this thread holds no lock.
  virtual void dispose() noexcept { delete this; }
  void revive() noexcept { references_.store(1, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> references_{1};
};

// Selects the constructor of Ref that takes over an existing reference, such as the first reference
// to a new object. `Ref(p)` adds a reference.
struct Adopt {};
inline constexpr Adopt kAdopt{};

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) noexcept : object_(object) {
    if (object_ != nullptr) object_->retain();
  }
  Ref(Adopt, T* object) noexcept : object_(object) {}
  Ref(const Ref& other) noexcept : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  T* detach() noexcept { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

}  // namespace backplane::core
