// SPDX-License-Identifier: Apache-2.0
// Runs a decode loop with the plugin whose path is in DECODE_PLUGIN. The cache of keys and values grows by one
// row per step. This growth must make no new plan, and a repeated step must allocate nothing.
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <new>

#include "host.hpp"

// Counts heap allocations of the whole process, including plugins. A sanitizer has its own
// allocator, so under a sanitizer only calls of operator new are counted.
namespace {
std::atomic<uint64_t> heap_calls{0};
}
#ifndef COUNTS_MALLOC
[[gnu::noinline]] void* operator new(size_t bytes) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  if (void* block = std::malloc(bytes)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }
#else
extern "C" {
// The functions of glibc's allocator, under the names that glibc exports for replacements of
// malloc.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
void* __libc_malloc(size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
void* malloc(size_t bytes) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = aligned_alloc(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}
#endif

namespace backplane::core::test {
namespace {

constexpr int64_t kHeads = 2, kDepth = 8, kWidth = kHeads * kDepth, kSteps = 512;
// The capacity of the cache in rows. It exceeds the number of steps, because views of a full cache
// would have a different plan class.
constexpr int64_t kCapacity = kSteps + 1;

// One layer of a decoder without learned weights. The layer computes the mean of the cached values, weighted by the
// softmax of the scores.
class Decode {
 public:
  explicit Decode(int64_t queries) : host_(std::getenv("DECODE_PLUGIN")), queries_(queries) {
    const auto cache = static_cast<size_t>(kHeads * kCapacity * kDepth);
    std::vector<float> values(cache);
    for (size_t i = 0; i < cache; ++i) values[i] = static_cast<float>(i % 13) / 8 - 0.5f;
    keys_ = host_.tensor<float>(BP_F32, {kHeads, kCapacity, kDepth}, values);
    values_ = host_.tensor<float>(BP_F32, {kHeads, kCapacity, kDepth}, values);
    const std::vector<float> weight(static_cast<size_t>(kWidth * kWidth), 0.125f);
    weight_ = host_.tensor<float>(BP_F32, {kWidth, kWidth}, weight);
    const auto rows = static_cast<size_t>(queries * kWidth);
    x_ = host_.tensor<float>(BP_F32, {queries, kWidth}, std::vector<float>(rows, 0.25f));
    y_ = host_.empty(BP_F32, {queries, kWidth}, rows * 4);
    q_ = host_.empty(BP_F32, {queries, kWidth}, rows * 4);
    scores_ =
        host_.empty(BP_F32, {kHeads, queries, kCapacity}, static_cast<uint64_t>(kHeads * queries * kCapacity) * 4);
    context_ = host_.empty(BP_F32, {kHeads, queries, kDepth}, rows * 4);
  }

  void step(int64_t length) {
    static constexpr bp_matmul_attributes kFull = {sizeof(kFull), BP_PRECISION_FULL};
    static constexpr bp_axis_attributes kLast = {sizeof(kLast), 2};
    run(BP_OP_MATMUL, {x_, weight_}, q_, &kFull);
    bph_tensor heads = q_;  // views [queries, heads * depth] as [heads, queries, depth]
    heads.rank = 3;
    heads.shape[0] = kHeads, heads.shape[1] = queries_, heads.shape[2] = kDepth;
    heads.strides[0] = kDepth, heads.strides[1] = kWidth, heads.strides[2] = 1;
    bph_tensor keys = keys_, values = values_, scores = scores_;
    keys.shape[1] = kDepth, keys.shape[2] = length;
    keys.strides[1] = 1, keys.strides[2] = kDepth;
    values.shape[1] = length;
    scores.shape[2] = length;
    run(BP_OP_MATMUL, {heads, keys}, scores, &kFull);
    run(BP_OP_SOFTMAX, {scores}, scores, &kLast);
    run(BP_OP_MATMUL, {scores, values}, context_, &kFull);
    bph_tensor merged = context_;
    merged.shape[0] = queries_, merged.shape[1] = kHeads;
    merged.strides[0] = kDepth, merged.strides[1] = queries_ * kDepth;
    bph_tensor sum = x_;
    sum.rank = 3;
    sum.shape[1] = kHeads, sum.shape[2] = kDepth;
    sum.strides[0] = kWidth, sum.strides[1] = kDepth, sum.strides[2] = 1;
    bph_tensor out = sum;
    out.buffer = y_.buffer;
    run(BP_OP_ADD, {sum, merged}, out, nullptr);
  }

  // Returns the expected first output element when the cache has `length` rows. Computes the
  // layer's formula in f64.
  double expected(int64_t length) const {
    const auto cached = [](int64_t i) { return static_cast<double>(i % 13) / 8 - 0.5; };
    double total = 0, sum = 0;
    for (int64_t l = 0; l < length; ++l) {
      double score = 0;
      for (int64_t k = 0; k < kDepth; ++k) score += kWidth * 0.25 * 0.125 * cached(l * kDepth + k);
      total += std::exp(score);
      sum += std::exp(score) * cached(l * kDepth);
    }
    return 0.25 + sum / total;
  }
  double got() { return static_cast<double>(host_.read<float>(y_, 1)[0]); }
  Host& host() { return host_; }

 private:
  void run(uint32_t op, std::initializer_list<bph_tensor> inputs, const bph_tensor& output, const void* attributes) {
    bph_call call = {};
    call.struct_size = sizeof(call);
    call.op = op;
    call.attributes = attributes;
    call.inputs = inputs.begin();
    call.outputs = &output;
    call.input_count = static_cast<uint32_t>(inputs.size());
    call.output_count = 1;
    EXPECT_OK(bph_execute(host_.stream, &call, &error));
  }

  Host host_;
  int64_t queries_;
  bph_tensor keys_, values_, weight_, x_, y_, q_, scores_, context_;
};

class DecodeTest : public testing::TestWithParam<int64_t> {};

TEST_P(DecodeTest, AGrowingCacheMakesNoPlans) {
  Decode decode(GetParam());
  for (int64_t length = 1; length <= 4; ++length) decode.step(length);
  const bph_stats before = decode.host().stats();
  for (int64_t length = 5; length <= kSteps; ++length) {
    decode.step(length);
    if (length % 100 == 0) {
      EXPECT_NEAR(decode.got(), decode.expected(length), 1e-5) << length;
    }
  }
  const bph_stats after = decode.host().stats();
  EXPECT_EQ(after.plans_created, before.plans_created);
  EXPECT_EQ(after.plans_specialized, before.plans_specialized);
  EXPECT_GE(after.plan_class_hits - before.plan_class_hits, 3u * (kSteps - 4));
}

TEST_P(DecodeTest, AStepThatWasMadeBeforeAllocatesNothing) {
  Decode decode(GetParam());
  bp_status status = BP_OK;
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) {
      decode.step(100);
      status |= bph_stream_wait(decode.host().stream, BP_WAIT_FOREVER, nullptr);
    }
  };
  steps(300);  // more than the maximum number of pending tasks; all reusable objects exist afterwards
  const uint64_t before = heap_calls.load();
  EXPECT_GT(before, 0u) << "nothing is counted";
  steps(20);
  EXPECT_EQ(heap_calls.load(), before);
  EXPECT_EQ(status, BP_OK);
}

INSTANTIATE_TEST_SUITE_P(Queries, DecodeTest, testing::Values(1, 4));

}  // namespace
}  // namespace backplane::core::test
