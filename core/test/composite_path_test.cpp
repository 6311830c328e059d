// SPDX-License-Identifier: Apache-2.0
// Tests which path a composite takes, the cost of that path, and the message if there is no path.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <thread>

#include "composite_fixture.hpp"

namespace {
std::atomic<uint64_t> heap_calls{0};
}

[[gnu::noinline]] void* operator new(size_t bytes) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  void* block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }

namespace backplane::core::test {
namespace {

const bp_axis_attributes last_axis = {sizeof(last_axis), 1};

bph_support support_of(const Host& host, bph_call& call) {
  bph_support support = {};
  support.struct_size = sizeof(support);
  EXPECT_OK(bph_device_supports(host.device, &call, &support, &error));
  return support;
}

// A device that is opened with or without native composites.
struct Asked {
  explicit Asked(uint32_t native, const char* plugin = NULL_PLUGIN) : desc{}, host(plugin, described(native)) {}
  const bph_device_desc* described(uint32_t native) {
    desc.struct_size = sizeof(desc);
    desc.native_composites = native;
    return &desc;
  }
  bph_device_desc desc;
  Host host;
};

TEST(CompositePath, NativeWhereThePluginHasItUnlessForbidden) {
  for (const uint32_t native : {1u, 2u}) {
    Asked asked(native);
    Host& host = asked.host;
    const bph_tensor x = host.tensor<float>(BP_F32, {2, 3}, std::vector<float>(6)), y = host.empty(BP_F32, {2, 3}, 24);
    Call call(BP_OP_SOFTMAX, {x}, {y}, &last_axis);
    EXPECT_EQ(support_of(host, call).path, native == 1 ? BPH_PATH_NATIVE : BPH_PATH_DECOMPOSED);
    EXPECT_OK(bph_execute(host.stream, &call, &error));
    EXPECT_EQ(host.stats().decomposed_executions, native == 1 ? 0u : 1u);
    call.flags = BPH_CALL_NO_NATIVE;
    EXPECT_EQ(support_of(host, call).path, BPH_PATH_DECOMPOSED);
    EXPECT_OK(bph_execute(host.stream, &call, &error));
    EXPECT_EQ(host.stats().decomposed_executions, native == 1 ? 1u : 2u);
  }
}

TEST(CompositePath, TheEnvironmentForbidsNative) {
  ASSERT_EQ(setenv("BACKPLANE_NATIVE", "off", 1), 0);
  {
    Asked asked(0);
    const bph_tensor x = asked.host.empty(BP_F32, {2, 3}, 0);
    Call call(BP_OP_SILU, {x}, {x});
    EXPECT_EQ(support_of(asked.host, call).path, BPH_PATH_DECOMPOSED);
  }
  ASSERT_EQ(unsetenv("BACKPLANE_NATIVE"), 0);
}

TEST(CompositePath, DecomposedWhereThePluginHasItNot) {
  Host host(REFERENCE_PLUGIN);
  const bph_tensor x = host.tensor<float>(BP_F32, {2, 2}, std::vector<float>{1, 1, 0, 0});
  const bph_tensor y = host.empty(BP_F32, {2, 2}, 16);
  Call call(BP_OP_SOFTMAX, {x}, {y}, &last_axis);
  const bph_support support = support_of(host, call);
  EXPECT_EQ(support.path, BPH_PATH_DECOMPOSED);
  EXPECT_GT(support.workspace_bytes, 0u) << "its temporaries";
  EXPECT_EQ(host.stats().plans_created, 0u) << "asking makes no plan";
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(y, 4), std::vector<float>(4, 0.5f));
}

TEST(CompositePath, AKnownDescriptorAllocatesNothing) {
  for (const char* plugin : {REFERENCE_PLUGIN, NULL_PLUGIN}) {
    Host host(plugin);
    const bph_tensor x = host.tensor<float>(BP_F32, {4, 8}, std::vector<float>(32, 0.5f));
    const bph_tensor gamma = host.tensor<float>(BP_F32, {8}, std::vector<float>(8, 1.0f));
    const bph_tensor y = host.empty(BP_F32, {4, 8}, 128);
    const bp_norm_attributes attributes = {sizeof(attributes), 2, 1e-5f, 0};
    Call call(BP_OP_LAYER_NORM, {x, gamma}, {y}, &attributes);
    call.flags = BPH_CALL_NO_NATIVE;
    ASSERT_OK(bph_execute(host.stream, &call, &error));
    const bph_stats before = host.stats();
    const uint64_t heap_before = heap_calls.load();
    bp_status status = BP_OK;
    for (int i = 0; i < 50; ++i) status |= bph_execute(host.stream, &call, nullptr);
    EXPECT_EQ(heap_calls.load(), heap_before) << plugin;
    EXPECT_EQ(status, BP_OK);
    const bph_stats after = host.stats();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.plans_created, before.plans_created);
    EXPECT_EQ(after.plan_hits - before.plan_hits, 50u);
    EXPECT_EQ(after.executions - before.executions, 50u) << "a composite counts once";
    EXPECT_EQ(after.decomposed_executions - before.decomposed_executions, 50u);
  }
}

// The weight is transposed and the bias is broadcast, so the plugin cannot read either without
// staging.
TEST(CompositePath, PrimitivesAreStagedAsUsual) {
  Host host(DENSE_PLUGIN);
  const bph_tensor x = host.tensor<float>(BP_F32, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const bph_tensor w = host.tensor<float>(BP_F32, {2, 3}, std::vector<float>{1, 0, 2, 0, 3, 0});
  const bph_tensor bias = host.tensor<float>(BP_F32, {2}, std::vector<float>{10, 20});
  const bph_tensor y = host.empty(BP_F32, {2, 2}, 16);
  const bp_linear_attributes attributes = {sizeof(attributes), BP_ACTIVATION_NONE, BP_PRECISION_FULL, 0};
  const Call call(BP_OP_LINEAR, {x, w, bias}, {y}, &attributes);
  for (int i = 0; i < 3; ++i) ASSERT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(y, 4), (std::vector<float>{17, 26, 26, 35}));
  EXPECT_EQ(host.stats().staged_operands, 3u * 2);
}

TEST(CompositePath, SizesThatGrowMakeNoPlan) {
  Host host(REFERENCE_PLUGIN);
  const bph_tensor x = host.tensor<float>(BP_F32, {2, 512}, std::vector<float>(1024, 1.0f));
  const bph_tensor y = host.empty(BP_F32, {2, 512}, 4096);
  const auto run = [&](int64_t n) {
    bph_tensor in = x, out = y;
    in.shape[1] = out.shape[1] = in.strides[0] = out.strides[0] = n;
    const Call call(BP_OP_SOFTMAX, {in}, {out}, &last_axis);
    ASSERT_OK(bph_execute(host.stream, &call, &error));
    EXPECT_NEAR(host.read<float>(y, 1)[0], 1.0f / static_cast<float>(n), 1e-6f);
  };
  run(2);
  const uint64_t plans = host.stats().plans_created;
  for (int64_t n = 3; n < 100; ++n) run(n);
  EXPECT_EQ(host.stats().plans_created, plans);
}

TEST(CompositePath, DeterminismIsAskedOfEveryPrimitive) {
  Host host(REFERENCE_PLUGIN);
  const bph_tensor x = host.tensor<float>(BP_F32, {1, 2}, std::vector<float>{3, 3});
  Call call(BP_OP_SOFTMAX, {x}, {x}, &last_axis);
  call.flags = BP_OP_FLAG_DETERMINISTIC;
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(x, 2), (std::vector<float>{0.5f, 0.5f}));
}

TEST(CompositePath, ManyStreamsShareAProgram) {
  Host host(REFERENCE_PLUGIN);
  const bph_tensor x = host.tensor<float>(BP_F32, {1, 64}, std::vector<float>(64, 1.0f));
  std::vector<bph_tensor> outputs;
  for (int t = 0; t < 4; ++t) outputs.push_back(host.empty(BP_F32, {1, 64}, 256));
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (const bph_tensor& output : outputs) {
    threads.emplace_back([&, output] {
      Owned<bph_stream> stream;
      if (bph_stream_create(host.device, nullptr, stream.out(), nullptr) != BP_OK) ++failures;
      for (int64_t round = 0; round < 200; ++round) {
        bph_tensor in = x, out = output;
        in.shape[1] = out.shape[1] = round < 199 ? 1 + round % 20 : 64;
        const Call call(BP_OP_SOFTMAX, {in}, {out}, &last_axis);
        if (bph_execute(stream, &call, nullptr) != BP_OK) ++failures;
        if (round % 67 == 0 && bph_device_trim(host.device, 1, nullptr, nullptr) != BP_OK) ++failures;
      }
      if (bph_stream_wait(stream, BP_WAIT_FOREVER, nullptr) != BP_OK) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  for (const bph_tensor& output : outputs) {
    EXPECT_EQ(host.read<float>(output, 64), std::vector<float>(64, 1.0f / 64));
  }
}

TEST(CompositePath, AMissingPrimitiveIsNamed) {
  Host host(DENSE_PLUGIN);
  const bph_tensor x = host.tensor<float>(BP_F32, {2, 2}, std::vector<float>(4, 1.0f));
  const Call call(BP_OP_SOFTMAX, {x}, {x}, &last_axis);
  for (const char* word : {"dense:0", "softmax is not native", "reduce_max of f32"}) {
    EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_UNSUPPORTED, word);
  }
  bph_support support = {};
  support.struct_size = sizeof(support);
  EXPECT_FAILS(bph_device_supports(host.device, &call, &support, &error), BP_UNSUPPORTED, "reduce_max of f32");
  EXPECT_EQ(host.stats().decomposed_executions, 0u);
}

TEST(CompositePath, TheFallbackTakesTheWholeComposite) {
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.fallback = BPH_FALLBACK_ALLOW;
  Host host(DENSE_PLUGIN, &desc, REFERENCE_DIRECTORY);
  const bph_tensor x = host.tensor<float>(BP_F32, {1, 2}, std::vector<float>{3, 3});
  Call call(BP_OP_SOFTMAX, {x}, {x}, &last_axis);
  EXPECT_EQ(support_of(host, call).path, BPH_PATH_FALLBACK);
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(x, 2), (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(host.stats().fallback_executions, 1u);
  EXPECT_EQ(host.stats().decomposed_executions, 0u);
}

// A framework's allocator with a limit on its memory.
struct Bounded {
  uint64_t left = UINT64_MAX;
  std::vector<bph_buffer*> lent{};
  bph_allocator table{sizeof(bph_allocator), 0, this, allocate, release};

  static bp_status allocate(void* context, bph_device* device, uint32_t kind, uint64_t bytes, uint64_t alignment,
                            bph_stream* stream, bph_buffer** out, uint64_t* offset, bp_error* error) {
    auto& self = *static_cast<Bounded*>(context);
    if (bytes > self.left) return BP_OUT_OF_MEMORY;
    bph_buffer_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.kind = kind;
    desc.bytes = bytes;
    desc.alignment = alignment;
    desc.flags = BPH_BUFFER_RAW;
    desc.stream = stream;
    *offset = 0;
    const bp_status status = bph_buffer_create(device, &desc, out, error);
    if (status == BP_OK) self.lent.push_back(*out);
    return status;
  }
  static void release(void* context, bph_buffer* buffer, uint64_t, uint64_t, bph_stream*) {
    auto& self = *static_cast<Bounded*>(context);
    std::erase(self.lent, buffer);
    bph_buffer_release(buffer);
  }
};

TEST(CompositePath, OutOfMemoryLeavesNothingBehind) {
  Bounded bounded;
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.allocator = &bounded.table;
  {
    Host host(REFERENCE_PLUGIN, &desc);
    const bph_tensor x = host.tensor<float>(BP_F32, {1, 1024}, std::vector<float>(1024, 2.0f));
    const bph_tensor y = host.tensor<float>(BP_F32, {1, 1024}, std::vector<float>(1024, -1.0f));
    const Call call(BP_OP_SOFTMAX, {x}, {y}, &last_axis);
    const size_t lent = bounded.lent.size();
    bounded.left = 512;
    EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_OUT_OF_MEMORY, "");
    EXPECT_EQ(bounded.lent.size(), lent);
    EXPECT_EQ(host.read<float>(y, 1024), std::vector<float>(1024, -1.0f)) << "nothing was written";
    bounded.left = UINT64_MAX;
    EXPECT_OK(bph_execute(host.stream, &call, &error));
    EXPECT_EQ(host.read<float>(y, 1)[0], 1.0f / 1024);
  }
  EXPECT_TRUE(bounded.lent.empty());
}

TEST(CompositePath, ATraceNamesTheCompositeOfEachPrimitive) {
  const std::string path = testing::TempDir() + "composite_trace_" + std::to_string(getpid()) + ".json";
  const char* before = std::getenv("BACKPLANE_LAYERS");
  const std::string layers = before == nullptr ? "" : before;
  ASSERT_EQ(setenv("BACKPLANE_LAYERS", "trace", 1), 0);
  ASSERT_EQ(setenv("BACKPLANE_TRACE", path.c_str(), 1), 0);
  {
    Host host(REFERENCE_PLUGIN);
    const bph_tensor x = host.tensor<float>(BP_F32, {1, 2}, std::vector<float>{3, 3});
    const Call call(BP_OP_SOFTMAX, {x}, {x}, &last_axis);
    EXPECT_OK(bph_execute(host.stream, &call, &error));
  }
  ASSERT_EQ(before == nullptr ? unsetenv("BACKPLANE_LAYERS") : setenv("BACKPLANE_LAYERS", layers.c_str(), 1), 0);
  ASSERT_EQ(unsetenv("BACKPLANE_TRACE"), 0);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  size_t named = 0;
  for (size_t i = text.find("softmax"); i != std::string::npos; i = text.find("softmax", i + 1)) ++named;
  EXPECT_GE(named, 5u) << "max, sub, exp, sum, div: " << text;
  unlink(path.c_str());
}

TEST(CompositePath, NothingToWriteIsNothingToDo) {
  Host host(REFERENCE_PLUGIN);
  const bph_tensor x = host.empty(BP_F32, {0, 7}, 0);
  const Call call(BP_OP_SOFTMAX, {x}, {x}, &last_axis);
  EXPECT_OK(bph_execute(host.stream, &call, &error));
}

}  // namespace
}  // namespace backplane::core::test
