// SPDX-License-Identifier: Apache-2.0
// Tests the layer `validation` with defective plugins.
#include <stdexcept>

#include "base/float_state.hpp"
#include "layer_fixture.hpp"

namespace backplane::core::test {

namespace {

namespace rule = layers::rule;
using testing::HasSubstr;

class ValidationPluginTest : public LayerTest {
 protected:
  auto create_event() {
    return [this](bp_error* e) { return api->event_create(device, 0, &made, e); };
  }
  bp_event* made = nullptr;
};

TEST_F(ValidationPluginTest, SuccessComesWithAResult) {
  open();
  puppet.return_null("event_create");
  blamed(rule::kSuccessNull, create_event());
  EXPECT_EQ(made, nullptr);
  bp_buffer* mapped = buffer(BP_MEMORY_HOST);
  void* address = nullptr;
  puppet.return_null("buffer_map");
  blamed(rule::kSuccessNull, [&](bp_error* e) { return api->buffer_map(device, mapped, &address, e); });
  bp_device* opened = nullptr;
  puppet.return_null("device_open");
  blamed(rule::kSuccessNull, [&](bp_error* e) { return layer->device_open(layer, 0, nullptr, &opened, e); });
}

TEST_F(ValidationPluginTest, AFailureLeavesNull) {
  open();
  puppet.fail("event_create", BP_OUT_OF_MEMORY);
  puppet.next["event_create"].keep_out = true;
  blamed(rule::kFailureNull, create_event());
  EXPECT_EQ(made, nullptr);
  bp_device* opened = nullptr;
  puppet.fail("device_open", BP_UNAVAILABLE);
  puppet.next["device_open"].keep_out = true;
  blamed(rule::kFailureNull, [&](bp_error* e) { return layer->device_open(layer, 0, nullptr, &opened, e); });
  // The layer returns a correct failure unchanged.
  puppet.fail("event_create", BP_OUT_OF_MEMORY, {.message = "no event is left"});
  error = fresh_error();
  EXPECT_EQ(create_event()(&error), BP_OUT_OF_MEMORY);
  EXPECT_STREQ(error.message, "no event is left");
  EXPECT_EQ(error.status, BP_OUT_OF_MEMORY);
}

TEST_F(ValidationPluginTest, TheErrorRecordIsFilledOnFailureOnly) {
  open();
  bp_stream* s = stream();
  puppet.fail("event_create", BP_OUT_OF_MEMORY);
  puppet.next["event_create"].fill = false;
  blamed(rule::kErrorRecord, create_event());
  puppet.next["stream_wait"].touch = true;
  blamed(rule::kErrorRecord, [&](bp_error* e) { return api->stream_wait(device, s, 0, e); });
  puppet.fail("stream_wait", BP_TIMEOUT);
  puppet.next["stream_wait"].touch = true;
  blamed(rule::kErrorRecord, [&](bp_error* e) { return api->stream_wait(device, s, 0, e); });
}

TEST_F(ValidationPluginTest, StatusesAreKnownAndStated) {
  open();
  bp_stream* s = stream();
  puppet.fail("event_create", 99);
  blamed(rule::kKnownStatus, create_event());
  puppet.fail("event_create", BP_TIMEOUT);
  blamed(rule::kStatedStatus, create_event());
  bp_buffer* b = buffer();
  puppet.fail("copy", BP_UNSUPPORTED);
  blamed(rule::kStatedStatus, [&](bp_error* e) { return api->copy(device, s, b, 0, b, 512, 8, e); });
  puppet.fail("copy", BP_OUT_OF_MEMORY);
  EXPECT_EQ(api->copy(device, s, b, 0, b, 512, 8, &error), BP_OUT_OF_MEMORY);
}

TEST_F(ValidationPluginTest, APlanIsAPromise) {
  open();
  bp_stream* s = stream();
  Addition work(buffer(), buffer());
  bp_plan* p = plan(work);
  puppet.fail("plan_execute", BP_UNSUPPORTED);
  blamed(rule::kTruthfulPlan, [&](bp_error* e) { return api->plan_execute(device, s, p, &work.execution, e); });
}

TEST_F(ValidationPluginTest, ARefusedDescriptorIsUnsupported) {
  open();
  Addition work(buffer(), buffer());
  bp_plan* p = nullptr;
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  puppet.fail("plan_create", BP_INVALID_ARGUMENT);
  blamed(rule::kCheckedDescriptor, [&](bp_error* e) { return api->plan_create(device, &work.desc, &p, &info, e); });
  puppet.fail("plan_create", BP_UNSUPPORTED);
  EXPECT_EQ(api->plan_create(device, &work.desc, &p, &info, &error), BP_UNSUPPORTED);
}

TEST_F(ValidationPluginTest, AnEndlessWaitEnds) {
  open();
  bp_stream* s = stream();
  bp_event* ev = event();
  puppet.fail("stream_wait", BP_TIMEOUT);
  blamed(rule::kEndlessWait, [&](bp_error* e) { return api->stream_wait(device, s, BP_WAIT_FOREVER, e); });
  puppet.fail("event_wait", BP_TIMEOUT);
  blamed(rule::kEndlessWait, [&](bp_error* e) { return api->event_wait(device, ev, BP_WAIT_FOREVER, e); });
  puppet.fail("event_wait", BP_TIMEOUT);
  EXPECT_EQ(api->event_wait(device, ev, 1000, &error), BP_TIMEOUT);
}

TEST_F(ValidationPluginTest, FloatingPointControlIsRestoredAndReported) {
  open();
  const uint64_t control = float_control();
  if (control == 0) GTEST_SKIP() << "the floating-point control register of this architecture is unknown";
#if defined(__x86_64__)
  constexpr uint64_t flush_to_zero = 0x8000;
#else
  constexpr uint64_t flush_to_zero = 1u << 24;
#endif
  puppet.next["event_create"].act = [&] { set_float_control(control ^ flush_to_zero); };
  blamed(rule::kFloatControl, create_event());
  EXPECT_EQ(float_control(), control);
  // The layer destroyed the object. TearDown expects that no live object remains.
  EXPECT_EQ(made, nullptr);
}

TEST_F(ValidationPluginTest, ExceptionsStopAtTheLayer) {
  open();
  puppet.next["event_create"].act = [] { throw std::runtime_error("out"); };
  blamed(rule::kNoException, create_event());
}

TEST_F(ValidationPluginTest, HandlesAreDistinct) {
  open();
  event();
  puppet.next["event_create"].same = true;
  blamed(rule::kDistinctHandles, create_event());
  EXPECT_EQ(made, nullptr);
}

TEST_F(ValidationPluginTest, FactsOfAPlanAreConsistent) {
  open();
  Addition work(buffer(), buffer());
  bp_plan* none = nullptr;
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  const auto make_plan = [&](bp_error* e) { return api->plan_create(device, &work.desc, &none, &info, e); };
  puppet.plan_info.stage_inputs = 4;
  blamed(rule::kPlanInfo, make_plan);
  puppet.plan_info.stage_inputs = 0;
  puppet.plan_info.stage_outputs = 2;
  blamed(rule::kPlanInfo, make_plan);
  puppet.plan_info.stage_outputs = 0;
  puppet.plan_info.flags = BP_PLAN_SIZED_WORKSPACE;
  blamed(rule::kPlanInfo, make_plan);
  blamed(rule::kPlanInfo, [&](bp_error* e) { return api->plan_create(device, &work.desc, nullptr, &info, e); });
  puppet.plan_info.flags |= BP_PLAN_ANY_SIZE;
  plan(work);
}

TEST_F(ValidationPluginTest, AFailedStreamStaysFailed) {
  open();
  bp_stream* s = stream();
  bp_event* ev = event();
  puppet.fail("event_record", BP_EXECUTION_FAILED);
  EXPECT_EQ(api->event_record(device, ev, s, &error), BP_EXECUTION_FAILED);
  blamed(rule::kStickyFailure, [&](bp_error* e) { return api->event_record(device, ev, s, e); });
  puppet.fail("stream_wait", BP_TIMEOUT);
  EXPECT_EQ(api->stream_wait(device, s, 0, &error), BP_TIMEOUT);
  puppet.fail("stream_wait", BP_EXECUTION_FAILED);
  EXPECT_EQ(api->stream_wait(device, s, 0, &error), BP_EXECUTION_FAILED);
}

TEST_F(ValidationPluginTest, MemoryNumbersAddUp) {
  open();
  bp_memory_info info = {};
  info.struct_size = sizeof(info);
  const auto ask = [&](bp_error* e) { return api->memory_info(device, BP_MEMORY_DEVICE, &info, e); };
  EXPECT_OK(ask(&error));
  puppet.memory.free_bytes = 1001;
  blamed(rule::kMemoryNumbers, ask);
  puppet.memory.free_bytes = UINT64_MAX;
  EXPECT_OK(ask(&error));
}

TEST_F(ValidationPluginTest, ABufferHasOneAddress) {
  open();
  bp_buffer* b = buffer();
  bp_buffer* other = buffer();
  uint64_t address = 0;
  EXPECT_OK(api->buffer_address(device, b, &address, &error));
  EXPECT_NE(address, 0u);
  puppet.address = address + 1;
  blamed(rule::kOneAddress, [&](bp_error* e) { return api->buffer_address(device, b, &address, e); });
  EXPECT_EQ(address, 0u);
  blamed(rule::kOneAddress, [&](bp_error* e) { return api->buffer_address(device, other, &address, e); });
  puppet.address = 0;
  blamed(rule::kOneAddress, [&](bp_error* e) { return api->buffer_address(device, other, &address, e); });
  puppet.address.reset();
  EXPECT_OK(api->buffer_address(device, other, &address, &error));
  refused(rule::kNullPointer, [&](bp_error* e) { return api->buffer_address(device, b, nullptr, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return api->buffer_address(device, nullptr, &address, e); });
}

TEST_F(ValidationPluginTest, ABufferHasOneMapping) {
  open();
  bp_buffer* b = buffer(BP_MEMORY_HOST);
  bp_buffer* unmapped = buffer();
  void* address = nullptr;
  EXPECT_OK(api->buffer_map(device, b, &address, &error));
  EXPECT_OK(api->buffer_map(device, b, &address, &error));
  blamed(rule::kOneMapping, [&](bp_error* e) { return api->buffer_map(device, unmapped, &address, e); });
  puppet.map_shift = 8;
  blamed(rule::kOneMapping, [&](bp_error* e) { return api->buffer_map(device, b, &address, e); });
}

}  // namespace

}  // namespace backplane::core::test
