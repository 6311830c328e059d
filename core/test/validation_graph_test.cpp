// SPDX-License-Identifier: Apache-2.0
// Tests the rules of the layer `validation` for captures and graphs.
#include "layer_fixture.hpp"

namespace backplane::core::test {
namespace {

namespace rule = layers::rule;

class ValidationGraphTest : public LayerTest {
 protected:
  void open_graphs() {
    open();
    table = static_cast<const bp_graph_api*>(layer->get_interface(layer, device, BP_INTERFACE_GRAPH, 1));
    ASSERT_NE(table, nullptr);
  }
  bp_status begin(bp_stream* on, bp_error* e, const std::vector<bp_graph_binding>& bindings = {}) {
    const bp_graph_desc desc = {sizeof(desc), 0, bindings.data(), static_cast<uint32_t>(bindings.size()), 0};
    return table->graph_begin(device, on, &desc, e);
  }
  bp_graph* end(bp_stream* on, uint64_t nodes) {
    puppet.graph_nodes = nodes;
    bp_graph* made = nullptr;
    EXPECT_OK(table->graph_end(device, on, &made, nullptr, &error));
    return made;
  }
  const bp_graph_api* table = nullptr;
};

TEST_F(ValidationGraphTest, CapturesAreChecked) {
  open_graphs();
  bp_stream *const s = stream(), *const other = stream(), *const third = stream();
  bp_event *const inside = event(BP_EVENT_TIMING), *const outside = event(BP_EVENT_TIMING), *const never = event();
  bp_graph* made = nullptr;
  EXPECT_OK(api->event_record(device, outside, other, &error));
  refused(rule::kCaptureEnd, [&](bp_error* e) { return table->graph_end(device, s, &made, nullptr, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return table->graph_begin(device, s, nullptr, e); });
  EXPECT_OK(begin(s, &error));
  refused(rule::kCaptureCall, [&](bp_error* e) { return begin(s, e); });
  refused(rule::kCaptureCall, [&](bp_error* e) { return api->stream_wait(device, s, 0, e); });
  logged(rule::kCaptureCall, [&] { api->stream_destroy(device, s); });
  refused(rule::kNullPointer, [&](bp_error* e) { return table->graph_end(device, s, nullptr, nullptr, e); });
  bp_graph_info info = {};
  refused(rule::kOutputStruct, [&](bp_error* e) { return table->graph_end(device, s, &made, &info, e); });
  refused(rule::kCaptureEvent, [&](bp_error* e) { return api->stream_wait_event(device, s, outside, e); });
  EXPECT_OK(api->stream_wait_event(device, s, never, &error));
  EXPECT_OK(api->event_record(device, inside, s, &error));
  refused(rule::kCaptureEvent, [&](bp_error* e) { return api->event_wait(device, inside, 0, e); });
  int64_t ns = 0;
  refused(rule::kCaptureEvent, [&](bp_error* e) { return api->event_elapsed(device, outside, inside, &ns, e); });
  EXPECT_OK(api->stream_wait_event(device, other, inside, &error));
  refused(rule::kCaptureCall, [&](bp_error* e) { return api->stream_wait(device, other, 0, e); });
  refused(rule::kCaptureEnd, [&](bp_error* e) { return table->graph_end(device, other, &made, nullptr, e); });
  EXPECT_OK(begin(third, &error));
  refused(rule::kCaptureEvent, [&](bp_error* e) { return api->stream_wait_event(device, third, inside, e); });
  table->graph_destroy(device, end(third, 0));
  table->graph_destroy(device, end(s, 0));
  refused(rule::kCaptureEvent, [&](bp_error* e) { return api->stream_wait_event(device, third, inside, e); });
  EXPECT_OK(api->stream_wait(device, other, BP_WAIT_FOREVER, &error));
  EXPECT_OK(api->event_record(device, inside, s, &error));
  EXPECT_OK(api->event_wait(device, inside, BP_WAIT_FOREVER, &error));
}

TEST_F(ValidationGraphTest, GraphsAreChecked) {
  open_graphs();
  bp_stream* const s = stream();
  bp_buffer *const a = buffer(), *const b = buffer(), *const c = buffer(), *const host = buffer(BP_MEMORY_HOST);
  Addition work(a, b);
  bp_plan* const p = plan(work);
  refused(rule::kGraphBindings, [&](bp_error* e) { return begin(s, e, {{a, 0, 0}}); });
  refused(rule::kGraphBindings, [&](bp_error* e) { return begin(s, e, {{a, 4000, 97}}); });
  refused(rule::kGraphBindings, [&](bp_error* e) { return begin(s, e, {{a, 256, 16}, {b, 0, 16}, {a, 0, 257}}); });
  refused(rule::kNullPointer, [&](bp_error* e) { return begin(s, e, {{nullptr, 0, 16}}); });
  bp_graph_desc desc = {sizeof(desc), 1, nullptr, 0, 0};
  refused(rule::kUnknownValue, [&](bp_error* e) { return table->graph_begin(device, s, &desc, e); });

  EXPECT_OK(begin(s, &error, {{a, 0, 1024}}));
  EXPECT_OK(api->plan_execute(device, s, p, &work.execution, &error));
  EXPECT_OK(api->copy(device, s, c, 0, b, 0, 16, &error));
  bp_graph* made = nullptr;
  puppet.graph_nodes = 3;
  blamed(rule::kGraphNodes, [&](bp_error* e) { return table->graph_end(device, s, &made, nullptr, e); });
  EXPECT_EQ(made, nullptr);

  EXPECT_OK(begin(s, &error, {{a, 0, 1024}}));
  EXPECT_OK(api->plan_execute(device, s, p, &work.execution, &error));
  EXPECT_OK(api->copy(device, s, c, 0, b, 0, 16, &error));
  // Captured work is not pending, but the objects that it uses must stay alive.
  logged(rule::kGraphUses, [&] { api->plan_destroy(device, p); });
  logged(rule::kGraphUses, [&] { api->buffer_destroy(device, c); });
  bp_graph* const graph = end(s, 2);
  logged(rule::kGraphUses, [&] { api->buffer_destroy(device, c); });
  logged(rule::kCloseLast, [&] { api->close(device); });

  const auto launch = [&](const std::vector<bp_graph_binding>& bindings) {
    return [&, bindings](bp_error* e) {
      return table->graph_launch(device, s, graph, bindings.data(), static_cast<uint32_t>(bindings.size()), e);
    };
  };
  refused(rule::kGraphLaunch, launch({{a, 0, 1024}, {b, 0, 1024}}));
  refused(rule::kGraphLaunch, launch({{a, 0, 512}}));
  refused(rule::kGraphLaunch, launch({{host, 0, 1024}}));
  refused(rule::kGraphBindings, launch({{a, 4096, 1024}}));
  refused(rule::kNullPointer, [&](bp_error* e) { return table->graph_launch(device, s, nullptr, nullptr, 0, e); });
  bp_buffer* const passing = buffer();
  EXPECT_OK(launch({{passing, 0, 1024}})(&error));
  EXPECT_OK(launch({})(&error));
  // Buffers of a launch are in use until a wait covers the launch.
  logged(rule::kBufferPending, [&] { api->buffer_destroy(device, passing); });
  EXPECT_OK(api->stream_wait(device, s, BP_WAIT_FOREVER, &error));
  bp_stream* const other = stream();
  puppet.next["graph_launch"].act = [&] {
    refused(rule::kStreamOneCall, launch({}));
    refused(rule::kGraphLaunch, [&](bp_error* e) { return table->graph_launch(device, other, graph, nullptr, 0, e); });
    logged(rule::kCallRunning, [&] { table->graph_destroy(device, graph); });
  };
  EXPECT_OK(launch({})(&error));
  EXPECT_OK(api->stream_wait(device, s, BP_WAIT_FOREVER, &error));
  table->graph_destroy(device, graph);
  logged(rule::kEndedHandle, [&] { table->graph_destroy(device, graph); });
}

}  // namespace
}  // namespace backplane::core::test
