// SPDX-License-Identifier: Apache-2.0
// The C table of the interface "bp.native", implemented by a C++ device class. The class may have
// any of these methods; a slot without its method is null.
//   Result<bp_native_handle> device_native(uint32_t index);
//       Returns UNSUPPORTED for an index past the last handle.
//   Result<bp_native_handle> native(Stream&);
//   Result<bp_native_handle> native(Buffer&);
//   Result<bp_native_handle> native(Event&);
//   Result<Stream*> wrap_stream(const bp_native_handle&);
//       The kit has already rejected handles with unknown flags.
//   Result<Buffer*> wrap_memory(const bp_native_handle&, uint32_t& kind);
//       The kit has already rejected unknown flags, 0 bytes, and memory that ends past 2^64.
#pragma once

#include <backplane/kit/native.hpp>
#include <backplane/kit/slot.hpp>

namespace backplane::kit {

template <class Device>
class NativeTable : DeviceSlots<Device> {
  using Slots = DeviceSlots<Device>;
  using Slots::of;
  using Slots::slot;
  using typename Slots::Buffer;
  using typename Slots::Event;
  using typename Slots::Stream;

  template <class Object>
  static constexpr bool kHasHandle = requires(Device& d, Object& object) { d.native(object); };
  static constexpr bool kDevice = requires(Device& d) { d.device_native(0u); };
  static constexpr bool kWrapsStreams = requires(Device& d, const bp_native_handle& handle) {
    { d.wrap_stream(handle) } -> std::same_as<Result<Stream*>>;
  };
  static constexpr bool kWrapsMemory =
      requires(Device& d, const bp_native_handle& handle, uint32_t& kind) { d.wrap_memory(handle, kind); };

  // Writes the handle that `make` returns.
  template <class Make, class... Handles>
  static bp_status get(bp_error* error, const char* name, bp_native_handle* out, const Make& make,
                       const Handles*... handles) {
    return slot(
        error, name,
        [&] {
          Status status = check_output(out, BP_NATIVE_HANDLE_MIN_SIZE, "bp_native_handle");
          if (!status.ok()) return status;
          Result<bp_native_handle> made = make();
          if (made.ok()) write_output(out, made.value());
          return made.status();
        },
        handles...);
  }

  static bp_status device_native(bp_device* device, uint32_t index, bp_native_handle* out, bp_error* error) {
    return get(
        error, "device_native", out, [&] { return of(device).device_native(index); }, device);
  }
  static bp_status stream_native(bp_device* device, bp_stream* stream, bp_native_handle* out, bp_error* error) {
    return get(
        error, "stream_native", out, [&] { return of(device).native(of(stream)); }, device, stream);
  }
  static bp_status buffer_native(bp_device* device, bp_buffer* buffer, bp_native_handle* out, bp_error* error) {
    return get(
        error, "buffer_native", out, [&] { return of(device).native(of(buffer)); }, device, buffer);
  }
  static bp_status event_native(bp_device* device, bp_event* event, bp_native_handle* out, bp_error* error) {
    return get(
        error, "event_native", out, [&] { return of(device).native(of(event)); }, device, event);
  }

  static Status read_handle(const bp_native_handle* given, bp_native_handle& out) {
    Status status = read_input(given, BP_NATIVE_HANDLE_MIN_SIZE, "bp_native_handle", out);
    if (status.ok() && (out.flags & ~BP_NATIVE_ADDRESS) != 0) {
      return unsupported("bp_native_handle.flags is ", out.flags, "; the known values are 0 and BP_NATIVE_ADDRESS");
    }
    return status;
  }
  static bp_status stream_wrap(bp_device* device, const bp_native_handle* native, bp_stream** out, bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Stream*> {
      bp_native_handle known;
      if (Status status = read_handle(native, known); !status.ok()) return status;
      return of(device).wrap_stream(known);
    });
  }
  static bp_status buffer_wrap(bp_device* device, const bp_native_handle* native, uint32_t* out_kind, bp_buffer** out,
                               bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Buffer*> {
      bp_native_handle known;
      if (Status status = read_handle(native, known); !status.ok()) return status;
      const uint64_t start = (known.flags & BP_NATIVE_ADDRESS) != 0 ? known.value : 0;
      if (known.bytes == 0 || known.offset > UINT64_MAX - start || known.bytes > UINT64_MAX - start - known.offset) {
        return invalid_argument("buffer_wrap: ", known.bytes, " bytes at offset ", known.offset,
                                " are not a valid range; state at least 1 byte within the memory");
      }
      uint32_t kind = 0;
      auto result = of(device).wrap_memory(known, kind);
      if (result.ok() && out_kind != nullptr) *out_kind = kind;
      return result;
    });
  }

  static constexpr bp_native_api make() {
    bp_native_api api{};
    api.struct_size = sizeof(bp_native_api);
    if constexpr (kDevice) api.device_native = device_native;
    if constexpr (kHasHandle<Stream>) api.stream_native = stream_native;
    if constexpr (kHasHandle<Buffer>) api.buffer_native = buffer_native;
    if constexpr (kHasHandle<Event>) api.event_native = event_native;
    if constexpr (kWrapsStreams) api.stream_wrap = stream_wrap;
    if constexpr (kWrapsMemory) api.buffer_wrap = buffer_wrap;
    return api;
  }

 public:
  // Whether the class has any of the methods.
  static constexpr bool kAny =
      kDevice || kHasHandle<Stream> || kHasHandle<Buffer> || kHasHandle<Event> || kWrapsStreams || kWrapsMemory;
  static constexpr bp_native_api table = make();
};

}  // namespace backplane::kit
