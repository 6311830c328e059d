// SPDX-License-Identifier: Apache-2.0
// Compares attention with loops in double: grouped queries (GQA), masks, rows whose keys are all
// masked, and tiles.
#include "composite_fixture.hpp"

namespace backplane::core::test {
namespace {

struct Problem {
  int64_t batches, heads, groups, queries, keys, depth, width;
  bool causal;
  float scale;
  size_t q_rows() const { return static_cast<size_t>(batches * heads * queries); }
  size_t kv_rows() const { return static_cast<size_t>(batches * groups * keys); }
};

struct Data {
  Values q, k, v, mask;  // the mask is added to the scores, and may be empty
};

// Computes one row of the result in double.
std::vector<double> row_of(const Problem& p, const Data& data, size_t row, double* log_sum) {
  const auto queries = static_cast<size_t>(p.queries), keys = static_cast<size_t>(p.keys);
  const auto depth = static_cast<size_t>(p.depth), width = static_cast<size_t>(p.width);
  const size_t head = row / queries % static_cast<size_t>(p.heads),
               batch = row / queries / static_cast<size_t>(p.heads);
  const size_t group = head / static_cast<size_t>(p.heads / p.groups);
  const size_t first = (batch * static_cast<size_t>(p.groups) + group) * keys;
  std::vector<double> weights(keys), result(width);
  double total = 0;
  for (size_t j = 0; j < keys; ++j) {
    double dot = 0;
    for (size_t d = 0; d < depth; ++d) {
      dot += static_cast<double>(data.q[row * depth + d]) * static_cast<double>(data.k[(first + j) * depth + d]);
    }
    dot *= static_cast<double>(p.scale);
    if (!data.mask.empty()) dot += static_cast<double>(data.mask[row * keys + j]);
    const bool hidden = p.causal && static_cast<int64_t>(j) > static_cast<int64_t>(row % queries) + p.keys - p.queries;
    weights[j] = hidden ? 0 : std::exp(dot);
    total += weights[j];
  }
  *log_sum = std::log(total);
  for (size_t j = 0; j < keys && total > 0; ++j) {
    for (size_t e = 0; e < width; ++e)
      result[e] += weights[j] / total * static_cast<double>(data.v[(first + j) * width + e]);
  }
  return result;
}

class Attention : public Composite {
 protected:
  void check(const Problem& p, bool masked) {
    Data data{numbers(p.q_rows() * static_cast<size_t>(p.depth)),
              numbers(p.kv_rows() * static_cast<size_t>(p.depth)),
              numbers(p.kv_rows() * static_cast<size_t>(p.width)),
              {}};
    std::vector<bph_tensor> in = {f32({p.batches, p.heads, p.queries, p.depth}, data.q),
                                  f32({p.batches, p.groups, p.keys, p.depth}, data.k),
                                  f32({p.batches, p.groups, p.keys, p.width}, data.v)};
    if (masked) {
      data.mask = numbers(p.q_rows() * static_cast<size_t>(p.keys));
      for (float& value : data.mask) value = value < -0.5f ? -INFINITY : value;
      // In the first row, every key is masked.
      for (size_t j = 0; j < static_cast<size_t>(p.keys); ++j) data.mask[j] = -INFINITY;
      in.push_back(f32({p.batches, p.heads, p.queries, p.keys}, data.mask));
    }
    const bph_tensor y = out({p.batches, p.heads, p.queries, p.width}), sums = out({p.batches, p.heads, p.queries});
    const auto attributes = sized(bp_attention_attributes{0, p.causal ? 1u : 0u, p.scale, 0});
    run(BP_OP_ATTENTION, in, {y, sums}, &attributes);
    const Values got = host.read<float>(y, p.q_rows() * static_cast<size_t>(p.width));
    const Values got_sums = host.read<float>(sums, p.q_rows());
    for (size_t row = 0; row < p.q_rows(); row += std::max<size_t>(p.q_rows() / 64, 1)) {
      double log_sum = 0;
      const std::vector<double> wanted = row_of(p, data, row, &log_sum);
      for (size_t e = 0; e < wanted.size(); ++e) {
        ASSERT_NEAR(static_cast<double>(got[row * wanted.size() + e]), wanted[e], 1e-5) << row;
      }
      if (std::isinf(log_sum)) {
        EXPECT_EQ(got_sums[row], -INFINITY);
      } else {
        EXPECT_NEAR(static_cast<double>(got_sums[row]), log_sum, 1e-4);
      }
    }
  }
};

TEST_F(Attention, HeadsShareKeys) { check({2, 6, 2, 5, 7, 4, 3, false, 0.5f}, false); }
TEST_F(Attention, CausalWithMoreKeysAndWithMoreQueries) {
  check({1, 2, 2, 3, 8, 4, 4, true, 1}, false);
  check({1, 2, 1, 8, 3, 4, 4, true, 1}, false);
}
TEST_F(Attention, MaskedRowsGiveZero) { check({2, 2, 1, 4, 6, 4, 2, true, 0.25f}, true); }

// All scores, 2 x 5000 x 3000 f32, would occupy 120 MB, but one tile has at most 64 MiB.
TEST_F(Attention, ScoresAreHeldInTiles) {
  check({1, 2, 1, 5000, 3000, 4, 2, true, 1}, false);
  EXPECT_LT(host.stats().workspace_bytes, 90u << 20);
}

}  // namespace
}  // namespace backplane::core::test
