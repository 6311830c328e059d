// SPDX-License-Identifier: Apache-2.0
// Test cases for packed operands through the host library. A plugin without bp.pack must pass
// queries_every_operator. All other cases end as not claimed for such a plugin.
#include <cstring>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/runtime/pack.hpp"
#include "cases/support/add_case.hpp"

namespace backplane::conformance {

namespace {

constexpr PackSize kHostPack = {3, 40, 50};

// A matmul on a device of its own. The operands contain small integers.
struct HostPackScene {
  explicit HostPackScene(Context& given, const char* layers = "", const bph_device_desc* desc = nullptr,
                         PackSize size = kHostPack)
      : context(given),
        side(given, layers, desc),
        described(packed_matmul(size)),
        data(given, op_info(BP_OP_MATMUL), described),
        call(side, described, data.inputs, data.outputs, data.scalars) {}

  backplane::Buffer buffer(uint64_t bytes, uint64_t alignment = 0) const {
    auto desc = backplane::detail::sized<bph_buffer_desc>();
    desc.bytes = bytes;
    desc.alignment = alignment;
    desc.stream = side.stream.get();
    return backplane::Buffer(side.device.get(), desc);
  }
  // Ends the case as not claimed if the plugin packs no operand of the matmul.
  bph_pack_info query() {
    auto info = backplane::detail::sized<bph_pack_info>();
    ErrorRecord error;
    const bp_status status = bph_pack_query(side.device.get(), &call.current(), kConstantInput, &info, &error);
    expect_status(status, error, "bph_pack_query", {BP_OK, BP_UNSUPPORTED});
    if (status != BP_OK) context.not_claimed("{}", error.message);
    context.require(info.bytes != 0 && info.alignment != 0, "bph_pack_query stated {} bytes aligned to {}", info.bytes,
                    info.alignment);
    return info;
  }
  bph_tensor pack(const backplane::Buffer& to, uint64_t offset = 0) {
    bph_tensor packed{};
    ErrorRecord error;
    expect_ok(bph_pack(side.stream.get(), &call.current(), kConstantInput, to.get(), offset, &packed, &error), error,
              "bph_pack");
    return packed;
  }
  bp_status try_pack(uint32_t input, bph_buffer* to, uint64_t offset, ErrorRecord& error) {
    bph_tensor packed{};
    const bp_status status = bph_pack(side.stream.get(), &call.current(), input, to, offset, &packed, &error);
    context.require(status == BP_OK || packed.dtype == 0, "bph_pack failed and gave a view");
    return status;
  }
  void refused(bp_status status, const ErrorRecord& error, const char* function,
               std::initializer_list<bp_status> expected, std::initializer_list<std::string_view> words) const {
    expect_status(status, error, function, expected);
    for (const std::string_view word : words) {
      context.require(std::string_view(error.message).find(word) != std::string_view::npos,
                      "the message of {} does not say '{}': {}", function, word, error.message);
    }
  }
  void execute() { call.execute(context, side); }
  std::vector<Bytes> plain() {
    execute();
    return call.results(side);
  }
  bph_tensor& constant() { return call.inputs[kConstantInput]; }

  Context& context;
  HostSide side;
  OpDesc described;
  HostData data;
  HostCall call;
};

void packs_and_executes(Context& context, const char* layers) {
  HostPackScene scene(context, layers);
  const bph_pack_info info = scene.query();
  const std::vector<Bytes> expected = scene.plain();
  const backplane::Buffer to = scene.buffer(info.bytes + info.alignment, info.alignment);
  const bph_tensor plain = scene.constant();
  for (const uint64_t offset : {uint64_t{0}, info.alignment}) {
    scene.constant() = plain;
    const bph_tensor packed = scene.pack(to, offset);
    context.require(packed.flags == BPH_TENSOR_PACKED && packed.buffer == to.get() && packed.offset == offset &&
                        packed.dtype == plain.dtype && packed.rank == plain.rank &&
                        std::memcmp(packed.shape, plain.shape, sizeof(packed.shape[0]) * plain.rank) == 0 &&
                        static_cast<uint64_t>(packed.strides[0]) == info.bytes,
                    "bph_pack gave a view that is not that of the packed operand");
    scene.constant() = packed;
    for (int round = 0; round < 4; ++round) {
      scene.execute();
      require_same(context, scene.call.results(scene.side)[0], expected[0], "the result for a packed operand");
    }
  }
  const bph_stats stats = scene.side.device.stats();
  context.require(stats.fallback_executions == 0, "a packed operand caused {} fallbacks", stats.fallback_executions);
}

// The library must not cache packed operands. After a change of the plain operand, a new packing
// must contain the new values.
void caches_nothing(Context& context) {
  HostPackScene scene(context);
  const bph_pack_info info = scene.query();
  const std::vector<Bytes> first = scene.plain();
  const backplane::Buffer one = scene.buffer(info.bytes, info.alignment),
                          two = scene.buffer(info.bytes, info.alignment);
  const bph_tensor plain = scene.constant();
  const bph_tensor early = scene.pack(one);
  Bytes zeros(scene.data.inputs[kConstantInput].size(), 0);
  backplane::detail::call(bph_copy_in, scene.side.stream.get(), plain.buffer, uint64_t{0},
                          static_cast<const void*>(zeros.data()), uint64_t{zeros.size()},
                          uint32_t{BPH_COPY_SOURCE_FREE});
  const bph_tensor late = scene.pack(two);
  scene.constant() = early;
  require_same(context, scene.plain()[0], first[0], "the result for the values at the time of the packing");
  scene.constant() = late;
  require_same(context, scene.plain()[0], Bytes(first[0].size(), 0), "the result for an operand that was packed again");
}

void refuses_other_plans(Context& context, const char* layers) {
  HostPackScene scene(context, layers);
  const bph_pack_info info = scene.query();
  const backplane::Buffer to = scene.buffer(info.bytes, info.alignment);
  const bph_tensor packed = scene.pack(to);
  scene.constant() = packed;
  ErrorRecord error;
  const auto refuse = [&](bp_status expected, std::initializer_list<std::string_view> words) {
    const bp_status status = scene.call.execute(scene.side, &error);
    scene.refused(status, error, "bph_execute", {expected}, words);
  };
  scene.constant().strides[1] ^= 1;
  refuse(BP_UNSUPPORTED, {"matmul", "layout"});
  scene.constant() = packed;
  scene.constant().strides[0] += static_cast<int64_t>(info.alignment);
  // The view states a larger size. This is either another layout (UNSUPPORTED), or a range past the end of the
  // buffer (INVALID_ARGUMENT).
  expect_status(scene.call.execute(scene.side, &error), error, "bph_execute", {BP_UNSUPPORTED, BP_INVALID_ARGUMENT});
  scene.constant() = packed;
  scene.constant().offset += 1;
  refuse(BP_INVALID_ARGUMENT, {"matmul", "packed", "aligned"});
  scene.constant() = packed;
  std::swap(scene.call.inputs[0], scene.constant());
  expect_status(scene.call.execute(scene.side, &error), error, "bph_execute", {BP_UNSUPPORTED, BP_INVALID_ARGUMENT});
  std::swap(scene.call.inputs[0], scene.constant());
  bph_call other = scene.call.current();  // becomes a call to neg, whose input is the packed operand
  other.op = BP_OP_NEG;
  other.attributes = nullptr;
  other.inputs = &packed;
  other.input_count = 1;
  const backplane::Buffer out = scene.buffer(kHostPack.depth * kHostPack.columns * 4);
  const bph_tensor result = view_of(dense_view(BP_F32, {kHostPack.depth, kHostPack.columns}), out.get());
  other.outputs = &result;
  scene.refused(bph_execute(scene.side.stream.get(), &other, &error), error, "bph_execute", {BP_UNSUPPORTED},
                {"neg", "packed"});
  scene.execute();  // a legal call still works after the refusals
}

void refuses_other_devices(Context& context) {
  HostPackScene scene(context), other(context);
  const bph_pack_info info = scene.query();
  const backplane::Buffer to = scene.buffer(info.bytes, info.alignment);
  other.constant() = scene.pack(to);
  ErrorRecord error;
  scene.refused(other.call.execute(other.side, &error), error, "bph_execute", {BP_INVALID_ARGUMENT},
                {"input 1", "packed", other.side.device.name()});
  bph_tensor packed{};
  const bp_status status =
      bph_pack(other.side.stream.get(), &scene.call.current(), kConstantInput, to.get(), 0, &packed, &error);
  scene.refused(status, error, "bph_pack", {BP_INVALID_ARGUMENT}, {});
}

// The library must refuse packed operands for a decomposed composite and on the fallback device, because both read
// plain operands.
void refuses_decomposition(Context& context) {
  HostPackScene scene(context);
  const bph_pack_info info = scene.query();
  const backplane::Buffer to = scene.buffer(info.bytes, info.alignment);
  const bph_tensor packed = scene.pack(to);
  OpDesc linear(BP_OP_LINEAR);
  linear.input(dense_view(BP_F32, {3, 50})).input(dense_view(BP_F32, {40, 50}));
  linear.output(dense_view(BP_F32, {3, 40})).attributes(bp_linear_attributes{});
  std::vector<Bytes> inputs, outputs;
  for (const bp_tensor_desc& view : linear.inputs()) inputs.emplace_back(bytes_of(view), uint8_t{0});
  for (const bp_tensor_desc& view : linear.outputs()) outputs.emplace_back(bytes_of(view), uint8_t{0});
  HostCall call(scene.side, linear, inputs, outputs, {});
  call.inputs[kConstantInput] = packed;
  ErrorRecord error;
  call.call.flags = BPH_CALL_NO_NATIVE;
  scene.refused(call.execute(scene.side, &error), error, "bph_execute", {BP_UNSUPPORTED}, {"linear", "packed"});
  auto support = backplane::detail::sized<bph_support>();
  scene.refused(bph_device_supports(scene.side.device.get(), &call.current(), &support, &error), error,
                "bph_device_supports", {BP_UNSUPPORTED}, {"linear", "packed"});
  const HostCall unpacked(scene.side, linear, inputs, outputs, {});
  call.inputs[kConstantInput] = unpacked.inputs[kConstantInput];
  auto again = backplane::detail::sized<bph_pack_info>();
  scene.refused(bph_pack_query(scene.side.device.get(), &call.current(), kConstantInput, &again, &error), error,
                "bph_pack_query", {BP_UNSUPPORTED}, {"linear"});
}

void refuses_bad_packings(Context& context, const char* layers) {
  HostPackScene scene(context, layers, nullptr, {16, 16, 16});
  const auto info = scene.query();
  const backplane::Buffer to = scene.buffer(info.bytes + info.alignment, info.alignment);
  ErrorRecord error;
  const auto refuse = [&](uint32_t input, bph_buffer* target, uint64_t offset,
                          std::initializer_list<std::string_view> words) {
    scene.refused(scene.try_pack(input, target, offset, error), error, "bph_pack", {BP_INVALID_ARGUMENT}, words);
  };
  refuse(2, to.get(), 0, {"matmul", "input 2", "absent"});
  refuse(kConstantInput, nullptr, 0, {"buffer"});
  refuse(kConstantInput, to.get(), info.alignment * 2, {"bph_pack", "bytes"});
  refuse(kConstantInput, to.get(), info.alignment / 2, {"aligned"});
  const bph_tensor plain = scene.constant();
  scene.constant() = scene.pack(to);
  refuse(kConstantInput, to.get(), 0, {"packed already"});
  scene.constant() = plain;
  scene.constant().flags = BPH_TENSOR_IMMEDIATE;
  refuse(kConstantInput, to.get(), 0, {"immediate"});
  scene.constant() = plain;
  scene.call.outputs[0].buffer = plain.buffer;  // the call overwrites its right operand
  refuse(kConstantInput, to.get(), 0, {"input 1", "not constant"});
  scene.call.outputs[0].offset = 64;
  refuse(kConstantInput, to.get(), 0, {"overlap"});
  auto unread = backplane::detail::sized<bph_pack_info>();
  scene.call.outputs[0].offset = 0;
  scene.refused(bph_pack_query(scene.side.device.get(), &scene.call.current(), kConstantInput, &unread, &error), error,
                "bph_pack_query", {BP_INVALID_ARGUMENT}, {"not constant"});
  bph_tensor packed{};
  expect_status(bph_pack(scene.side.stream.get(), nullptr, kConstantInput, to.get(), 0, &packed, &error), error,
                "bph_pack", {BP_INVALID_ARGUMENT});
  expect_status(bph_pack(scene.side.stream.get(), &scene.call.current(), kConstantInput, to.get(), 0, nullptr, &error),
                error, "bph_pack", {BP_INVALID_ARGUMENT});
}

void refuses_in_recordings(Context& context) {
  HostPackScene scene(context);
  const bph_pack_info info = scene.query();
  const backplane::Buffer to = scene.buffer(info.bytes, info.alignment);
  const bph_tensor plain = scene.constant();
  const std::vector<Bytes> expected = scene.plain();
  const bph_tensor packed = scene.pack(to);
  ErrorRecord error;
  const backplane::Graph graph = backplane::Graph::record(scene.side.stream, [&] {
    scene.refused(scene.try_pack(kConstantInput, to.get(), 0, error), error, "bph_pack", {BP_INVALID_ARGUMENT},
                  {"graph"});
    scene.constant() = packed;
    scene.execute();
    scene.constant() = plain;
  });
  for (int round = 0; round < 2; ++round) {
    graph.launch(scene.side.stream);
    require_same(context, scene.call.results(scene.side)[0], expected[0],
                 "the result of a graph with a packed operand");
  }
}

// A query must return OK or UNSUPPORTED, even if the plugin has no bp.pack. The library must refuse a packed view in a
// layout that no plugin makes.
void queries_every_operator(Context& context) {
  HostPackScene scene(context);
  auto info = backplane::detail::sized<bph_pack_info>();
  ErrorRecord error;
  const bp_status status =
      bph_pack_query(scene.side.device.get(), &scene.call.current(), kConstantInput, &info, &error);
  expect_status(status, error, "bph_pack_query", {BP_OK, BP_UNSUPPORTED});
  const bph_tensor plain = scene.constant();
  scene.constant().flags = BPH_TENSOR_PACKED;
  scene.constant().strides[0] = 64;
  scene.constant().strides[1] = 0x1234567;  // a layout that no plugin makes
  expect_status(scene.call.execute(scene.side, &error), error, "bph_execute", {BP_UNSUPPORTED});
  scene.constant() = plain;
  scene.execute();
}

}  // namespace

void add_host_pack_cases(Catalogue& catalogue) {
  const auto add = [&](const char* what, std::string_view requirement, std::function<void(Context&)> run,
                       std::string_view extension = kPackExtension) {
    add_case(catalogue, fmt::format("host.pack.{}", what), {requirement}, not_claimed_where_declined(std::move(run)),
             extension);
    catalogue.back().since = kPackSince;
  };
  add("packs_and_executes", "BP-USE-050", [](Context& context) { packs_and_executes(context, ""); });
  add("packs_and_executes.checked", "BP-USE-050", [](Context& context) { packs_and_executes(context, "validation"); });
  add("caches_nothing", "BP-USE-050", caches_nothing);
  add("refuses_other_plans", "BP-USE-051", [](Context& context) { refuses_other_plans(context, ""); });
  add("refuses_other_plans.checked", "BP-USE-051",
      [](Context& context) { refuses_other_plans(context, "validation"); });
  add("refuses_other_devices", "BP-USE-051", refuses_other_devices);
  add("refuses_decomposition", "BP-USE-051", refuses_decomposition);
  add("refuses_bad_packings", "BP-USE-052", [](Context& context) { refuses_bad_packings(context, ""); });
  add("refuses_bad_packings.checked", "BP-USE-052",
      [](Context& context) { refuses_bad_packings(context, "validation"); });
  add("refuses_in_recordings", "BP-USE-052", refuses_in_recordings);
  add("queries_every_operator", "BP-USE-051", queries_every_operator, "");
}

}  // namespace backplane::conformance
