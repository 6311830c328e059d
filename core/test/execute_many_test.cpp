// SPDX-License-Identifier: Apache-2.0
// Tests bph_execute_many.
#include <thread>

#include "host.hpp"

namespace backplane::core::test {
namespace {

using Floats = std::vector<float>;

TEST(ExecuteMany, ExecutesTheCallsInTheirOrder) {
  Host host(REFERENCE_PLUGIN);
  const bph_tensor a = host.tensor<float>(BP_F32, {2}, {1, 2});
  const bph_tensor b = host.tensor<float>(BP_F32, {2}, {3, 5});
  const Call add(BP_OP_ADD, {a, b}, {a}), multiply(BP_OP_MUL, {a, b}, {a});
  const bph_call* const calls[] = {&add, &multiply, &add};
  uint32_t done = 99;
  EXPECT_OK(bph_execute_many(host.stream, calls, 3, &done, &error));
  EXPECT_EQ(done, 3u);
  EXPECT_EQ(host.read<float>(a, 2), (Floats{15, 40}));
  EXPECT_OK(bph_execute_many(host.stream, calls, 1, nullptr, &error));
  EXPECT_EQ(host.read<float>(a, 2), (Floats{18, 45}));
  EXPECT_OK(bph_execute_many(host.stream, nullptr, 0, &done, &error));
  EXPECT_EQ(done, 0u);
}

TEST(ExecuteMany, StopsAtTheFirstCallThatFails) {
  Host host(REFERENCE_PLUGIN);
  const bph_tensor a = host.tensor<float>(BP_F32, {2}, {1, 2});
  const Call twice(BP_OP_ADD, {a, a}, {a});
  Call bad(BP_OP_ADD, {a, a}, {a});
  bad.output_views[0].offset = 4096;
  const bph_call* calls[] = {&twice, &twice, &bad, &twice};
  uint32_t done = 99;
  EXPECT_FAILS(bph_execute_many(host.stream, calls, 4, &done, &error), BP_INVALID_ARGUMENT, "add: output 0 touches");
  EXPECT_EQ(done, 2u);
  EXPECT_EQ(host.read<float>(a, 2), (Floats{4, 8}));
  calls[1] = nullptr;
  EXPECT_FAILS(bph_execute_many(host.stream, calls, 4, &done, &error), BP_INVALID_ARGUMENT, "bph_call 1 of 4 is null");
  EXPECT_EQ(done, 1u);
  EXPECT_EQ(host.read<float>(a, 2), (Floats{8, 16}));
  EXPECT_FAILS(bph_execute_many(host.stream, nullptr, 4, &done, &error), BP_INVALID_ARGUMENT, "calls is null");
  EXPECT_EQ(done, 0u);
  EXPECT_FAILS(bph_execute_many(nullptr, calls, 4, &done, &error), BP_INVALID_ARGUMENT, "the stream is null");
}

TEST(ExecuteMany, ASharedStreamRunsTheCallsTogether) {
  Host host(REFERENCE_PLUGIN);
  bph_stream_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.flags = BPH_STREAM_SHARED;
  Owned<bph_stream> shared;
  ASSERT_OK(bph_stream_create(host.device, &desc, shared.out(), &error));
  // Each thread stores its number in `common`, and adds the square of `common` minus this number to its sum. If calls
  // of another thread come between these calls, the sum is not 0.
  const bph_tensor common = host.tensor<float>(BP_F32, {1}, {0});
  std::vector<bph_tensor> sums;
  std::vector<std::thread> threads;
  for (int t = 1; t <= 3; ++t) {
    const bph_tensor number = host.tensor<float>(BP_F32, {1}, {static_cast<float>(t)});
    const bph_tensor difference = host.tensor<float>(BP_F32, {1}, {0});
    const bph_tensor& sum = sums.emplace_back(host.tensor<float>(BP_F32, {1}, {0}));
    threads.emplace_back([&shared, common, number, difference, sum] {
      const Call store(BP_OP_COPY, {number}, {common}), subtract(BP_OP_SUB, {common, number}, {difference});
      const Call square(BP_OP_MUL, {difference, difference}, {difference}), add(BP_OP_ADD, {sum, difference}, {sum});
      const bph_call* const calls[] = {&store, &subtract, &square, &add};
      for (int i = 0; i < 2000; ++i) EXPECT_EQ(bph_execute_many(shared, calls, 4, nullptr, nullptr), BP_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(bph_stream_wait(shared, BP_WAIT_FOREVER, &error));
  for (const bph_tensor& sum : sums) EXPECT_EQ(host.read<float>(sum, 1), (Floats{0}));
}

}  // namespace
}  // namespace backplane::core::test
