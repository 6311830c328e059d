// SPDX-License-Identifier: Apache-2.0
// Tests the parts of the cuda plugin that concern only CUDA: architectures, results and contexts.
#include "gpu_host/test/device_test.hpp"
#include "runtime/architectures.hpp"
#include "runtime/stack.hpp"

namespace backplane::gpu_host::test {

Platform& platform() { return cuda::platform(); }

namespace {

using cuda::can_run;

TEST(Architectures, MachineCodeRunsOnLaterMinorVersions) {
  EXPECT_TRUE(can_run("sm_80", 8, 0));
  EXPECT_TRUE(can_run("sm_80", 8, 9));
  EXPECT_FALSE(can_run("sm_86", 8, 0));
  EXPECT_FALSE(can_run("sm_80", 9, 0));
  EXPECT_TRUE(can_run("sm_80,sm_100", 10, 3));
}

TEST(Architectures, PtxRunsOnAllLaterDevices) {
  EXPECT_TRUE(can_run("compute_90", 12, 0));
  EXPECT_FALSE(can_run("compute_90", 8, 9));
  EXPECT_TRUE(can_run("sm_80,compute_90", 12, 1));
}

TEST(Architectures, ASuffixMeansOneArchitecture) {
  EXPECT_TRUE(can_run("sm_90a", 9, 0));
  EXPECT_FALSE(can_run("sm_100a", 10, 3));
  EXPECT_FALSE(can_run("compute_90a", 10, 0));
}

TEST(Architectures, WordsThatAreNoneServeNoDevice) {
  for (const char* words : {"", "sm", "sm_", "sm_x", ","}) EXPECT_FALSE(can_run(words, 8, 0)) << words;
}

TEST(Results, AMessageNamesTheCallTheCodeAndTheRemedy) {
  cuda::Api api;
  api.cuGetErrorName = [](CUresult, const char** out) {
    *out = "CUDA_ERROR_OUT_OF_MEMORY";
    return CUDA_SUCCESS;
  };
  const kit::Status status = api.status_of(CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc");
  EXPECT_EQ(status.code(), BP_OUT_OF_MEMORY);
  EXPECT_EQ(status.vendor_code(), 2);
  EXPECT_EQ(status.message(),
            "cuda: cuMemAlloc returned 2, CUDA_ERROR_OUT_OF_MEMORY; free memory of the device and try again");
}

TEST(Graphs, ADriverWithoutTheirFunctionsHasNone) {
  const cuda::Api api;
  EXPECT_FALSE(cuda::Stack(api).has_graphs());
}

TEST_F(DeviceTest, TheDriverHasGraphs) { EXPECT_TRUE(context().stack().has_graphs()); }

TEST_F(DeviceTest, TheContextOfTheCallerStays) {
  const cuda::Api& cu = *cuda::Api::load().value();
  for (const int device : {0, 1}) {
    const auto own = static_cast<CUcontext>(context(device).handle());
    ASSERT_EQ(cu.cuCtxPushCurrent(own), CUDA_SUCCESS);
    use_device();
    CUcontext current = nullptr;
    ASSERT_EQ(cu.cuCtxPopCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, own) << "device " << device;
  }
}

}  // namespace

}  // namespace backplane::gpu_host::test
