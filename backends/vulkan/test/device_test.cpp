// SPDX-License-Identifier: Apache-2.0
// Tests the cost of calls on the host (time and allocations), and which operands are rejected.
#include <ctime>
#include <random>
#include <set>

#include "rig.hpp"

namespace {

// Number of calls of operator new on this thread.
thread_local uint64_t allocations = 0;

}  // namespace

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new(std::size_t bytes) {
  if (void* memory = operator new(bytes, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace backplane::vulkan::test {

namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST_F(OnDevice, AnExecutionAllocatesNothing) {
  constexpr int kCalls = 1000;
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  double best = 1;
  for (int round = 0; round < 5; ++round) {
    const uint64_t before = allocations;
    const double start = thread_seconds();
    for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(rig.enqueue().ok());
    best = std::min(best, thread_seconds() - start);
    const uint64_t made = allocations - before;
    ASSERT_TRUE(rig.wait().ok());
    if (round > 0) {  // in the first round, lists grow to their final size
      EXPECT_EQ(made, 0u);
    }
  }
  RecordProperty("us_per_call", std::to_string(best / kCalls * 1e6));
  std::printf("%.2f us of the calling thread an execution, in batches of %d, driver included\n", best / kCalls * 1e6,
              kCalls);
}

TEST_F(OnDevice, WaitsForEventsAllocateNothingEither) {
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  Device::Stream* const other = need(rig.device->create_stream({}));
  Device::Event* const event = need(rig.device->create_event(0));
  // 20 executions precede each event, so that a wait usually finds its event pending, and the list of waits grows. If
  // an event completes early, the list grows in a later round, so kGrowths allocations are permitted from round 10 on.
  constexpr uint64_t kGrowths = 2;
  uint64_t made = 0;
  for (int round = 0; round < 50; ++round) {
    const uint64_t before = allocations;
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(rig.enqueue().ok());
    ASSERT_TRUE(rig.device->record(*event, *rig.stream).ok());
    ASSERT_TRUE(rig.device->wait_event(*other, *event).ok());
    ASSERT_TRUE(rig.enqueue(rig.desc, *other).ok());
    ASSERT_TRUE(other->wait(BP_WAIT_FOREVER).ok());
    if (round >= 10) made += allocations - before;
  }
  EXPECT_LE(made, kGrowths);
  rig.device->destroy(event);
  rig.device->destroy(other);
}

TEST_F(OnDevice, APlanOfDenseOperandsServesOtherSizes) {
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  ASSERT_TRUE(rig.plan->program->dense);
  for (const int64_t rows : {2, 16, 256}) {
    bp_tensor_desc views[3] = {rig.views[0], rig.views[1], rig.views[2]};
    bp_op_desc desc = rig.desc;
    desc.inputs = views;
    desc.outputs = views + 2;
    for (bp_tensor_desc& view : views) view.shape[0] = rows;
    EXPECT_TRUE(rig.enqueue(desc).ok()) << rows;
  }
  EXPECT_TRUE(rig.wait().ok());
}

// Random shapes of rank 2 to 4, dense or with gaps, for a plan of `op`.
struct Shapes {
  Shapes(uint32_t op, std::mt19937& random) {
    const auto pick = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
    const auto rank = static_cast<uint32_t>(1 + pick(3));
    const bool gaps = random() % 2 != 0;
    for (bp_tensor_desc& view : views) {
      view.dtype = BP_F32;
      view.rank = static_cast<uint8_t>(rank);
    }
    for (uint32_t i = 0; i < rank; ++i) {
      const int64_t extent = pick(100);
      for (bp_tensor_desc& view : views) view.shape[i] = extent;
    }
    reduce.struct_size = sizeof(reduce);
    reduce.axes = 1;
    if (op == BP_OP_REDUCE_SUM) views[2].shape[0] = 1;
    if (op == BP_OP_MATMUL) views[0].shape[rank - 1] = views[1].shape[rank - 2] = pick(100);
    for (bp_tensor_desc& view : views) {
      view = kit::dense_like(view);
      if (gaps) view.strides[0] += pick(100);
    }
    desc.struct_size = sizeof(desc);
    desc.op = op;
    matmul.struct_size = sizeof(matmul);
    if (op == BP_OP_REDUCE_SUM) desc.attributes = &reduce;
    if (op == BP_OP_MATMUL) desc.attributes = &matmul;
    desc.inputs = views;
    desc.input_count = op == BP_OP_ADD || op == BP_OP_MATMUL ? 2 : 1;
    desc.outputs = views + 2;
    desc.output_count = 1;
  }
  Shapes(const Shapes&) = delete;
  Shapes& operator=(const Shapes&) = delete;

  bp_tensor_desc views[3] = {};
  bp_reduce_attributes reduce{};
  bp_matmul_attributes matmul{};
  bp_op_desc desc{};
};

TEST_F(OnDevice, NoShapeCompilesAnything) {
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  std::mt19937 random(1);
  for (const uint32_t op : {BP_OP_ADD, BP_OP_EXP, BP_OP_REDUCE_SUM, BP_OP_MATMUL}) {
    std::set<VkPipeline> compiled;  // pipelines are never destroyed, so handles are unique
    std::size_t after_some = 0;
    for (int round = 0; round < 1032; ++round) {
      if (round == 32) after_some = compiled.size();  // every layout has occurred in the first 32 rounds
      const Shapes shapes(op, random);
      Device::Plan* plan = nullptr;
      bp_plan_info info{};
      const kit::Status status = rig.device->create_plan(&shapes.desc, &plan, info);
      ASSERT_TRUE(status.ok()) << status.message();
      const auto& pipelines = plan->program->pipelines;
      compiled.insert(pipelines.begin(), pipelines.end());
      rig.device->destroy(plan);
    }
    EXPECT_EQ(compiled.size(), after_some) << kit::find_op(op)->name;
  }
}

// Long work is divided, so that a driver does not consider it hung.
TEST_F(OnDevice, ALongGemmIsDivided) {
  constexpr int64_t kRows = 1536, kDepth = 1024, kColumns = 1408;  // 4.4e9 operations
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  bp_tensor_desc views[3] = {};
  const int64_t shapes[3][2] = {{kRows, kDepth}, {kDepth, kColumns}, {kRows, kColumns}};
  Device::Buffer* buffers[3];
  for (int i = 0; i < 3; ++i) {
    views[i].dtype = BP_F32;
    views[i].rank = 2;
    std::copy_n(shapes[i], 2, views[i].shape);
    views[i].strides[0] = shapes[i][1];
    views[i].strides[1] = 1;
    const auto bytes = static_cast<uint64_t>(shapes[i][0] * shapes[i][1]) * sizeof(float);
    buffers[i] = need(rig.device->create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_HOST, bytes, 0}));
  }
  const auto value = [&](int which, int64_t row, int64_t column) -> float& {
    return reinterpret_cast<float*>(buffers[which]->memory->mapped)[row * shapes[which][1] + column];
  };
  for (int64_t k = 0; k < kDepth; ++k) {
    for (int64_t m = 0; m < kRows; ++m) value(0, m, k) = static_cast<float>((m + 3 * k) % 7 - 3);
    for (int64_t n = 0; n < kColumns; ++n) value(1, k, n) = static_cast<float>((2 * n + k) % 5 - 2);
  }
  bp_op_desc desc = rig.desc;
  desc.op = BP_OP_MATMUL;
  bp_matmul_attributes attributes{};
  attributes.struct_size = sizeof(attributes);
  desc.attributes = &attributes;
  desc.inputs = views;
  desc.outputs = views + 2;
  const bp_operand operands[] = {whole(buffers[0]), whole(buffers[1]), whole(buffers[2])};
  const uint64_t before = rig.stream->queue().enqueued();
  const kit::Status status = execute_once(*rig.device, *rig.stream, desc, operands);
  EXPECT_TRUE(status.ok()) << status.message();
  const uint64_t dispatches = rig.stream->queue().enqueued() - before;
  if (instance->devices()[0].is_cpu()) {
    EXPECT_EQ(dispatches, 2u);
  }
  for (const int64_t m : {int64_t{0}, kRows / 2, kRows - 2, kRows - 1}) {
    for (const int64_t n : {int64_t{0}, int64_t{77}, kColumns - 1}) {
      float sum = 0;
      for (int64_t k = 0; k < kDepth; ++k) sum += value(0, m, k) * value(1, k, n);
      EXPECT_EQ(value(2, m, n), sum) << m << ", " << n;
    }
  }
  for (Device::Buffer* buffer : buffers) rig.device->destroy(buffer);
}

// With an any-size plan, an execution with an unsupported shape fails, and the error names the
// shape. A later execution with a supported shape succeeds.
TEST_F(OnDevice, AttentionNamesUnsupportedShapes) {
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  bp_tensor_desc views[4] = {};
  const auto describe = [&](int64_t depth, int64_t keys) {
    const int64_t shapes[4][4] = {{1, 1, 1, depth}, {1, 1, keys, depth}, {1, 1, keys, 4}, {1, 1, 1, 4}};
    for (uint32_t i = 0; i < 4; ++i) {
      views[i].dtype = BP_F32;
      views[i].rank = 4;
      std::copy_n(shapes[i], 4, views[i].shape);
    }
    for (bp_tensor_desc* view : {&views[2], &views[3]}) view->strides[3] = 1;  // the other strides are 0
  };
  bp_attention_attributes attributes{};
  attributes.struct_size = sizeof(attributes);
  attributes.scale = 1;
  bp_op_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.op = BP_OP_ATTENTION;
  desc.attributes = &attributes;
  desc.inputs = views;
  desc.input_count = 3;
  desc.outputs = views + 3;
  desc.output_count = 1;
  describe(8, 5);
  Device::Plan* plan = nullptr;
  bp_plan_info info{};
  kit::Status status = rig.device->create_plan(&desc, &plan, info);
  if (status.code() == BP_UNSUPPORTED) GTEST_SKIP() << status.message();
  ASSERT_TRUE(status.ok()) << status.message();
  const auto enqueue = [&] {
    bp_operand operands[4] = {};
    for (int i = 0; i < 4; ++i) operands[i] = whole(rig.buffers[std::max(i - 1, 0)]);
    return test::enqueue(*rig.device, *rig.stream, *plan, desc, operands);
  };
  rig.data(0)[0] = 0.5f;
  for (int i = 0; i < 4; ++i) rig.data(1)[i] = static_cast<float>(i + 1);

  describe(65537, 5);
  status = enqueue();
  EXPECT_EQ(status.code(), BP_UNSUPPORTED);
  EXPECT_NE(status.message().find("q [1,1,1,65537], k [1,1,5,65537]"), std::string::npos) << status.message();
  EXPECT_EQ(rig.device->create_plan(&desc, nullptr, info).code(), BP_UNSUPPORTED);
  for (const auto& [depth, keys] : {std::pair{65536, 3}, std::pair{8, 5}, std::pair{8, 100000}}) {
    describe(depth, keys);
    std::fill_n(rig.data(2), 4, 0.0f);
    status = enqueue();
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(rig.wait().ok());
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(rig.data(2)[i], static_cast<float>(i + 1), 1e-4f) << depth << ' ' << keys;
  }
  rig.device->destroy(plan);
}

TEST_F(OnDevice, ScratchIsOfOneStream) {
  Rig rig, other;
  ASSERT_TRUE(rig.open(instance).ok());
  ASSERT_TRUE(other.open(instance).ok());
  const uint64_t a = rig.stream->queue().scratch(), b = other.stream->queue().scratch();
  EXPECT_EQ(a % 256, 0u);
  EXPECT_TRUE(a + Stream::kScratchBytes <= b || b + Stream::kScratchBytes <= a);
}

}  // namespace

}  // namespace backplane::vulkan::test
