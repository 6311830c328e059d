// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/test_driver/shared.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <backplane/kit/external.hpp>
#include <backplane/kit/host_semaphore.hpp>

namespace backplane::gpu_host::test_driver {

namespace {

using File = std::shared_ptr<kit::SharedFile>;

struct Map {
  Context* context;
  File file;
  uint64_t bytes;
  bool is_permitted = false;
};

struct Shared {
  std::map<uint64_t, File> objects;
  std::map<uintptr_t, uint64_t> reservations;  // bytes by address
  std::map<uintptr_t, Map> maps;
  std::map<const void*, File> foreign;  // the memory of other APIs, by handle
  std::map<const void*, std::shared_ptr<kit::HostSemaphore>> semaphores;
  uint64_t last_object = 0;

  static Shared& get() {
    static auto* const one = new Shared;
    return *one;
  }
  uint64_t add(File file) {
    objects[++last_object] = std::move(file);
    return last_object;
  }
  File object(uint64_t number) {
    const auto found = objects.find(number);
    if (found != objects.end()) return found->second;
    (void)violate(Result::kInvalidValue, "an object is used that was released, or never existed");
    return nullptr;
  }
};

uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

Result check_unit(uint64_t bytes) {
  if (bytes != 0 && bytes % kSharedUnit == 0) return Result::kSuccess;
  return violate(Result::kInvalidValue, "the size is no multiple of the granularity");
}

// Opens a file. The caller keeps the descriptor.
File open_file(int fd) {
  auto file = kit::SharedFile::open("the test driver", fd, 0, 1);
  return file.ok() ? file.value() : nullptr;
}

}  // namespace

Result create_object(Context& context, uint64_t bytes, uint64_t& out) {
  if (const Result result = check_unit(bytes); result != Result::kSuccess) return result;
  if (bytes > free_bytes(context)) return Result::kOutOfMemory;
  auto file = kit::SharedFile::create("the test driver", bytes);
  if (!file.ok()) return Result::kOutOfMemory;
  out = Shared::get().add(file.value());
  return Result::kSuccess;
}

Result import_object(int fd, uint64_t& out) {
  File file = open_file(fd);
  if (file == nullptr) return Result::kInvalidValue;
  if (file->file_bytes() % kSharedUnit != 0) return Result::kNotSupported;
  out = Shared::get().add(std::move(file));
  return Result::kSuccess;
}

Result release_object(uint64_t object) {
  if (Shared::get().object(object) == nullptr) return Result::kInvalidValue;
  Shared::get().objects.erase(object);
  return Result::kSuccess;
}

Result export_object(uint64_t object, int& fd) {
  const File file = Shared::get().object(object);
  if (file == nullptr) return Result::kInvalidValue;
  auto made = file->duplicate("the test driver");
  if (!made.ok()) return Result::kOutOfMemory;
  fd = made.value();
  (void)::fcntl(fd, F_SETFD, 0);  // a driver need not set FD_CLOEXEC
  return Result::kSuccess;
}

Result reserve(uint64_t bytes, void*& out) {
  if (const Result result = check_unit(bytes); result != Result::kSuccess) return result;
  out = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (out == MAP_FAILED) return Result::kOutOfMemory;
  Shared::get().reservations[number_of(out)] = bytes;
  return Result::kSuccess;
}

Result unreserve(const void* address, uint64_t bytes) {
  Shared& shared = Shared::get();
  const auto found = shared.reservations.find(number_of(address));
  if (found == shared.reservations.end() || found->second != bytes) {
    return violate(Result::kInvalidValue, "the range was not reserved");
  }
  if (shared.maps.contains(number_of(address))) {
    return violate(Result::kInvalidValue, "addresses are freed while memory is mapped there");
  }
  shared.reservations.erase(found);
  (void)::munmap(const_cast<void*>(address), bytes);
  return Result::kSuccess;
}

Result map_object(Context& context, void* address, uint64_t bytes, uint64_t object) {
  Shared& shared = Shared::get();
  const File file = shared.object(object);
  if (file == nullptr) return Result::kInvalidValue;
  const auto room = shared.reservations.find(number_of(address));
  if (room == shared.reservations.end() || room->second != bytes || shared.maps.contains(number_of(address))) {
    return violate(Result::kInvalidValue, "the range was not reserved, or has memory");
  }
  if (bytes != file->file_bytes()) return Result::kInvalidValue;
  auto fd = file->duplicate("the test driver");
  if (!fd.ok()) return Result::kOutOfMemory;
  const kit::Descriptor closes(fd.value());
  if (::mmap(address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd.value(), 0) == MAP_FAILED)
    return Result::kOutOfMemory;
  shared.maps[number_of(address)] = {&context, file, bytes};
  return Result::kSuccess;
}

Result permit(void* address, uint64_t bytes) {
  const auto found = Shared::get().maps.find(number_of(address));
  if (found == Shared::get().maps.end() || found->second.bytes != bytes) {
    return violate(Result::kInvalidValue, "access is permitted to a range without memory");
  }
  if (::mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0) return Result::kOutOfMemory;
  found->second.is_permitted = true;
  add_mapped(*found->second.context, address, bytes);
  return Result::kSuccess;
}

Result unmap(void* address, uint64_t bytes) {
  const auto found = Shared::get().maps.find(number_of(address));
  if (found == Shared::get().maps.end() || found->second.bytes != bytes) {
    return violate(Result::kInvalidValue, "the range has no mapped memory");
  }
  const Result result = found->second.is_permitted ? remove_mapped(address) : Result::kSuccess;
  if (result != Result::kSuccess) return result;
  (void)::mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  Shared::get().maps.erase(found);
  return Result::kSuccess;
}

Result import_foreign(int fd, uint64_t bytes, void*& out) {
  auto file = kit::SharedFile::open("the test driver", fd, 0, bytes);
  if (!file.ok()) return Result::kUnknown;  // drivers return this code for a descriptor of another object
  out = file.value().get();
  Shared::get().foreign[out] = file.value();
  ::close(fd);
  return Result::kSuccess;
}

Result map_foreign(Context& context, const void* memory, uint64_t bytes, void*& out) {
  Shared& shared = Shared::get();
  const auto found = shared.foreign.find(memory);
  if (found == shared.foreign.end()) return violate(Result::kInvalidHandle, "the external memory does not exist");
  auto fd = found->second->duplicate("the test driver");
  if (!fd.ok()) return Result::kOutOfMemory;
  const kit::Descriptor closes(fd.value());
  out = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.value(), 0);
  if (out == MAP_FAILED) return Result::kInvalidValue;
  shared.maps[number_of(out)] = {&context, found->second, bytes, true};
  add_mapped(context, out, bytes);
  return Result::kSuccess;
}

bool is_foreign(const void* address) {
  const Shared& shared = Shared::get();
  return shared.maps.contains(number_of(address)) && !shared.reservations.contains(number_of(address));
}

Result unmap_foreign(void* address) {
  const auto found = Shared::get().maps.find(number_of(address));
  if (const Result result = remove_mapped(address); result != Result::kSuccess) return result;
  (void)::munmap(address, found->second.bytes);
  Shared::get().maps.erase(found);
  return Result::kSuccess;
}

Result destroy_foreign(const void* memory) {
  const auto found = Shared::get().foreign.find(memory);
  if (found == Shared::get().foreign.end()) {
    return violate(Result::kInvalidHandle, "the external memory does not exist");
  }
  const bool is_mapped =
      std::ranges::any_of(Shared::get().maps, [&](const auto& each) { return each.second.file == found->second; });
  if (is_mapped) return violate(Result::kInvalidHandle, "external memory is destroyed before its buffers are freed");
  Shared::get().foreign.erase(found);
  return Result::kSuccess;
}

Result import_semaphore(int fd, void*& out) {
  auto made = kit::HostSemaphore::open(kit::external_handle("", fd));
  if (!made.ok()) return Result::kUnknown;
  out = made.value().get();
  Shared::get().semaphores[out] = made.value();
  ::close(fd);
  return Result::kSuccess;
}

Result destroy_semaphore(const void* semaphore) {
  if (Shared::get().semaphores.erase(semaphore) != 0) return Result::kSuccess;
  return violate(Result::kInvalidHandle, "the semaphore does not exist");
}

namespace {

// Enqueues `body(semaphore)`, which runs when the stream reaches it.
template <class Body>
Result enqueue(const Call& call, const void* handle, const void* semaphore, const Body& body) {
  const auto stream = find_stream(call, handle);
  if (stream == nullptr) return Result::kInvalidHandle;
  const auto found = Shared::get().semaphores.find(semaphore);
  if (found == Shared::get().semaphores.end()) return violate(Result::kInvalidHandle, "the semaphore does not exist");
  return stream->command([&](Work& work) { return work.run([body, kept = found->second] { body(*kept); }); });
}

}  // namespace

Result signal_semaphore(const Call& call, const void* stream, const void* semaphore, uint64_t value) {
  return enqueue(call, stream, semaphore, [value](kit::HostSemaphore& on) {
    if (value != 0 && on.reached(value)) {
      simt::test_driver::violation("a signal does not raise the semaphore, whose value a real driver would lower");
    }
    on.raise(value);
  });
}

Result await_semaphore(const Call& call, const void* stream, const void* semaphore, uint64_t value) {
  return enqueue(call, stream, semaphore, [value](kit::HostSemaphore& on) {
    static const std::atomic<bool> kNever{false};
    (void)on.wait(value, kNever);
  });
}

}  // namespace backplane::gpu_host::test_driver
