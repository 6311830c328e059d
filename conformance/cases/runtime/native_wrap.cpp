// SPDX-License-Identifier: Apache-2.0
// Test cases for bp.native: streams and buffers that wrap native objects. The native objects belong
// to another stream or buffer of the plugin, because the suite itself uses no driver.
#include <algorithm>
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/runtime/native.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/leak.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kWrapBytes = 65536;

// Wraps the bytes of a buffer from `offset` on. The wrapping buffer must use the same memory.
void wraps_one_memory(Context& context, uint32_t kind, uint64_t offset) {
  need_kind(context, kind);
  Device& device = context.device();
  Buffer buffer(device, kWrapBytes, kind), copy(device, kWrapBytes);
  bp_native_handle handle = handle_of(context, buffer);
  handle.offset += offset;
  handle.bytes -= offset;
  Stream stream(device);
  for (int round = 0; round < 3; ++round) {
    Bytes data = noise(context, kWrapBytes);
    upload(buffer, data);
    {
      const Wrapped<Buffer> twin = wrap_buffer(context, handle);
      stream.copy(copy.get(), 0, twin.object.get(), 0, handle.bytes);
      stream.wait();
      require_same(context, download<unsigned char>(copy, handle.bytes), Bytes(data.begin() + offset, data.end()),
                   "wrapped memory, read");
      const Bytes back = noise(context, handle.bytes);
      upload(copy, back);
      stream.copy(twin.object.get(), 0, copy.get(), 0, handle.bytes);
      stream.wait();
      std::copy(back.begin(), back.end(), data.begin() + offset);
      require_same(context, download<unsigned char>(buffer, kWrapBytes), data, "wrapped memory, written");
    }
    require_same(context, download<unsigned char>(buffer, kWrapBytes), data, "memory whose wrap was destroyed");
  }
}

void wrapped_is_an_operand(Context& context) {
  Device& device = context.device();
  Buffer buffer(device, kWrapBytes);
  Words words(kWrapBytes / 4, 0);
  for (uint32_t i = 0; i < 1024; ++i) words[i] = i;
  upload(buffer, words);
  const Wrapped<Buffer> twin = wrap_buffer(context, handle_of(context, buffer));
  if (twin.kind == BP_MEMORY_HOST && !device.has(BP_CAP_HOST_OPERANDS))
    context.not_claimed("wrapped memory is HOST memory, which this device does not accept as an operand");
  Runner add(device, elementwise(BP_OP_ADD, BP_U32, 1024));
  Stream stream(device);
  add.enqueue(stream.get(), {{twin.object.get()}, {buffer.get()}}, {{twin.object.get(), 4096}});
  stream.wait();
  for (uint32_t i = 0; i < 1024; ++i) words[1024 + i] = 2 * i;
  require_same(context, download<uint32_t>(buffer, words.size()), words, "wrapped memory as an operand");
}

// Two streams over one native stream, and the buffers of a chain of copies.
struct WrapScene {
  explicit WrapScene(Context& given)
      : context(given),
        device(given.device()),
        delay(given),
        own(device),
        from(device, kWrapBytes),
        middle(device, kWrapBytes),
        to(device, kWrapBytes),
        wrapping(wrap_stream(given, handle_of(given, own))) {}
  // Enqueues slow work on `first`, and then a copy from `from` to `middle`.
  Bytes produce(Stream& first, uint64_t most_us) {
    Bytes data = noise(context, kWrapBytes);
    upload(from, data);
    upload(middle, Bytes(kWrapBytes, 0));
    upload(to, Bytes(kWrapBytes, 0));
    delay.enqueue(first, context.below(most_us));
    first.copy(middle.get(), 0, from.get(), 0, kWrapBytes);
    return data;
  }
  Context& context;
  Device& device;
  Delay delay;
  Stream own;
  Buffer from, middle, to;
  Stream wrapping;
};

// Checks that work of both streams runs in the order of the enqueue calls.
void keeps_the_order(Context& context, bool wrapping_first) {
  WrapScene scene(context);
  Stream& first = wrapping_first ? scene.wrapping : scene.own;
  Stream& second = wrapping_first ? scene.own : scene.wrapping;
  for (unsigned round = 0; round < 32; ++round) {
    const Bytes data = scene.produce(first, 1500);
    second.copy(scene.to.get(), 0, scene.middle.get(), 0, kWrapBytes);
    second.wait();
    require_same(context, download<unsigned char>(scene.to, kWrapBytes), data,
                 "work on a stream after work on another stream over the same native stream");
  }
  first.wait();
}

void keeps_the_order_of_operators(Context& context) {
  WrapScene scene(context);
  Runner invert(scene.device, elementwise(BP_OP_BITNOT, BP_U8, kWrapBytes));
  for (unsigned round = 0; round < 32; ++round) {
    Bytes data = scene.produce(scene.own, 1500);
    invert.enqueue(scene.wrapping.get(), {{scene.middle.get()}}, {{scene.to.get()}});
    scene.own.copy(scene.middle.get(), 0, scene.to.get(), 0, kWrapBytes);
    scene.own.wait();
    for (unsigned char& byte : data) byte = static_cast<unsigned char>(~byte);
    require_same(context, download<unsigned char>(scene.middle, kWrapBytes), data, "an operator on a wrapping stream");
  }
  scene.wrapping.wait();
}

// A wait on one of two streams over one native stream must cover the earlier work of both streams.
// The stream on which the case waits has enqueued nothing itself.
void wait_covers_the_other(Context& context, bool on_wrapping) {
  WrapScene scene(context);
  Stream& waits = on_wrapping ? scene.wrapping : scene.own;
  Stream& works = on_wrapping ? scene.own : scene.wrapping;
  for (unsigned round = 0; round < 32; ++round) {
    waits.wait();
    const Bytes data = scene.produce(works, 3000);
    waits.wait();
    Stream reader(scene.device);
    reader.copy(scene.to.get(), 0, scene.middle.get(), 0, kWrapBytes);
    reader.wait();
    require_same(context, download<unsigned char>(scene.to, kWrapBytes), data,
                 "memory after a wait on another stream over the same native stream");
    works.wait();
  }
}

void event_covers_the_other(Context& context, bool on_wrapping) {
  WrapScene scene(context);
  Stream& records = on_wrapping ? scene.wrapping : scene.own;
  Stream& works = on_wrapping ? scene.own : scene.wrapping;
  Stream reader(scene.device);
  Event event(scene.device);
  for (unsigned round = 0; round < 32; ++round) {
    const Bytes data = scene.produce(works, 3000);
    records.record(event.get());
    reader.wait_event(event.get());
    reader.copy(scene.to.get(), 0, scene.middle.get(), 0, kWrapBytes);
    reader.wait();
    require_same(context, download<unsigned char>(scene.to, kWrapBytes), data,
                 "memory after an event of another stream over the same native stream");
    works.wait();
    records.wait();
  }
}

// Checks that the native stream is usable after a wrapping stream was destroyed.
void destroy_leaves_the_stream(Context& context) {
  WrapScene scene(context);
  for (unsigned round = 0; round < 16; ++round) {
    const Bytes data = scene.produce(scene.own, 1500);
    {
      Stream passing = wrap_stream(context, handle_of(context, scene.own));
      passing.copy(scene.to.get(), 0, scene.middle.get(), 0, kWrapBytes);
      passing.wait();
    }
    upload(scene.to, Bytes(kWrapBytes, 0));
    scene.own.copy(scene.to.get(), 0, scene.middle.get(), 0, kWrapBytes);
    scene.own.wait();
    require_same(context, download<unsigned char>(scene.to, kWrapBytes), data,
                 "work on a stream whose wrapping stream was destroyed");
  }
}

// Checks for leaks: streams and buffers that wrap native objects are created and destroyed repeatedly. Each wrapping
// stream also executes a copy.
void wrapping_leaves_nothing(Context& context) {
  Device& device = context.device();
  Stream own(device);
  Buffer buffer(device, kWrapBytes), copy(device, kWrapBytes);
  const bp_native_api table = native_of(context, device);
  if (table.stream_wrap == nullptr && table.buffer_wrap == nullptr) context.not_claimed("the device wraps nothing");
  expect_no_leak(context, "wrapping and destroying", 256, [&] {
    if (table.stream_wrap != nullptr && table.stream_native != nullptr) {
      Stream wrapping = wrap_stream(context, handle_of(context, own));
      wrapping.copy(copy.get(), 0, buffer.get(), 0, kWrapBytes);
      wrapping.wait();
    }
    if (table.buffer_wrap != nullptr && table.buffer_native != nullptr)
      const Wrapped<Buffer> twin = wrap_buffer(context, handle_of(context, buffer));
  });
}

// The device may refuse a handle of another open device. If the device accepts the handle, the
// wrapping object must work correctly.
void of_another_open(Context& context) {
  Device& device = context.device();
  Device other(context.plugin(), context.device_index());
  Buffer buffer(device, kWrapBytes);
  const Bytes data = noise(context, kWrapBytes);
  upload(buffer, data);
  const bp_native_handle memory = handle_of(context, buffer);
  const Wrapped<Buffer> twin = try_wrap_buffer(context, other, &memory);
  expect_status(twin.status, twin.error, "buffer_wrap", {BP_OK, BP_UNSUPPORTED, BP_INVALID_ARGUMENT});
  if (twin.status == BP_OK)
    require_same(context, download<unsigned char>(twin.object, kWrapBytes), data, "memory of another open device");
  Stream own(device);
  const bp_native_handle queue = handle_of(context, own);
  Wrapped<Stream> wrapping = try_wrap_stream(context, other, &queue);
  expect_status(wrapping.status, wrapping.error, "stream_wrap", {BP_OK, BP_UNSUPPORTED, BP_INVALID_ARGUMENT});
  if (wrapping.status != BP_OK) return;
  Buffer from(other, kWrapBytes), to(other, kWrapBytes);
  upload(from, data);
  wrapping.object.copy(to.get(), 0, from.get(), 0, kWrapBytes);
  wrapping.object.wait();
  require_same(context, download<unsigned char>(to, kWrapBytes), data, "work on a stream of another open device");
}

// Changes the handle of a buffer or of a stream so that the slot must refuse the changed handle.
using Spoil = void (*)(bp_native_handle&);
void refuses_handle(Context& context, bool of_stream, Spoil spoil, bp_status status) {
  Device& device = context.device();
  if (of_stream) {
    const Stream own(device);
    bp_native_handle handle = handle_of(context, own);
    spoil(handle);
    const Wrapped<Stream> wrapped = try_wrap_stream(context, device, &handle);
    expect_status(wrapped.status, wrapped.error, "stream_wrap", {status});
  } else {
    const Buffer buffer(device, kWrapBytes);
    bp_native_handle handle = handle_of(context, buffer);
    spoil(handle);
    const Wrapped<Buffer> wrapped = try_wrap_buffer(context, device, &handle);
    expect_status(wrapped.status, wrapped.error, "buffer_wrap", {status});
  }
}

void set_type(bp_native_handle& handle, const char* type) {
  std::memset(handle.type, 0, sizeof(handle.type));
  std::strncpy(handle.type, type, sizeof(handle.type) - 1);
}

// stream_wrap must refuse the handle of a buffer, and buffer_wrap must refuse the handle of a stream.
void refuses_the_other_kind(Context& context) {
  Device& device = context.device();
  const Stream own(device);
  const Buffer buffer(device, kWrapBytes);
  bp_native_handle queue = handle_of(context, own);
  const bp_native_handle memory = handle_of(context, buffer);
  context.require(type_of(queue) != type_of(memory), "streams and buffers have handles of the same type \"{}\"",
                  type_of(queue));
  const Wrapped<Stream> stream = try_wrap_stream(context, device, &memory);
  expect_status(stream.status, stream.error, "stream_wrap", {BP_UNSUPPORTED});
  queue.bytes = kWrapBytes;
  const Wrapped<Buffer> wrapped = try_wrap_buffer(context, device, &queue);
  expect_status(wrapped.status, wrapped.error, "buffer_wrap", {BP_UNSUPPORTED});
}

void wrap_refuses_null(Context& context) {
  Device& device = context.device();
  const bp_native_api table = native_of(context, device);
  if (table.stream_wrap == nullptr && table.buffer_wrap == nullptr) context.not_claimed("the device wraps nothing");
  ErrorRecord error;
  if (table.stream_wrap != nullptr) {
    const Wrapped<Stream> wrapped = try_wrap_stream(context, device, nullptr);
    expect_status(wrapped.status, wrapped.error, "stream_wrap", {BP_INVALID_ARGUMENT});
    const Stream own(device);
    const bp_native_handle handle = handle_of(context, own);
    expect_status(table.stream_wrap(device.get(), &handle, nullptr, &error), error, "stream_wrap",
                  {BP_INVALID_ARGUMENT});
  }
  if (table.buffer_wrap != nullptr) {
    const Wrapped<Buffer> wrapped = try_wrap_buffer(context, device, nullptr);
    expect_status(wrapped.status, wrapped.error, "buffer_wrap", {BP_INVALID_ARGUMENT});
    const Buffer buffer(device, kWrapBytes);
    const bp_native_handle handle = handle_of(context, buffer);
    uint32_t kind = 0;
    expect_status(table.buffer_wrap(device.get(), &handle, &kind, nullptr, &error), error, "buffer_wrap",
                  {BP_INVALID_ARGUMENT});
  }
}

}  // namespace

void add_native_wrap_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.native." + std::move(what), std::move(requirements), std::move(run), kNativeExtension);
    catalogue.back().since = kNativeSince;
  };
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    for (const uint64_t offset : {0u, 4096u})
      add(fmt::format("is_one_memory.{}.from_{}", kind_name(kind), offset), {"BP-NAT-005"},
          [=](Context& context) { wraps_one_memory(context, kind, offset); });
  }
  add("is_an_operand", {"BP-NAT-005"}, wrapped_is_an_operand);
  for (const bool wrapping : {false, true}) {
    const auto add_order = [&](const char* what, std::string_view requirement, void (*body)(Context&, bool)) {
      add(fmt::format("{}.{}", what, wrapping ? "wrapping" : "own"), {requirement},
          [=](Context& context) { body(context, wrapping); });
    };
    add_order("keeps_the_order", "BP-NAT-006", keeps_the_order);
    add_order("wait_covers_the_other", "BP-NAT-007", wait_covers_the_other);
    add_order("event_covers_the_other", "BP-NAT-007", event_covers_the_other);
  }
  add("keeps_the_order_of_operators", {"BP-NAT-006"}, keeps_the_order_of_operators);
  add("destroy_leaves_the_stream", {"BP-NAT-008"}, destroy_leaves_the_stream);
  add("wrapping_leaves_nothing", {"BP-NAT-010"}, wrapping_leaves_nothing);
  add("of_another_open", {"BP-NAT-011"}, of_another_open);
  add("refuses_the_other_kind", {"BP-NAT-009"}, refuses_the_other_kind);
  add("wrap_refuses_null", {"BP-NAT-009"}, wrap_refuses_null);
  const auto add_refusal = [&](const char* what, bool of_stream, bp_status status, Spoil spoil) {
    add(fmt::format("refuses_{}.{}", what, of_stream ? "stream" : "buffer"), {"BP-NAT-009"},
        [=](Context& context) { refuses_handle(context, of_stream, spoil, status); });
  };
  for (const bool of_stream : {false, true}) {
    add_refusal("unknown_type", of_stream, BP_UNSUPPORTED,
                [](bp_native_handle& handle) { set_type(handle, "conformance.unknown"); });
    add_refusal("no_type", of_stream, BP_UNSUPPORTED, [](bp_native_handle& handle) { set_type(handle, ""); });
    add_refusal("longer_type", of_stream, BP_UNSUPPORTED,
                [](bp_native_handle& handle) { set_type(handle, (std::string(type_of(handle)) + "x").c_str()); });
    add_refusal("endless_type", of_stream, BP_UNSUPPORTED,
                [](bp_native_handle& handle) { std::memset(handle.type, 'a', sizeof(handle.type)); });
    add_refusal("flag_2", of_stream, BP_UNSUPPORTED, [](bp_native_handle& handle) { handle.flags |= 2u; });
    add_refusal("flag_31", of_stream, BP_UNSUPPORTED, [](bp_native_handle& handle) { handle.flags |= 1u << 31; });
  }
  add_refusal("no_bytes", false, BP_INVALID_ARGUMENT, [](bp_native_handle& handle) { handle.bytes = 0; });
  add_refusal("bytes_past_the_end", false, BP_INVALID_ARGUMENT,
              [](bp_native_handle& handle) { handle.bytes = UINT64_MAX; });
  add_refusal("offset_past_the_end", false, BP_INVALID_ARGUMENT,
              [](bp_native_handle& handle) { handle.offset = UINT64_MAX; });
  add_refusal("no_object", false, BP_INVALID_ARGUMENT, [](bp_native_handle& handle) { handle.value = 0; });
}

}  // namespace backplane::conformance
