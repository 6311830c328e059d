// SPDX-License-Identifier: Apache-2.0
// Test cases for native handles through the host library. The native objects belong to other objects
// of the same device, because the suite itself uses no driver.
#include <atomic>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/runtime/native.hpp"
#include "cases/support/add_case.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kNativeBytes = 65536;

backplane::Buffer buffer_on(const backplane::Device& device, const backplane::Stream& stream) {
  auto desc = backplane::detail::sized<bph_buffer_desc>();
  desc.bytes = kNativeBytes;
  desc.stream = stream.get();
  return backplane::Buffer(device.get(), desc);
}
void write(const backplane::Stream& stream, const backplane::Buffer& buffer, const Bytes& bytes) {
  backplane::detail::call(bph_copy_in, stream.get(), buffer.get(), uint64_t{0}, static_cast<const void*>(bytes.data()),
                          uint64_t{bytes.size()}, uint32_t{BPH_COPY_SOURCE_FREE});
}
Bytes read(const backplane::Stream& stream, const backplane::Buffer& buffer) {
  Bytes got(kNativeBytes);
  backplane::detail::call(bph_copy_out, stream.get(), static_cast<void*>(got.data()), buffer.get(), uint64_t{0},
                          kNativeBytes, uint32_t{0});
  return got;
}
void copy(const backplane::Stream& stream, const backplane::Buffer& to, const backplane::Buffer& from) {
  backplane::detail::call(bph_copy, stream.get(), to.get(), uint64_t{0}, from.get(), uint64_t{0}, kNativeBytes,
                          uint32_t{0});
}
void count_release(void* count) { ++*static_cast<std::atomic<int>*>(count); }

// Returns the status with which the call fails, or OK if the call succeeds.
template <class Call>
bp_status status_of(const Call& call) {
  try {
    call();
    return BP_OK;
  } catch (const backplane::Error& error) {
    return error.status();
  }
}
void require_status(Context& context, const char* what, bp_status got, bp_status expected) {
  context.require(got == expected, "{} returned {}, not {}", what, status_name(got), status_name(expected));
}

// Several buffers are in one block of the allocator's cache. The handle of each buffer must refer to
// the bytes of this buffer only.
void wraps_memory(Context& context) {
  HostSide side(context);
  std::vector<backplane::Buffer> all;
  for (int i = 0; i < 5; ++i) all.push_back(buffer_on(side.device, side.stream));
  std::atomic<int> released = 0;
  for (const backplane::Buffer& each : all) {
    const Bytes data = noise(context, kNativeBytes), back = noise(context, kNativeBytes);
    for (const backplane::Buffer& other : all) write(side.stream, other, Bytes(kNativeBytes, 0));
    write(side.stream, each, data);
    const bp_native_handle handle = each.native();
    require_form(context, handle, "bph_buffer_get_native");
    context.require(handle.bytes == kNativeBytes, "a buffer of {} bytes has a handle of {}", kNativeBytes,
                    handle.bytes);
    {
      const auto twin = backplane::Buffer::import_native(side.device.get(), handle, count_release, &released);
      require_same(context, read(side.stream, twin), data, "wrapped memory, read");
      write(side.stream, twin, back);
    }
    require_same(context, read(side.stream, each), back, "wrapped memory, written");
    for (const backplane::Buffer& other : all) {
      if (&other == &each) continue;
      require_same(context, read(side.stream, other), Bytes(kNativeBytes, 0), "memory next to wrapped memory");
    }
  }
  side.stream.wait();
  side.device.trim();
  context.require(released == 5, "the owners of 5 wrapped memories were called back {} times", released.load());
}

void wraps_a_stream(Context& context) {
  HostSide side(context);
  const backplane::Stream own(side.device, 0, BPH_STREAM_EXTERNAL);
  const backplane::Buffer from = buffer_on(side.device, own), middle = buffer_on(side.device, own),
                          to = buffer_on(side.device, own);
  std::atomic<int> released = 0;
  {
    const auto wrapping = backplane::Stream::wrap(side.device, own.native(), 0, count_release, &released);
    context.require((wrapping.info().flags & (BPH_STREAM_NATIVE | BPH_STREAM_EXTERNAL)) ==
                        (BPH_STREAM_NATIVE | BPH_STREAM_EXTERNAL),
                    "a wrapping stream has the flags {:#x}", wrapping.info().flags);
    for (int round = 0; round < 16; ++round) {
      const Bytes data = noise(context, kNativeBytes);
      write(own, from, data);
      copy(wrapping, middle, from);
      copy(own, to, middle);
      require_same(context, read(wrapping, to), data, "a chain of copies on two streams over one native stream");
    }
    wrapping.wait();
  }
  own.wait();
  side.device.trim();
  context.require(released == 1, "the owner of a wrapped stream was called back {} times", released.load());
  const Bytes data = noise(context, kNativeBytes);
  write(own, from, data);
  require_same(context, read(own, from), data, "work on a stream whose wrapping stream was released");
}

void event_handles(Context& context) {
  HostSide side(context);
  const backplane::Event event(side.device);
  const bp_status before = status_of([&] { (void)event.native(); });
  context.require(before == BP_INVALID_ARGUMENT || before == BP_UNSUPPORTED,
                  "an event that was never recorded has a handle");
  event.record(side.stream);
  require_form(context, event.native(), "bph_event_get_native");
}

// Makes calls that the host library must refuse. A refused call must change nothing, and must not
// call the owner's callback.
void host_refuses_handles(Context& context) {
  HostSide side(context);
  const backplane::Buffer buffer = buffer_on(side.device, side.stream);
  const bp_native_handle handle = buffer.native();
  const auto import = [&](auto spoil) {
    auto desc = backplane::detail::sized<bph_import_desc>();
    bp_native_handle changed = handle;
    desc.flags = BPH_IMPORT_NATIVE;
    desc.native = &changed;
    desc.release = [](void*) { std::abort(); };
    spoil(desc, changed);
    return status_of([&] { backplane::Buffer::import(side.device.get(), desc); });
  };
  using Desc = bph_import_desc&;
  using Handle = bp_native_handle&;
  require_status(context, "an import without a handle", import([](Desc desc, Handle) { desc.native = nullptr; }),
                 BP_INVALID_ARGUMENT);
  require_status(context, "an import of a handle without the flag", import([](Desc desc, Handle) { desc.flags = 0; }),
                 BP_INVALID_ARGUMENT);
  require_status(context, "an import of a handle and an address", import([](Desc desc, Handle) { desc.address = 64; }),
                 BP_INVALID_ARGUMENT);
  require_status(context, "an import with an unknown flag", import([](Desc desc, Handle) { desc.flags |= 1u << 31; }),
                 BP_UNSUPPORTED);
  require_status(context, "an import of 0 bytes", import([](Desc, Handle native) { native.bytes = 0; }),
                 BP_INVALID_ARGUMENT);
  require_status(context, "an import of an unknown type", import([](Desc, Handle native) { native.type[0] = 'X'; }),
                 BP_UNSUPPORTED);
  require_status(context, "an import of a short handle", import([](Desc, Handle native) { native.struct_size = 8; }),
                 BP_INVALID_ARGUMENT);
  require_status(context, "the handle of a stream without EXTERNAL", status_of([&] { (void)side.stream.native(); }),
                 BP_INVALID_ARGUMENT);
  auto none = backplane::detail::sized<bph_buffer_desc>();
  const backplane::Buffer empty(side.device.get(), none);
  require_status(context, "the handle of a buffer without bytes", status_of([&] { (void)empty.native(); }),
                 BP_UNSUPPORTED);
  auto desc = backplane::detail::sized<bph_stream_desc>();
  bph_stream* stream = nullptr;
  ErrorRecord error;
  desc.flags = BPH_STREAM_NATIVE;
  require_status(context, "a stream without a handle", bph_stream_create(side.device.get(), &desc, &stream, &error),
                 BP_INVALID_ARGUMENT);
  desc.flags = 0;
  desc.native = &handle;
  require_status(context, "a stream with a handle and without the flag",
                 bph_stream_create(side.device.get(), &desc, &stream, &error), BP_INVALID_ARGUMENT);
}

// The host library must refuse calls on released objects.
void host_refuses_released(Context& context) {
  HostSide side(context);
  bph_buffer* const buffer = [&] { return buffer_on(side.device, side.stream).get(); }();
  bph_stream* const stream = [&] { return backplane::Stream(side.device, 0, BPH_STREAM_EXTERNAL).get(); }();
  bph_event* const event = [&] { return backplane::Event(side.device).get(); }();
  auto handle = backplane::detail::sized<bp_native_handle>();
  ErrorRecord error;
  require_status(context, "bph_buffer_get_native", bph_buffer_get_native(buffer, &handle, &error), BP_INVALID_ARGUMENT);
  require_status(context, "bph_stream_get_native", bph_stream_get_native(stream, &handle, &error), BP_INVALID_ARGUMENT);
  require_status(context, "bph_event_get_native", bph_event_get_native(event, &handle, &error), BP_INVALID_ARGUMENT);
  require_status(context, "bph_device_get_native", bph_device_get_native(nullptr, 0, &handle, &error),
                 BP_INVALID_ARGUMENT);
}

}  // namespace

void add_host_native_cases(Catalogue& catalogue) {
  const auto add = [&](const char* what, std::string_view requirement, void (*run)(Context&)) {
    add_case(catalogue, fmt::format("host.native.{}", what), {requirement},
             not_claimed_where_declined([run](Context& context) {
               (void)native_of(context, context.device());
               run(context);
             }),
             kNativeExtension);
    catalogue.back().since = kNativeSince;
  };
  add("wraps_memory", "BP-USE-026", wraps_memory);
  add("wraps_a_stream", "BP-USE-027", wraps_a_stream);
  add("event_handles", "BP-USE-028", event_handles);
  add("refuses_handles", "BP-USE-029", host_refuses_handles);
  add("refuses_released", "BP-USE-029", host_refuses_released);
}

}  // namespace backplane::conformance
