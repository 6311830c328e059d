// SPDX-License-Identifier: Apache-2.0
// Memory and semaphores that processes and APIs share by file descriptors. Both are files (kit/shared_file.hpp and
// kit/host_semaphore.hpp), so that tests can create them without the driver.
#pragma once

#include "gpu_host/test_driver/memory.hpp"

namespace backplane::gpu_host::test_driver {

constexpr uint64_t kSharedUnit = 2u << 20;  // the bytes of an object, a reservation and a map are multiples of this

// An object is memory without an address. It exists until it is released, its maps end and its descriptors are closed.
Result create_object(Context& context, uint64_t bytes, uint64_t& out);
// Returns NOT_SUPPORTED for memory whose size is no multiple of the unit. The caller keeps the descriptor.
Result import_object(int fd, uint64_t& out);
Result release_object(uint64_t object);
Result export_object(uint64_t object, int& fd);

Result reserve(uint64_t bytes, void*& out);
Result unreserve(const void* address, uint64_t bytes);
// Maps all of an object to a reservation. Kernels may access the mapped memory only after permit().
Result map_object(Context& context, void* address, uint64_t bytes, uint64_t object);
Result permit(void* address, uint64_t bytes);
Result unmap(void* address, uint64_t bytes);

// Imports memory of another API, with any size. The driver owns the descriptor after a success.
Result import_foreign(int fd, uint64_t bytes, void*& out);
Result map_foreign(Context& context, const void* memory, uint64_t bytes, void*& out);
// Returns whether map_foreign() returned the address.
bool is_foreign(const void* address);
Result unmap_foreign(void* address);
Result destroy_foreign(const void* memory);

// The driver owns the descriptor after a success.
Result import_semaphore(int fd, void*& out);
Result destroy_semaphore(const void* semaphore);
Result signal_semaphore(const Call& call, const void* stream, const void* semaphore, uint64_t value);
Result await_semaphore(const Call& call, const void* stream, const void* semaphore, uint64_t value);

}  // namespace backplane::gpu_host::test_driver
