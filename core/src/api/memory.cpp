// SPDX-License-Identifier: Apache-2.0
// The C boundary of buffers, streams, events and copies.
#include <backplane/backplane.h>

#include "base/structs.hpp"
#include "loading/plugin_call.hpp"
#include "memory/address_map.hpp"
#include "memory/buffer.hpp"
#include "memory/transfer.hpp"
#include "streams/event.hpp"

namespace {

using namespace bp;

uint64_t value(const void* handle) noexcept { return reinterpret_cast<uint64_t>(handle); }

template <class Handle>
void start_output(Handle* out, const char* function) {
  if (out == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: out is null; pass where the result goes", function);
  *out = {};
}

// Gives the caller a handle that carries `object`'s reference.
template <class T, class Handle>
void hand_out(Ref<T> object, Handle** out) {
  object->public_handle = HandleTable::instance().insert(T::handle_type, object.get());
  *out = reinterpret_cast<Handle*>(object->public_handle);
  object.detach();
}

template <class T>
void end_handle(const void* handle) noexcept {
  auto* object = static_cast<T*>(HandleTable::instance().remove(T::handle_type, value(handle)));
  if (object != nullptr) object->release();
}

// As guard, for a body whose TIMEOUT or NOT_READY is no failure and leaves the record alone.
template <class Body>
bp_status guard_answer(bp_error* error, Body&& body) noexcept {
  bp_status answer = BP_OK;
  const bp_status failure = guard(error, [&] { answer = body(); });
  return failure != BP_OK ? failure : answer;
}

}  // namespace

bp_status bph_buffer_create(bph_device* device, const bph_buffer_desc* desc, bph_buffer** out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_create";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    bph_buffer_desc copy;
    const bool same = desc != nullptr && desc->struct_size == sizeof(bph_buffer_desc);
    if (!same) [[unlikely]]
      copy = read_input(desc, BPH_BUFFER_DESC_MIN_SIZE, function, "bph_buffer_desc");
    const bph_buffer_desc& known = same ? *desc : copy;
    Stream* stream = known.stream == nullptr ? nullptr : &require<Stream>(known.stream, function);
    *out = reinterpret_cast<bph_buffer*>(Buffer::create(owner, known, stream).public_handle);
  });
}

bp_status bph_buffer_import(bph_device* device, const bph_import_desc* desc, bph_buffer** out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_import";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    const bph_import_desc known = read_input(desc, BPH_IMPORT_DESC_MIN_SIZE, function, "bph_import_desc");
    Stream* stream = known.stream == nullptr ? nullptr : &require<Stream>(known.stream, function);
    *out = reinterpret_cast<bph_buffer*>(Buffer::import(owner, known, stream).public_handle);
  });
}

void bph_buffer_release(bph_buffer* buffer) {
  auto* object = find_handle<Buffer>(buffer);
  if (object != nullptr) Buffer::end(*object, value(buffer));
}

bp_status bph_buffer_record(bph_buffer* buffer, bph_stream* stream, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_record";
    require<Buffer>(buffer, function).record(require<Stream>(stream, function));
  });
}

bp_status bph_buffer_map(bph_buffer* buffer, void** out, bp_error* error) {
  return guard(error, [&] {
    start_output(out, "bph_buffer_map");
    *out = require<Buffer>(buffer, "bph_buffer_map").map();
  });
}

bp_status bph_buffer_get_info(bph_buffer* buffer, bph_buffer_info* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_get_info";
    Buffer& object = require<Buffer>(buffer, function);
    const Buffer::Address address = object.address();
    bph_buffer_info info = {};
    info.address = address.value;
    info.flags = address.flags;
    info.kind = object.kind;
    info.bytes = object.bytes;
    info.plugin_offset = object.plugin_offset;
    info.plugin_buffer = object.plugin_buffer;
    write_output(out, info, function, "bph_buffer_info", BPH_BUFFER_INFO_MIN_SIZE);
  });
}

bp_status bph_buffer_from_address(uint64_t address, bph_device** out_device, bph_buffer** out_buffer,
                                  uint64_t* out_offset, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_from_address";
    start_output(out_device, function);
    start_output(out_buffer, function);
    start_output(out_offset, function);
    const AddressedBuffer found = AddressMap::instance().find(address);
    if (found.buffer == 0) {
      throw Error(BP_INVALID_ARGUMENT,
                  "{}: {:#x} lies in no living buffer whose address was asked for, that was mapped or imported",
                  function, address);
    }
    *out_device = reinterpret_cast<bph_device*>(found.device);
    *out_buffer = reinterpret_cast<bph_buffer*>(found.buffer);
    *out_offset = found.offset;
  });
}

bp_status bph_stream_create(bph_device* device, const bph_stream_desc* desc, bph_stream** out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_stream_create";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    bph_stream_desc known = {};
    if (desc != nullptr) known = read_input(desc, BPH_STREAM_DESC_MIN_SIZE, function, "bph_stream_desc");
    hand_out(Stream::create(Ref<Device>(&owner), known), out);
  });
}

void bph_stream_release(bph_stream* stream) { end_handle<Stream>(stream); }

bp_status bph_stream_wait(bph_stream* stream, uint64_t timeout_ns, bp_error* error) {
  return guard_answer(error, [&] { return require<Stream>(stream, "bph_stream_wait").try_wait(timeout_ns); });
}

bp_status bph_stream_get_info(bph_stream* stream, bph_stream_info* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_stream_get_info";
    const Stream& object = require<Stream>(stream, function);
    bph_stream_info info = {};
    info.priority = object.priority;
    info.flags = object.flags;
    info.plugin_stream = (object.flags & BPH_STREAM_EXTERNAL) != 0 ? object.handle : nullptr;
    write_output(out, info, function, "bph_stream_info", BPH_STREAM_INFO_MIN_SIZE);
  });
}

bp_status bph_stream_enqueue(bph_stream* stream,
                             bp_status (*enqueue)(void* context, bp_device* plugin_device, bp_stream* plugin_stream,
                                                  bp_error* error),
                             void* context, bp_error* error) {
  return guard(error, [&] {
    Stream& target = require<Stream>(stream, "bph_stream_enqueue");
    if (enqueue == nullptr) throw Error(BP_INVALID_ARGUMENT, "bph_stream_enqueue: the callback is null; pass one");
    target.enqueue(enqueue, context);
  });
}

bp_status bph_event_create(bph_device* device, uint32_t flags, bph_event** out, bp_error* error) {
  return guard(error, [&] {
    start_output(out, "bph_event_create");
    hand_out(Event::create(Ref<Device>(&require<Device>(device, "bph_event_create")), flags), out);
  });
}

void bph_event_release(bph_event* event) { end_handle<Event>(event); }

bp_status bph_event_get_info(bph_event* event, bph_event_info* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_event_get_info";
    const Event& object = require<Event>(event, function);
    bph_event_info info = {};
    info.flags = object.flags;
    info.plugin_event = object.handle;
    write_output(out, info, function, "bph_event_info", BPH_EVENT_INFO_MIN_SIZE);
  });
}

bp_status bph_event_record(bph_event* event, bph_stream* stream, bp_error* error) {
  return guard(error,
               [&] { require<Event>(event, "bph_event_record").record(require<Stream>(stream, "bph_event_record")); });
}

bp_status bph_event_wait(bph_event* event, uint64_t timeout_ns, bp_error* error) {
  return guard_answer(error, [&] { return require<Event>(event, "bph_event_wait").try_wait(timeout_ns); });
}

bp_status bph_stream_wait_event(bph_stream* stream, bph_event* event, bp_error* error) {
  return guard(error, [&] {
    Stream& waiter = require<Stream>(stream, "bph_stream_wait_event");
    require<Event>(event, "bph_stream_wait_event").make_wait(waiter);
  });
}

bp_status bph_event_elapsed(bph_event* begin, bph_event* end, int64_t* out_ns, bp_error* error) {
  return guard_answer(error, [&] {
    constexpr const char* function = "bph_event_elapsed";
    start_output(out_ns, function);
    return Event::elapsed(require<Event>(begin, function), require<Event>(end, function), out_ns);
  });
}

bp_status bph_copy(bph_stream* stream, bph_buffer* dst, uint64_t dst_offset, bph_buffer* src, uint64_t src_offset,
                   uint64_t bytes, uint32_t flags, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_copy";
    copy(require<Stream>(stream, function), require<Buffer>(dst, function), dst_offset, require<Buffer>(src, function),
         src_offset, bytes, flags);
  });
}

bp_status bph_copy_in(bph_stream* stream, bph_buffer* dst, uint64_t dst_offset, const void* src, uint64_t bytes,
                      uint32_t flags, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_copy_in";
    copy_in(require<Stream>(stream, function), require<Buffer>(dst, function), dst_offset, src, bytes, flags);
  });
}

bp_status bph_copy_out(bph_stream* stream, void* dst, bph_buffer* src, uint64_t src_offset, uint64_t bytes,
                       uint32_t flags, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_copy_out";
    copy_out(require<Stream>(stream, function), dst, require<Buffer>(src, function), src_offset, bytes, flags);
  });
}

bp_status bph_copy_across(bph_stream* dst_stream, bph_buffer* dst, uint64_t dst_offset, bph_stream* src_stream,
                          bph_buffer* src, uint64_t src_offset, uint64_t bytes, uint32_t flags, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_copy_across";
    copy_across(require<Stream>(dst_stream, function), require<Buffer>(dst, function), dst_offset,
                require<Stream>(src_stream, function), require<Buffer>(src, function), src_offset, bytes, flags);
  });
}
