// SPDX-License-Identifier: Apache-2.0
// The handles of "bp.native": Level Zero objects of a device, and objects of the caller that the plugin uses. The
// README lists the types of handles.
#pragma once

#include <backplane/kit/native.hpp>

#include "runtime/queue.hpp"

namespace backplane::level_zero {

// Returns UNSUPPORTED for an index past the last handle.
kit::Result<bp_native_handle> handle_of_device(const Context& context, uint32_t index);
// Returns the handle of a queue. From this call on, other code may append commands to the queue (Queue::share).
kit::Result<bp_native_handle> handle_of(Queue& queue);
kit::Result<bp_native_handle> handle_of(const Buffer& buffer);
kit::Result<bp_native_handle> handle_of(const Mark& mark);

// Both functions return UNSUPPORTED for an object that the plugin cannot use, and INVALID_ARGUMENT for a value that is
// null or that the driver rejects. The driver does not report the context of a list or a queue, so the caller must pass
// a list or a queue of this context.
kit::Result<std::unique_ptr<Queue>> wrap_queue(const Context& context, Kernels& kernels, Events& events,
                                               const bp_native_handle& handle);
kit::Result<simt::Buffer*> wrap_memory(const Context& context, const bp_native_handle& handle, uint32_t& kind);

}  // namespace backplane::level_zero
