// SPDX-License-Identifier: Apache-2.0
// Tests the layer `validation` with callers that break the rules for handles, structs, memory,
// streams and events.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/ref.hpp"
#include "layer_fixture.hpp"

namespace backplane::core::test {

namespace {

namespace rule = layers::rule;
using testing::HasSubstr;

class ValidationTest : public LayerTest {};

TEST_F(ValidationTest, NullPointersAreRefused) {
  open();
  bp_stream* s = stream();
  refused(rule::kNullPointer, [&](bp_error* e) { return api->stream_wait(nullptr, s, 0, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return api->stream_wait(device, nullptr, 0, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return api->event_create(device, 0, nullptr, e); });
  bp_buffer* made = nullptr;
  refused(rule::kNullPointer, [&](bp_error* e) { return api->buffer_create(device, nullptr, &made, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return api->memory_info(device, 0, nullptr, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return layer->device_count(layer, nullptr, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return layer->device_info(layer, 0, nullptr, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return layer->device_open(layer, 0, nullptr, nullptr, e); });
  logged(rule::kNullPointer, [&] { api->buffer_destroy(device, nullptr); });
  logged(rule::kNullPointer, [&] { layer->get_interface(layer, device, nullptr, 1); });
  EXPECT_OK(api->stream_wait(device, s, 0, &error));
}

TEST_F(ValidationTest, ADeviceIsAnOpenOne) {
  open();
  auto* foreign = reinterpret_cast<bp_device*>(&puppet);
  bp_event* made = nullptr;
  refused(rule::kDeviceHandle, [&](bp_error* e) { return api->event_create(foreign, 0, &made, e); });
  logged(rule::kDeviceHandle, [&] { api->close(foreign); });
  logged(rule::kDeviceHandle, [&] { layer->get_interface(layer, foreign, BP_INTERFACE_IMPORT, 1); });
  bp_device* second = nullptr;
  ASSERT_EQ(layer->device_open(layer, 0, nullptr, &second, &error), BP_OK);
  api->close(second);
  refused(rule::kDeviceHandle, [&](bp_error* e) { return api->event_create(second, 0, &made, e); });
  logged(rule::kDeviceHandle, [&] { api->close(second); });
}

// The layer logs to the host that opened the device, and the log callback may call the device.
TEST_F(ValidationTest, WhatHasNoAnswerIsLoggedWhereTheDeviceIs) {
  open();
  struct Caller {
    const bp_device_api* api;
    bp_device* device;
    std::vector<std::string> log;
    bp_status status;
  } caller = {api, device, {}, BP_INTERNAL};
  puppet.host.context = &caller;
  puppet.host.log = [](void* context, int32_t, const char* message) {
    auto& self = *static_cast<Caller*>(context);
    self.log.emplace_back(message);
    bp_memory_info info = {};
    info.struct_size = sizeof(info);
    self.status = self.api->memory_info(self.device, BP_MEMORY_DEVICE, &info, nullptr);
  };
  Puppet later;
  const bp_plugin* other = layers::validation(&later.instance.table, &later.host);
  api->buffer_destroy(device, nullptr);
  EXPECT_THAT(caller.log, testing::ElementsAre(testing::HasSubstr("buffer_destroy")));
  EXPECT_EQ(caller.status, BP_OK);
  EXPECT_THAT(later.log, testing::IsEmpty());
  other->shutdown(other);
}

// Another thread may release the plugin while the layer logs to the plugin's host. In this test the
// log callback releases the plugin.
TEST_F(ValidationTest, APluginDoesNotEndWhileItIsTold) {
  open();
  struct Keeper final : Object {
    std::vector<std::string> log;
    bool ended = false, ended_while_told = false;
    void dispose() noexcept override { ended = true; }
  } keeper;
  Puppet later;
  later.host.context = &keeper;
  later.host.log = [](void* context, int32_t, const char* message) {
    auto& self = *static_cast<Keeper*>(context);
    self.log.emplace_back(message);
    if (self.log.size() == 1) self.release();
    self.ended_while_told = self.ended;
  };
  const bp_plugin* other = layers::validation(&later.instance.table, &later.host, &keeper);
  auto* const foreign = reinterpret_cast<bp_device*>(&later);
  api->close(foreign);  // the device is unknown, so the layer logs to the latest plugin's host
  EXPECT_THAT(keeper.log, testing::ElementsAre(testing::HasSubstr("close")));
  EXPECT_TRUE(keeper.ended);
  EXPECT_FALSE(keeper.ended_while_told);
  // After the shutdown of that plugin has begun, the layer logs to another plugin's host.
  logged(rule::kDeviceHandle, [&] { api->close(foreign); });
  EXPECT_EQ(keeper.log.size(), 1u);
  other->shutdown(other);
}

TEST_F(ValidationTest, HandlesOfNobodyAreRefused) {
  open();
  auto* s = stream();
  refused(rule::kUnknownHandle,
          [&](bp_error* e) { return api->stream_wait(device, reinterpret_cast<bp_stream*>(&puppet), 0, e); });
  refused(rule::kUnknownHandle,
          [&](bp_error* e) { return api->event_wait(device, reinterpret_cast<bp_event*>(s), 0, e); });
  logged(rule::kUnknownHandle, [&] { api->plan_destroy(device, reinterpret_cast<bp_plan*>(&puppet)); });
}

TEST_F(ValidationTest, DestroyedHandlesAreRefused) {
  open();
  bp_event* e1 = event();
  bp_buffer* b1 = buffer();
  bp_stream* s1 = stream();
  Addition work(b1, b1);
  work.operands[2].offset = 512;
  bp_plan* p1 = plan(work);
  api->event_destroy(device, e1);
  api->plan_destroy(device, p1);
  forget(events, e1);
  forget(plans, p1);
  refused(rule::kEndedHandle, [&](bp_error* e) { return api->event_wait(device, e1, 0, e); });
  refused(rule::kEndedHandle, [&](bp_error* e) { return api->plan_execute(device, s1, p1, &work.execution, e); });
  logged(rule::kEndedHandle, [&] { api->event_destroy(device, e1); });
  logged(rule::kEndedHandle, [&] { api->plan_destroy(device, p1); });
  api->buffer_destroy(device, b1);
  forget(buffers, b1);
  logged(rule::kEndedHandle, [&] { api->buffer_destroy(device, b1); });
  api->stream_destroy(device, s1);
  forget(streams, s1);
  logged(rule::kEndedHandle, [&] { api->stream_destroy(device, s1); });
}

TEST_F(ValidationTest, HandlesOfAnotherDeviceAreRefused) {
  open();
  bp_event* e1 = event();
  bp_device* second = nullptr;
  ASSERT_EQ(layer->device_open(layer, 0, nullptr, &second, &error), BP_OK);
  refused(rule::kOtherDevice, [&](bp_error* e) { return api->event_wait(second, e1, 0, e); });
  logged(rule::kOtherDevice, [&] { api->event_destroy(second, e1); });
  EXPECT_OK(api->event_wait(device, e1, 0, &error));
  api->close(second);
}

TEST_F(ValidationTest, AForkedChildIsRefused) {
  open();
  bp_stream* s = stream();
  const pid_t child = fork();
  if (child == 0) {
    const bool waited = api->stream_wait(device, s, 0, &error) == BP_INVALID_ARGUMENT &&
                        std::string(error.message).find("[BP-VAL-006]") != std::string::npos;
    uint32_t count = 0;
    const bool counted = layer->device_count(layer, &count, &error) == BP_INVALID_ARGUMENT;
    api->stream_destroy(device, s);
    layer->shutdown(layer);
    _exit(waited && counted && puppet.calls.count("stream_destroy") == 0 && !puppet.ended ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  rules_seen.insert(rule::kForkedChild.id);
  EXPECT_OK(api->stream_wait(device, s, 0, &error));
}

TEST_F(ValidationTest, ADeviceClosesLast) {
  open();
  buffer();
  logged(rule::kCloseLast, [&] { api->close(device); });
  logged(rule::kShutdownLast, [&] { layer->shutdown(layer); });
}

TEST_F(ValidationTest, WhatIsBusyIsNotDestroyed) {
  open();
  bp_stream* s = stream();
  bp_event* ev = event();
  bp_buffer* b = buffer();
  Addition work(b, b);
  work.operands[2].offset = 512;
  bp_plan* p = plan(work);
  puppet.next["event_record"].act = [&] {
    logged(rule::kCallRunning, [&] { api->event_destroy(device, ev); });
    logged(rule::kCallRunning, [&] { api->stream_destroy(device, s); });
    logged(rule::kCallRunning, [&] { api->close(device); });
  };
  EXPECT_OK(api->event_record(device, ev, s, &error));
  puppet.next["plan_execute"].act = [&] {
    logged(rule::kCallRunning, [&] { api->plan_destroy(device, p); });
    logged(rule::kBufferPending, [&] { api->buffer_destroy(device, b); });
  };
  EXPECT_OK(api->plan_execute(device, s, p, &work.execution, &error));
}

TEST_F(ValidationTest, ABufferIsDestroyedBehindAWait) {
  open();
  bp_stream* s = stream();
  bp_buffer* b = buffer();
  EXPECT_OK(api->copy(device, s, b, 0, b, 512, 256, &error));
  logged(rule::kBufferPending, [&] { api->buffer_destroy(device, b); });
  puppet.fail("stream_wait", BP_TIMEOUT);
  EXPECT_EQ(api->stream_wait(device, s, 0, &error), BP_TIMEOUT);
  logged(rule::kBufferPending, [&] { api->buffer_destroy(device, b); });
  EXPECT_OK(api->stream_wait(device, s, BP_WAIT_FOREVER, &error));
  api->buffer_destroy(device, b);
  forget(buffers, b);
}

TEST_F(ValidationTest, AWaitCoversWhatItsEventsCover) {
  open();
  bp_stream* first = stream();
  bp_stream* second = stream();
  bp_stream* third = stream();
  bp_event* between = event();
  bp_event* last = event();
  bp_buffer* b = buffer();
  EXPECT_OK(api->copy(device, first, b, 0, b, 512, 256, &error));
  EXPECT_OK(api->event_record(device, between, first, &error));
  EXPECT_OK(api->stream_wait_event(device, second, between, &error));
  EXPECT_OK(api->event_record(device, last, second, &error));
  // `last` does not cover work that is enqueued on `first` after `between` was recorded.
  bp_buffer* later = buffer();
  EXPECT_OK(api->copy(device, first, later, 0, later, 512, 256, &error));
  EXPECT_OK(api->stream_wait(device, third, BP_WAIT_FOREVER, &error));
  logged(rule::kBufferPending, [&] { api->buffer_destroy(device, b); });
  EXPECT_OK(api->event_wait(device, last, BP_WAIT_FOREVER, &error));
  api->buffer_destroy(device, b);
  forget(buffers, b);
  logged(rule::kBufferPending, [&] { api->buffer_destroy(device, later); });
}

TEST_F(ValidationTest, NothingIsPendingOnASynchronousOrALostDevice) {
  open(BP_CAP_SYNCHRONOUS);
  bp_stream* s = stream();
  bp_buffer* b = buffer();
  EXPECT_OK(api->copy(device, s, b, 0, b, 512, 256, &error));
  api->buffer_destroy(device, b);
  forget(buffers, b);
  TearDown();

  layer = nullptr;
  streams.clear();
  open();
  s = stream();
  b = buffer();
  EXPECT_OK(api->copy(device, s, b, 0, b, 512, 256, &error));
  puppet.fail("event_create", BP_DEVICE_LOST);
  bp_event* none = nullptr;
  EXPECT_EQ(api->event_create(device, 0, &none, &error), BP_DEVICE_LOST);
  api->buffer_destroy(device, b);
  forget(buffers, b);
}

TEST_F(ValidationTest, AStreamIsDestroyedIdleOrFailed) {
  open();
  bp_stream* s = stream();
  bp_stream* broken = stream();
  bp_event* ev = event();
  EXPECT_OK(api->event_record(device, ev, s, &error));
  logged(rule::kStreamPending, [&] { api->stream_destroy(device, s); });
  EXPECT_OK(api->event_wait(device, ev, BP_WAIT_FOREVER, &error));
  api->stream_destroy(device, s);
  forget(streams, s);

  EXPECT_OK(api->event_record(device, ev, broken, &error));
  puppet.fail("event_record", BP_EXECUTION_FAILED);
  EXPECT_EQ(api->event_record(device, ev, broken, &error), BP_EXECUTION_FAILED);
  api->stream_destroy(device, broken);
  forget(streams, broken);
}

TEST_F(ValidationTest, AStreamTakesOneCallAtATime) {
  open();
  bp_stream* s = stream();
  bp_stream* other = stream();
  bp_event* ev = event();
  puppet.next["stream_wait"].act = [&] {
    std::thread([&] {
      refused(rule::kStreamOneCall, [&](bp_error* e) { return api->event_record(device, ev, s, e); });
      EXPECT_OK(api->event_record(device, ev, other, &error));
    }).join();
  };
  EXPECT_OK(api->stream_wait(device, s, BP_WAIT_FOREVER, &error));
  EXPECT_OK(api->event_record(device, ev, s, &error));
}

TEST_F(ValidationTest, AnEventIsRecordedOnceAtATime) {
  open();
  bp_stream* s = stream();
  bp_stream* other = stream();
  bp_event* ev = event();
  puppet.next["event_record"].act = [&] {
    std::thread([&] {
      refused(rule::kEventOneRecord, [&](bp_error* e) { return api->event_record(device, ev, other, e); });
      EXPECT_OK(api->event_wait(device, ev, 0, &error));
      EXPECT_OK(api->stream_wait_event(device, other, ev, &error));
    }).join();
  };
  EXPECT_OK(api->event_record(device, ev, s, &error));
  EXPECT_OK(api->event_record(device, ev, other, &error));
}

TEST_F(ValidationTest, InputStructsHaveASizeAndNoUnknownTail) {
  open();
  bp_stream* made = nullptr;
  struct {
    bp_stream_desc desc;
    uint64_t tail;
  } longer = {{sizeof(longer), 0}, 0};
  bp_stream_desc tiny = {4, 0};
  refused(rule::kInputStruct, [&](bp_error* e) { return api->stream_create(device, &tiny, &made, e); });
  EXPECT_OK(api->stream_create(device, &longer.desc, &made, &error));
  streams.push_back(made);
  longer.tail = 1;
  refused(rule::kInputStruct, [&](bp_error* e) { return api->stream_create(device, &longer.desc, &made, e); });
  bp_device_desc desc = {8, 0, nullptr};
  bp_device* none = nullptr;
  refused(rule::kInputStruct, [&](bp_error* e) { return layer->device_open(layer, 0, &desc, &none, e); });
}

TEST_F(ValidationTest, OutputStructsHaveASize) {
  open();
  bp_memory_info info = {};
  info.struct_size = BP_MEMORY_INFO_MIN_SIZE - 1;
  refused(rule::kOutputStruct, [&](bp_error* e) { return api->memory_info(device, BP_MEMORY_DEVICE, &info, e); });
  info.struct_size = sizeof(info);
  EXPECT_OK(api->memory_info(device, BP_MEMORY_DEVICE, &info, &error));
  bp_device_info about = {};
  refused(rule::kOutputStruct, [&](bp_error* e) { return layer->device_info(layer, 0, &about, e); });
  Addition work(buffer(), buffer());
  bp_plan_info facts = {};
  refused(rule::kOutputStruct, [&](bp_error* e) { return api->plan_create(device, &work.desc, nullptr, &facts, e); });
}

TEST_F(ValidationTest, UnknownFlagsAndEnumeratorsAreRefused) {
  open();
  bp_event* made = nullptr;
  refused(rule::kUnknownValue, [&](bp_error* e) { return api->event_create(device, 2, &made, e); });
  bp_memory_info info = {};
  info.struct_size = sizeof(info);
  refused(rule::kUnknownValue, [&](bp_error* e) { return api->memory_info(device, BP_MEMORY_KINDS, &info, e); });
  bp_buffer_desc desc = {sizeof(desc), BP_MEMORY_KINDS, 1, 0};
  bp_buffer* none = nullptr;
  refused(rule::kUnknownValue, [&](bp_error* e) { return api->buffer_create(device, &desc, &none, e); });
  bp_device_desc device_desc = {sizeof(device_desc), 1, nullptr};
  bp_device* no_device = nullptr;
  refused(rule::kUnknownValue, [&](bp_error* e) { return layer->device_open(layer, 0, &device_desc, &no_device, e); });
}

TEST_F(ValidationTest, BuffersHaveASizeAndAnAlignment) {
  open();
  bp_buffer* made = nullptr;
  bp_buffer_desc desc = {sizeof(desc), BP_MEMORY_DEVICE, 0, 0};
  refused(rule::kBufferSize, [&](bp_error* e) { return api->buffer_create(device, &desc, &made, e); });
  desc.bytes = 1;
  desc.alignment = 24;
  refused(rule::kBufferSize, [&](bp_error* e) { return api->buffer_create(device, &desc, &made, e); });
  buffer(BP_MEMORY_DEVICE, 1, 512);
}

TEST_F(ValidationTest, ImportedBuffersAreKnown) {
  open();
  const auto* table = static_cast<const bp_import_api*>(layer->get_interface(layer, device, BP_INTERFACE_IMPORT, 1));
  ASSERT_NE(table, nullptr);
  alignas(256) static char memory[512];
  uint32_t kind = 99;
  bp_buffer* made = nullptr;
  const auto at = reinterpret_cast<uint64_t>(static_cast<char*>(memory));
  const bp_import_desc desc = {sizeof(desc), BP_IMPORT_HOST, at, 512}, nothing = {sizeof(desc), BP_IMPORT_HOST, at, 0},
                       nowhere = {sizeof(desc), BP_IMPORT_HOST, 0, 8}, unknown = {sizeof(desc), 2, at, 512},
                       short_one = {16, BP_IMPORT_HOST, at, 512};
  refused(rule::kUnknownValue, [&](bp_error* e) { return table->import_memory(device, &unknown, &kind, &made, e); });
  refused(rule::kInputStruct, [&](bp_error* e) { return table->import_memory(device, &short_one, &kind, &made, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return table->import_memory(device, nullptr, &kind, &made, e); });
  refused(rule::kImportMemory, [&](bp_error* e) { return table->import_memory(device, &nowhere, &kind, &made, e); });
  refused(rule::kImportMemory, [&](bp_error* e) { return table->import_memory(device, &nothing, &kind, &made, e); });
  EXPECT_OK(table->import_memory(device, &desc, &kind, &made, &error));
  EXPECT_EQ(kind, BP_MEMORY_SHARED);
  buffers.push_back(made);
  bp_stream* s = stream();
  EXPECT_OK(api->copy(device, s, made, 0, made, 256, 256, &error));
  refused(rule::kCopyBounds, [&](bp_error* e) { return api->copy(device, s, made, 0, made, 256, 257, e); });
  puppet.import_kind = BP_MEMORY_DEVICE;
  blamed(rule::kImportKind, [&](bp_error* e) { return table->import_memory(device, &desc, &kind, &made, e); });
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(layer->get_interface(layer, device, BP_INTERFACE_IMPORT, 2), nullptr);
}

TEST_F(ValidationTest, NativeHandlesAreChecked) {
  open();
  const auto* table = static_cast<const bp_native_api*>(layer->get_interface(layer, device, BP_INTERFACE_NATIVE, 1));
  ASSERT_NE(table, nullptr);
  bp_native_handle out = {};
  bp_buffer* const b = buffer(BP_MEMORY_DEVICE, 256);
  bp_stream* const s = stream();
  const auto get_buffer = [&](bp_error* e) { return table->buffer_native(device, b, &out, e); };
  const auto get_stream = [&](bp_error* e) { return table->stream_native(device, s, &out, e); };
  refused(rule::kOutputStruct, get_stream);
  out.struct_size = sizeof(out);
  EXPECT_OK(get_stream(&error));
  EXPECT_EQ(out.value, 7u);
  blamed(rule::kNativeResult, get_buffer);  // the handle states 0 bytes
  puppet.handle.bytes = 256;
  EXPECT_OK(get_buffer(&error));
  refused(rule::kNullPointer, [&](bp_error* e) { return table->buffer_native(device, nullptr, &out, e); });
  refused(rule::kUnknownHandle,
          [&](bp_error* e) { return table->event_native(device, reinterpret_cast<bp_event*>(b), &out, e); });
  EXPECT_FAILS(table->device_native(device, 0, &out, &error), BP_UNSUPPORTED, "device_native");

  const bp_native_handle handle = puppet.handle;
  bp_stream* stream_made = nullptr;
  bp_buffer* made = nullptr;
  uint32_t kind = 99;
  const auto wrap = [&](auto change) {
    return [&, change](bp_error* e) {
      bp_native_handle changed = handle;
      change(changed);
      return table->buffer_wrap(device, &changed, &kind, &made, e);
    };
  };
  refused(rule::kUnknownValue, wrap([](bp_native_handle& h) { h.flags = 2; }));
  refused(rule::kNativeHandle, wrap([](bp_native_handle& h) { h.bytes = 0; }));
  refused(rule::kNativeHandle, wrap([](bp_native_handle& h) { h.type[0] = '\0'; }));
  refused(rule::kNativeHandle, wrap([](bp_native_handle& h) { std::memset(h.type, 'a', sizeof(h.type)); }));
  refused(rule::kInputStruct, wrap([](bp_native_handle& h) { h.struct_size = 8; }));
  refused(rule::kNullPointer, [&](bp_error* e) { return table->stream_wrap(device, nullptr, &stream_made, e); });
  EXPECT_OK(wrap([](bp_native_handle&) {})(&error));
  buffers.push_back(made);
  EXPECT_EQ(kind, BP_MEMORY_DEVICE);
  EXPECT_OK(table->stream_wrap(device, &handle, &stream_made, &error));
  EXPECT_OK(api->copy(device, stream_made, b, 0, b, 128, 64, &error));
  EXPECT_OK(api->stream_wait(device, stream_made, BP_WAIT_FOREVER, &error));
  api->stream_destroy(device, stream_made);
  puppet.wrapped_kind = BP_MEMORY_KINDS;
  blamed(rule::kNativeKind, wrap([](bp_native_handle&) {}));
  EXPECT_EQ(made, nullptr);
}

TEST_F(ValidationTest, CopiesKeepInsideAndApart) {
  open();
  bp_stream* s = stream();
  bp_buffer* b = buffer(BP_MEMORY_DEVICE, 1000);
  bp_buffer* h1 = buffer(BP_MEMORY_HOST);
  bp_buffer* h2 = buffer(BP_MEMORY_HOST);
  const auto copy = [&](bp_buffer* dst, uint64_t to, bp_buffer* src, uint64_t from, uint64_t bytes) {
    return [=, this](bp_error* e) { return api->copy(device, s, dst, to, src, from, bytes, e); };
  };
  refused(rule::kCopyBounds, copy(h1, 0, b, 1, 1000));
  refused(rule::kCopyBounds, copy(b, 1001, h1, 0, 0));
  refused(rule::kCopyBounds, copy(b, UINT64_MAX, h1, 0, 2));
  refused(rule::kCopyOverlap, copy(b, 0, b, 99, 100));
  refused(rule::kCopyHost, copy(h1, 0, h2, 0, 1));
  EXPECT_OK(copy(b, 0, b, 100, 100)(&error));
  EXPECT_OK(copy(b, 0, b, 0, 0)(&error));
  EXPECT_OK(copy(h1, 0, b, 0, 1000)(&error));
  char bytes[8];
  refused(rule::kCopyBounds, [&](bp_error* e) { return api->copy_in(device, s, b, 993, bytes, 8, e); });
  refused(rule::kCopyPointer, [&](bp_error* e) { return api->copy_in(device, s, b, 0, nullptr, 8, e); });
  refused(rule::kCopyPointer, [&](bp_error* e) { return api->copy_out(device, s, nullptr, b, 0, 8, e); });
  EXPECT_OK(api->copy_in(device, s, b, 992, bytes, 8, &error));
  EXPECT_OK(api->copy_out(device, s, bytes, b, 0, 8, &error));
  EXPECT_OK(api->copy_out(device, s, nullptr, b, 0, 0, &error));
}

TEST_F(ValidationTest, ElapsedTimeIsOfTimedAndRecordedEvents) {
  open();
  bp_stream* s = stream();
  bp_event* begin = event(BP_EVENT_TIMING);
  bp_event* end = event(BP_EVENT_TIMING);
  bp_event* plain = event();
  int64_t ns = 0;
  EXPECT_OK(api->event_record(device, begin, s, &error));
  EXPECT_OK(api->event_record(device, plain, s, &error));
  refused(rule::kElapsedTiming, [&](bp_error* e) { return api->event_elapsed(device, begin, end, &ns, e); });
  refused(rule::kElapsedTiming, [&](bp_error* e) { return api->event_elapsed(device, begin, plain, &ns, e); });
  EXPECT_OK(api->event_record(device, end, s, &error));
  puppet.fail("event_elapsed", BP_NOT_READY);
  EXPECT_EQ(api->event_elapsed(device, begin, end, &ns, &error), BP_NOT_READY);
  EXPECT_OK(api->event_elapsed(device, begin, end, &ns, &error));
  EXPECT_EQ(ns, 1);
}

TEST(ValidationRules, AreDocumentedWordForWord) {
  std::ifstream file(REQUIREMENTS);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const layers::Rule& each : layers::all_rules()) {
    const std::string row = std::string("| ") + each.id + " | " + each.sentence + " |";
    EXPECT_NE(text.find(row), std::string::npos) << "docs/requirements.md lacks the row " << row;
  }
}

// Runs after all tests, and checks that each rule was broken at least once.
class EveryRule : public testing::Environment {
 public:
  void TearDown() override {
    if (testing::GTEST_FLAG(filter) != "*") return;
    for (const layers::Rule& each : layers::all_rules()) EXPECT_EQ(rules_seen.count(each.id), 1u) << each.id;
  }
};
const auto* const every_rule = testing::AddGlobalTestEnvironment(new EveryRule);

}  // namespace

}  // namespace backplane::core::test
