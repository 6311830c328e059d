// SPDX-License-Identifier: Apache-2.0
// Tests DLPack with a consumer and a producer inside the test.
#include "api/dlpack.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "memory_fixture.hpp"

namespace backplane::core::test {
namespace {

class DlpackTest : public MemoryTest {
 protected:
  static FakeOptions native() {
    FakeOptions options;
    options.capabilities |= BP_CAP_PROCESS_ADDRESSES;
    options.dlpack_type = 2;
    options.dlpack_id = 3;
    return options;
  }
  static bph_tensor tensor_of(bph_buffer* buffer, std::vector<int64_t> shape, uint32_t dtype = BP_F32,
                              uint64_t offset = 0) {
    bph_tensor tensor = {};
    tensor.buffer = buffer;
    tensor.dtype = static_cast<uint16_t>(dtype);
    tensor.rank = static_cast<uint8_t>(shape.size());
    tensor.offset = offset;
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      tensor.shape[d] = shape[d];
      tensor.strides[d] = stride;
      stride *= shape[d];
    }
    return tensor;
  }
  DLManagedTensorVersioned* give(const bph_tensor& tensor, bph_stream* producer = nullptr,
                                 bph_stream* consumer = nullptr) {
    DLManagedTensorVersioned* managed = nullptr;
    EXPECT_OK(bph_dlpack_export(&tensor, producer, consumer, &managed, &error));
    return managed;
  }
  void expect_not_given(bp_status status, const char* text, const bph_tensor& tensor) {
    auto* managed = reinterpret_cast<DLManagedTensorVersioned*>(this);
    EXPECT_FAILS(bph_dlpack_export(&tensor, nullptr, nullptr, &managed, &error), status, text);
    EXPECT_EQ(managed, nullptr);
  }

  // A tensor of another library: 4 x 6 floats.
  struct Producer {
    Producer() {
      std::iota(std::begin(data), std::end(data), 0.0f);
      managed.version = {1, 3};
      managed.manager_ctx = this;
      managed.deleter = [](DLManagedTensorVersioned* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; };
      managed.dl_tensor = {data, {dlpack::kCpu, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
    }
    alignas(64) float data[24];
    int64_t shape[9] = {4, 6}, strides[9] = {};
    DLManagedTensorVersioned managed = {};
    int deleted = 0;
  };
  bp_status take(Producer& producer, bph_tensor* out, bp_error* error, bph_stream* consumer = nullptr) {
    return bph_dlpack_import(device, &producer.managed, consumer, out, error);
  }
};

TEST_F(DlpackTest, AViewIsHandedOver) {
  open(native());
  bph_stream* one = stream();
  bph_buffer* buffer = create(4096, one);
  const bph_buffer_info about = info(buffer);
  bph_tensor tensor = tensor_of(buffer, {3, 5}, BP_BF16, 64);
  tensor.strides[0] = -7;
  tensor.offset = 512;
  DLManagedTensorVersioned* managed = give(tensor);
  ASSERT_NE(managed, nullptr);
  EXPECT_EQ(managed->version.major, 1u);
  EXPECT_EQ(managed->flags, 0u);
  const DLTensor& view = managed->dl_tensor;
  EXPECT_EQ(reinterpret_cast<uint64_t>(view.data) + view.byte_offset, about.address + 512);
  EXPECT_EQ(view.device.device_type, 2);
  EXPECT_EQ(view.device.device_id, 3);
  EXPECT_EQ(view.ndim, 2);
  EXPECT_EQ(view.dtype.code, 4);
  EXPECT_EQ(view.dtype.bits, 16);
  EXPECT_EQ(view.dtype.lanes, 1);
  EXPECT_EQ(view.shape[0], 3);
  EXPECT_EQ(view.shape[1], 5);
  EXPECT_EQ(view.strides[0], -7);
  EXPECT_EQ(view.strides[1], 1);
  managed->deleter(managed);
}

TEST_F(DlpackTest, EveryDtypeHasItsCode) {
  open(native());
  bph_buffer* buffer = create(64);
  const std::tuple<uint32_t, int, int> codes[] = {{BP_I8, 0, 8},    {BP_I32, 0, 32}, {BP_I64, 0, 64}, {BP_U8, 1, 8},
                                                  {BP_U32, 1, 32},  {BP_F16, 2, 16}, {BP_F32, 2, 32}, {BP_F64, 2, 64},
                                                  {BP_BF16, 4, 16}, {BP_BOOL, 6, 8}};
  for (const auto& [dtype, code, bits] : codes) {
    DLManagedTensorVersioned* managed = give(tensor_of(buffer, {2}, dtype));
    ASSERT_NE(managed, nullptr);
    EXPECT_EQ(managed->dl_tensor.dtype.code, code);
    EXPECT_EQ(managed->dl_tensor.dtype.bits, bits);
    managed->deleter(managed);
  }
  for (uint32_t dtype = 0; dtype < 70; ++dtype) {
    const bool known =
        std::any_of(std::begin(codes), std::end(codes), [&](const auto& each) { return std::get<0>(each) == dtype; });
    if (!known) expect_not_given(BP_UNSUPPORTED, "DLPack has no dtype for", tensor_of(buffer, {2}, dtype));
  }
}

TEST_F(DlpackTest, TheMemoryLivesUntilTheDeleterRan) {
  open(native());
  bph_stream* one = stream();
  bph_buffer* buffer = create(512, one);
  const uint64_t address = info(buffer).address;
  DLManagedTensorVersioned* first = give(tensor_of(buffer, {4}));
  DLManagedTensorVersioned* second = give(tensor_of(buffer, {4}));
  bph_buffer_release(buffer);
  bph_buffer_release(buffer);
  EXPECT_FAILS(bph_buffer_record(buffer, one, &error), BP_INVALID_ARGUMENT, "is not a live buffer");
  bph_buffer* other = create(512, one);
  EXPECT_NE(info(other).address, address);
  first->deleter(first);
  bph_buffer* another = create(512, one);
  EXPECT_NE(info(another).address, address);
  std::thread([&] { second->deleter(second); }).join();
  bph_buffer* again = create(512, one);
  EXPECT_EQ(info(again).address, address);
  // Calls the deleter before the release of the buffer.
  DLManagedTensorVersioned* third = give(tensor_of(again, {4}));
  third->deleter(third);
  use(again, one);
}

TEST_F(DlpackTest, AnExportKeepsTheDeviceOpen) {
  open(native());
  bph_buffer* buffer = create(512);
  DLManagedTensorVersioned* managed = give(tensor_of(buffer, {4}));
  bph_buffer_release(buffer);
  bph_device_release(device);
  EXPECT_FALSE(fake->is_closed());
  managed->deleter(managed);
  EXPECT_TRUE(fake->is_closed());
  device = nullptr;
}

TEST_F(DlpackTest, TheConsumerComesAfterTheProducer) {
  open(native());
  bph_stream* one = stream();
  bph_stream* two = stream(BPH_STREAM_SHARED);
  bph_buffer* buffer = create(1024, one);
  bph_buffer* copied = create(1024, two);
  std::string text(1024, 'x');
  ASSERT_OK(bph_copy_in(one, copied, 0, std::string(1024, '-').data(), 1024, 0, &error));
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  fake->hold();
  ASSERT_OK(bph_copy_in(one, buffer, 0, text.data(), 1024, 0, &error));
  const uint64_t waits = fake->calls("stream_wait") + fake->calls("event_wait");
  DLManagedTensorVersioned* managed = give(tensor_of(buffer, {4}), one, two);
  EXPECT_EQ(fake->calls("stream_wait") + fake->calls("event_wait"), waits) << "by an event, not by the host";
  ASSERT_OK(bph_copy(two, copied, 0, buffer, 0, 1024, 0, &error));
  std::string got(1024, 0);
  ASSERT_OK(bph_copy_out(two, got.data(), copied, 0, 1024, 0, &error));
  EXPECT_EQ(got, text);
  managed->deleter(managed);
  // If the consumer is null or a stream of another device, the export waits for the producer.
  ASSERT_OK(bph_copy_in(one, buffer, 0, std::string(1024, 'y').data(), 1024, 0, &error));
  managed = give(tensor_of(buffer, {4}), one);
  EXPECT_FALSE(fake->pending(plugin_stream(one)));
  managed->deleter(managed);
  OpenDevice other;
  bph_stream* far = other.stream();
  use(buffer, one);
  managed = give(tensor_of(buffer, {4}), one, far);
  EXPECT_FALSE(fake->pending(plugin_stream(one)));
  managed->deleter(managed);
  const bph_tensor again = tensor_of(buffer, {4});
  EXPECT_FAILS(bph_dlpack_export(&again, far, nullptr, &managed, &error), BP_INVALID_ARGUMENT,
               "the producer is a stream of");
}

TEST_F(DlpackTest, WhatCannotBeHandedOverIsRefused) {
  open(native());
  bph_buffer* buffer = create(64);
  bph_tensor immediate = tensor_of(nullptr, {4});
  immediate.flags = BPH_TENSOR_IMMEDIATE;
  expect_not_given(BP_UNSUPPORTED, "is an immediate", immediate);
  bph_tensor flagged = tensor_of(buffer, {4});
  flagged.flags = 128;
  expect_not_given(BP_UNSUPPORTED, "flags 0x80", flagged);
  expect_not_given(BP_INVALID_ARGUMENT, "touches bytes 0 to 68", tensor_of(buffer, {17}));
  expect_not_given(BP_INVALID_ARGUMENT, "touches bytes 0 to 4", tensor_of(buffer, {1}, BP_F32, UINT64_MAX));
  expect_not_given(BP_INVALID_ARGUMENT, "negative extent", tensor_of(buffer, {-1}));
  expect_not_given(BP_INVALID_ARGUMENT, "further than 63 bits", tensor_of(buffer, {INT64_MAX, 1}));
  bph_tensor deep = tensor_of(buffer, {1});
  deep.rank = 9;
  expect_not_given(BP_INVALID_ARGUMENT, "rank 9", deep);
  expect_not_given(BP_INVALID_ARGUMENT, "the buffer is null", tensor_of(nullptr, {4}));
  DLManagedTensorVersioned* managed = nullptr;
  EXPECT_FAILS(bph_dlpack_export(nullptr, nullptr, nullptr, &managed, &error), BP_INVALID_ARGUMENT,
               "the tensor is null");
  const bph_tensor good = tensor_of(buffer, {4});
  EXPECT_FAILS(bph_dlpack_export(&good, nullptr, nullptr, nullptr, &error), BP_INVALID_ARGUMENT, "out is null");
  bph_buffer_release(buffer);
  EXPECT_FAILS(bph_dlpack_export(&good, nullptr, nullptr, &managed, &error), BP_INVALID_ARGUMENT,
               "is not a live buffer");
}

TEST_F(DlpackTest, MemoryWithoutAnAddressIsRefused) {
  FakeOptions options = native();
  options.addresses = false;
  open(options);
  bph_buffer* buffer = create(64);
  expect_not_given(BP_UNSUPPORTED, "has no address that others can use", tensor_of(buffer, {4}));
  DLManagedTensorVersioned* empty = give(tensor_of(buffer, {0, 4}));
  ASSERT_NE(empty, nullptr);
  EXPECT_EQ(empty->dl_tensor.data, nullptr);
  empty->deleter(empty);
  bph_buffer* host = create(64, nullptr, BP_MEMORY_HOST);
  DLManagedTensorVersioned* mapped = give(tensor_of(host, {4}));
  EXPECT_EQ(mapped->dl_tensor.data, reinterpret_cast<void*>(info(host).address));
  mapped->deleter(mapped);
  close();
  options = native();
  options.dlpack_type = 0;
  open(options);
  buffer = create(64);
  expect_not_given(BP_UNSUPPORTED, "names no DLPack device", tensor_of(buffer, {4}));
}

TEST_F(DlpackTest, AnImportIsOneMemory) {
  open(native());
  bph_stream* one = stream();
  Producer producer;
  bph_tensor tensor = {};
  ASSERT_OK(take(producer, &tensor, &error, one));
  EXPECT_EQ(tensor.dtype, BP_F32);
  EXPECT_EQ(tensor.rank, 2);
  EXPECT_EQ(tensor.shape[1], 6);
  EXPECT_EQ(tensor.strides[0], 6);
  EXPECT_EQ(tensor.strides[1], 1);
  EXPECT_EQ(tensor.offset, 0u);
  EXPECT_EQ(info(tensor.buffer).bytes, sizeof(producer.data));
  EXPECT_EQ(info(tensor.buffer).address, reinterpret_cast<uint64_t>(producer.data));
  bph_buffer* target = create(96, one);
  ASSERT_OK(bph_copy(one, target, 0, tensor.buffer, 0, 96, 0, &error));
  float got[24] = {};
  ASSERT_OK(bph_copy_out(one, got, target, 0, 96, 0, &error));
  EXPECT_TRUE(std::equal(std::begin(got), std::end(got), producer.data));
  fake->hold();
  ASSERT_OK(bph_copy(one, target, 0, tensor.buffer, 0, 96, 0, &error));
  bph_buffer_release(tensor.buffer);
  EXPECT_EQ(producer.deleted, 0) << "work on it is pending";
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(producer.deleted, 1);
}

TEST_F(DlpackTest, StridesAndOffsetsComeAlong) {
  open(native());
  Producer producer;
  producer.strides[0] = -6;
  producer.strides[1] = 2;
  producer.shape[1] = 3;
  producer.managed.dl_tensor.strides = producer.strides;
  producer.managed.dl_tensor.byte_offset = 72;
  bph_tensor tensor = {};
  ASSERT_OK(take(producer, &tensor, &error));
  EXPECT_EQ(tensor.strides[0], -6);
  EXPECT_EQ(tensor.offset, 72u) << "of element 0, in the span that the view touches";
  EXPECT_EQ(info(tensor.buffer).address, reinterpret_cast<uint64_t>(producer.data));
  EXPECT_EQ(info(tensor.buffer).bytes, 72u + 20u);
  bph_buffer_release(tensor.buffer);
  EXPECT_EQ(producer.deleted, 1);
  Producer nothing;
  nothing.shape[0] = 0;
  nothing.managed.dl_tensor.data = nullptr;
  nothing.managed.deleter = nullptr;
  ASSERT_OK(take(nothing, &tensor, &error));
  const Owned<bph_buffer> no_bytes(tensor.buffer);
  EXPECT_EQ(info(no_bytes).bytes, 0u);
  Producer scalar;
  scalar.managed.dl_tensor.ndim = 0;
  scalar.managed.dl_tensor.shape = nullptr;
  ASSERT_OK(take(scalar, &tensor, &error));
  const Owned<bph_buffer> four_bytes(tensor.buffer);
  EXPECT_EQ(tensor.rank, 0);
  EXPECT_EQ(info(four_bytes).bytes, 4u);
}

TEST_F(DlpackTest, WhatIsExportedIsImported) {
  open(native());
  bph_buffer* buffer = create(64);
  DLManagedTensorVersioned* managed = give(tensor_of(buffer, {4}, BP_I64, 16));
  EXPECT_EQ(managed->dl_tensor.device.device_type, 2);
  bph_tensor tensor = {};
  ASSERT_OK(bph_dlpack_import(device, managed, nullptr, &tensor, &error));
  EXPECT_EQ(tensor.dtype, BP_I64);
  EXPECT_EQ(info(tensor.buffer).kind, BP_MEMORY_DEVICE);
  bph_buffer_release(buffer);
  bph_buffer_release(tensor.buffer);  // runs the deleter, which releases the first buffer
  trim();
  EXPECT_EQ(fake->buffers(), 0u);
}

TEST_F(DlpackTest, WhatCannotBeTakenIsLeftToTheCaller) {
  open(native());
  bph_tensor tensor = {};
  const auto refused = [&](bp_status status, const char* text, auto&& change) {
    Producer producer;
    change(producer);
    EXPECT_FAILS(take(producer, &tensor, &error), status, text);
    EXPECT_EQ(producer.deleted, 0) << text;
    EXPECT_EQ(tensor.buffer, nullptr);
  };
  refused(BP_UNSUPPORTED, "DLPack 2.0", [](Producer& p) { p.managed.version = {2, 0}; });
  refused(BP_UNSUPPORTED, "DLPack 0.8", [](Producer& p) { p.managed.version = {0, 8}; });
  refused(BP_UNSUPPORTED, "flags 0x9", [](Producer& p) { p.managed.flags = 8 | dlpack::kReadOnly; });
  refused(BP_UNSUPPORTED, "9 dimensions", [](Producer& p) { p.managed.dl_tensor.ndim = 9; });
  refused(BP_INVALID_ARGUMENT, "-1 dimensions", [](Producer& p) { p.managed.dl_tensor.ndim = -1; });
  refused(BP_INVALID_ARGUMENT, "no shape", [](Producer& p) { p.managed.dl_tensor.shape = nullptr; });
  refused(BP_INVALID_ARGUMENT, "no data", [](Producer& p) { p.managed.dl_tensor.data = nullptr; });
  refused(BP_INVALID_ARGUMENT, "negative extent", [](Producer& p) { p.shape[0] = -4; });
  refused(BP_INVALID_ARGUMENT, "further than 63 bits", [](Producer& p) { p.shape[0] = INT64_MAX; });
  refused(BP_INVALID_ARGUMENT, "64-bit addresses", [](Producer& p) { p.managed.dl_tensor.byte_offset = UINT64_MAX; });
  refused(BP_INVALID_ARGUMENT, "64-bit addresses", [](Producer& p) {
    p.strides[0] = -(INT64_MAX / 16);
    p.managed.dl_tensor.strides = p.strides;
  });
  refused(BP_INVALID_ARGUMENT, "64-bit addresses",
          [](Producer& p) { p.managed.dl_tensor.data = reinterpret_cast<void*>(UINT64_MAX - 15); });
  refused(BP_UNSUPPORTED, "multiple of 4 bytes", [](Producer& p) { p.managed.dl_tensor.byte_offset = 2; });
  refused(BP_UNSUPPORTED, "4 lanes", [](Producer& p) { p.managed.dl_tensor.dtype.lanes = 4; });
  refused(BP_UNSUPPORTED, "code 5, 64 bits", [](Producer& p) { p.managed.dl_tensor.dtype = {5, 64, 1}; });
  refused(BP_UNSUPPORTED, "code 2, 8 bits", [](Producer& p) { p.managed.dl_tensor.dtype.bits = 8; });
  refused(BP_UNSUPPORTED, "extension device", [](Producer& p) { p.managed.dl_tensor.device.device_type = 12; });
  refused(BP_UNSUPPORTED, "device 7:0", [](Producer& p) { p.managed.dl_tensor.device.device_type = 7; });
  refused(BP_UNSUPPORTED, "device 2:1", [](Producer& p) { p.managed.dl_tensor.device = {2, 1}; });
  fake->fail("import_memory", BP_UNSUPPORTED);
  refused(BP_UNSUPPORTED, "import_memory", [](Producer&) {});
  EXPECT_FAILS(bph_dlpack_import(device, nullptr, nullptr, &tensor, &error), BP_INVALID_ARGUMENT,
               "managed tensor is null");
  Producer producer;
  EXPECT_FAILS(take(producer, nullptr, &error), BP_INVALID_ARGUMENT, "out is null");
  EXPECT_FAILS(bph_dlpack_import(nullptr, &producer.managed, nullptr, &tensor, &error), BP_INVALID_ARGUMENT,
               "the device is null");
  OpenDevice other;
  EXPECT_FAILS(take(producer, &tensor, &error, other.stream()), BP_INVALID_ARGUMENT, "the consumer is a stream of");
  EXPECT_EQ(producer.deleted, 0);
}

TEST_F(DlpackTest, NewerMinorVersionsAndCopiesAreTaken) {
  open(native());
  Producer producer;
  producer.managed.version = {1, 99};
  producer.managed.flags = dlpack::kCopied | dlpack::kPaddedSubbyte;
  bph_tensor tensor = {};
  ASSERT_OK(take(producer, &tensor, &error));
  EXPECT_EQ(info(tensor.buffer).flags & BPH_BUFFER_READ_ONLY, 0u);
  bph_buffer_release(tensor.buffer);
  EXPECT_EQ(producer.deleted, 1);
}

TEST_F(DlpackTest, ReadOnlyMemoryIsReadAndNeverWritten) {
  open(native());
  bph_stream* one = stream();
  bph_stream* two = stream();
  Producer producer;
  producer.managed.flags = dlpack::kReadOnly;
  bph_tensor tensor = {};
  ASSERT_OK(take(producer, &tensor, &error, one));
  EXPECT_NE(info(tensor.buffer).flags & BPH_BUFFER_READ_ONLY, 0u);
  bph_buffer* buffer = create(96, one);
  const std::vector<float> before(std::begin(producer.data), std::end(producer.data));
  const std::vector<float> written(24, -1.0f);
  EXPECT_FAILS(bph_copy(one, tensor.buffer, 0, buffer, 0, 96, 0, &error), BP_INVALID_ARGUMENT, "dst is read-only");
  EXPECT_FAILS(bph_copy_in(one, tensor.buffer, 0, written.data(), 96, 0, &error), BP_INVALID_ARGUMENT,
               "bph_copy_in: dst is read-only");
  EXPECT_FAILS(bph_copy_across(two, tensor.buffer, 0, one, buffer, 0, 96, 0, &error), BP_INVALID_ARGUMENT,
               "bph_copy_across: dst is read-only");
  bp_external_handle handle = {};
  handle.struct_size = sizeof(handle);
  EXPECT_FAILS(bph_buffer_export(tensor.buffer, "host.file", &handle, &error), BP_UNSUPPORTED, "read-only");
  EXPECT_TRUE(std::equal(before.begin(), before.end(), producer.data));
  ASSERT_OK(bph_copy(one, buffer, 0, tensor.buffer, 0, 96, 0, &error));
  std::vector<float> got(24);
  ASSERT_OK(bph_copy_out(one, got.data(), buffer, 0, 96, 0, &error));
  EXPECT_EQ(got, before);
  DLManagedTensorVersioned* managed = give(tensor);
  EXPECT_EQ(managed->flags, dlpack::kReadOnly) << "the next library must not write either";
  bph_tensor again = {};
  ASSERT_OK(bph_dlpack_import(device, managed, nullptr, &again, &error));
  EXPECT_NE(info(again.buffer).flags & BPH_BUFFER_READ_ONLY, 0u);
  bph_buffer_release(again.buffer);
  bph_buffer_release(tensor.buffer);
  EXPECT_EQ(producer.deleted, 1);
  // The library reuses the objects of released buffers. A reused object must not remain read-only.
  for (int i = 0; i < 4; ++i) {
    Producer writable;
    ASSERT_OK(take(writable, &tensor, &error, one));
    EXPECT_EQ(info(tensor.buffer).flags & BPH_BUFFER_READ_ONLY, 0u);
    ASSERT_OK(bph_copy_in(one, tensor.buffer, 0, written.data(), 96, 0, &error));
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    EXPECT_EQ(writable.data[23], -1.0f);
    bph_buffer_release(tensor.buffer);
  }
}

TEST_F(DlpackTest, AnExtensionDeviceTakesExportsOfItsPluginAlone) {
  FakeOptions options = native();
  options.dlpack_type = dlpack::kExtDev;
  open(options);
  OpenDevice other(options);
  bph_buffer* buffer = create(64);
  DLManagedTensorVersioned* managed = give(tensor_of(buffer, {4}));
  EXPECT_EQ(managed->dl_tensor.device.device_type, dlpack::kExtDev);
  bph_tensor tensor = {};
  EXPECT_FAILS(bph_dlpack_import(other.device, managed, nullptr, &tensor, &error), BP_UNSUPPORTED,
               "extension device (type 12)");
  EXPECT_EQ(tensor.buffer, nullptr);
  ASSERT_OK(bph_dlpack_import(device, managed, nullptr, &tensor, &error));
  EXPECT_EQ(info(tensor.buffer).kind, BP_MEMORY_DEVICE);
  bph_buffer_release(tensor.buffer);
  Producer producer;
  producer.managed.dl_tensor.device = {dlpack::kExtDev, options.dlpack_id};
  EXPECT_FAILS(take(producer, &tensor, &error), BP_UNSUPPORTED, "each library defines for itself");
  EXPECT_EQ(producer.deleted, 0);
}

TEST_F(DlpackTest, ManyThreadsEndExportsAndImports) {
  open(native());
  constexpr int kThreads = 4, kRounds = 200;
  bph_buffer* buffer = create(512);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, view = tensor_of(buffer, {4})] {
      for (int i = 0; i < kRounds; ++i) {
        DLManagedTensorVersioned* managed = nullptr;
        bph_tensor tensor = {};
        if (bph_dlpack_export(&view, nullptr, nullptr, &managed, nullptr) != BP_OK) {
          ++failures;
          continue;
        }
        if (i % 2 == 0 && bph_dlpack_import(device, managed, nullptr, &tensor, nullptr) == BP_OK) {
          bph_buffer_release(tensor.buffer);
        } else {
          managed->deleter(managed);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  bph_buffer_release(buffer);
  trim();
  EXPECT_EQ(fake->buffers(), 0u) << "no export and no import is left";
}

}  // namespace
}  // namespace backplane::core::test
