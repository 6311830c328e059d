// SPDX-License-Identifier: Apache-2.0
// Tests that a device has the capabilities and the optional slots that it declares.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "cases/abi/cases.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

void need(Context& context, uint64_t capability, const char* name) {
  if (!context.device().has(capability)) context.not_claimed("the device does not declare BP_CAP_{}", name);
}
void need_kind(Context& context, uint32_t kind, const char* name) {
  if (!context.device().offers(kind)) context.not_claimed("the device does not offer {} memory", name);
}

void synchronous(Context& context) {
  need(context, BP_CAP_SYNCHRONOUS, "SYNCHRONOUS");
  Delay delay(context);
  Stream stream(context.device());
  for (int i = 0; i < 8; ++i) {
    delay.enqueue(stream, 3000);
    context.require(stream.wait_for(0) == BP_OK, "the device is synchronous and work is pending after the enqueue");
    const Event event(context.device());
    stream.record(event.get());
    context.require(const_cast<Event&>(event).wait_for(0) == BP_OK,
                    "the device is synchronous and an event is pending");
  }
}

void host_operands(Context& context) {
  need(context, BP_CAP_HOST_OPERANDS, "HOST_OPERANDS");
  Device& device = context.device();
  context.require(device.offers(BP_MEMORY_HOST), "BP_CAP_HOST_OPERANDS without HOST memory");
  Buffer from(device, 1024, BP_MEMORY_HOST), to(device, 1024, BP_MEMORY_HOST);
  auto* const in = reinterpret_cast<uint32_t*>(from.map());
  auto* const out = reinterpret_cast<uint32_t*>(to.map());
  Runner add(device, elementwise(BP_OP_ADD, BP_U32, 256));
  Stream stream(device);
  for (uint32_t round = 0; round < 8; ++round) {
    for (uint32_t i = 0; i < 256; ++i) in[i] = i * 7 + round;
    add.enqueue(stream.get(), {{from.get()}, {from.get()}}, {{to.get()}});
    stream.wait();
    for (uint32_t i = 0; i < 256; ++i)
      context.require(out[i] == 2 * (i * 7 + round), "over HOST memory {} + {} gave {}", in[i], in[i], out[i]);
  }
}

void shared_operands(Context& context) {
  need_kind(context, BP_MEMORY_SHARED, "SHARED");
  Device& device = context.device();
  Buffer from(device, 1024, BP_MEMORY_SHARED), to(device, 1024, BP_MEMORY_SHARED);
  auto* const in = reinterpret_cast<uint32_t*>(from.map());
  auto* const out = reinterpret_cast<uint32_t*>(to.map());
  Runner add(device, elementwise(BP_OP_ADD, BP_U32, 256));
  Stream stream(device);
  for (uint32_t i = 0; i < 256; ++i) in[i] = i * 11;
  add.enqueue(stream.get(), {{from.get()}, {from.get()}}, {{to.get()}});
  stream.wait();
  for (uint32_t i = 0; i < 256; ++i)
    context.require(out[i] == i * 22, "over SHARED memory {} + {} gave {}", in[i], in[i], out[i]);
}

// Checks that the host can access one SHARED buffer while the device works on other buffers.
void shared_while_busy(Context& context) {
  need_kind(context, BP_MEMORY_SHARED, "SHARED");
  Device& device = context.device();
  Buffer busy_from(device, 1u << 20, BP_MEMORY_SHARED), busy_to(device, 1u << 20, BP_MEMORY_SHARED);
  Buffer own(device, 4096, BP_MEMORY_SHARED);
  char* const bytes = own.map();
  std::memset(busy_from.map(), 0x21, 1u << 20);
  Stream stream(device);
  for (int i = 0; i < 8; ++i) stream.copy(busy_to.get(), 0, busy_from.get(), 0, 1u << 20);
  for (int i = 0; i < 64; ++i) {
    std::memset(bytes, i, 4096);
    context.require(bytes[i] == i && bytes[4095] == i, "the host's own writes to SHARED memory were lost");
  }
  stream.wait();
  context.require(busy_to.map()[0] == 0x21 && busy_to.map()[(1u << 20) - 1] == 0x21, "the copy was disturbed");
}

void slots_of_mapped_memory(Context& context) {
  Device& device = context.device();
  const bool mapped = device.offers(BP_MEMORY_HOST) || device.offers(BP_MEMORY_SHARED);
  context.require(!mapped || device->buffer_map != nullptr, "HOST or SHARED memory without buffer_map");
  context.require(device.offers(BP_MEMORY_HOST) || (device->copy_in != nullptr && device->copy_out != nullptr),
                  "neither HOST memory nor copy_in and copy_out: no data reaches the device");
}

void slots_of_timing(Context& context) {
  Device& device = context.device();
  context.require(!device.has(BP_CAP_TIMING) || device->event_elapsed != nullptr,
                  "BP_CAP_TIMING without event_elapsed");
  ErrorRecord error;
  bp_event* event = nullptr;
  const bp_status status = device->event_create(device.get(), BP_EVENT_TIMING, &event, &error);
  if (device.has(BP_CAP_TIMING)) {
    expect_status(status, error, "event_create", {BP_OK});
    device->event_destroy(device.get(), event);
  } else {
    expect_status(status, error, "event_create", {BP_UNSUPPORTED});
    context.require(event == nullptr, "event_create failed and gave an event");
  }
}

void pageable_both_or_neither(Context& context) {
  const bp_device_api& slots = context.device().slots();
  context.require((slots.copy_in == nullptr) == (slots.copy_out == nullptr), "one of copy_in and copy_out is null");
}

void unified_memory(Context& context) {
  need(context, BP_CAP_UNIFIED_MEMORY, "UNIFIED_MEMORY");
  context.require(context.device().offers(BP_MEMORY_SHARED) || context.device().offers(BP_MEMORY_HOST),
                  "BP_CAP_UNIFIED_MEMORY without any memory that the host reaches");
}

// A device that declares BP_CAP_DETERMINISTIC must accept the flag BP_OP_FLAG_DETERMINISTIC for
// every operator. Other devices may return UNSUPPORTED.
void deterministic(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  OpDesc plain = sample(op, usual_dtype(op));
  const Plan has(device, plain.get());
  OpDesc deterministic = sample(op, usual_dtype(op));
  deterministic.flags(BP_OP_FLAG_DETERMINISTIC);
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  ErrorRecord error;
  const bp_status status = device->plan_create(device.get(), &deterministic.get(), nullptr, &info, &error);
  if (status == BP_OK && (info.flags & BP_PLAN_FACTS_UNKNOWN) != 0) info = Plan(device, deterministic.get()).info;
  if (device.has(BP_CAP_DETERMINISTIC)) {
    expect_status(status, error, "plan_create with BP_OP_FLAG_DETERMINISTIC", {BP_OK});
    context.require((info.flags & BP_PLAN_DETERMINISTIC) != 0,
                    "a plan requested as deterministic lacks BP_PLAN_DETERMINISTIC");
  } else {
    expect_status(status, error, "plan_create with BP_OP_FLAG_DETERMINISTIC", {BP_OK, BP_UNSUPPORTED});
    context.require(status != BP_OK || (info.flags & BP_PLAN_DETERMINISTIC) != 0,
                    "a plan requested as deterministic lacks BP_PLAN_DETERMINISTIC");
  }
}

void subnormals(Context& context) {
  Device& device = context.device();
  if (device.has(BP_CAP_FTZ_F32)) context.not_claimed("the device declares BP_CAP_FTZ_F32");
  const float least = std::numeric_limits<float>::denorm_min();
  const std::vector<float> a = {least, 3 * least, -least, 1.0e-39F}, b = {least, least, -least, 1.0e-40F};
  Buffer left(device, 16), right(device, 16), out(device, 16);
  device.write(left.get(), 0, a.data(), 16);
  device.write(right.get(), 0, b.data(), 16);
  Runner add(device, elementwise(BP_OP_ADD, BP_F32, 4));
  add.enqueue(device.stream(), {{left.get()}, {right.get()}}, {{out.get()}});
  std::vector<float> got(4);
  device.read(out.get(), 0, got.data(), 16);
  for (size_t i = 0; i < 4; ++i) {
    const float expected = static_cast<float>(static_cast<double>(a[i]) + static_cast<double>(b[i]));
    context.require(std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(expected),
                    "{:a} + {:a} gave {:a}, expected {:a}: subnormals are flushed and BP_CAP_FTZ_F32 is not declared",
                    a[i], b[i], got[i], expected);
  }
}

}  // namespace

void add_capability_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::string_view extension, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    catalogue.push_back({.id = "abi.capability." + std::move(what),
                         .extension = extension,
                         .requirements = std::move(requirements),
                         .run = std::move(run)});
  };
  add("synchronous", "SYNCHRONOUS", {"BP-DEV-014"}, synchronous);
  add("host_operands", "HOST_OPERANDS", {"BP-DEV-015"}, host_operands);
  add("shared_operands", "SHARED_MEMORY", {"BP-BUF-011"}, shared_operands);
  add("shared_while_busy", "SHARED_MEMORY", {"BP-BUF-011"}, shared_while_busy);
  add("unified_memory", "UNIFIED_MEMORY", {"BP-DEV-010"}, unified_memory);
  add("subnormals", "SUBNORMALS", {"BP-DEV-019"}, subnormals);
  add("slots_of_mapped_memory", "", {"BP-INST-012", "BP-DEV-020"}, slots_of_mapped_memory);
  add("slots_of_timing", "", {"BP-INST-012", "BP-DEV-017"}, slots_of_timing);
  add("pageable_both_or_neither", "", {"BP-CPY-007"}, pageable_both_or_neither);
  for (const bph_op_info& op : primitives())
    catalogue.push_back({.id = fmt::format("abi.capability.deterministic_{}", op.name),
                         .profile = op.profile,
                         .op = op.op,
                         .requirements = {"BP-DEV-016"},
                         .run = [op](Context& context) { deterministic(context, op); }});
}

}  // namespace backplane::conformance
