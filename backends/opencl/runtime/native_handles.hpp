// SPDX-License-Identifier: Apache-2.0
// The handles of "bp.native": OpenCL objects of a device, and objects of the caller that the plugin uses. The README
// lists the types of handles.
#pragma once

#include <backplane/kit/native.hpp>

#include "runtime/queue.hpp"

namespace backplane::opencl {

// Returns UNSUPPORTED for an index past the last handle.
kit::Result<bp_native_handle> handle_of_device(const Context& context, uint32_t index);
// Submits all commands of a queue, and then returns its handle.
kit::Result<bp_native_handle> handle_of(Queue& queue);
kit::Result<bp_native_handle> handle_of(const Buffer& buffer);
kit::Result<bp_native_handle> handle_of(const Event& event);

// Both functions return UNSUPPORTED for an object that the plugin cannot use, and INVALID_ARGUMENT for a value that the
// driver rejects. The result owns one reference to the object, if the object has references.
kit::Result<std::unique_ptr<Queue>> wrap_queue(const Context& context, Kernels& kernels,
                                               const bp_native_handle& handle);
kit::Result<simt::Buffer*> wrap_memory(const Context& context, const bp_native_handle& handle, uint32_t& kind);

}  // namespace backplane::opencl
