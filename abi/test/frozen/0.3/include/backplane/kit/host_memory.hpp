// SPDX-License-Identifier: Apache-2.0
// Buffers in host memory, with a limit on their total size.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <backplane/kit/device_checks.hpp>
#include <backplane/kit/plan.hpp>
#include <backplane/kit/shared_file.hpp>
#include <memory>

namespace backplane::kit {

struct HostBuffer {
  Span span;
  uint32_t kind = BP_MEMORY_DEVICE;
  std::size_t alignment = 0;           // 0 for imported and for external memory
  std::shared_ptr<SharedFile> file{};  // the file of external memory
  bool created = false;                // true if this buffer created the file, so that its bytes count as used
};

class HostMemory {
 public:
  static constexpr uint64_t kAlignment = 64;
  static constexpr uint64_t kMaxAlignment = uint64_t{1} << 21;
  static constexpr uint64_t kKinds = (1u << BP_MEMORY_DEVICE) | (1u << BP_MEMORY_HOST) | (1u << BP_MEMORY_SHARED);

  // The size of a huge page, and the minimum size of a buffer that requests huge pages, in bytes.
  // With huge pages, loops over several rows of a matrix miss the TLB less often.
  static constexpr uint64_t kHugePage = uint64_t{1} << 21, kHugeBytes = 2 * kHugePage;

  explicit HostMemory(uint64_t limit_bytes) : limit_(limit_bytes) {}

  static uint64_t physical_bytes() {
    return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  }

  Status info(uint32_t kind, bp_memory_info& out) const {
    if (Status status = check_kind(kKinds, kind); !status.ok()) return status;
    const uint64_t used = used_.load(std::memory_order_relaxed);
    out.total_bytes = limit_;
    out.free_bytes = limit_ - std::min(used, limit_);
    return {};
  }

  Result<HostBuffer*> create(const bp_buffer_desc& desc) {
    const uint64_t alignment = desc.alignment == 0 ? kAlignment : desc.alignment;
    if (Status status = check_buffer(desc, alignment, kKinds, kMaxAlignment); !status.ok()) return status;
    auto buffer = std::make_unique<HostBuffer>();
    if (!take(desc.bytes)) return exhausted("buffer_create", desc.bytes);
    const uint64_t least = desc.bytes >= kHugeBytes ? kHugePage : alignof(std::max_align_t);
    const auto align = static_cast<std::size_t>(std::max(alignment, least));
    void* memory = ::operator new(desc.bytes, std::align_val_t{align}, std::nothrow);
    if (memory == nullptr) {
      give(desc.bytes);
      return out_of_memory("buffer_create: the system refuses ", desc.bytes, " bytes");
    }
    if (desc.bytes >= kHugeBytes) want_huge_pages(memory, desc.bytes);
    *buffer = {{static_cast<std::byte*>(memory), desc.bytes}, desc.kind, align, nullptr, false};
    return buffer.release();
  }

  Result<HostBuffer*> import(void* address, uint64_t bytes, uint32_t kind) {
    if (reinterpret_cast<uintptr_t>(address) % alignof(uint64_t) != 0) {
      return unsupported("the address of the memory is not aligned to ", alignof(uint64_t), " bytes; copy instead");
    }
    return new HostBuffer{{static_cast<std::byte*>(address), bytes}, kind, 0, nullptr, false};
  }

  // Creates memory in a shared file.
  Result<HostBuffer*> create_external(const bp_buffer_desc& desc) {
    const uint64_t alignment = desc.alignment == 0 ? kAlignment : desc.alignment;
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    if (Status status = check_buffer(desc, alignment, kKinds, page); !status.ok()) return status;
    auto buffer = std::make_unique<HostBuffer>();
    if (!take(desc.bytes)) return exhausted("buffer_create_external", desc.bytes);
    auto file = SharedFile::create("buffer_create_external", desc.bytes);
    if (!file.ok()) {
      give(desc.bytes);
      return file.status();
    }
    std::byte* const address = file.value()->address();
    *buffer = {{address, desc.bytes}, desc.kind, 0, std::move(file.value()), true};
    return buffer.release();
  }
  // Creates a buffer that maps an existing shared file.
  Result<HostBuffer*> open_external(const bp_external_handle& handle, uint32_t kind) {
    if (handle.offset % alignof(uint64_t) != 0) {
      return unsupported("buffer_import: the offset ", handle.offset, " is not aligned to ", alignof(uint64_t),
                         " bytes");
    }
    auto file = SharedFile::open("buffer_import", handle.fd, handle.offset, handle.bytes);
    if (!file.ok()) return file.status();
    std::byte* const address = file.value()->address();
    return new HostBuffer{{address, handle.bytes}, kind, 0, std::move(file.value()), false};
  }

  void destroy(HostBuffer* buffer) {
    if (buffer->created) give(buffer->span.bytes);
    if (buffer->alignment != 0) {
      ::operator delete(buffer->span.address, std::align_val_t{buffer->alignment});
      give(buffer->span.bytes);
    }
    delete buffer;
  }

 private:
  // Requests huge pages for the part of a buffer that fills whole huge pages. A refusal costs only
  // speed, so the result of madvise is ignored.
  static void want_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] uint64_t bytes) {
#if defined(MADV_HUGEPAGE)
    (void)::madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  }
  Status exhausted(const char* slot, uint64_t bytes) const {
    return out_of_memory(slot, ": ", bytes, " bytes requested, ", used_.load(), " of ", limit_,
                         " are in use; free buffers, or trim the allocator, and try again");
  }
  bool take(uint64_t bytes) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  void give(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace backplane::kit
