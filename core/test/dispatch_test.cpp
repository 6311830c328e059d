// SPDX-License-Identifier: Apache-2.0
// Tests eager calls through the host API: plans, plan classes, bounds, overlap, staging and
// fallback.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include "host.hpp"

namespace backplane::core::test {
namespace {

const std::string reference = REFERENCE_PLUGIN;
const std::string dense = DENSE_PLUGIN;

std::vector<float> iota(size_t count, float start = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), start);
  return values;
}

TEST(Dispatch, AddsTwoVectors) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  const bph_tensor b = host.tensor<float>(BP_F32, {4}, {10, 20, 30, 40});
  const bph_tensor c = host.empty(BP_F32, {4}, 16);
  const Call call(BP_OP_ADD, {a, b}, {c});
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(c, 4), (std::vector<float>{11, 22, 33, 44}));
}

TEST(Dispatch, ImmediateNeedsNoBuffer) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {3}, {1, 2, 3});
  bph_tensor one = host.empty(BP_F32, {3}, 0);
  one.flags = BPH_TENSOR_IMMEDIATE;
  one.immediate = bph_scalar_from_f64(BP_F32, 0.5);
  const bph_tensor c = host.empty(BP_F32, {3}, 12);
  const Call call(BP_OP_ADD, {a, one}, {c});
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(c, 3), (std::vector<float>{1.5, 2.5, 3.5}));
}

TEST(Dispatch, AnOutputMayBeAnyInput) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  const Call doubled(BP_OP_ADD, {a, a}, {a});
  EXPECT_OK(bph_execute(host.stream, &doubled, &error));
  EXPECT_EQ(host.read<float>(a, 4), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(host.stats().staged_operands, 0u) << "elementwise kernels work in place";

  const bp_matmul_attributes full = {sizeof(full), BP_PRECISION_FULL};
  const bph_tensor m = host.tensor<float>(BP_F32, {2, 2}, {1, 2, 3, 4});
  const Call squared(BP_OP_MATMUL, {m, m}, {m}, &full);
  EXPECT_OK(bph_execute(host.stream, &squared, &error));
  EXPECT_EQ(host.read<float>(m, 4), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(host.stats().staged_operands, 2u) << "core copies both operands first";
  EXPECT_OK(bph_execute(host.stream, &squared, &error));
  EXPECT_EQ(host.read<float>(m, 4), (std::vector<float>{199, 290, 435, 634})) << "from the front";

  const bph_tensor other = host.tensor<float>(BP_F32, {2, 2}, {1, 0, 0, 1});
  const Call once(BP_OP_MATMUL, {m, other}, {m}, &full);
  EXPECT_OK(bph_execute(host.stream, &once, &error));
  EXPECT_EQ(host.read<float>(m, 4), (std::vector<float>{199, 290, 435, 634}));
  EXPECT_EQ(host.stats().staged_operands, 5u);

  // The decomposition of RMS_NORM reads x again after one of its steps could have written to x. Core must copy x first.
  const bp_norm_attributes norm = {sizeof(norm), 0b10, 1e-5f, 0};
  const bph_tensor x = host.tensor<float>(BP_F32, {2, 2}, {3, 4, 6, 8});
  Call normed(BP_OP_RMS_NORM, {x}, {x}, &norm);
  normed.flags = BPH_CALL_NO_NATIVE;
  EXPECT_OK(bph_execute(host.stream, &normed, &error));
  const std::vector<float> got = host.read<float>(x, 4);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], i % 2 == 0 ? 0.848528f : 1.131371f, 1e-5f) << i;
}

TEST(Dispatch, WhatAnOutputWillBeCanBeAsked) {
  Host host(reference);
  bph_tensor view = {};
  view.dtype = BP_F32;
  view.rank = 2;
  view.shape[0] = view.shape[1] = 4;
  view.strides[0] = 4;
  view.strides[1] = 1;
  bph_tensor out = view;
  out.alias = 2;
  const bp_matmul_attributes full = {sizeof(full), BP_PRECISION_FULL};
  const Call over(BP_OP_MATMUL, {view, view}, {out}, &full);
  bph_support support = {};
  support.struct_size = sizeof(support);
  EXPECT_OK(bph_device_supports(host.device, &over, &support, &error));
  EXPECT_EQ(support.stage_inputs, 2u);
  const Call apart(BP_OP_MATMUL, {view, view}, {view}, &full);
  EXPECT_OK(bph_device_supports(host.device, &apart, &support, &error));
  EXPECT_EQ(support.stage_inputs, 0u);
  out.alias = 3;
  const Call absent(BP_OP_MATMUL, {view, view}, {out}, &full);
  EXPECT_FAILS(bph_device_supports(host.device, &absent, &support, &error), BP_INVALID_ARGUMENT, "is not there");
  out.alias = 1;
  out.strides[1] = 4, out.strides[0] = 1;
  const Call turned(BP_OP_MATMUL, {view, view}, {out}, &full);
  EXPECT_FAILS(bph_device_supports(host.device, &turned, &support, &error), BP_INVALID_ARGUMENT, "strides");
  out.alias = 1;
  const Call executed(BP_OP_MATMUL, {view, view}, {out}, &full);
  EXPECT_FAILS(bph_execute(host.stream, &executed, &error), BP_UNSUPPORTED, "alias 1");
}

TEST(Dispatch, AbsentOperandsAtTheEndDoNotCount) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  const bph_tensor c = host.empty(BP_F32, {4}, 16);
  const bph_tensor none = {};
  const Call plain(BP_OP_ADD, {a, a}, {c});
  const Call padded(BP_OP_ADD, {a, a, none, none, none}, {c, none});
  EXPECT_OK(bph_execute(host.stream, &plain, &error));
  const bph_stats before = host.stats();
  EXPECT_OK(bph_execute(host.stream, &padded, &error));
  EXPECT_EQ(host.stats().plan_hits, before.plan_hits + 1) << "one descriptor, found in the front";
  EXPECT_EQ(host.stats().plan_entries, before.plan_entries);
  const Call between(BP_OP_ADD, {a, a, none, a}, {c});
  EXPECT_FAILS(bph_execute(host.stream, &between, &error), BP_UNSUPPORTED, "inputs");
}

TEST(Dispatch, AttributesThatSayTheSameAreOnePlan) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {2, 2}, {1, 2, 3, 4});
  const bph_tensor c = host.empty(BP_F32, {2, 2}, 16);
  struct {
    bp_matmul_attributes known;
    uint64_t later[3];
  } longer = {{sizeof(longer), BP_PRECISION_FULL}, {0, 0, 0}};
  const bp_matmul_attributes full = {sizeof(full), BP_PRECISION_FULL};
  const Call with_known(BP_OP_MATMUL, {a, a}, {c}, &full);
  const Call with_longer(BP_OP_MATMUL, {a, a}, {c}, &longer);
  EXPECT_OK(bph_execute(host.stream, &with_known, &error));
  EXPECT_OK(bph_execute(host.stream, &with_longer, &error));
  EXPECT_EQ(host.stats().plans_created, 1u);
  EXPECT_EQ(host.stats().plan_entries, 1u);
  longer.later[2] = 1;
  EXPECT_FAILS(bph_execute(host.stream, &with_longer, &error), BP_UNSUPPORTED, "does not know");
  const bp_no_attributes zero = {sizeof(zero), 0};
  const Call add(BP_OP_ADD, {a, a}, {c}), add_zero(BP_OP_ADD, {a, a}, {c}, &zero);
  EXPECT_OK(bph_execute(host.stream, &add, &error));
  EXPECT_OK(bph_execute(host.stream, &add_zero, &error));
  EXPECT_EQ(host.stats().plan_entries, 2u);
  const bp_no_attributes set = {sizeof(set), 1};
  const Call add_set(BP_OP_ADD, {a, a}, {c}, &set);
  EXPECT_FAILS(bph_execute(host.stream, &add_set, &error), BP_UNSUPPORTED, "add");
}

TEST(Dispatch, PartialOverlapIsRefusedAndInterleavingIsNot) {
  Host host(reference);
  const bph_tensor all = host.tensor<float>(BP_F32, {8}, iota(8));
  bph_tensor low = all, high = all;
  low.shape[0] = high.shape[0] = 6;
  high.offset = 8;
  const Call shifted(BP_OP_NEG, {low}, {high});
  EXPECT_FAILS(bph_execute(host.stream, &shifted, &error), BP_INVALID_ARGUMENT, "overlaps input 0");
  EXPECT_EQ(host.read<float>(all, 8), iota(8)) << "nothing was written";
  bph_tensor even = all, odd = all;
  even.shape[0] = odd.shape[0] = 4;
  even.strides[0] = odd.strides[0] = 2;
  odd.offset = 4;
  const Call interleaved(BP_OP_NEG, {even}, {odd});
  EXPECT_OK(bph_execute(host.stream, &interleaved, &error));
  EXPECT_EQ(host.read<float>(all, 8), (std::vector<float>{0, 0, 2, -2, 4, -4, 6, -6}));
  bph_tensor reversed = all;
  reversed.strides[0] = -1;
  reversed.offset = 28;
  const Call flipped(BP_OP_NEG, {all}, {reversed});
  EXPECT_FAILS(bph_execute(host.stream, &flipped, &error), BP_INVALID_ARGUMENT, "overlaps");
}

TEST(Dispatch, BoundsAreCheckedAtEveryCall) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  bph_tensor c = host.empty(BP_F32, {4}, 16);
  const Call good(BP_OP_NEG, {a}, {c});
  EXPECT_OK(bph_execute(host.stream, &good, &error));
  const auto refused = [&](bph_tensor in, bph_tensor out, const char* word, bp_status status = BP_INVALID_ARGUMENT) {
    const Call call(BP_OP_NEG, {in}, {out});
    EXPECT_FAILS(bph_execute(host.stream, &call, &error), status, word);
  };
  bph_tensor beyond = a;
  beyond.offset = 4;
  refused(beyond, c, "16 bytes does not hold");
  beyond.offset = UINT64_MAX - 3;
  refused(beyond, c, "does not hold");
  bph_tensor before = a;
  before.strides[0] = -1;
  refused(before, c, "-12 to 4");
  bph_tensor odd = a;
  odd.offset = 2;
  odd.shape[0] = 2;
  bph_tensor two = c;
  two.shape[0] = 2;
  refused(odd, two, "aligned to 2 bytes", BP_UNSUPPORTED);
  bph_tensor nowhere = c;
  nowhere.buffer = nullptr;
  refused(a, nowhere, "no buffer");
  EXPECT_EQ(host.read<float>(c, 4), (std::vector<float>{-1, -2, -3, -4}));
}

TEST(Dispatch, BadCallsAreRefused) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  const bph_tensor c = host.empty(BP_F32, {4}, 16);
  Call call(BP_OP_NEG, {a}, {c});
  EXPECT_FAILS(bph_execute(nullptr, &call, &error), BP_INVALID_ARGUMENT, "stream is null");
  EXPECT_FAILS(bph_execute(host.stream, nullptr, &error), BP_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(bph_execute(reinterpret_cast<bph_stream*>(host.device.get()), &call, &error), BP_INVALID_ARGUMENT,
               "not a live stream");
  EXPECT_FAILS(bph_execute(reinterpret_cast<bph_stream*>(&call), &call, &error), BP_INVALID_ARGUMENT,
               "not a live stream");
  call.op = 77;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_UNSUPPORTED, "operator 77");
  call.op = BP_OP_NEG;
  call.flags = 1u << 20;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_UNSUPPORTED, "flags 0x100000");
  call.flags = 0;
  call.struct_size = 8;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "struct_size is 8");
  call.struct_size = sizeof(bph_call);
  call.inputs = nullptr;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "null arrays");
  call.inputs = call.input_views.data();
  call.input_count = 40;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "40");
  call.input_count = 1;
  call.input_views[0].rank = 200;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "rank 200");
  call.input_views[0].rank = 1;
  call.input_views[0].flags = 4;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_UNSUPPORTED, "flags 0x4");
  call.input_views[0].flags = BPH_TENSOR_PACKED;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_UNSUPPORTED, "packed");
  call.input_views[0].flags = 0;
  EXPECT_OK(bph_execute(host.stream, &call, &error));
}

// The key of a cached plan stores only the low bits of the operand counts. A call must not match a
// cached plan if the counts are equal only in these bits.
TEST(Dispatch, CountsOfAKnownCallAreChecked) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  const bph_tensor c = host.empty(BP_F32, {4}, 16);
  Call call(BP_OP_ADD, {a, a}, {c});
  for (int use = 0; use < 2; ++use) EXPECT_OK(bph_execute(host.stream, &call, &error));
  call.output_count = 1 | 1u << 24;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "16777217 given");
  call.output_count = 0;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "add");
  call.input_count = 2 | 1u << 8;  // overflows into the field of the output count
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "258 and 0 given");
  // If output_count is 0, core must not read `outputs`, which points to inaccessible memory.
  const long page = sysconf(_SC_PAGESIZE);
  void* const closed = mmap(nullptr, static_cast<size_t>(page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(closed, MAP_FAILED);
  call.input_count = 2;
  call.outputs = static_cast<const bph_tensor*>(closed);
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "add");
  munmap(closed, static_cast<size_t>(page));
}

TEST(Dispatch, ReleasedHandlesAreRefused) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  bph_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bytes = 16;
  desc.stream = host.stream;
  bph_tensor c = a;
  ASSERT_OK(bph_buffer_create(host.device, &desc, &c.buffer, &error));
  bph_buffer_release(c.buffer);
  const Call call(BP_OP_NEG, {a}, {c});
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "not a live buffer");
  bph_buffer_release(c.buffer);
  bph_stream* stream = nullptr;
  ASSERT_OK(bph_stream_create(host.device, nullptr, &stream, &error));
  bph_stream_release(stream);
  EXPECT_FAILS(bph_execute(stream, &call, &error), BP_INVALID_ARGUMENT, "not a live stream");
  EXPECT_FAILS(bph_stream_wait(stream, 0, &error), BP_INVALID_ARGUMENT, "not a live stream");
  bph_stream_release(stream);
}

TEST(Dispatch, BufferOfAnotherDeviceIsRefused) {
  Host host(reference), other(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  const bph_tensor c = other.empty(BP_F32, {4}, 16);
  const Call call(BP_OP_NEG, {a}, {c});
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "lies on reference:0");
}

TEST(Dispatch, ReadOnlyMemoryIsNoOutput) {
  Host host(reference);
  // The pages cannot be written, so a write would end the test.
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  bph_import_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.type = BP_IMPORT_HOST;
  desc.address = reinterpret_cast<uint64_t>(memory);
  desc.bytes = page;
  desc.flags = BPH_IMPORT_READ_ONLY;
  Owned<bph_buffer> buffer;
  ASSERT_OK(bph_buffer_import(host.device, &desc, buffer.out(), &error));
  bph_tensor weights = host.empty(BP_F32, {4}, 0);
  weights.buffer = buffer;
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  const bph_tensor c = host.tensor<float>(BP_F32, {4}, {5, 5, 5, 5});
  Call call(BP_OP_ADD, {a, weights}, {weights});
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "add: output 0 is read-only memory");
  call.output_views[0] = c;
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(c, 4), (std::vector<float>{1, 2, 3, 4}));
  call.output_views[0] = weights;  // the descriptor is now in the plan cache
  call.input_views[1] = c;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "output 0 is read-only memory");
  const bp_matmul_attributes full = {sizeof(full), BP_PRECISION_FULL};
  const bph_tensor row = host.tensor<float>(BP_F32, {1, 2}, {1, 2});
  const Call product(BP_OP_MATMUL, {row, host.tensor<float>(BP_F32, {2, 2}, {1, 2, 3, 4})},
                     {host.empty(BP_F32, {1, 2}, 8)}, &full);
  bph_tensor packed = {};
  EXPECT_FAILS(bph_pack(host.stream, &product, 1, buffer, 0, &packed, &error), BP_INVALID_ARGUMENT, "read-only");
  desc.flags = 4;
  bph_buffer* none = nullptr;
  EXPECT_FAILS(bph_buffer_import(host.device, &desc, &none, &error), BP_UNSUPPORTED, "flags 0x4");
  buffer.reset();
  munmap(memory, page);
}

TEST(Dispatch, PackedOperandsServeEachPlanOfTheirLayout) {
  Host host(reference);
  const bp_matmul_attributes full = {sizeof(full), BP_PRECISION_FULL};
  const bph_tensor weight = host.tensor<float>(BP_F32, {3, 2}, {1, 2, 3, 4, 5, 6});
  const bph_tensor one = host.tensor<float>(BP_F32, {1, 3}, {1, 10, 100});
  const bph_tensor two = host.tensor<float>(BP_F32, {2, 3}, {1, 10, 100, 1, 1, 1});
  const bph_tensor out_one = host.empty(BP_F32, {1, 2}, 8), out_two = host.empty(BP_F32, {2, 2}, 16);
  const Call plain(BP_OP_MATMUL, {one, weight}, {out_one}, &full);
  bph_pack_info info = {};
  EXPECT_FAILS(bph_pack_query(host.device, &plain, 1, &info, &error), BP_INVALID_ARGUMENT, "struct_size");
  info.struct_size = sizeof(info);
  ASSERT_OK(bph_pack_query(host.device, &plain, 1, &info, &error));
  EXPECT_FAILS(bph_pack_query(host.device, &plain, 0, &info, &error), BP_UNSUPPORTED, "input 0");
  const bph_tensor memory = host.empty(BP_U8, {static_cast<int64_t>(info.bytes)}, info.bytes);
  bph_tensor packed = {};
  ASSERT_OK(bph_pack(host.stream, &plain, 1, memory.buffer, 0, &packed, &error));
  const bph_stats before = host.stats();
  const Call single(BP_OP_MATMUL, {one, packed}, {out_one}, &full), pair(BP_OP_MATMUL, {two, packed}, {out_two}, &full);
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(bph_execute(host.stream, &single, &error));
    ASSERT_OK(bph_execute(host.stream, &pair, &error));
  }
  EXPECT_EQ(host.read<float>(out_one, 2), (std::vector<float>{531, 642}));
  EXPECT_EQ(host.read<float>(out_two, 4), (std::vector<float>{531, 642, 9, 12}));
  const bph_stats after = host.stats();
  EXPECT_EQ(after.plans_created - before.plans_created, 2u) << "one row is another class than two";
  EXPECT_EQ(after.plan_hits - before.plan_hits, 4u);

  Host elsewhere(reference), another(dense);
  const bph_tensor x = elsewhere.tensor<float>(BP_F32, {1, 3}, {1, 1, 1}), y = elsewhere.empty(BP_F32, {1, 2}, 8);
  const Call moved(BP_OP_MATMUL, {x, packed}, {y}, &full);
  EXPECT_FAILS(bph_execute(elsewhere.stream, &moved, &error), BP_INVALID_ARGUMENT, "was packed on reference:0");
  const bph_tensor p = another.tensor<float>(BP_F32, {1, 3}, {1, 1, 1}), q = another.empty(BP_F32, {1, 2}, 8);
  const Call foreign(BP_OP_MATMUL, {p, packed}, {q}, &full);
  EXPECT_FAILS(bph_execute(another.stream, &foreign, &error), BP_INVALID_ARGUMENT, "was packed on reference:0");
  const bph_tensor r = another.tensor<float>(BP_F32, {3, 2}, {1, 2, 3, 4, 5, 6});
  const Call unpacked(BP_OP_MATMUL, {p, r}, {q}, &full);
  EXPECT_FAILS(bph_pack_query(another.device, &unpacked, 1, &info, &error), BP_UNSUPPORTED, "bp.pack");
}

TEST(Dispatch, GrowingLengthsMakeNoPlan) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {1, 1024}, iota(1024));
  const bph_tensor c = host.empty(BP_F32, {1, 1024}, 4096);
  const auto run = [&](int64_t length) {
    bph_tensor in = a, out = c;
    in.shape[1] = out.shape[1] = length;
    const Call call(BP_OP_NEG, {in}, {out});
    ASSERT_OK(bph_execute(host.stream, &call, &error));
  };
  run(2);
  const bph_stats before = host.stats();
  for (int64_t length = 3; length < 600; ++length) run(length);
  for (int64_t length = 500; length < 600; ++length) run(length);
  const bph_stats after = host.stats();
  EXPECT_EQ(after.plans_created, before.plans_created);
  EXPECT_EQ(after.plan_class_hits - before.plan_class_hits, 597u);
  EXPECT_EQ(after.plan_hits - before.plan_hits, 100u);
  EXPECT_EQ(host.read<float>(c, 600)[598], -598.0f);
}

TEST(Dispatch, FarViewsHaveAPlanOfTheirOwn) {
  Host host(reference);
  const auto run = [&](int64_t extent) {
    const bph_tensor none = host.empty(BP_F32, {extent, 0}, 0);
    const Call call(BP_OP_NEG, {none}, {none});
    ASSERT_OK(bph_execute(host.stream, &call, &error));
  };
  run(4);
  run(BP_NEAR_LIMIT - 1);
  EXPECT_EQ(host.stats().plans_created, 1u);
  run(BP_NEAR_LIMIT);
  EXPECT_EQ(host.stats().plans_created, 2u);
  run(INT64_MAX);
  EXPECT_EQ(host.stats().plans_created, 2u);
}

TEST(Dispatch, PlanCacheIsBounded) {
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.plan_cache_entries = 16;
  Host host(reference, &desc);
  const bph_tensor a = host.tensor<float>(BP_F32, {1024}, iota(1024));
  const bph_tensor c = host.empty(BP_F32, {1024}, 4096);
  for (int round = 0; round < 3; ++round) {
    for (int64_t length = 1; length <= 300; ++length) {
      bph_tensor in = a, out = c;
      in.shape[0] = out.shape[0] = length;
      const Call call(BP_OP_NEG, {in}, {out});
      ASSERT_OK(bph_execute(host.stream, &call, &error));
    }
  }
  const bph_stats stats = host.stats();
  EXPECT_LE(stats.plan_entries, 16u);
  EXPECT_GT(stats.plans_evicted, 200u);
  EXPECT_OK(bph_device_trim(host.device, 1, nullptr, &error));
  EXPECT_EQ(host.stats().plan_entries, 0u);
  const Call call(BP_OP_NEG, {a}, {c});
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.stats().plans_created, stats.plans_created + 1) << "a trimmed plan is made anew";
}

// Multiplies a `rows` x 2 matrix of ones by a 2 x 3 matrix of twos, in `times` executions.
void multiply(Host& host, int64_t rows, int times, uint64_t flags = 0, uint32_t op = BP_OP_MATMUL) {
  const auto count = static_cast<size_t>(rows);
  const bool linear = op == BP_OP_LINEAR;
  const bp_matmul_attributes full = {sizeof(full), BP_PRECISION_FULL};
  const bp_linear_attributes plain = {sizeof(plain), BP_ACTIVATION_NONE, BP_PRECISION_FULL, 0};
  const bph_tensor a = host.tensor<float>(BP_F32, {rows, 2}, std::vector<float>(count * 2, 1));
  const bph_tensor b = host.tensor<float>(BP_F32, linear ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{2, 3},
                                          std::vector<float>(6, 2));
  for (int i = 0; i < times; ++i) {
    const bph_tensor out = host.empty(BP_F32, {rows, 3}, count * 12);
    Call call(op, {a, b}, {out}, linear ? static_cast<const void*>(&plain) : &full);
    call.flags = flags;
    ASSERT_OK(bph_execute(host.stream, &call, &error));
    ASSERT_EQ(host.read<float>(out, count * 3), std::vector<float>(count * 3, 4)) << rows << " rows, use " << i;
  }
}

TEST(Dispatch, ASizeThatRecursGetsAPlanOfItsOwn) {
  Host host(dense);
  multiply(host, 9, 2);
  EXPECT_EQ(host.stats().plans_created, 1u);
  multiply(host, 9, 4);
  EXPECT_EQ(host.stats().plans_created, 2u) << "with the third use";
  EXPECT_EQ(host.stats().plans_specialized, 1u);
  multiply(host, 8, 4);
  EXPECT_EQ(host.stats().plans_created, 2u) << "the plugin has nothing faster for it";
  for (int64_t rows = 10; rows < 200; ++rows) multiply(host, rows, 1);
  EXPECT_EQ(host.stats().plans_created, 2u) << "sizes that grow make no plans";
  EXPECT_GE(host.stats().plan_class_hits, 190u);
  multiply(host, 9, 4, BP_OP_FLAG_DETERMINISTIC);
  EXPECT_EQ(host.stats().plans_specialized, 1u) << "a change of plan may change bits";
}

TEST(Dispatch, StepsOfACompositeThatRecursGetPlansOfTheirOwn) {
  Host host(dense);
  multiply(host, 9, 2, 0, BP_OP_LINEAR);
  const uint64_t before = host.stats().plans_created;
  EXPECT_EQ(host.stats().plans_specialized, 0u);
  multiply(host, 9, 4, 0, BP_OP_LINEAR);
  EXPECT_EQ(host.stats().plans_specialized, 1u);
  EXPECT_EQ(host.stats().plans_created, before + 1);
}

TEST(Dispatch, APlanForOneSizeIsNotAskedForByCalls) {
  Host host(dense);
  const bph_tensor a = host.tensor<float>(BP_F32, {2, 2}, std::vector<float>(4)), out = host.empty(BP_F32, {2, 2}, 16);
  Call call(BP_OP_ADD, {a, a}, {out});
  call.flags = BP_OP_FLAG_SPECIALIZE;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "flags 0x8");
}

TEST(Dispatch, SupportsTellsWithoutExecuting) {
  Host host(reference);
  bph_support support = {};
  support.struct_size = sizeof(support);
  bph_tensor view = {};
  view.dtype = BP_F32;
  view.rank = 1;
  view.shape[0] = 8;
  view.strides[0] = 1;
  const Call add(BP_OP_ADD, {view, view}, {view});
  EXPECT_OK(bph_device_supports(host.device, &add, &support, &error));
  EXPECT_TRUE(support.plan_flags & BP_PLAN_ANY_SIZE);
  bph_tensor whole = view;
  whole.dtype = BP_I32;
  const Call exp(BP_OP_EXP, {whole}, {whole});
  EXPECT_FAILS(bph_device_supports(host.device, &exp, &support, &error), BP_UNSUPPORTED, "input 0 is i32");
  Call hinted(BP_OP_ADD, {view, view}, {view});
  hinted.hints = 0x80000001u;
  // Unknown hints are ignored.
  EXPECT_OK(bph_device_supports(host.device, &hinted, &support, &error));
  EXPECT_EQ(host.stats().plans_created, 0u);
}

TEST(Staging, StridedOperandsGoThroughDenseTemporaries) {
  Host host(dense);
  const bph_tensor a = host.tensor<float>(BP_F32, {3, 4}, iota(12));
  const bph_tensor out = host.tensor<float>(BP_F32, {4, 6}, std::vector<float>(24, -1));
  bph_tensor transposed = a;
  std::swap(transposed.shape[0], transposed.shape[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  bph_tensor columns = out;
  columns.shape[1] = 3;
  columns.strides[1] = 2;
  bph_tensor hundred = columns;
  hundred.buffer = nullptr;
  hundred.flags = BPH_TENSOR_IMMEDIATE;
  hundred.immediate = bph_scalar_from_f64(BP_F32, 100);
  const Call call(BP_OP_SUB, {hundred, transposed}, {columns});
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  std::vector<float> expected(24, -1);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 3; ++j) expected[i * 6 + j * 2] = 100 - static_cast<float>(j * 4 + i);
  }
  EXPECT_EQ(host.read<float>(out, 24), expected);
  const bph_stats stats = host.stats();
  EXPECT_EQ(stats.staged_operands, 3u);
  EXPECT_EQ(stats.staged_bytes, 3u * 12 * 4);
}

TEST(Staging, OutputThatIsReadIsCopiedIn) {
  Host host(dense);
  const bph_tensor io = host.tensor<float>(BP_F32, {8}, {10, 0, 20, 0, 30, 0, 40, 0});
  bph_tensor every_other = io;
  every_other.shape[0] = 4;
  every_other.strides[0] = 2;
  const bph_tensor index = host.tensor<int32_t>(BP_I32, {3}, {3, 0, 9});
  const bph_tensor source = host.tensor<float>(BP_F32, {3}, {1, 2, 3});
  const bp_scatter_attributes add = {sizeof(add), 0, BP_SCATTER_ADD, 0};
  const Call call(BP_OP_SCATTER, {index, source}, {every_other}, &add);
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(io, 8), (std::vector<float>{12, 0, 20, 0, 30, 0, 41, 0}));
}

TEST(Staging, InPlaceOnStridedViews) {
  Host host(dense);
  const bph_tensor a = host.tensor<float>(BP_F32, {6}, iota(6));
  bph_tensor view = a;
  view.shape[0] = 3;
  view.strides[0] = 2;
  const Call call(BP_OP_SUB, {view, view}, {view});
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(a, 6), (std::vector<float>{0, 1, 0, 3, 0, 5}));
}

TEST(Fallback, IsAnErrorByDefault) {
  Host host(dense);
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, iota(4));
  const Call call(BP_OP_EXP, {a}, {a});
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_UNSUPPORTED, "exp");
  EXPECT_EQ(host.stats().fallback_executions, 0u);
}

TEST(Fallback, RunsElsewhereWhenAllowedAndIsCounted) {
  for (const uint32_t policy : {BPH_FALLBACK_WARN, BPH_FALLBACK_ALLOW}) {
    bph_device_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.fallback = policy;
    Host host(dense, &desc, REFERENCE_DIRECTORY);
    const bph_tensor a = host.tensor<float>(BP_F32, {6}, iota(6));
    const bph_tensor out = host.tensor<float>(BP_F32, {6}, std::vector<float>(6, -1));
    bph_tensor backwards = a;
    backwards.shape[0] = 3;
    backwards.strides[0] = -2;
    backwards.offset = 16;
    bph_tensor gaps = out;
    gaps.shape[0] = 3;
    gaps.strides[0] = 2;
    const Call call(BP_OP_SQRT, {backwards}, {gaps});
    EXPECT_OK(bph_execute(host.stream, &call, &error));
    EXPECT_OK(bph_execute(host.stream, &call, &error));
    const std::vector<float> got = host.read<float>(out, 6);
    EXPECT_EQ(got, (std::vector<float>{2, -1, std::sqrt(2.0f), -1, 0, -1}));
    EXPECT_EQ(host.stats().fallback_executions, 2u);
    EXPECT_GT(host.stats().fallback_bytes, 0u);
    EXPECT_EQ(host.log.size(), policy == BPH_FALLBACK_WARN ? 1u : 0u);
    bph_tensor wrong = gaps;
    wrong.offset = 4096;
    const Call bad(BP_OP_SQRT, {backwards}, {wrong});
    EXPECT_FAILS(bph_execute(host.stream, &bad, &error), BP_INVALID_ARGUMENT, "does not hold");
  }
}

TEST(Fallback, AbsentOperandsAtTheEndOfACallAreNoOperands) {
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.fallback = BPH_FALLBACK_ALLOW;
  Host host(dense, &desc, REFERENCE_DIRECTORY);
  const bp_linear_attributes attributes = {sizeof(attributes), BP_ACTIVATION_NONE, BP_PRECISION_FULL, 0};
  const bph_tensor x = host.tensor<float>(BP_F32, {1, 2}, {1, 10}),
                   w = host.tensor<float>(BP_F32, {2, 2}, {1, 2, 3, 4});
  const bph_tensor y = host.tensor<float>(BP_F32, {1, 2}, {0, 0});
  const Call call(BP_OP_LINEAR, {x, w, bph_tensor{}}, {y}, &attributes);
  ASSERT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(y, 2), (std::vector<float>{21, 43}));
}

TEST(Fallback, UnknownDeviceIsNamed) {
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.fallback = BPH_FALLBACK_ALLOW;
  desc.fallback_device = "nowhere:3";
  Host host(dense, &desc);
  const bph_tensor a = host.tensor<float>(BP_F32, {4}, iota(4));
  const Call call(BP_OP_EXP, {a}, {a});
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_UNAVAILABLE, "nowhere");
}

TEST(Dispatch, ManyThreadsShareOnePlanCache) {
  Host host(reference);
  const bph_tensor a = host.tensor<float>(BP_F32, {512}, iota(512));
  std::atomic<int> failures{0};
  std::vector<bph_tensor> outputs;
  for (int t = 0; t < 4; ++t) outputs.push_back(host.empty(BP_F32, {512}, 2048));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Owned<bph_stream> stream;
      if (bph_stream_create(host.device, nullptr, stream.out(), nullptr) != BP_OK) ++failures;
      for (int64_t round = 0; round < 400; ++round) {
        bph_tensor in = a, out = outputs[static_cast<size_t>(t)];
        in.shape[0] = out.shape[0] = 1 + round % 100;
        const Call call(BP_OP_NEG, {in}, {out});
        if (bph_execute(stream, &call, nullptr) != BP_OK) ++failures;
        if (round % 97 == 0 && bph_device_trim(host.device, 1, nullptr, nullptr) != BP_OK) ++failures;
      }
      if (bph_stream_wait(stream, BP_WAIT_FOREVER, nullptr) != BP_OK) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(host.read<float>(outputs[3], 100)[99], -99.0f);
}

TEST(Device, DescriptorsAreChecked) {
  Host host(reference);
  bph_device* device = nullptr;
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.fallback = 9;
  EXPECT_FAILS(bph_plugin_device_open(host.plugin, 0, &desc, &device, &error), BP_INVALID_ARGUMENT, "fallback is 9");
  desc.fallback = 0;
  desc.native_composites = 3;
  EXPECT_FAILS(bph_plugin_device_open(host.plugin, 0, &desc, &device, &error), BP_INVALID_ARGUMENT,
               "native_composites");
  desc.native_composites = 0;
  desc.options = "speed=11";
  EXPECT_FAILS(bph_plugin_device_open(host.plugin, 0, &desc, &device, &error), BP_UNSUPPORTED, "speed");
  EXPECT_FAILS(bph_plugin_device_open(host.plugin, 7, nullptr, &device, &error), BP_INVALID_ARGUMENT, "7");
  EXPECT_EQ(device, nullptr);
  EXPECT_FAILS(bph_plugin_device_open(host.plugin, 0, nullptr, nullptr, &error), BP_INVALID_ARGUMENT, "null");
  char name[8];
  EXPECT_FAILS(bph_device_name(host.device, name, sizeof(name), &error), BP_INVALID_ARGUMENT, "12 bytes");
}

TEST(Device, OutlivesItsParentsByItsChildren) {
  bph_registry_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
  desc.search_path = "";
  Owned<bph_registry> registry;
  Owned<bph_plugin> plugin;
  Owned<bph_device> device;
  Owned<bph_stream> stream;
  ASSERT_OK(bph_registry_create(&desc, registry.out(), &error));
  ASSERT_OK(bph_plugin_load(registry, reference.c_str(), plugin.out(), &error));
  ASSERT_OK(bph_plugin_device_open(plugin, 0, nullptr, device.out(), &error));
  ASSERT_OK(bph_stream_create(device, nullptr, stream.out(), &error));
  registry.reset();
  plugin.reset();
  bph_device* const released = device;
  device.reset();
  EXPECT_OK(bph_stream_wait(stream, BP_WAIT_FOREVER, &error));
  EXPECT_FAILS(bph_device_stats(released, nullptr, &error), BP_INVALID_ARGUMENT, "not a live device");
}

}  // namespace
}  // namespace backplane::core::test
