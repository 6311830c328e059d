// SPDX-License-Identifier: Apache-2.0
// A semaphore of host devices: a counter in a shared file, on which threads of several processes
// wait.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <backplane/kit/shared_file.hpp>
#include <climits>
#include <ctime>

namespace backplane::kit {

class HostSemaphore {
 public:
  static Result<std::shared_ptr<HostSemaphore>> create(uint64_t value) {
    auto file = SharedFile::create("semaphore_create", sizeof(State));
    if (!file.ok()) return file.status();
    auto made = std::make_shared<HostSemaphore>(std::move(file.value()));
    made->state().value.store(value);
    made->state().mark.store(kMark);
    return made;
  }
  static Result<std::shared_ptr<HostSemaphore>> open(const bp_external_handle& handle) {
    auto file = SharedFile::open("semaphore_import", handle.fd, 0, sizeof(State));
    if (!file.ok()) return file.status();
    auto made = std::make_shared<HostSemaphore>(std::move(file.value()));
    if (made->file_->file_bytes() != sizeof(State) || made->state().mark.load() != kMark) {
      return invalid_argument("semaphore_import: the descriptor ", handle.fd, " is a file, but no semaphore");
    }
    return made;
  }

  explicit HostSemaphore(std::shared_ptr<SharedFile> file) : file_(std::move(file)) {}

  const SharedFile& file() const { return *file_; }
  bool reached(uint64_t value) const { return state().value.load() >= value; }

  // Raises the counter to at least `value`.
  void raise(uint64_t value) {
    raises_of_process_.fetch_add(1);
    uint64_t now = state().value.load();
    while (now < value && !state().value.compare_exchange_weak(now, value)) {
    }
    state().raises.fetch_add(1);
    ::syscall(SYS_futex, &state().raises, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  // Waits until the counter has reached `value` or `stop` is true. Returns false if `stop` is true
  // first. Checks both conditions at least every 10 ms, because another process may change the file
  // in any way.
  bool wait(uint64_t value, const std::atomic<bool>& stop) const {
    for (;;) {
      const uint32_t raises = state().raises.load();
      if (reached(value)) {
        (void)raises_of_process_.load();
        return true;
      }
      if (stop.load()) return false;
      const timespec pause = {0, 10'000'000};
      ::syscall(SYS_futex, &state().raises, FUTEX_WAIT, raises, &pause, nullptr, 0);
    }
  }

 private:
  static constexpr uint64_t kMark = 0x70616d65'73707062;  // distinguishes a semaphore file from a memory file

  struct State {
    std::atomic<uint64_t> mark;
    std::atomic<uint64_t> value;
    std::atomic<uint32_t> raises;  // number of calls of raise; futexes have 32 bits
    uint32_t unused;
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(State) == 24);

  // A process may map a semaphore's file at several addresses, so two threads may use different atomic
  // objects. C++ orders threads only if they access the same object. Each raise and each wait
  // therefore also accesses this counter.
  static inline std::atomic<uint64_t> raises_of_process_{0};

  State& state() const { return *reinterpret_cast<State*>(file_->address()); }

  std::shared_ptr<SharedFile> file_;
};

}  // namespace backplane::kit
