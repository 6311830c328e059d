// SPDX-License-Identifier: Apache-2.0
// Test cases for bp.import, which creates buffers over host memory.
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/runtime/imported.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/leak.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

// Checks that the host and the device see each other's writes to imported memory.
void is_one_memory(Context& context, uint64_t bytes) {
  Device& device = context.device();
  const Pages pages(bytes);
  const Imported imported(context, pages.data(), bytes);
  need_import_of_pages(context, imported);
  Buffer device_side(device, bytes);
  Stream stream(device);
  for (int round = 0; round < 3; ++round) {
    const Bytes data = noise(context, bytes), back = noise(context, bytes);
    std::memcpy(pages.data(), data.data(), bytes);
    stream.copy(device_side.get(), 0, imported.buffer.get(), 0, bytes);
    stream.wait();
    require_same(context, download<unsigned char>(device_side, bytes), data, "imported memory, read by the device");
    upload(device_side, back);
    stream.copy(imported.buffer.get(), 0, device_side.get(), 0, bytes);
    stream.wait();
    require_same(context, Bytes(pages.data(), pages.data() + bytes), back, "imported memory, written by the device");
  }
}

void maps_to_itself(Context& context) {
  Device& device = context.device();
  const Pages pages(1u << 16);
  const Imported imported(context, pages.data(), 1u << 16);
  need_import_of_pages(context, imported);
  if (device->buffer_map == nullptr) context.not_claimed("the device maps no memory");
  void* address = nullptr;
  ErrorRecord error;
  expect_status(device->buffer_map(device.get(), imported.buffer.get(), &address, &error), error, "buffer_map",
                {BP_OK});
  context.require(address == pages.data(), "an imported buffer maps to {}, its memory is at {}", address,
                  static_cast<const void*>(pages.data()));
}

void is_an_operand(Context& context) {
  Device& device = context.device();
  const Pages pages(1u << 16);
  const Imported imported(context, pages.data(), 1u << 16);
  need_import_of_pages(context, imported);
  if (imported.kind != BP_MEMORY_SHARED && !device.has(BP_CAP_HOST_OPERANDS))
    context.not_claimed("imported memory is HOST memory, which this device does not accept as an operand");
  auto* const words = reinterpret_cast<uint32_t*>(pages.data());
  for (uint32_t i = 0; i < 1024; ++i) words[i] = i;
  Runner add(device, elementwise(BP_OP_ADD, BP_U32, 1024));
  Stream stream(device);
  add.enqueue(stream.get(), {{imported.buffer.get()}, {imported.buffer.get()}}, {{imported.buffer.get(), 4096}});
  stream.wait();
  for (uint32_t i = 0; i < 1024; ++i)
    context.require(words[1024 + i] == 2 * i, "on imported memory {} + {} gave {}", i, i, words[1024 + i]);
}

void destroy_leaves_it_alone(Context& context) {
  const Pages pages(1u << 16);
  const Bytes data = noise(context, 1u << 16);
  for (int round = 0; round < 8; ++round) {
    std::memcpy(pages.data(), data.data(), data.size());
    { const Imported imported(context, pages.data(), 1u << 16); }
    require_same(context, Bytes(pages.data(), pages.data() + data.size()), data, "memory whose import was destroyed");
    std::memset(pages.data(), round, 1u << 16);
  }
}

void of_odd_memory(Context& context, uint64_t offset, uint64_t bytes) {
  Device& device = context.device();
  const Pages pages(1u << 16);
  const Imported imported(context, pages.data() + offset, bytes);
  if (!imported) return;  // the plugin may decline the import
  const Bytes data = noise(context, bytes);
  std::memcpy(pages.data() + offset, data.data(), bytes);
  Buffer device_side(device, bytes);
  Stream stream(device);
  stream.copy(device_side.get(), 0, imported.buffer.get(), 0, bytes);
  stream.wait();
  require_same(context, download<unsigned char>(device_side, bytes), data, "imported memory");
}

// Checks that an import of null memory, of 0 bytes or of an unknown type is rejected and returns no
// buffer.
void refuses(Context& context, uint32_t type, bool address, uint64_t bytes, std::initializer_list<bp_status> statuses) {
  const bp_import_api& table = import_of(context);
  const Pages pages(1u << 16);
  const bp_import_desc desc = {sizeof(desc), type, address ? reinterpret_cast<uint64_t>(pages.data()) : 0, bytes};
  ErrorRecord error;
  uint32_t kind = 0;
  auto* made = reinterpret_cast<bp_buffer*>(&kind);
  const bp_status status = table.import_memory(context.device().get(), &desc, &kind, &made, &error);
  expect_status(status, error, "import_memory", statuses);
  context.require(made == nullptr, "import_memory failed and gave a buffer");
}

void leaves_nothing(Context& context) {
  const Pages pages(1u << 16);
  import_of(context);
  expect_no_leak(context, "importing and destroying", 256,
                 [&] { const Imported imported(context, pages.data(), 1u << 16); });
}

}  // namespace

void add_import_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.import." + std::move(what), {"BP-BUF-015"}, std::move(run), "IMPORT");
  };
  for (const uint64_t bytes : {4096u, 65536u, 1048576u})
    add(fmt::format("is_one_memory.of_{}_bytes", bytes), [bytes](Context& context) { is_one_memory(context, bytes); });
  add("maps_to_itself", maps_to_itself);
  add("is_an_operand", is_an_operand);
  add("destroy_leaves_it_alone", destroy_leaves_it_alone);
  for (const uint64_t offset : {0u, 1u, 2u, 8u, 64u, 100u})
    add(fmt::format("of_odd_memory.at_offset_{}", offset),
        [offset](Context& context) { of_odd_memory(context, offset, 4000 + offset); });
  add("leaves_nothing", leaves_nothing);
  for (const uint32_t type : {2u, 64u, UINT32_MAX})
    add(fmt::format("refuses_type_{}", type),
        [type](Context& context) { refuses(context, type, true, 65536, {BP_UNSUPPORTED}); });
  add("refuses_null", [](Context& context) { refuses(context, BP_IMPORT_HOST, false, 65536, {BP_INVALID_ARGUMENT}); });
  add("refuses_no_bytes", [](Context& context) { refuses(context, BP_IMPORT_HOST, true, 0, {BP_INVALID_ARGUMENT}); });
}

}  // namespace backplane::conformance
