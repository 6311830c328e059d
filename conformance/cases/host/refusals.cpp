// SPDX-License-Identifier: Apache-2.0
// Makes illegal calls through the host library, with and without the validation layer. Each call
// must fail with a documented status, and the device must still work afterwards.
#include <cstring>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/support/add_case.hpp"

namespace backplane::conformance {

namespace {

// A legal call to add on f32 tensors of shape [4,6]. Each case makes one part of the call illegal.
struct RefusalScene {
  explicit RefusalScene(Context& context, const char* layers)
      : side(context, layers),
        desc(OpDesc(BP_OP_ADD)
                 .input(dense_view(BP_F32, {4, 6}))
                 .input(dense_view(BP_F32, {4, 6}))
                 .output(dense_view(BP_F32, {4, 6}))),
        call(side, desc, {Bytes(96, 0x11), Bytes(96, 0x11)}, {Bytes(96)}, {}) {}
  bp_status run(ErrorRecord& error) { return call.execute(side, &error); }
  HostSide side;
  OpDesc desc;
  HostCall call;
};

struct BadCall {
  const char* what;
  std::initializer_list<bp_status> expected;
  bp_status (*run)(RefusalScene&, ErrorRecord&);
};
const BadCall kBadCalls[] = {
    {"unknown_operator",
     {BP_UNSUPPORTED},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.call.op = 99, s.run(e); }},
    {"unknown_flag",
     {BP_UNSUPPORTED, BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.call.flags = 1u << 20, s.run(e); }},
    {"shapes_that_differ",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.inputs[0].shape[0] = 3, s.run(e); }},
    {"ranks_that_differ",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.inputs[1].rank = 1, s.run(e); }},
    {"rank_9",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.inputs[1].rank = 9, s.run(e); }},
    {"negative_extent",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.outputs[0].shape[1] = -6, s.run(e); }},
    {"dtypes_that_differ",
     {BP_UNSUPPORTED},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.inputs[1].dtype = BP_I32, s.run(e); }},
    {"unknown_dtype",
     {BP_UNSUPPORTED},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.inputs[0].dtype = 30, s.run(e); }},
    {"too_few_inputs",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.call.input_count = 1, s.run(e); }},
    {"no_output",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.call.output_count = 0, s.run(e); }},
    {"scalars_that_it_has_not",
     {BP_INVALID_ARGUMENT, BP_UNSUPPORTED},
     [](RefusalScene& s, ErrorRecord& e) {
       s.call.scalars = {1, 2};
       s.call.call.scalar_count = 2;
       return s.run(e);
     }},
    {"no_buffer",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.inputs[0].buffer = nullptr, s.run(e); }},
    {"offset_past_the_buffer",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.inputs[0].offset = 4, s.run(e); }},
    {"far_offset",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.inputs[0].offset = UINT64_MAX - 3, s.run(e); }},
    {"odd_offset",
     {BP_UNSUPPORTED},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.outputs[0].offset = 2, s.run(e); }},
    {"strides_past_the_buffer",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.inputs[0].strides[0] = 7, s.run(e); }},
    {"strides_before_the_buffer",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.inputs[0].strides[0] = -6, s.run(e); }},
    {"output_over_itself",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.outputs[0].strides[0] = 0, s.run(e); }},
    {"output_partly_over_input",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) {
       for (bph_tensor* view : {&s.call.inputs[0], &s.call.inputs[1], &s.call.outputs[0]}) view->shape[0] = 2;
       s.call.outputs[0].buffer = s.call.inputs[0].buffer;
       s.call.outputs[0].offset = 24;
       return s.run(e);
     }},
    {"attributes_that_it_has_not",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return s.call.call.attributes = &s, s.run(e); }},
    {"null_call",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return bph_execute(s.side.stream.get(), nullptr, &e); }},
    {"null_stream",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) { return bph_execute(nullptr, &s.call.call, &e); }},
    {"copy_past_the_end",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) {
       return bph_copy(s.side.stream.get(), s.call.outputs[0].buffer, 1, s.call.inputs[0].buffer, 0, 96, 0, &e);
     }},
    {"copy_over_itself",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) {
       return bph_copy(s.side.stream.get(), s.call.inputs[0].buffer, 8, s.call.inputs[0].buffer, 0, 64, 0, &e);
     }},
    {"copy_in_past_the_end",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) {
       const Bytes host(200);
       return bph_copy_in(s.side.stream.get(), s.call.inputs[0].buffer, 0, host.data(), 200, 0, &e);
     }},
    {"copy_out_of_null",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) {
       return bph_copy_out(s.side.stream.get(), nullptr, s.call.inputs[0].buffer, 0, 8, 0, &e);
     }},
    {"map_of_device_memory",
     {BP_UNSUPPORTED},
     [](RefusalScene& s, ErrorRecord& e) {
       void* address = nullptr;
       return bph_buffer_map(s.call.inputs[0].buffer, &address, &e);
     }},
    {"unknown_memory_kind",
     {BP_UNSUPPORTED, BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) {
       bph_buffer_desc desc = {};
       desc.struct_size = sizeof(desc);
       desc.kind = 7;
       desc.bytes = 8;
       bph_buffer* none = nullptr;
       return bph_buffer_create(s.side.device.get(), &desc, &none, &e);
     }},
    {"unknown_event_flag",
     {BP_UNSUPPORTED, BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) {
       bph_event* none = nullptr;
       return bph_event_create(s.side.device.get(), 0x40, &none, &e);
     }},
    {"device_past_the_count",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) {
       bph_device* none = nullptr;
       return bph_plugin_device_open(s.side.plugin.get(), 1000, nullptr, &none, &e);
     }},
    {"unknown_device_option",
     {BP_UNSUPPORTED},
     [](RefusalScene& s, ErrorRecord& e) {
       bph_device_desc desc = {};
       desc.struct_size = sizeof(desc);
       desc.options = "no_such_key=1";
       bph_device* none = nullptr;
       return bph_plugin_device_open(s.side.plugin.get(), 0, &desc, &none, &e);
     }},
    {"released_stream",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) {
       bph_stream* ended = nullptr;
       expect_ok(bph_stream_create(s.side.device.get(), nullptr, &ended, &e), e, "bph_stream_create");
       bph_stream_release(ended);
       return bph_stream_wait(ended, 0, &e);
     }},
    {"released_event",
     {BP_INVALID_ARGUMENT},
     [](RefusalScene& s, ErrorRecord& e) {
       bph_event* ended = nullptr;
       expect_ok(bph_event_create(s.side.device.get(), 0, &ended, &e), e, "bph_event_create");
       bph_event_release(ended);
       return bph_event_record(ended, s.side.stream.get(), &e);
     }},
};

void refused(Context& context, const BadCall& bad, const char* layers) {
  RefusalScene scene(context, layers);
  for (int round = 0; round < 2; ++round) {
    ErrorRecord error;
    const bp_status status = bad.run(scene, error);
    expect_status(status, error, "the call", bad.expected);
  }
  // A legal call on the same device must still work.
  HostCall call(scene.side, scene.desc, {Bytes(96, 0x11), Bytes(96, 0)}, {Bytes(96)}, {});
  call.execute(context, scene.side);
  require_same(context, call.results(scene.side)[0], Bytes(96, 0x11), "an addition after a refusal");
}

}  // namespace

void add_host_refusal_cases(Catalogue& catalogue) {
  for (const BadCall& bad : kBadCalls) {
    add_case(catalogue, fmt::format("host.refusal.{}.plain", bad.what), {"BP-USE-007"},
             [&bad](Context& context) { refused(context, bad, ""); });
    add_case(catalogue, fmt::format("negative.layer.{}", bad.what), {"BP-LAYER-001", "BP-USE-007"},
             [&bad](Context& context) { refused(context, bad, "validation"); });
  }
}

}  // namespace backplane::conformance
