// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "runtime/api.hpp"
#include "runtime/architectures.hpp"

namespace backplane::hip::test {

namespace {

TEST(Architectures, TheNamesAreEqual) {
  EXPECT_TRUE(can_run("gfx90a,gfx1030", "gfx1030"));
  EXPECT_TRUE(can_run("gfx90a", "gfx90a:sramecc+:xnack-"));
  EXPECT_FALSE(can_run("gfx90a", "gfx90"));
  EXPECT_FALSE(can_run("gfx1030", "gfx1031"));
}

TEST(Architectures, TheDeviceHasTheFeaturesOfTheKernels) {
  EXPECT_TRUE(can_run("gfx90a:xnack-", "gfx90a:sramecc+:xnack-"));
  EXPECT_TRUE(can_run("gfx90a:xnack+,gfx90a:xnack-", "gfx90a:sramecc+:xnack-"));
  EXPECT_FALSE(can_run("gfx90a:xnack+", "gfx90a:sramecc+:xnack-"));
  EXPECT_FALSE(can_run("gfx90a:xnack+", "gfx90a"));
}

TEST(Architectures, WordsThatAreNoneServeNoDevice) {
  for (const char* words : {"", ",", ":", ":xnack+"}) EXPECT_FALSE(can_run(words, "gfx90a")) << words;
  EXPECT_FALSE(can_run(",", ""));
}

TEST(Results, AMessageNamesTheCallTheCodeAndTheRemedyAndTheLastErrorIsReset) {
  static int resets = 0;
  Api api;
  api.hipGetLastError = [] {
    ++resets;
    return hipSuccess;
  };
  api.error_name = [](hipError_t) { return "hipErrorOutOfMemory"; };
  const kit::Status status = api.status_of(hipErrorOutOfMemory, "hipMalloc");
  EXPECT_EQ(status.code(), BP_OUT_OF_MEMORY);
  EXPECT_EQ(status.vendor_code(), 2);
  EXPECT_EQ(status.message(),
            "hip: hipMalloc returned 2, hipErrorOutOfMemory; free memory of the device and try again");
  EXPECT_EQ(resets, 1);
  EXPECT_TRUE(api.status_of(hipSuccess, "hipMalloc").ok());
  EXPECT_EQ(resets, 1);
}

}  // namespace

}  // namespace backplane::hip::test
