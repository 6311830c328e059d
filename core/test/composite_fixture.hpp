// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of composites, which runs decomposed calls on generated data.
#pragma once

#include <cmath>
#include <functional>

#include "host.hpp"

namespace backplane::core::test {

template <class Attributes>
Attributes sized(Attributes attributes) {
  attributes.struct_size = sizeof(attributes);
  return attributes;
}

using Values = std::vector<float>;

class Composite : public ::testing::Test {
 protected:
  Host host{REFERENCE_PLUGIN};
  uint32_t state = 1;

  // Generates numbers in [-1, 1) with a linear congruential generator.
  Values numbers(size_t count) {
    Values made(count);
    for (float& value : made) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
    }
    return made;
  }
  bph_tensor f32(const std::vector<int64_t>& shape, const Values& values) {
    return host.tensor<float>(BP_F32, shape, values);
  }
  bph_tensor i32(const std::vector<int64_t>& shape, const std::vector<int32_t>& values) {
    return host.tensor<int32_t>(BP_I32, shape, values);
  }
  static size_t count_of(const std::vector<int64_t>& shape) {
    size_t count = 1;
    for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
    return count;
  }
  bph_tensor out(const std::vector<int64_t>& shape, uint32_t dtype = BP_F32) {
    return host.empty(dtype, shape, count_of(shape) * bph_dtype_bytes(dtype));
  }
  void run(uint32_t op, std::vector<bph_tensor> in, std::vector<bph_tensor> outs, const void* attributes = nullptr,
           std::vector<uint64_t> scalars = {}) {
    Call call(op, std::move(in), std::move(outs), attributes, std::move(scalars));
    call.flags = BPH_CALL_NO_NATIVE;
    const uint64_t before = host.stats().decomposed_executions;
    ASSERT_OK(bph_execute(host.stream, &call, &error));
    EXPECT_EQ(host.stats().decomposed_executions, before + 1);
  }
  void expect_near(const bph_tensor& got, const std::vector<double>& wanted, double tolerance) {
    const Values values = host.read<float>(got, wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(static_cast<double>(values[i]), wanted[i], tolerance) << i;
  }
};

}  // namespace backplane::core::test
