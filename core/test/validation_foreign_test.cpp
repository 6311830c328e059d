// SPDX-License-Identifier: Apache-2.0
// Tests the layer `validation` with callers and plugins that break the rules for peers, external
// memory and semaphores.
#include <fcntl.h>
#include <unistd.h>

#include "layer_fixture.hpp"

namespace backplane::core::test {

namespace {

namespace rule = layers::rule;

class ValidationForeignTest : public LayerTest {
 protected:
  template <class Table>
  const Table& table_of(const char* name) {
    return *static_cast<const Table*>(layer->get_interface(layer, device, name, 1));
  }
};

TEST_F(ValidationForeignTest, PeersAreChecked) {
  open();
  const auto& table = table_of<bp_peer_api>(BP_INTERFACE_PEER);
  bp_device* far = nullptr;
  ASSERT_OK(layer->device_open(layer, 0, nullptr, &far, &error));
  const bp_buffer_desc desc = {sizeof(desc), BP_MEMORY_DEVICE, 256, 0};
  bp_buffer* far_buffer = nullptr;
  bp_event* far_event = nullptr;
  ASSERT_OK(api->buffer_create(far, &desc, &far_buffer, &error));
  ASSERT_OK(api->event_create(far, 0, &far_event, &error));
  bp_buffer* const own = buffer(BP_MEMORY_DEVICE, 256);
  bp_stream* const s = stream();
  uint32_t uses = 0;
  uint32_t kind = 0;
  bp_buffer* made = nullptr;
  const auto copy = [&](bp_device* dst_device, bp_device* src_device, bp_buffer* src, uint64_t bytes) {
    return [&, dst_device, src_device, src, bytes](bp_error* e) {
      return table.peer_copy(device, s, dst_device, own, 0, src_device, src, 0, bytes, e);
    };
  };
  const auto map = [&](bp_error* e) { return table.peer_map(device, far, far_buffer, &kind, &made, e); };
  const auto wait = [&](bp_error* e) { return table.peer_wait_event(device, s, far, far_event, e); };
  refused(rule::kPeerDevice, [&](bp_error* e) { return table.peer_query(device, device, &uses, e); });
  refused(rule::kPeerDevice, [&](bp_error* e) { return table.peer_enable(device, device, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return table.peer_query(device, nullptr, &uses, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return table.peer_query(device, far, nullptr, e); });
  EXPECT_OK(table.peer_query(device, far, &uses, &error));
  EXPECT_EQ(uses, puppet.peer_uses);
  refused(rule::kPeerEnabled, copy(device, far, far_buffer, 256));
  refused(rule::kPeerEnabled, map);
  refused(rule::kPeerEnabled, wait);
  EXPECT_OK(table.peer_enable(device, far, &error));
  refused(rule::kPeerDevice, copy(device, device, own, 256));
  refused(rule::kPeerDevice, copy(far, far, far_buffer, 256));
  refused(rule::kOtherDevice, copy(device, far, own, 256));
  refused(rule::kCopyBounds, copy(device, far, far_buffer, 257));
  EXPECT_OK(copy(device, far, far_buffer, 256)(&error));
  EXPECT_OK(wait(&error));
  EXPECT_OK(map(&error));
  EXPECT_EQ(kind, BP_MEMORY_DEVICE);
  EXPECT_OK(api->copy(device, s, made, 0, own, 0, 256, &error));  // a mapped buffer belongs to the device
  EXPECT_OK(api->stream_wait(device, s, BP_WAIT_FOREVER, &error));
  api->buffer_destroy(device, made);
  puppet.wrapped_kind = BP_MEMORY_KINDS;
  blamed(rule::kForeignKind, map);
  EXPECT_EQ(made, nullptr);
  // A device that was closed and opened again is another peer.
  api->buffer_destroy(far, far_buffer);
  api->event_destroy(far, far_event);
  api->close(far);
  ASSERT_OK(layer->device_open(layer, 0, nullptr, &far, &error));
  ASSERT_OK(api->event_create(far, 0, &far_event, &error));
  refused(rule::kPeerEnabled, wait);
  api->event_destroy(far, far_event);
  api->close(far);
}

TEST_F(ValidationForeignTest, ExternalHandlesAreChecked) {
  open();
  const auto& table = table_of<bp_external_api>(BP_INTERFACE_EXTERNAL);
  const bp_buffer_desc desc = {sizeof(desc), BP_MEMORY_DEVICE, 256, 0};
  bp_buffer* made = nullptr;
  uint32_t kind = 0;
  const auto create = [&](const char* type) {
    return [&, type](bp_error* e) { return table.buffer_create_external(device, &desc, type, &made, e); };
  };
  refused(rule::kExternalType, create(nullptr));
  refused(rule::kExternalType, create(""));
  refused(rule::kExternalType, create("a.name.of.32.characters.is.long."));
  EXPECT_OK(create("puppet.file")(&error));
  bp_buffer* const own = made;
  bp_external_handle out = {};
  const auto take = [&](bp_error* e) { return table.buffer_export(device, own, "puppet.file", &out, e); };
  refused(rule::kOutputStruct, take);
  out.struct_size = sizeof(out);
  puppet.exported.fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int fd = static_cast<int>(puppet.exported.fd);
  blamed(rule::kExternalResult, take);  // the handle states 0 bytes
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "the caller receives no handle, so the layer closes the descriptor";
  puppet.exported.fd = -1;
  puppet.exported.bytes = 256;
  EXPECT_OK(take(&error));
  puppet.exported.type[0] = 'q';
  blamed(rule::kExternalResult, take);

  const auto import = [&](auto change) {
    return [&, change](bp_error* e) {
      bp_external_handle handle = {sizeof(handle), 0, 3, 0, 256, 256, {}, "puppet.file", {}};
      change(handle);
      return table.buffer_import(device, &handle, &kind, &made, e);
    };
  };
  refused(rule::kExternalHandle, import([](bp_external_handle& h) { h.bytes = 0; }));
  refused(rule::kExternalHandle, import([](bp_external_handle& h) { h.type[0] = '\0'; }));
  refused(rule::kExternalHandle, import([](bp_external_handle& h) { std::memset(h.type, 'a', sizeof(h.type)); }));
  refused(rule::kUnknownValue, import([](bp_external_handle& h) { h.reserved = 1; }));
  refused(rule::kInputStruct, import([](bp_external_handle& h) { h.struct_size = 8; }));
  EXPECT_OK(import([](bp_external_handle&) {})(&error));
  api->buffer_destroy(device, made);
  puppet.wrapped_kind = BP_MEMORY_KINDS;
  blamed(rule::kForeignKind, import([](bp_external_handle&) {}));
  api->buffer_destroy(device, own);
}

TEST_F(ValidationForeignTest, SemaphoresAreChecked) {
  open();
  const auto& table = table_of<bp_external_api>(BP_INTERFACE_EXTERNAL);
  bp_stream* const s = stream();
  bp_semaphore* semaphore = nullptr;
  refused(rule::kExternalType, [&](bp_error* e) { return table.semaphore_create(device, nullptr, 0, &semaphore, e); });
  EXPECT_OK(table.semaphore_create(device, "puppet.file", 0, &semaphore, &error));
  refused(rule::kNullPointer, [&](bp_error* e) { return table.semaphore_wait(device, s, nullptr, 1, e); });
  refused(rule::kNullPointer, [&](bp_error* e) { return table.semaphore_wait(device, nullptr, semaphore, 1, e); });
  EXPECT_OK(table.semaphore_signal(device, nullptr, semaphore, 1, &error));  // the host raises the semaphore
  EXPECT_OK(table.semaphore_signal(device, s, semaphore, 2, &error));
  logged(rule::kSemaphorePending, [&] { table.semaphore_destroy(device, semaphore); });
  EXPECT_OK(api->stream_wait(device, s, BP_WAIT_FOREVER, &error));
  logged(rule::kCloseLast, [&] { api->close(device); });
  table.semaphore_destroy(device, semaphore);
  logged(rule::kEndedHandle, [&] { table.semaphore_destroy(device, semaphore); });
}

}  // namespace

}  // namespace backplane::core::test
