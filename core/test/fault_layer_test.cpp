// SPDX-License-Identifier: Apache-2.0
// Tests the layer `fault`: its grammar, each kind of fault, and core with a failing plugin.
#include <backplane/backplane.h>

#include <chrono>
#include <cstdlib>

#include "layer_fixture.hpp"
#include "layers/fault/schedule.hpp"
#include "layers/slots.hpp"

namespace backplane::core::test {

namespace {

using layers::parse_faults;
using testing::HasSubstr;
using testing::IsEmpty;

std::string complaint(const std::string& text) {
  try {
    parse_faults(text, "FAULTS");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
    return error.what();
  }
  return "no error";
}

TEST(FaultGrammar, RulesAreRead) {
  const auto schedule = parse_faults(
      " fail copy 3 OUT_OF_MEMORY;;fail stream_wait 2+ DEVICE_LOST ; delay work 5ms;lose 7; lose plan_create 1", "");
  ASSERT_EQ(schedule.entries.size(), 8u);
  EXPECT_EQ(schedule.entries[0].slot, layers::Slot::copy);
  EXPECT_EQ(schedule.entries[0].call, 3u);
  EXPECT_FALSE(schedule.entries[0].onward);
  EXPECT_EQ(schedule.entries[0].status, BP_OUT_OF_MEMORY);
  EXPECT_TRUE(schedule.entries[1].onward);
  EXPECT_EQ(schedule.entries[2].time, std::chrono::milliseconds(5));
  EXPECT_EQ(schedule.entries[6].slot, std::nullopt);
  EXPECT_EQ(schedule.entries[7].slot, layers::Slot::plan_create);
  EXPECT_TRUE(parse_faults("", "").entries.empty());
}

TEST(FaultGrammar, WhatIsWrongIsSaidWithThePlaceAndWhatIsLegal) {
  EXPECT_THAT(complaint("break copy"),
              HasSubstr("FAULTS, character 1: \"break\" is no rule; write fail SLOT N[+] STATUS"));
  EXPECT_THAT(complaint("fail cpoy 1 INTERNAL"),
              HasSubstr("character 6: \"cpoy\" is no slot that can fail; these are: device_count"));
  EXPECT_THAT(complaint("fail cpoy 1 INTERNAL"), HasSubstr("plan_workspace buffer_address import_memory"));
  EXPECT_THAT(complaint("fail close 1 INTERNAL"), HasSubstr("\"close\" is no slot that can fail"));
  EXPECT_THAT(complaint("fail copy 0 INTERNAL"), HasSubstr("character 11: \"0\" is no call; write 1 to"));
  EXPECT_THAT(complaint("fail copy x+ INTERNAL"), HasSubstr("with a + behind"));
  EXPECT_THAT(complaint("fail copy 1 OK"),
              HasSubstr("character 13: \"OK\" is no status of a failure; these are: INVALID_ARGUMENT"));
  EXPECT_THAT(complaint("fail copy 1"), HasSubstr("character 12: \"\" is no status"));
  EXPECT_THAT(complaint("lose 1; delay copy 5"),
              HasSubstr("character 20: \"5\" is no time; write a whole number with ns, us, ms or s"));
  EXPECT_THAT(complaint("delay copy 61s"), HasSubstr("at most 60s"));
  EXPECT_THAT(complaint("lose copy"), HasSubstr("is no call"));
  EXPECT_THAT(complaint("lose 3 4"), HasSubstr("character 8: \"4\" is too much; end the rule with ';'"));
}

class FaultTest : public LayerTest {
 protected:
  void open(const std::string& faults) {
    layer = layers::fault(&puppet.instance.table, &puppet.host,
                          std::make_shared<const layers::FaultSchedule>(parse_faults(faults, "FAULTS")));
    api = layer->device_api;
    ASSERT_OK(layer->device_open(layer, 0, nullptr, &device, &error));
  }
};

TEST_F(FaultTest, ACallFailsOnceAndIsNotPassedOn) {
  open("fail event_create 2 OUT_OF_MEMORY");
  event();
  auto* made = reinterpret_cast<bp_event*>(this);
  EXPECT_FAILS(api->event_create(device, 0, &made, &error), BP_OUT_OF_MEMORY,
               "fault: puppet: event_create: answers OUT_OF_MEMORY: the layer was told so of call 2");
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(puppet.calls["event_create"], 1);
  event();
}

TEST_F(FaultTest, ACallFailsFromThenOn) {
  open("fail event_create 2+ UNSUPPORTED");
  event();
  bp_event* made = nullptr;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(api->event_create(device, 0, &made, &error), BP_UNSUPPORTED, "event_create");
  }
}

TEST_F(FaultTest, ThePluginAnswersForADeviceThatHasNoPlace) {
  open("fail copy 9 INTERNAL");
  EXPECT_EQ(layer->device_open(layer, 0, nullptr, nullptr, &error), BP_INVALID_ARGUMENT);
}

TEST_F(FaultTest, EverySlotCanFail) {
  std::string faults;
  for (size_t i = 0; i < layers::kSlotCount; ++i) {
    faults += std::string("fail ") + layers::slot_name(static_cast<layers::Slot>(i)) + " 2 INTERNAL;";
  }
  open(faults);
  bp_stream* s = stream();
  bp_event* ev = event(BP_EVENT_TIMING);
  bp_buffer* b = buffer(BP_MEMORY_SHARED);
  Addition work(b, b);
  bp_plan* p = plan(work);
  uint32_t count = 0;
  bp_device_info about = {};
  about.struct_size = sizeof(about);
  bp_device* opened = nullptr;
  bp_memory_info info = {};
  info.struct_size = sizeof(info);
  bp_buffer_desc buffer_desc = {sizeof(buffer_desc), 0, 8, 0};
  bp_stream_desc stream_desc = {sizeof(stream_desc), 0};
  bp_buffer* no_buffer = nullptr;
  bp_stream* no_stream = nullptr;
  bp_event* no_event = nullptr;
  bp_plan* no_plan = nullptr;
  bp_plan_info facts = {};
  facts.struct_size = sizeof(facts);
  void* address = nullptr;
  int64_t ns = 0;
  uint64_t bytes = 0;
  char memory[8] = {};
  const auto* table = static_cast<const bp_import_api*>(layer->get_interface(layer, device, BP_INTERFACE_IMPORT, 1));
  // Expects the second call of each slot to fail. If `called_before` is true, the fixture has
  // already made the first call.
  const auto second = [&](const char* slot, auto&& call, bool called_before = false) {
    SCOPED_TRACE(slot);
    if (!called_before) EXPECT_OK(call(&error));
    const int before = puppet.calls[slot];
    EXPECT_FAILS(call(&error), BP_INTERNAL, slot);
    EXPECT_EQ(puppet.calls[slot], before + (std::string(slot) == "stream_wait" ? 1 : 0))
        << "a wait ends the work first";
  };
  second("device_count", [&](bp_error* e) { return layer->device_count(layer, &count, e); });
  second("device_info", [&](bp_error* e) { return layer->device_info(layer, 0, &about, e); });
  second(
      "device_open", [&](bp_error* e) { return layer->device_open(layer, 0, nullptr, &opened, e); }, true);
  second("memory_info", [&](bp_error* e) { return api->memory_info(device, 0, &info, e); });
  second(
      "buffer_create", [&](bp_error* e) { return api->buffer_create(device, &buffer_desc, &no_buffer, e); }, true);
  second("buffer_map", [&](bp_error* e) { return api->buffer_map(device, b, &address, e); });
  second(
      "stream_create", [&](bp_error* e) { return api->stream_create(device, &stream_desc, &no_stream, e); }, true);
  second("stream_wait", [&](bp_error* e) { return api->stream_wait(device, s, 0, e); });
  second(
      "event_create", [&](bp_error* e) { return api->event_create(device, 0, &no_event, e); }, true);
  second("event_record", [&](bp_error* e) { return api->event_record(device, ev, s, e); });
  second("stream_wait_event", [&](bp_error* e) { return api->stream_wait_event(device, s, ev, e); });
  second("event_wait", [&](bp_error* e) { return api->event_wait(device, ev, 0, e); });
  second("event_elapsed", [&](bp_error* e) { return api->event_elapsed(device, ev, ev, &ns, e); });
  second("copy", [&](bp_error* e) { return api->copy(device, s, b, 0, b, 8, 8, e); });
  second("copy_in", [&](bp_error* e) { return api->copy_in(device, s, b, 0, memory, 8, e); });
  second("copy_out", [&](bp_error* e) { return api->copy_out(device, s, memory, b, 0, 8, e); });
  second(
      "plan_create", [&](bp_error* e) { return api->plan_create(device, &work.desc, &no_plan, &facts, e); }, true);
  second("plan_execute", [&](bp_error* e) { return api->plan_execute(device, s, p, &work.execution, e); });
  second("plan_workspace", [&](bp_error* e) { return api->plan_workspace(device, p, &work.desc, &bytes, e); });
  bp_buffer* imported = nullptr;
  const bp_import_desc import = {sizeof(import), BP_IMPORT_HOST, reinterpret_cast<uint64_t>(memory), 8};
  EXPECT_OK(table->import_memory(device, &import, &count, &imported, &error));
  buffers.push_back(imported);
  EXPECT_FAILS(table->import_memory(device, &import, &count, &no_buffer, &error), BP_INTERNAL, "import_memory");
  EXPECT_EQ(no_buffer, nullptr);
}

TEST_F(FaultTest, WorkIsDelayed) {
  open("delay work 20ms; delay copy 10ms");
  bp_stream* s = stream();
  bp_buffer* b = buffer();
  auto begin = std::chrono::steady_clock::now();
  EXPECT_OK(api->copy(device, s, b, 0, b, 8, 8, &error));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  Addition work(b, b);
  bp_plan* p = plan(work);
  begin = std::chrono::steady_clock::now();
  EXPECT_OK(api->plan_execute(device, s, p, &work.execution, &error));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
  EXPECT_EQ(puppet.calls["plan_execute"], 1);
}

TEST_F(FaultTest, AStreamThatFailsStaysFailedAndItsWaitEndsItsWork) {
  open("fail copy 2 EXECUTION_FAILED");
  bp_stream* s = stream();
  bp_stream* other = stream();
  bp_event* ev = event();
  bp_buffer* b = buffer();
  const auto copy = [&](bp_error* e) { return api->copy(device, s, b, 0, b, 8, 8, e); };
  EXPECT_OK(copy(&error));
  EXPECT_FAILS(copy(&error), BP_EXECUTION_FAILED, "copy");
  EXPECT_FAILS(copy(&error), BP_EXECUTION_FAILED, "the layer made the stream fail");
  EXPECT_FAILS(api->event_record(device, ev, s, &error), BP_EXECUTION_FAILED, "event_record");
  EXPECT_EQ(puppet.calls["copy"], 1);
  puppet.fail("stream_wait", BP_TIMEOUT);
  EXPECT_EQ(api->stream_wait(device, s, 0, &error), BP_TIMEOUT);
  EXPECT_FAILS(api->stream_wait(device, s, 0, &error), BP_EXECUTION_FAILED, "stream_wait");
  EXPECT_EQ(puppet.calls["stream_wait"], 2);
  EXPECT_OK(api->event_record(device, ev, other, &error));
}

TEST_F(FaultTest, ADeviceIsLostAndEverythingCanBeDestroyed) {
  open("lose copy 2");
  bp_stream* s = stream();
  bp_event* ev = event();
  bp_buffer* b = buffer();
  const auto copy = [&](bp_error* e) { return api->copy(device, s, b, 0, b, 8, 8, e); };
  EXPECT_OK(copy(&error));
  EXPECT_OK(copy(&error));
  EXPECT_EQ(puppet.calls["stream_wait"], 1) << "its work ends first";
  EXPECT_FAILS(copy(&error), BP_DEVICE_LOST, "the layer has lost the device");
  EXPECT_FAILS(api->event_wait(device, ev, 0, &error), BP_DEVICE_LOST, "event_wait");
  void* address = this;
  EXPECT_FAILS(api->buffer_map(device, b, &address, &error), BP_DEVICE_LOST, "buffer_map");
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(puppet.calls["event_wait"], 0);
  // The device can be opened again, and the layer continues to count the calls.
  bp_device* second = nullptr;
  EXPECT_OK(layer->device_open(layer, 0, nullptr, &second, &error));
  EXPECT_OK(api->event_create(second, 0, &ev, &error));
  api->event_destroy(second, ev);
  api->close(second);
}

TEST_F(FaultTest, ADeviceIsLostBehindAnyCallOrByAStatus) {
  open("lose 2");
  bp_event* ev = event();
  event();
  EXPECT_FAILS(api->event_wait(device, ev, 0, &error), BP_DEVICE_LOST, "event_wait");
  TearDown();

  layer = nullptr;
  events.clear();
  puppet.ended = false;
  open("fail event_wait 1 DEVICE_LOST");
  ev = event();
  EXPECT_FAILS(api->event_wait(device, ev, 0, &error), BP_DEVICE_LOST, "told so of call 1");
  EXPECT_FAILS(api->event_wait(device, ev, 0, &error), BP_DEVICE_LOST, "has lost the device");
}

// Tests of faults through the host API. The layer `validation` is outermost, so a test fails if
// core breaks a rule.
class FaultyHost : public testing::Test {
 protected:
  bp_status create(const char* layers, const char* faults, bp_error* record) {
    bph_registry_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
    desc.search_path = "";
    desc.layers = layers;
    desc.faults = faults;
    desc.log = [](void* context, int32_t, const char* line) {
      static_cast<std::vector<std::string>*>(context)->push_back(line);
    };
    desc.log_context = &log;
    return bph_registry_create(&desc, registry.out(), record);
  }
  void open(const char* faults) {
    ASSERT_OK(create("validation,fault", faults, &error));
    const char* folder = std::getenv("BACKPLANE_TEST_PLUGINS");
    const std::string path = std::string(folder != nullptr ? folder : "plugins") + "/null_plugin.so";
    Owned<bph_plugin> plugin;
    ASSERT_OK(bph_plugin_load(registry, path.c_str(), plugin.out(), &error));
    ASSERT_OK(bph_plugin_device_open(plugin, 0, nullptr, device.out(), &error));
  }
  void TearDown() override {
    device.reset();
    registry.reset();
    EXPECT_THAT(log, IsEmpty());
  }
  bp_error error = fresh_error();
  std::vector<std::string> log;
  Owned<bph_registry> registry;
  Owned<bph_device> device;
};

TEST_F(FaultyHost, CoreRetriesWhenMemoryRunsOut) {
  open("fail buffer_create 1 OUT_OF_MEMORY");
  bph_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bytes = 64;
  Owned<bph_buffer> buffer;
  const bp_status first = bph_buffer_create(device, &desc, buffer.out(), &error);
  if (first == BP_OUT_OF_MEMORY) {
    EXPECT_OK(bph_buffer_create(device, &desc, buffer.out(), &error));
  } else {
    EXPECT_EQ(first, BP_OK) << error.message;
  }
}

TEST_F(FaultyHost, ALostDeviceIsAnsweredAndReleased) {
  open("lose copy 1");
  Owned<bph_stream> stream;
  ASSERT_OK(bph_stream_create(device, nullptr, stream.out(), &error));
  bph_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bytes = 4096;
  desc.stream = stream;
  Owned<bph_buffer> buffer;
  ASSERT_OK(bph_buffer_create(device, &desc, buffer.out(), &error));
  EXPECT_OK(bph_copy(stream, buffer, 0, buffer, 1024, 1024, 0, &error));
  EXPECT_FAILS(bph_copy(stream, buffer, 0, buffer, 1024, 1024, 0, &error), BP_DEVICE_LOST, "");
  EXPECT_FAILS(bph_stream_wait(stream, BP_WAIT_FOREVER, &error), BP_DEVICE_LOST, "");
}

TEST_F(FaultyHost, FaultsAndTheirLayerComeTogether) {
  EXPECT_FAILS(create("fault", nullptr, &error), BP_INVALID_ARGUMENT, "set BACKPLANE_FAULT");
  EXPECT_FAILS(create("fault", "lose", &error), BP_INVALID_ARGUMENT, "bph_registry_desc.faults, character 5");
  EXPECT_OK(create("", "lose 1", &error));
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log.front(), HasSubstr("the layer fault is not named"));
  log.clear();
  setenv("BACKPLANE_FAULT", "lose x", 1);
  EXPECT_FAILS(create("fault", nullptr, &error), BP_INVALID_ARGUMENT, "BACKPLANE_FAULT, character 6: \"x\" is no slot");
  setenv("BACKPLANE_FAULT", "lose 1", 1);
  EXPECT_OK(create("fault", nullptr, &error));
  unsetenv("BACKPLANE_FAULT");
}

}  // namespace

}  // namespace backplane::core::test
