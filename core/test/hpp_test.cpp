// SPDX-License-Identifier: Apache-2.0
// Tests backplane.hpp with a fake C API that records calls. Checks the arguments, the ownership of
// handles, and that calls do not allocate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <backplane/backplane.hpp>

#include <cstdlib>
#include <map>
#include <new>
#include <set>
#include <vector>

namespace {

struct Seen {
  uint32_t op = 0;
  uint64_t flags = 0;
  std::vector<bph_tensor> inputs, outputs;
  std::vector<uint64_t> scalars;
  std::vector<uint32_t> attributes;  // 32-bit words after struct_size
};
struct Fake {
  Seen last;
  std::map<uint32_t, Seen> by_op;
  bool record = true;
  bp_status answer = BP_OK;
  int live = 0;  // number of handles that were created and not released
  bph_buffer_desc buffer_desc{};
};
Fake fake;
size_t heap_allocations = 0;

template <class Handle>
bp_status create(Handle** out) {
  *out = reinterpret_cast<Handle*>(static_cast<uintptr_t>(0x1000 + 16 * ++fake.live));
  return BP_OK;
}
template <class Handle>
void release(Handle* handle) {
  if (handle) --fake.live;
}
bp_status fail(bp_error* error, bp_status status, const char* message) {
  error->status = status;
  error->op = BP_OP_ADD;
  error->message_length = static_cast<uint32_t>(std::snprintf(error->message, sizeof(error->message), "%s", message));
  return status;
}

uint32_t attribute_bytes(uint32_t op) {
  switch (op) {
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, \
                  acc, prof, since, family, doc)                                                                       \
  case id:                                                                                                             \
    return sizeof(bp_##attrs##_attributes);
#include <backplane/ops.def>
#undef BP_OP_ROW
    default:
      return 0;
  }
}

}  // namespace

// These operators must not be inlined. Otherwise the compiler would warn about mismatched malloc
// and delete.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++heap_allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

extern "C" {
const char* bph_status_name(bp_status status) { return status == BP_TIMEOUT ? "TIMEOUT" : "OTHER"; }
uint64_t bph_scalar_from_f64(uint32_t dtype, double value) { return dtype * 1000 + static_cast<uint64_t>(value); }
uint64_t bph_scalar_from_i64(uint32_t dtype, int64_t value) { return dtype * 1000 + static_cast<uint64_t>(value); }
bp_status bph_registry_create(const bph_registry_desc* desc, bph_registry** out, bp_error* error) {
  if (desc->struct_size != sizeof(*desc)) return fail(error, BP_INVALID_ARGUMENT, "size");
  return create(out);
}
void bph_registry_release(bph_registry* handle) { release(handle); }
bp_status bph_plugin_load(bph_registry*, const char* name, bph_plugin** out, bp_error* error) {
  if (std::string_view(name) != "good") return fail(error, BP_UNAVAILABLE, "plugin 'bad': not found");
  return create(out);
}
void bph_plugin_release(bph_plugin* handle) { release(handle); }
bp_status bph_plugin_device_open(bph_plugin*, uint32_t, const bph_device_desc*, bph_device** out, bp_error*) {
  return create(out);
}
void bph_device_release(bph_device* handle) { release(handle); }
bp_status bph_stream_create(bph_device*, const bph_stream_desc*, bph_stream** out, bp_error*) { return create(out); }
void bph_stream_release(bph_stream* handle) { release(handle); }
void bph_event_release(bph_event* handle) { release(handle); }
bp_status bph_stream_wait(bph_stream*, uint64_t timeout, bp_error* error) {
  if (timeout == 0) return BP_TIMEOUT;  // leaves the error record unchanged
  return timeout == 1 ? fail(error, BP_EXECUTION_FAILED, "kernel died") : BP_OK;
}
bp_status bph_buffer_create(bph_device*, const bph_buffer_desc* desc, bph_buffer** out, bp_error*) {
  fake.buffer_desc = *desc;
  return create(out);
}
void bph_buffer_release(bph_buffer* handle) { release(handle); }
bp_status bph_copy_in(bph_stream*, bph_buffer*, uint64_t, const void*, uint64_t, uint32_t, bp_error*) { return BP_OK; }
bp_status bph_execute(bph_stream*, const bph_call* call, bp_error* error) {
  if (fake.answer != BP_OK) return fail(error, fake.answer, "add: no");
  if (!fake.record) return BP_OK;
  Seen seen{call->op, call->flags, {}, {}, {}, {}};
  seen.inputs.assign(call->inputs, call->inputs + call->input_count);
  seen.outputs.assign(call->outputs, call->outputs + call->output_count);
  for (uint32_t i = 0; i < call->scalar_count; ++i) {
    seen.scalars.push_back(call->scalar_tensors != nullptr ? call->scalar_tensors[i].offset : call->scalars[i]);
  }
  if (call->attributes) {
    const auto* words = static_cast<const uint32_t*>(call->attributes);
    EXPECT_EQ(words[0], attribute_bytes(call->op));
    seen.attributes.assign(words + 1, words + words[0] / 4);
  }
  fake.last = fake.by_op[call->op] = seen;
  return BP_OK;
}
}

namespace backplane::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Makes a view without a buffer.
Tensor view(const Dims& shape, uint32_t dtype = BP_F32) {
  return Tensor(nullptr, 0, dtype, shape, shape.dense_strides());
}

template <class Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
    return error.what();
  }
  return "no error";
}

class Calls : public ::testing::Test {
 protected:
  Calls() {
    fake = Fake{};
    device_ = registry_.load("good").open();
    stream_ = Stream(device_);
  }
  Registry registry_;
  Device device_;
  Stream stream_;
};

TEST(Views, ArePackedRowMajor) {
  EXPECT_EQ(view({2, 3, 4}).strides(), (Dims{12, 4, 1}));
  EXPECT_EQ(view({2, 0, 4}).strides(), (Dims{4, 4, 1}));
  EXPECT_EQ(view({}).elements(), 1);
  EXPECT_EQ(view({2, 3}).bytes(), 24u);
  EXPECT_TRUE(view({2, 0}).is_contiguous());
}

TEST(Views, PermuteTransposeReshape) {
  const Tensor x = view({2, 3, 4});
  EXPECT_EQ(x.permute({2, 0, 1}).shape(), (Dims{4, 2, 3}));
  EXPECT_EQ(x.permute({2, 0, 1}).strides(), (Dims{1, 12, 4}));
  EXPECT_EQ(x.transpose().shape(), (Dims{2, 4, 3}));
  EXPECT_EQ(x.transpose(0, 2).strides(), (Dims{1, 4, 12}));
  EXPECT_EQ(x.transpose(1, 1).shape(), x.shape());
  EXPECT_EQ(x.reshape({6, 4}).strides(), (Dims{4, 1}));
  EXPECT_FALSE(x.transpose().is_contiguous());
  EXPECT_THAT(error_of([&] { x.transpose().reshape({24}); }), HasSubstr("not contiguous"));
  EXPECT_THAT(error_of([&] { x.reshape({5}); }), HasSubstr("24 elements do not make a shape of 5"));
  EXPECT_THAT(error_of([&] { x.permute({0, 0, 1}); }), HasSubstr("axis 0 stands twice"));
  EXPECT_THAT(error_of([&] { x.permute({0, 1, 3}); }), HasSubstr("axis 3 of rank 3"));
  EXPECT_THAT(error_of([&] { view({3}).transpose(); }), HasSubstr("of rank 1"));
}

TEST(Views, SliceFlipSelect) {
  const Tensor x = view({5, 4});
  const Tensor odd = x.slice(0, 1, 5, 2);
  EXPECT_EQ(odd.shape(), (Dims{2, 4}));
  EXPECT_EQ(odd.strides(), (Dims{8, 1}));
  EXPECT_EQ(odd.offset(), 16u);
  EXPECT_EQ(x.slice(1, 4, 4).elements(), 0);
  EXPECT_EQ(x.slice(1, 4, 4).offset(), 0u);
  const Tensor back = x.flip(0);
  EXPECT_EQ(back.offset(), 64u);
  EXPECT_EQ(back.strides(), (Dims{-4, 1}));
  EXPECT_EQ(back.flip(0).offset(), 0u);
  EXPECT_EQ(x.select_at(0, 2).shape(), (Dims{4}));
  EXPECT_EQ(x.select_at(0, 2).offset(), 32u);
  EXPECT_EQ(x.select_at(1, 3).strides(), (Dims{4}));
  EXPECT_THAT(error_of([&] { x.slice(0, 2, 6); }), HasSubstr("[2, 6) by 1 does not lie in the extent 5 of axis 0"));
  EXPECT_THAT(error_of([&] { x.slice(2, 0, 1); }), HasSubstr("axis 2 of rank 2"));
}

TEST(Views, BroadcastUnfoldBitcast) {
  EXPECT_EQ(view({3, 1}).broadcast_to({2, 3, 4}).strides(), (Dims{0, 1, 0}));
  EXPECT_EQ(view({0}).broadcast_to({2, 0}).elements(), 0);
  EXPECT_THAT(error_of([&] { view({3}).broadcast_to({4}); }), HasSubstr("has extent 3, which cannot become 4"));
  EXPECT_THAT(error_of([&] { view({3, 3}).broadcast_to({3}); }), HasSubstr("rank 2 cannot become 1"));
  const Tensor windows = view({2, 7}).unfold(1, 3, 2);
  EXPECT_EQ(windows.shape(), (Dims{2, 3, 3}));
  EXPECT_EQ(windows.strides(), (Dims{7, 2, 1}));
  EXPECT_THAT(error_of([&] { view({2}).unfold(0, 3, 1); }), HasSubstr("do not fit the extent 2"));
  EXPECT_EQ(view({2}).bitcast(BP_U32).dtype(), static_cast<uint32_t>(BP_U32));
  EXPECT_THAT(error_of([&] { view({2}).bitcast(BP_U8); }), HasSubstr("4 bytes and dtype 2 has 1"));
  EXPECT_EQ(view({2, 3}).unsqueeze(1).shape(), (Dims{2, 1, 3}));
  EXPECT_EQ(view({2, 1, 3}).squeeze(1).strides(), (Dims{3, 1}));
  EXPECT_THAT(error_of([&] { view({2, 3}).squeeze(0); }), HasSubstr("extent 2, not 1"));
  EXPECT_THAT(error_of([&] { view({1, 1, 1, 1, 1, 1, 1, 1}).unsqueeze(0); }), HasSubstr("rank 8"));
  EXPECT_THAT(error_of([&] { Dims({1, 1, 1, 1, 1, 1, 1, 1, 1}); }), HasSubstr("rank 9 is above the 8"));
  EXPECT_THAT(error_of([&] { view({2}, 31); }), HasSubstr("dtype 31 is unknown"));
}

TEST(Views, EntriesBeyondRankAreZero) {
  const Tensor x = view({2, 3, 4}).select_at(0, 1);
  for (size_t i = x.rank(); i < BP_MAX_RANK; ++i) EXPECT_EQ(x.view().shape[i] | x.view().strides[i], 0) << i;
}

TEST_F(Calls, HandlesAreReleasedOnce) {
  fake.live = 0;
  {
    Registry registry;
    Plugin plugin = registry.load("good");
    Device device = plugin.open();
    Stream stream(device);
    Device moved = std::move(device);
    Tensor a = Tensor::empty(stream, BP_F32, {2, 2});
    Tensor b = a.transpose();
    a = Tensor();
    EXPECT_EQ(fake.live, 5);
    EXPECT_EQ(b.buffer().use_count(), 1);
  }
  EXPECT_EQ(fake.live, 0);
}

TEST_F(Calls, EmptyAsksForItsBytesOnItsStream) {
  const Tensor x = Tensor::empty(stream_, BP_F16, {3, 5}, BP_MEMORY_HOST);
  EXPECT_EQ(fake.buffer_desc.bytes, 30u);
  EXPECT_EQ(fake.buffer_desc.kind, BP_MEMORY_HOST);
  EXPECT_EQ(fake.buffer_desc.stream, stream_.get());
  EXPECT_EQ(x.view().buffer, x.buffer()->get());
  Tensor::empty(device_, BP_F32, {0});
  EXPECT_EQ(fake.buffer_desc.bytes, 0u);
  EXPECT_EQ(fake.buffer_desc.stream, nullptr);
  EXPECT_THAT(error_of([&] { Tensor::empty(stream_, BP_F32, {-1}); }), HasSubstr("extent -1 of axis 0"));
  EXPECT_THAT(error_of([&] { Tensor::empty(stream_, BP_F32, {INT64_MAX, 2}); }), HasSubstr("pass 63 bits"));
}

TEST_F(Calls, ErrorsCarryTheRecord) {
  try {
    registry_.load("bad");
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), BP_UNAVAILABLE);
    EXPECT_STREQ(error.what(), "plugin 'bad': not found");
  }
  fake.answer = BP_UNSUPPORTED;
  try {
    add(stream_, view({2}), view({2}), view({2}));
    FAIL() << "executed";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), BP_UNSUPPORTED);
    EXPECT_EQ(error.op(), static_cast<uint32_t>(BP_OP_ADD));
  }
  EXPECT_STREQ(Error(BP_TIMEOUT, "").what(), "");
  EXPECT_EQ(std::string(Error(BP_INTERNAL, std::string(2000, 'x')).what()).size(), sizeof(bp_error::message) - 1);
}

TEST_F(Calls, WaitSaysWhetherTimeRanOut) {
  EXPECT_TRUE(stream_.wait());
  EXPECT_FALSE(stream_.wait(0));
  EXPECT_THROW(stream_.wait(1), Error);
}

TEST_F(Calls, ElementwiseBroadcastsInputsAsMetadata) {
  add(stream_, view({2, 3}), view({3}), Tensor::scalar(BP_F32, 7));
  ASSERT_EQ(fake.last.inputs.size(), 2u);
  EXPECT_EQ(fake.last.inputs[0].rank, 2);
  EXPECT_EQ(fake.last.inputs[0].strides[0], 0);
  EXPECT_EQ(fake.last.inputs[0].strides[1], 1);
  EXPECT_EQ(fake.last.inputs[1].flags, BPH_TENSOR_IMMEDIATE);
  EXPECT_EQ(fake.last.inputs[1].immediate, 12007u);
  EXPECT_EQ(fake.last.inputs[1].shape[1], 3);
  EXPECT_THAT(error_of([&] { add(stream_, view({2}), view({3}), view({2})); }), HasSubstr("extent 3"));
}

TEST_F(Calls, FlagsOfTheStreamAreAdded) {
  stream_.set_call_flags(BP_OP_FLAG_DETERMINISTIC);
  execute(stream_, BP_OP_NEG, {view({2})}, {view({2})}, nullptr, {}, BPH_CALL_NO_NATIVE);
  EXPECT_EQ(fake.last.flags, BP_OP_FLAG_DETERMINISTIC | BPH_CALL_NO_NATIVE);
}

TEST_F(Calls, ScalarsMayBeInDeviceMemory) {
  const Tensor values = view({2});
  bph_tensor first = values.view();
  first.rank = 0;
  bph_tensor second = first;
  second.offset += 4;
  stream_.set_call_flags(BP_OP_FLAG_DETERMINISTIC);
  execute_with_device_scalars(stream_, BP_OP_IOTA, {}, {view({3})}, nullptr, {first, second});
  EXPECT_EQ(fake.last.flags, BP_OP_FLAG_DETERMINISTIC | BP_OP_FLAG_DEVICE_SCALARS);
  EXPECT_THAT(fake.last.scalars, ElementsAre(first.offset, second.offset));
  EXPECT_EQ(fake.last.outputs.size(), 1u);
}

TEST_F(Calls, EveryPrimitiveHasAFunction) {
  const Tensor x = view({2, 3}), y = view({2, 3}), z = view({2, 3});
  copy(stream_, x, y), cast(stream_, x, y), neg(stream_, x, y), abs(stream_, x, y), floor(stream_, x, y);
  rint(stream_, x, y), sqrt(stream_, x, y), rsqrt(stream_, x, y), exp(stream_, x, y), log(stream_, x, y);
  sin(stream_, x, y), cos(stream_, x, y), tanh(stream_, x, y), erf(stream_, x, y), bit_not(stream_, x, y);
  add(stream_, x, y, z), sub(stream_, x, y, z), mul(stream_, x, y, z), div(stream_, x, y, z), rem(stream_, x, y, z);
  max(stream_, x, y, z), min(stream_, x, y, z), bit_and(stream_, x, y, z), bit_or(stream_, x, y, z);
  bit_xor(stream_, x, y, z), shl(stream_, x, y, z), shr(stream_, x, y, z), select(stream_, x, y, z, z);
  compare(stream_, x, y, z, BP_COMPARE_GE), cumsum(stream_, x, y, 1, true, false), fill(stream_, x, 5);
  iota(stream_, x, 1, 2, 3), gather(stream_, x, y, z, 1), scatter(stream_, x, y, z, 1, BP_SCATTER_ADD);
  reduce_sum(stream_, x, y, axes(0, 1)), reduce_prod(stream_, x, y, axes(1)), reduce_max(stream_, x, y, axes());
  reduce_min(stream_, x, y, axes(0)), argmax(stream_, x, y, 1), argmin(stream_, x, y, 0);
  matmul(stream_, x, y, z, BP_PRECISION_ALLOW_TF32), sort(stream_, x, y, z, 1, true), philox(stream_, x, 1, 2, 3);

  std::set<uint32_t> primitives;
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, \
                  acc, prof, since, family, doc)                                                                       \
  if (BP_KIND_##kind == BP_KIND_PRIMITIVE) {                                                                           \
    primitives.insert(id);                                                                                             \
    const Seen& seen = fake.by_op[id];                                                                                 \
    EXPECT_EQ(seen.op, static_cast<uint32_t>(id)) << name;                                                             \
    EXPECT_EQ(seen.inputs.size(), static_cast<size_t>(imax)) << name;                                                  \
    EXPECT_EQ(seen.outputs.size(), static_cast<size_t>(omax)) << name;                                                 \
    EXPECT_EQ(seen.scalars.size(), static_cast<size_t>(smax)) << name;                                                 \
    EXPECT_EQ(seen.attributes.empty(), std::string_view(#attrs) == "no") << name;                                      \
  }
#include <backplane/ops.def>
#undef BP_OP_ROW
  EXPECT_EQ(fake.by_op.size(), primitives.size());
  EXPECT_THAT(fake.by_op[BP_OP_COMPARE].attributes, ElementsAre(BP_COMPARE_GE));
  EXPECT_THAT(fake.by_op[BP_OP_CUMSUM].attributes, ElementsAre(1, 1, 0));
  EXPECT_THAT(fake.by_op[BP_OP_SCATTER].attributes, ElementsAre(1, BP_SCATTER_ADD, 0));
  EXPECT_THAT(fake.by_op[BP_OP_REDUCE_SUM].attributes, ElementsAre(3));
  EXPECT_THAT(fake.by_op[BP_OP_REDUCE_MAX].attributes, ElementsAre(0));
  EXPECT_THAT(fake.by_op[BP_OP_MATMUL].attributes, ElementsAre(BP_PRECISION_ALLOW_TF32));
  EXPECT_THAT(fake.by_op[BP_OP_SORT].attributes, ElementsAre(1, 1, 0));
  EXPECT_THAT(fake.by_op[BP_OP_PHILOX].scalars, ElementsAre(1, 2, 3));
  EXPECT_THAT(fake.by_op[BP_OP_IOTA].scalars, ElementsAre(12002, 12003));
}

TEST_F(Calls, ExecuteAllocatesNothing) {
  const Tensor x = Tensor::empty(stream_, BP_F32, {2, 3}), w = Tensor::empty(stream_, BP_F32, {3, 3});
  fake.record = false;
  heap_allocations = 0;
  add(stream_, x, x, Tensor::scalar(BP_F32, 1.0));
  matmul(stream_, x, x, w.transpose());
  execute(stream_, BP_OP_FILL, {}, {x}, nullptr, {1});
  copy(stream_, x.slice(0, 0, 1), x.flip(1).slice(0, 1, 2));
  EXPECT_EQ(heap_allocations, 0u);
}

TEST_F(Calls, CopyInChecksDtypeSizeAndLayout) {
  const Tensor x = Tensor::empty(stream_, BP_F32, {2, 3});
  const std::vector<float> six(6);
  copy_in<float>(stream_, x, six);
  const std::vector<int32_t> wrong(6);
  EXPECT_THAT(error_of([&] { copy_in<int32_t>(stream_, x, wrong); }), HasSubstr("24 bytes of host memory"));
  EXPECT_THAT(error_of([&] { copy_in<float>(stream_, x.slice(0, 0, 1), six); }), HasSubstr("with 12"));
  EXPECT_THAT(error_of([&] { copy_in<float>(stream_, x.transpose(), six); }), HasSubstr("contiguous"));
}

}  // namespace
}  // namespace backplane::test
