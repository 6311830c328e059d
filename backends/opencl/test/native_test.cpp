// SPDX-License-Identifier: Apache-2.0
// Tests the handles of "bp.native" with queues and memory that other code created, on the first device.
#include <gmock/gmock.h>

#include "runtime/device.hpp"

namespace backplane::opencl::test {

namespace {

using testing::HasSubstr;

constexpr uint64_t kBytes = 1u << 16;

class NativeHandles : public testing::Test {
 protected:
  void SetUp() override {
    auto count = Native::count();
    if (!count.ok()) GTEST_SKIP() << count.status().message();
    auto opened = Native::open(0, kit::Host(nullptr));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    native = std::move(opened.value());
    cl = Api::load().value();
    device = reinterpret_cast<cl_device_id>(native->device_handle(1).value().value);
    context = reinterpret_cast<cl_context>(native->device_handle(2).value().value);
  }

  cl_command_queue create_queue(cl_context of, cl_command_queue_properties flags = 0) const {
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, flags, 0};
    cl_int code = CL_SUCCESS;
    cl_command_queue out = cl->clCreateCommandQueueWithProperties(of, device, properties, &code);
    EXPECT_EQ(code, CL_SUCCESS);
    return out;
  }
  cl_mem create_mem(cl_context of, cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) const {
    cl_int code = CL_SUCCESS;
    cl_mem out = cl->clCreateBuffer(of, flags, kBytes, host, &code);
    EXPECT_EQ(code, CL_SUCCESS);
    return out;
  }
  cl_context create_other_context() const {
    cl_int code = CL_SUCCESS;
    cl_context out = cl->clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    EXPECT_EQ(code, CL_SUCCESS);
    return out;
  }
  static bp_native_handle handle_of_queue(cl_command_queue queue) {
    return kit::native_handle("opencl.command_queue", reinterpret_cast<uintptr_t>(queue));
  }
  static bp_native_handle handle_of_mem(cl_mem memory, uint64_t offset = 0, uint64_t bytes = kBytes) {
    bp_native_handle out = kit::native_handle("opencl.mem", reinterpret_cast<uintptr_t>(memory));
    out.offset = offset;
    out.bytes = bytes;
    return out;
  }
  cl_uint references(cl_command_queue queue) const {
    cl_uint out = 0;
    EXPECT_EQ(cl->clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(out), &out, nullptr), CL_SUCCESS);
    return out;
  }
  cl_uint references(cl_mem memory) const {
    cl_uint out = 0;
    EXPECT_EQ(cl->clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof(out), &out, nullptr), CL_SUCCESS);
    return out;
  }
  kit::Status wrap(const bp_native_handle& handle, simt::Buffer*& out) const {
    uint32_t kind = UINT32_MAX;
    auto made = native->wrap_memory(handle, kind);
    out = made.value();
    return made.status();
  }
  void expect_refusal(const bp_native_handle& handle, bp_status code, const char* reason) const {
    simt::Buffer* buffer = nullptr;
    const kit::Status status = handle.bytes == 0 ? native->wrap_queue(handle).status() : wrap(handle, buffer);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(reason));
    if (buffer != nullptr) native->free(buffer);
  }
  void wait(const Event& mark) const {
    while (native->poll(mark).code() == BP_TIMEOUT) {
    }
    EXPECT_TRUE(native->poll(mark).ok());
  }

  std::unique_ptr<Native> native;
  const Api* cl = nullptr;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
};

TEST_F(NativeHandles, AWrappedQueueIsHeldAndNotDestroyed) {
  cl_command_queue queue = create_queue(context);
  auto wrapped = native->wrap_queue(handle_of_queue(queue));
  ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
  EXPECT_EQ(references(queue), 2u);
  wait(native->mark(*wrapped.value(), false).value());
  wrapped.value().reset();
  EXPECT_EQ(references(queue), 1u);
  cl->clReleaseCommandQueue(queue);
}

TEST_F(NativeHandles, QueuesThatTheDeviceCannotUseAreRefused) {
  cl_context other = create_other_context();
  cl_command_queue foreign = create_queue(other);
  expect_refusal(handle_of_queue(foreign), BP_UNSUPPORTED, "another context");
  cl_command_queue unordered = create_queue(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  expect_refusal(handle_of_queue(unordered), BP_UNSUPPORTED, "out of order");
  expect_refusal(handle_of_queue(nullptr), BP_INVALID_ARGUMENT, "value 0");
  bp_native_handle address = handle_of_queue(unordered);
  address.flags = BP_NATIVE_ADDRESS;
  expect_refusal(address, BP_UNSUPPORTED, "no address");
  EXPECT_EQ(references(unordered), 1u);
  cl->clReleaseCommandQueue(foreign);
  cl->clReleaseCommandQueue(unordered);
  cl->clReleaseContext(other);
}

TEST_F(NativeHandles, AQueueWithoutProfilingMeasuresNoTime) {
  cl_command_queue queue = create_queue(context);
  auto wrapped = native->wrap_queue(handle_of_queue(queue));
  ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
  const Event mark = native->mark(*wrapped.value(), true).value();
  wait(mark);
  const kit::Status status = native->elapsed(mark, mark).status();
  EXPECT_EQ(status.code(), BP_UNSUPPORTED);
  EXPECT_THAT(status.message(), HasSubstr("CL_QUEUE_PROFILING_ENABLE"));
  wrapped.value().reset();
  cl->clReleaseCommandQueue(queue);
}

// Copies from and to a wrapped part of a cl_mem. The wrapped queue orders the copies relative to
// the commands that other code enqueues on it.
TEST_F(NativeHandles, AWrappedBufferIsAPartOfItsObject) {
  constexpr uint64_t kOffset = 4096, kPart = 512;
  cl_command_queue queue = create_queue(context);
  cl_mem memory = create_mem(context);
  simt::Buffer* part = nullptr;
  ASSERT_TRUE(wrap(handle_of_mem(memory, kOffset, kPart), part).ok());
  EXPECT_EQ(references(memory), 2u);
  EXPECT_EQ(native->handle(part).value().offset, kOffset);
  std::vector<unsigned char> data(kBytes), got(kBytes), back(kPart);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i / 256 + i);
  auto wrapped = native->wrap_queue(handle_of_queue(queue));
  ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
  bp_native_handle host =
      kit::native_handle("host.address", reinterpret_cast<uintptr_t>(back.data()), BP_NATIVE_ADDRESS);
  host.bytes = kPart;
  simt::Buffer* on_host = nullptr;
  ASSERT_TRUE(wrap(host, on_host).ok());
  ASSERT_EQ(cl->clEnqueueWriteBuffer(queue, memory, CL_FALSE, 0, kBytes, data.data(), 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_TRUE(native->copy(*wrapped.value(), on_host, 0, part, 0, kPart).ok());
  wait(native->mark(*wrapped.value(), false).value());
  EXPECT_TRUE(std::equal(back.begin(), back.end(), data.begin() + kOffset));
  std::fill(back.begin(), back.end(), 7);
  std::fill_n(data.begin() + kOffset + 16, kPart - 16, 7);
  ASSERT_TRUE(native->copy(*wrapped.value(), part, 16, on_host, 0, kPart - 16).ok());
  ASSERT_EQ(cl->clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, kBytes, got.data(), 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(got, data);
  native->free(on_host);
  native->free(part);
  EXPECT_EQ(references(memory), 1u);
  wrapped.value().reset();
  cl->clReleaseMemObject(memory);
  cl->clReleaseCommandQueue(queue);
}

TEST_F(NativeHandles, MemoryThatTheDeviceCannotUseIsRefused) {
  cl_context other = create_other_context();
  cl_mem foreign = create_mem(other), memory = create_mem(context);
  expect_refusal(handle_of_mem(foreign), BP_UNSUPPORTED, "another context");
  for (const cl_mem_flags flags : {CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, CL_MEM_HOST_NO_ACCESS}) {
    cl_mem limited = create_mem(context, flags);
    expect_refusal(handle_of_mem(limited), BP_UNSUPPORTED, "limit its use");
    cl->clReleaseMemObject(limited);
  }
  std::vector<unsigned char> pages(2 * kBytes);
  const auto first = reinterpret_cast<uintptr_t>(pages.data());
  unsigned char* const odd = pages.data() + (-first & 4095) + 8;
  cl_mem misaligned = create_mem(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, odd);
  expect_refusal(handle_of_mem(misaligned), BP_UNSUPPORTED, "does not begin at a multiple");
  expect_refusal(handle_of_mem(memory, 1, kBytes), BP_INVALID_ARGUMENT, "exceed the object");
  expect_refusal(handle_of_mem(memory, kBytes + 1, 1), BP_INVALID_ARGUMENT, "exceed the object");
  expect_refusal(handle_of_mem(nullptr), BP_INVALID_ARGUMENT, "value 0");
  bp_native_handle address = handle_of_mem(memory);
  address.flags = BP_NATIVE_ADDRESS;
  expect_refusal(address, BP_UNSUPPORTED, "no address");
  bp_native_handle unknown = kit::native_handle("opencl.image", reinterpret_cast<uintptr_t>(memory));
  unknown.bytes = 4;
  expect_refusal(unknown, BP_UNSUPPORTED, "opencl.image");
  EXPECT_EQ(references(memory), 1u);
  for (cl_mem each : {foreign, memory, misaligned}) cl->clReleaseMemObject(each);
  cl->clReleaseContext(other);
}

TEST_F(NativeHandles, UsmIsWrappedWithinItsAllocation) {
  const Extensions extensions =
      Extensions::of(*cl, reinterpret_cast<cl_platform_id>(native->device_handle(0).value().value));
  if (extensions.clHostMemAllocINTEL == nullptr) GTEST_SKIP() << "the driver has no USM";
  cl_int code = CL_SUCCESS;
  void* const usm = extensions.clHostMemAllocINTEL(context, nullptr, kBytes, 64, &code);
  ASSERT_EQ(code, CL_SUCCESS);
  bp_native_handle handle = kit::native_handle("opencl.usm", reinterpret_cast<uintptr_t>(usm), BP_NATIVE_ADDRESS);
  handle.offset = 64;
  handle.bytes = kBytes - 64;
  uint32_t kind = UINT32_MAX;
  auto wrapped = native->wrap_memory(handle, kind);
  ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
  EXPECT_EQ(kind, BP_MEMORY_HOST);
  EXPECT_EQ(native->map(wrapped.value()), static_cast<std::byte*>(usm) + 64);
  native->free(wrapped.value());
  handle.bytes = kBytes - 63;
  expect_refusal(handle, BP_INVALID_ARGUMENT, "exceed the object");
  std::vector<unsigned char> ordinary(64);
  handle = kit::native_handle("opencl.usm", reinterpret_cast<uintptr_t>(ordinary.data()), BP_NATIVE_ADDRESS);
  handle.bytes = 64;
  expect_refusal(handle, BP_INVALID_ARGUMENT, "no USM of the context");
  extensions.clMemBlockingFreeINTEL(context, usm);
}

}  // namespace

}  // namespace backplane::opencl::test
