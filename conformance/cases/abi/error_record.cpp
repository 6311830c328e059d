// SPDX-License-Identifier: Apache-2.0
// Test cases for the error record. Each rejected call is repeated with error records of several
// sizes and with a null record. A successful call must leave the record unchanged.
#include <algorithm>
#include <cstring>

#include "cases/abi/cases.hpp"
#include "cases/negative/refusals.hpp"
#include "cases/support/guarded.hpp"
#include "cases/support/health_check.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

constexpr unsigned char kGarbage = 0xA5;

bool expected(const Refusal& refusal, bp_status status) {
  return std::find(refusal.expected.begin(), refusal.expected.end(), status) != refusal.expected.end();
}

// Calls a slot with an error record of `size` bytes. All bytes after struct_size contain garbage,
// which the callee must not read.
void with_record(Context& context, const Refusal& refusal, size_t size) {
  const GuardedBytes bytes(std::max<size_t>(size, 4), kGarbage);
  const auto stated = static_cast<uint32_t>(size);
  std::memcpy(bytes.data(), &stated, sizeof(stated));
  const bp_status status = refusal.call(context, reinterpret_cast<bp_error*>(bytes.data()));
  context.require(expected(refusal, status), "{} returned {} with a record of {} bytes", refusal.slot,
                  status_name(status), size);
  uint32_t after = 0;
  std::memcpy(&after, bytes.data(), sizeof(after));
  context.require(after == stated, "{} changed struct_size of the error record from {} to {}", refusal.slot, stated,
                  after);
  context.require(bytes.slack_intact(), "{} wrote past the end of an error record of {} bytes", refusal.slot, size);
  if (size < BP_ERROR_MIN_SIZE) {
    context.require(
        std::all_of(bytes.data() + 4, bytes.data() + bytes.size(), [](auto byte) { return byte == kGarbage; }),
        "{} wrote to an error record of {} bytes, which counts as null", refusal.slot, size);
    return;
  }
  ErrorRecord known;
  std::memcpy(static_cast<bp_error*>(&known), bytes.data(), sizeof(bp_error));
  expect_status(status, known, refusal.slot, {status});
  context.require(is_text(known.message), "the message of {} is not UTF-8 text", refusal.slot);
  context.require(known.op == 0 || refusal.slot.starts_with("plan_"), "{} named operator {} in the error record",
                  refusal.slot, known.op);
  int64_t unwritten = 0;
  std::memset(&unwritten, kGarbage, sizeof(unwritten));
  context.require(known.vendor_code != unwritten, "{} left vendor_code of the error record as it was", refusal.slot);
  for (size_t at = sizeof(bp_error); at < size; ++at)
    context.require(bytes.data()[at] == 0, "{} left byte {} of an error record of {} bytes at {:#x}", refusal.slot, at,
                    size, bytes.data()[at]);
}

void with_null(Context& context, const Refusal& refusal) {
  const bp_status status = refusal.call(context, nullptr);
  context.require(expected(refusal, status), "{} returned {} with a null record", refusal.slot, status_name(status));
}

// Checks that a successful call of a slot leaves the error record unchanged.
void untouched_by_success(Context& context) {
  Plugin& plugin = context.plugin();
  Device& device = context.device();
  ErrorRecord record;
  std::memset(reinterpret_cast<char*>(&record) + 4, kGarbage, sizeof(bp_error) - 4);
  const bp_error before = record;
  const auto check = [&](std::string_view slot, bp_status status) {
    context.require(status == BP_OK, "{} returned {}; expected OK", slot, status_name(status));
    context.require(std::memcmp(&before, static_cast<bp_error*>(&record), sizeof(bp_error)) == 0,
                    "{} returned OK and wrote to the error record", slot);
  };
  uint32_t count = 0;
  check("device_count", plugin->device_count(plugin.get(), &count, &record));
  bp_device_info info = {};
  info.struct_size = sizeof(info);
  check("device_info", plugin->device_info(plugin.get(), context.device_index(), &info, &record));
  bp_device* other = nullptr;
  check("device_open", plugin->device_open(plugin.get(), context.device_index(), nullptr, &other, &record));
  device->close(other);
  bp_memory_info memory = {};
  memory.struct_size = sizeof(memory);
  check("memory_info", device->memory_info(device.get(), BP_MEMORY_DEVICE, &memory, &record));
  bp_buffer_desc wanted = {};
  wanted.struct_size = sizeof(wanted);
  wanted.bytes = 64;
  bp_buffer* buffer = nullptr;
  check("buffer_create", device->buffer_create(device.get(), &wanted, &buffer, &record));
  const Owner<bp_buffer, &bp_device_api::buffer_destroy> buffer_owner(device, buffer);
  const bp_stream_desc plain = {sizeof(plain), 0};
  bp_stream* stream = nullptr;
  check("stream_create", device->stream_create(device.get(), &plain, &stream, &record));
  const Owner<bp_stream, &bp_device_api::stream_destroy> stream_owner(device, stream);
  bp_event* event = nullptr;
  check("event_create", device->event_create(device.get(), 0, &event, &record));
  const Owner<bp_event, &bp_device_api::event_destroy> event_owner(device, event);
  check("copy", device->copy(device.get(), stream, buffer, 0, buffer, 32, 32, &record));
  check("event_record", device->event_record(device.get(), event, stream, &record));
  check("stream_wait_event", device->stream_wait_event(device.get(), stream, event, &record));
  check("event_wait", device->event_wait(device.get(), event, BP_WAIT_FOREVER, &record));
  if (OpDesc desc = elementwise(BP_OP_NEG, BP_F32, 8); claims(device, desc)) {
    bp_plan* plan = nullptr;
    bp_plan_info facts = {};
    facts.struct_size = sizeof(facts);
    check("plan_create", device->plan_create(device.get(), &desc.get(), &plan, &facts, &record));
    device->plan_destroy(device.get(), plan);
  }
  check("stream_wait", device->stream_wait(device.get(), stream, BP_WAIT_FOREVER, &record));
}

}  // namespace

void add_error_record_cases(Catalogue& catalogue) {
  const std::pair<const char*, size_t> sizes[] = {{"size_0", 0},     {"size_4", 4},     {"size_511", 511},
                                                  {"size_512", 512}, {"size_576", 576}, {"size_4608", 4608}};
  for (const Refusal& refusal : all_refusals()) {
    // Some rejections have numbered variants. Only variant 0 is tested here, because the negative
    // cases test all variants.
    const bool repeated =
        refusal.what.find_first_of("0123456789") != std::string::npos && refusal.what.find("_0") == std::string::npos;
    if (repeated) continue;
    const std::string stem = fmt::format("abi.error.{}.{}", refusal.slot, refusal.what);
    catalogue.push_back({.id = stem + ".null",
                         .extension = refusal.extension,
                         .requirements = {"BP-ERR-003"},
                         .run = [refusal](Context& context) { with_null(context, refusal); }});
    for (const auto& [name, size] : sizes)
      catalogue.push_back({.id = fmt::format("{}.{}", stem, name),
                           .extension = refusal.extension,
                           .requirements = {size < BP_ERROR_MIN_SIZE ? "BP-ERR-004" : "BP-ERR-005", "BP-ERR-006"},
                           .run = [refusal, size = size](Context& context) { with_record(context, refusal, size); }});
  }
  catalogue.push_back(
      {.id = "abi.error.success.untouched", .requirements = {"BP-ERR-002"}, .run = untouched_by_success});
}

}  // namespace backplane::conformance
