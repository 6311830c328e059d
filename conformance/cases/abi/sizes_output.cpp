// SPDX-License-Identifier: Apache-2.0
// Tests each output struct with the sizes that hosts of other ABI versions may pass.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "cases/abi/cases.hpp"
#include "cases/runtime/external.hpp"
#include "cases/runtime/graph.hpp"
#include "cases/runtime/native.hpp"
#include "cases/runtime/pack.hpp"
#include "cases/support/data.hpp"
#include "cases/support/guarded.hpp"
#include "cases/support/health_check.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

constexpr unsigned char kOutputGarbage = 0xA5;

// One call that fills an output struct. The call may own the object whose properties it returns.
using OutputCall = std::function<bp_status(void* bytes, bp_error* error)>;

struct OutputRole {
  std::string name;
  size_t minimum, current;
  std::function<OutputCall(Context&)> begin;
  std::string_view extension = {};
  uint32_t since = BP_VERSION(0, 2);
};

// Passes an output struct of `size` bytes. All bytes after struct_size contain garbage, which the
// callee must not read.
void run(Context& context, const OutputRole& role, size_t size) {
  const GuardedBytes bytes(std::max<size_t>(size, 4), kOutputGarbage);
  const auto stated = static_cast<uint32_t>(size);
  std::memcpy(bytes.data(), &stated, sizeof(stated));
  ErrorRecord error;
  const OutputCall call = role.begin(context);
  const bp_status status = call(bytes.data(), &error);
  uint32_t after = 0;
  std::memcpy(&after, bytes.data(), sizeof(after));
  context.require(after == stated, "{} changed struct_size from {} to {}", role.name, stated, after);
  context.require(bytes.slack_intact(), "{} wrote past the end of a struct of {} bytes", role.name, size);
  const auto written = [&](unsigned char byte) { return byte != kOutputGarbage; };
  if (size < role.minimum) {
    expect_status(status, error, role.name, {BP_INVALID_ARGUMENT, BP_UNSUPPORTED});
    context.require(std::none_of(bytes.data() + 4, bytes.data() + bytes.size(), written),
                    "{} refused a struct of {} bytes and wrote to it", role.name, size);
    return;
  }
  expect_status(status, error, role.name, {BP_OK});
  // Repeats the call with other garbage. A byte that differs between the two structs was not
  // written.
  std::vector<unsigned char> plain(role.current, static_cast<unsigned char>(~kOutputGarbage));
  const auto plain_size = static_cast<uint32_t>(role.current);
  std::memcpy(plain.data(), &plain_size, sizeof(plain_size));
  expect_status(call(plain.data(), &error), error, role.name, {BP_OK});
  const size_t known = std::min(size, role.current);
  for (size_t at = 4; at < known; ++at)
    context.require(bytes.data()[at] == plain[at] || role.name.starts_with("memory_info"),
                    "{} left byte {} of a struct of {} bytes as it was", role.name, at, size);
  for (size_t at = role.current; at < size; ++at)
    context.require(bytes.data()[at] == 0,
                    "{} left byte {} of a struct of {} bytes at {:#x}; a plugin must set bytes that it "
                    "does not know to zero",
                    role.name, at, size, bytes.data()[at]);
  require_healthy(context);
}

// Returns the function OutputRole::begin of a role whose call needs no object such as a plan or a
// buffer.
template <class Call>
auto without_object(Call call) {
  return [call](Context& context) -> OutputCall {
    return [call, &context](void* bytes, bp_error* error) { return call(context, bytes, error); };
  };
}

std::vector<OutputRole> roles() {
  std::vector<OutputRole> all;
  all.push_back({"device_info", BP_DEVICE_INFO_MIN_SIZE, sizeof(bp_device_info),
                 without_object([](Context& context, void* bytes, bp_error* error) {
                   Plugin& plugin = context.plugin();
                   return plugin->device_info(plugin.get(), context.device_index(), static_cast<bp_device_info*>(bytes),
                                              error);
                 })});
  for (const uint32_t kind : {BP_MEMORY_DEVICE, BP_MEMORY_HOST, BP_MEMORY_SHARED})
    all.push_back({fmt::format("memory_info_of_kind_{}", kind), BP_MEMORY_INFO_MIN_SIZE, sizeof(bp_memory_info),
                   without_object([kind](Context& context, void* bytes, bp_error* error) {
                     Device& device = context.device();
                     if (!device.offers(kind)) {
                       bp_memory_info info = {};
                       info.struct_size = sizeof(info);
                       expect_status(device->memory_info(device.get(), kind, &info, error),
                                     *static_cast<ErrorRecord*>(error), "memory_info", {BP_UNSUPPORTED});
                       context.not_claimed("the device does not offer memory of kind {}", kind);
                     }
                     return device->memory_info(device.get(), kind, static_cast<bp_memory_info*>(bytes), error);
                   }),
                   kind_extension(kind)});
  for (const uint32_t op : {uint32_t{BP_OP_ADD}, uint32_t{BP_OP_REDUCE_SUM}, uint32_t{BP_OP_MATMUL}})
    for (const bool make : {true, false})
      all.push_back({fmt::format("plan_info_of_{}{}", op_info(op).name, make ? "" : "_question"), BP_PLAN_INFO_MIN_SIZE,
                     sizeof(bp_plan_info), without_object([op, make](Context& context, void* bytes, bp_error* error) {
                       Device& device = context.device();
                       OpDesc desc = sample(op_info(op), BP_F32);
                       const Plan claimed(device, desc.get());
                       bp_plan* plan = nullptr;
                       const bp_status status = device->plan_create(device.get(), &desc.get(), make ? &plan : nullptr,
                                                                    static_cast<bp_plan_info*>(bytes), error);
                       if (status == BP_OK && plan != nullptr) device->plan_destroy(device.get(), plan);
                       return status;
                     })});
  all.push_back({"buffer_native", BP_NATIVE_HANDLE_MIN_SIZE, sizeof(bp_native_handle),
                 [](Context& context) -> OutputCall {
                   auto buffer = std::make_shared<Buffer>(context.device(), 4096);
                   (void)handle_of(context, *buffer);  // ends the case if there is no handle
                   const auto slot = native_of(context, context.device()).buffer_native;
                   return [=](void* bytes, bp_error* error) {
                     return slot(buffer->device().get(), buffer->get(), static_cast<bp_native_handle*>(bytes), error);
                   };
                 },
                 kNativeExtension, kNativeSince});
  all.push_back({"stream_native", BP_NATIVE_HANDLE_MIN_SIZE, sizeof(bp_native_handle),
                 [](Context& context) -> OutputCall {
                   auto stream = std::make_shared<Stream>(context.device());
                   (void)handle_of(context, *stream);
                   const auto slot = native_of(context, context.device()).stream_native;
                   return [=](void* bytes, bp_error* error) {
                     return slot(stream->device().get(), stream->get(), static_cast<bp_native_handle*>(bytes), error);
                   };
                 },
                 kNativeExtension, kNativeSince});
  all.push_back({"graph_end", BP_GRAPH_INFO_MIN_SIZE, sizeof(bp_graph_info),
                 [](Context& context) -> OutputCall {
                   const GraphCalls calls(context);
                   auto stream = std::make_shared<Stream>(context.device());
                   return [=](void* bytes, bp_error* error) {
                     bp_device* const device = stream->device().get();
                     bp_graph* made = nullptr;
                     calls.begin(*stream);
                     auto* const info = static_cast<bp_graph_info*>(bytes);
                     const bp_status status = calls.api().graph_end(device, stream->get(), &made, info, error);
                     // If graph_end refuses the struct, the capture stays open.
                     if (status != BP_OK) (void)calls.api().graph_end(device, stream->get(), &made, nullptr, nullptr);
                     if (made != nullptr) calls.api().graph_destroy(device, made);
                     return status;
                   };
                 },
                 kGraphExtension, kGraphSince});
  all.push_back({"external_type", BP_EXTERNAL_TYPE_MIN_SIZE, sizeof(bp_external_type),
                 without_object([](Context& context, void* bytes, bp_error* error) {
                   Device& device = context.device();
                   return external_of(context, device)
                       .external_type(device.get(), 0, static_cast<bp_external_type*>(bytes), error);
                 }),
                 kExternalExtension, kExternalSince});
  all.push_back({"pack_create", BP_PACK_INFO_MIN_SIZE, sizeof(bp_pack_info),
                 [](Context& context) -> OutputCall {
                   auto scene = std::make_shared<PackScene>(context, packed_matmul({3, 4, 5}));
                   return [=](void* bytes, bp_error* error) {
                     auto* const info = static_cast<bp_pack_info*>(bytes);
                     return scene->table.pack_create(scene->device.get(), &scene->desc.get(), kConstantInput, nullptr,
                                                     info, error);
                   };
                 },
                 kPackExtension, kPackSince});
  return all;
}

}  // namespace

void add_output_size_cases(Catalogue& catalogue) {
  for (const OutputRole& role : roles()) {
    const std::pair<const char*, size_t> sizes[] = {{"size_0", 0},
                                                    {"size_4", 4},
                                                    {"below_minimum", role.minimum - 1},
                                                    {"minimum", role.minimum},
                                                    {"current", role.current},
                                                    {"longer_by_1", role.current + 1},
                                                    {"longer_by_8", role.current + 8},
                                                    {"longer_by_64", role.current + 64},
                                                    {"longer_by_4096", role.current + 4096}};
    for (const auto& [name, size] : sizes)
      catalogue.push_back({.id = fmt::format("abi.output.{}.{}", role.name, name),
                           .extension = role.extension,
                           .requirements = {"BP-SIZE-004", size < role.minimum ? "BP-SIZE-007" : "BP-SIZE-005"},
                           .run = [role, size = size](Context& context) { run(context, role, size); },
                           .since = role.since});
  }
}

}  // namespace backplane::conformance
