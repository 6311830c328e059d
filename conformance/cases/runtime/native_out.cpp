// SPDX-License-Identifier: Apache-2.0
// Test cases for bp.native: the handles of devices, streams, buffers and events.
#include <algorithm>

#include "cases/runtime/cases.hpp"
#include "cases/runtime/native.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

void has_a_slot(Context& context) {
  const bp_native_api table = native_of(context, context.device());
  const bool any = table.device_native != nullptr || table.stream_native != nullptr || table.buffer_native != nullptr ||
                   table.event_native != nullptr || table.stream_wrap != nullptr || table.buffer_wrap != nullptr;
  context.require(any, "the device has bp.native, and every slot of its table is null");
}

// Checks that the indices of a device's handles are consecutive from 0, and that each handle is constant while the
// device is open.
void device_handles_are_constant(Context& context) {
  Device& device = context.device();
  const auto slot = native_with(context, &bp_native_api::device_native, "device_native").device_native;
  const auto all = [&] {
    std::vector<bp_native_handle> handles;
    for (uint32_t index = 0; index < 64; ++index) {
      bp_native_handle handle = {};
      handle.struct_size = sizeof(handle);
      ErrorRecord error;
      const bp_status status = slot(device.get(), index, &handle, &error);
      expect_status(status, error, "device_native", {BP_OK, BP_UNSUPPORTED});
      if (status != BP_OK) break;
      require_form(context, handle, "device_native");
      context.require(handle.bytes == 0, "device_native gave a handle of {} bytes", handle.bytes);
      handles.push_back(handle);
    }
    return handles;
  };
  const std::vector<bp_native_handle> first = all();
  context.require(!first.empty() && first.size() < 64, "device_native gave {} handles", first.size());
  const Buffer passing(device, 4096);
  const Stream stream(device);
  const std::vector<bp_native_handle> again = all();
  context.require(std::equal(first.begin(), first.end(), again.begin(), again.end(), are_equal),
                  "device_native gave other handles after use");
  for (const uint32_t index : {static_cast<uint32_t>(first.size()), 4096u, UINT32_MAX}) {
    bp_native_handle handle = {};
    handle.struct_size = sizeof(handle);
    ErrorRecord error;
    expect_status(slot(device.get(), index, &handle, &error), error, "device_native", {BP_UNSUPPORTED});
  }
}

void buffer_handle_is_constant(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device& device = context.device();
  Buffer buffer(device, 5000, kind), other(device, 5000);
  const bp_native_handle handle = handle_of(context, buffer);
  context.require(handle.bytes == 5000, "buffer_native gave a handle of {} bytes for a buffer of 5000", handle.bytes);
  Stream stream(device);
  for (int i = 0; i < 8; ++i) {
    stream.copy(other.get(), 0, buffer.get(), 0, 5000);
    const Buffer passing(device, 5000, kind);
    context.require(are_equal(handle_of(context, buffer), handle), "buffer_native gave another handle");
  }
  stream.wait();
  context.require(are_equal(handle_of(context, buffer), handle), "buffer_native gave another handle after use");
}

// If a handle has the flag BP_NATIVE_ADDRESS, the handle must contain the address that buffer_address returns.
void buffer_handle_is_the_address(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device& device = context.device();
  const Buffer buffer(device, 5000, kind);
  const bp_native_handle handle = handle_of(context, buffer);
  if ((handle.flags & BP_NATIVE_ADDRESS) == 0) context.not_claimed("the handles of buffers are no addresses");
  if (device.slots().buffer_address == nullptr) context.not_claimed("the device has no buffer_address");
  uint64_t address = 0;
  ErrorRecord error;
  expect_status(device->buffer_address(device.get(), buffer.get(), &address, &error), error, "buffer_address", {BP_OK});
  context.require(handle.value + handle.offset == address, "buffer_native gave {:#x} + {}, buffer_address {:#x}",
                  handle.value, handle.offset, address);
}

// The handles of two buffers may refer to the same native object, but not to the same bytes.
void buffer_handles_are_apart(Context& context, uint32_t kind) {
  need_kind(context, kind);
  struct Range {
    uint64_t object, begin, end;
  };
  std::vector<Buffer> all;
  std::vector<Range> ranges;
  for (unsigned i = 0; i < 64; ++i) {
    all.emplace_back(context.device(), 1 + context.below(5000), i % 4 == 3 ? BP_MEMORY_DEVICE : kind);
    const bp_native_handle handle = handle_of(context, all.back());
    const bool address = (handle.flags & BP_NATIVE_ADDRESS) != 0;
    const uint64_t begin = address ? handle.value + handle.offset : handle.offset;
    ranges.push_back({address ? 0 : handle.value, begin, begin + handle.bytes});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.object != b.object ? a.object < b.object : a.begin < b.begin;
  });
  for (size_t i = 1; i < ranges.size(); ++i)
    context.require(ranges[i - 1].object != ranges[i].object || ranges[i - 1].end <= ranges[i].begin,
                    "the handles of two buffers state the same byte {} of object {:#x}", ranges[i].begin,
                    ranges[i].object);
}

void stream_handle_is_constant(Context& context) {
  Device& device = context.device();
  Stream stream(device);
  const bp_native_handle handle = handle_of(context, stream);
  context.require(handle.bytes == 0 && handle.offset == 0, "stream_native gave a handle with offset {} and {} bytes",
                  handle.offset, handle.bytes);
  Buffer from(device, 4096), to(device, 4096);
  for (int i = 0; i < 8; ++i) {
    const Stream passing(device);
    stream.copy(to.get(), 0, from.get(), 0, 4096);
    context.require(are_equal(handle_of(context, stream), handle), "stream_native gave another handle");
  }
  stream.wait();
  context.require(are_equal(handle_of(context, stream), handle), "stream_native gave another handle after a wait");
}

void event_has_a_handle_once_recorded(Context& context) {
  Device& device = context.device();
  const auto slot = native_with(context, &bp_native_api::event_native, "event_native").event_native;
  Stream stream(device);
  Buffer from(device, 4096), to(device, 4096);
  for (int round = 0; round < 4; ++round) {
    Event event(device);
    bp_native_handle handle = {};
    handle.struct_size = sizeof(handle);
    ErrorRecord error;
    expect_status(slot(device.get(), event.get(), &handle, &error), error, "event_native",
                  {BP_INVALID_ARGUMENT, BP_UNSUPPORTED});
    stream.copy(to.get(), 0, from.get(), 0, 4096);
    stream.record(event.get());
    const bp_native_handle recorded = handle_of(context, event);
    context.require(recorded.bytes == 0, "event_native gave a handle of {} bytes", recorded.bytes);
    stream.copy(from.get(), 0, to.get(), 0, 4096);
    stream.wait();
    context.require(are_equal(handle_of(context, event), recorded),
                    "event_native gave another handle, and the event was not recorded again");
  }
}

void handles_from_threads(Context& context) {
  Device& device = context.device();
  const Buffer shared(device, 4096);
  const bp_native_handle handle = handle_of(context, shared);
  in_threads(context, 4, [&](unsigned) {
    for (int i = 0; i < 100; ++i) {
      const Buffer own(device, 512);
      context.require(handle_of(context, own).bytes == 512, "buffer_native gave the size of another buffer");
      context.require(are_equal(handle_of(context, shared), handle), "buffer_native gave another handle");
    }
  });
}

// Each slot must refuse a null object and a null result pointer.
void out_refuses_null(Context& context) {
  Device& device = context.device();
  const bp_native_api table = native_of(context, device);
  bp_native_handle handle = {};
  handle.struct_size = sizeof(handle);
  ErrorRecord error;
  const auto refused = [&](bp_status status, const char* slot) {
    expect_status(status, error, slot, {BP_INVALID_ARGUMENT});
  };
  const Buffer buffer(device, 4096);
  const Stream stream(device);
  const Event event(device);
  if (table.device_native != nullptr) refused(table.device_native(device.get(), 0, nullptr, &error), "device_native");
  if (table.buffer_native != nullptr) {
    refused(table.buffer_native(device.get(), nullptr, &handle, &error), "buffer_native");
    refused(table.buffer_native(device.get(), buffer.get(), nullptr, &error), "buffer_native");
  }
  if (table.stream_native != nullptr) {
    refused(table.stream_native(device.get(), nullptr, &handle, &error), "stream_native");
    refused(table.stream_native(device.get(), stream.get(), nullptr, &error), "stream_native");
  }
  if (table.event_native != nullptr) {
    refused(table.event_native(device.get(), nullptr, &handle, &error), "event_native");
    refused(table.event_native(device.get(), event.get(), nullptr, &error), "event_native");
  }
}

}  // namespace

void add_native_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.native." + std::move(what), std::move(requirements), std::move(run), kNativeExtension);
    catalogue.back().since = kNativeSince;
  };
  add("has_a_slot", {"BP-NAT-001"}, has_a_slot);
  add("device_handles_are_constant", {"BP-NAT-001", "BP-NAT-003"}, device_handles_are_constant);
  catalogue.back().extension = "NATIVE_DEVICE";
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    const auto add_kind = [&](const char* what, void (*body)(Context&, uint32_t)) {
      add(fmt::format("{}.{}", what, kind_name(kind)), {"BP-NAT-001", "BP-NAT-002"},
          [=](Context& context) { body(context, kind); });
    };
    add_kind("buffer_handle_is_constant", buffer_handle_is_constant);
    add_kind("buffer_handle_is_the_address", buffer_handle_is_the_address);
    add_kind("buffer_handles_are_apart", buffer_handles_are_apart);
  }
  add("stream_handle_is_constant", {"BP-NAT-001", "BP-NAT-003"}, stream_handle_is_constant);
  add("event_has_a_handle_once_recorded", {"BP-NAT-001", "BP-NAT-004"}, event_has_a_handle_once_recorded);
  add("handles_from_threads", {"BP-NAT-002", "BP-THR-002"}, handles_from_threads);
  add("out_refuses_null", {"BP-NAT-009"}, out_refuses_null);
  add_native_wrap_cases(catalogue);
}

}  // namespace backplane::conformance
