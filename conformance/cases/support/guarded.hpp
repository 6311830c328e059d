// SPDX-License-Identifier: Apache-2.0
// Allocates bytes before an inaccessible page, so that an access past the end of a struct crashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace backplane::conformance {

class GuardedBytes {
 public:
  // Allocates `bytes` bytes before the guard page and fills them with `fill`. The start is aligned.
  // If `bytes` is not a multiple of `alignment`, up to alignment - 1 unused bytes separate the data
  // from the guard page.
  explicit GuardedBytes(size_t bytes, unsigned char fill = 0, size_t alignment = 8);
  GuardedBytes(GuardedBytes&& other) noexcept
      : mapping_(std::exchange(other.mapping_, nullptr)),
        mapped_(other.mapped_),
        data_(other.data_),
        size_(other.size_),
        slack_(other.slack_) {}
  GuardedBytes& operator=(GuardedBytes&&) = delete;
  ~GuardedBytes();

  unsigned char* data() const { return data_; }
  size_t size() const { return size_; }
  // Returns false if a byte between the end of the data and the guard page was overwritten.
  bool slack_intact() const;

 private:
  unsigned char* mapping_;
  size_t mapped_;
  unsigned char* data_;
  size_t size_;
  size_t slack_;
};

// An ABI struct with the size that a host of another version uses. The struct contains the first
// bytes of `value`, and zeros after them if `size` is larger. Its struct_size is `size`.
template <typename T>
class GuardedStruct {
 public:
  GuardedStruct(size_t size, const T& value) : bytes_(size < 4 ? 4 : size, 0, alignof(T)) {
    const size_t known = bytes_.size() < sizeof(T) ? bytes_.size() : sizeof(T);
    std::memcpy(bytes_.data(), &value, known);
    const auto stated = static_cast<uint32_t>(size);
    std::memcpy(bytes_.data(), &stated, sizeof(stated));
  }
  T* get() const { return reinterpret_cast<T*>(bytes_.data()); }
  unsigned char* bytes() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  bool slack_intact() const { return bytes_.slack_intact(); }

 private:
  GuardedBytes bytes_;
};

}  // namespace backplane::conformance
