// SPDX-License-Identifier: Apache-2.0
#include "guarded.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace backplane::conformance {

namespace {
constexpr unsigned char kSlackFill = 0x5A;
}

GuardedBytes::GuardedBytes(size_t bytes, unsigned char fill, size_t alignment) : size_(bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t whole = (bytes + alignment - 1) / alignment * alignment;
  const size_t readable = std::max(page, (whole + page - 1) / page * page);
  mapped_ = readable + page;
  void* const mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<unsigned char*>(mapping);
  mprotect(mapping_ + readable, page, PROT_NONE);
  slack_ = whole - bytes;
  data_ = mapping_ + readable - whole;
  std::memset(data_, fill, bytes);
  std::memset(data_ + bytes, kSlackFill, slack_);
}

GuardedBytes::~GuardedBytes() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

bool GuardedBytes::slack_intact() const {
  return std::all_of(data_ + size_, data_ + size_ + slack_, [](unsigned char byte) { return byte == kSlackFill; });
}

}  // namespace backplane::conformance
