// SPDX-License-Identifier: Apache-2.0
// Compares attention with loops that compute in double: grouped queries (GQA), masks, rows whose keys are all masked,
// and tiles. Compares attention_bwd with difference quotients of these loops.
#include "composite_fixture.hpp"

namespace backplane::core::test {
namespace {

struct Problem {
  int64_t batches, heads, groups, queries, keys, depth, width;
  bool causal;
  float scale;
  float softcap = 0;
  size_t q_rows() const { return static_cast<size_t>(batches * heads * queries); }
  size_t kv_rows() const { return static_cast<size_t>(batches * groups * keys); }
};

struct Data {
  Values q, k, v, mask;  // the mask is added to the scores, and may be empty
  Values sinks = {};     // may be empty
};

// Returns row `row` of the expected output, computed in double. Stores the logarithm of the row's sum of exponentials
// in `*log_sum`.
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
    const auto softcap = static_cast<double>(p.softcap);
    if (softcap > 0) dot = softcap * std::tanh(dot / softcap);
    if (!data.mask.empty()) dot += static_cast<double>(data.mask[row * keys + j]);
    const bool hidden = p.causal && static_cast<int64_t>(j) > static_cast<int64_t>(row % queries) + p.keys - p.queries;
    weights[j] = hidden ? 0 : std::exp(dot);
    total += weights[j];
  }
  if (!data.sinks.empty()) total += std::exp(static_cast<double>(data.sinks[head]));
  *log_sum = std::log(total);
  for (size_t j = 0; j < keys && total > 0; ++j) {
    for (size_t e = 0; e < width; ++e)
      result[e] += weights[j] / total * static_cast<double>(data.v[(first + j) * width + e]);
  }
  return result;
}

class Attention : public Composite {
 protected:
  void check(const Problem& p, bool masked, bool sinks = false) {
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
    if (sinks) {
      data.sinks = numbers(static_cast<size_t>(p.heads));
      in.resize(4);  // if the mask is absent, adds a view without a dtype in its place
      in.push_back(f32({p.heads}, data.sinks));
    }
    const bph_tensor y = out({p.batches, p.heads, p.queries, p.width}), sums = out({p.batches, p.heads, p.queries});
    const auto attributes = sized(bp_attention_attributes{0, p.causal ? 1u : 0u, p.scale, 0, p.softcap, 0});
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

// The loss is the sum of dy * y over a few rows. Compares its derivative along a random direction
// with a central difference.
class AttentionBwd : public Composite {
 protected:
  void check(const Problem& p) {
    const Values q = numbers(p.q_rows() * static_cast<size_t>(p.depth)),
                 k = numbers(p.kv_rows() * static_cast<size_t>(p.depth)),
                 v = numbers(p.kv_rows() * static_cast<size_t>(p.width)), along_q = numbers(q.size()),
                 along_k = numbers(k.size()), along_v = numbers(v.size());
    const size_t width = static_cast<size_t>(p.width), step = std::max<size_t>(p.q_rows() / 32, 1);
    Values dy = numbers(p.q_rows() * width);
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = i / width % step == 0 ? dy[i] : 0;
    const auto loss = [&](float distance) {
      const auto moved = [&](Values values, const Values& along) {
        for (size_t i = 0; i < values.size(); ++i) values[i] += distance * along[i];
        return values;
      };
      const Data data{moved(q, along_q), moved(k, along_k), moved(v, along_v), {}};
      double total = 0, log_sum = 0;
      for (size_t row = 0; row < p.q_rows(); row += step) {
        const std::vector<double> y = row_of(p, data, row, &log_sum);
        for (size_t e = 0; e < width; ++e) total += y[e] * static_cast<double>(dy[row * width + e]);
      }
      return total;
    };
    const std::vector<int64_t> q_shape = {p.batches, p.heads, p.queries, p.depth},
                               k_shape = {p.batches, p.groups, p.keys, p.depth},
                               v_shape = {p.batches, p.groups, p.keys, p.width},
                               y_shape = {p.batches, p.heads, p.queries, p.width};
    const bph_tensor tq = f32(q_shape, q), tk = f32(k_shape, k), tv = f32(v_shape, v), y = out(y_shape),
                     sums = out({p.batches, p.heads, p.queries});
    const auto attributes = sized(bp_attention_attributes{0, p.causal ? 1u : 0u, p.scale, 0, p.softcap, 0});
    run(BP_OP_ATTENTION, {tq, tk, tv}, {y, sums}, &attributes);
    const bph_tensor dq = out(q_shape), dk = out(k_shape), dv = out(v_shape);
    run(BP_OP_ATTENTION_BWD, {f32(y_shape, dy), tq, tk, tv, y, sums}, {dq, dk, dv}, &attributes);
    double slope = 0, magnitude = 0;
    const auto add = [&](const bph_tensor& gradient, const Values& along) {
      const Values got = host.read<float>(gradient, along.size());
      for (size_t i = 0; i < along.size(); ++i) {
        slope += static_cast<double>(got[i]) * static_cast<double>(along[i]);
        magnitude += std::fabs(static_cast<double>(got[i]) * static_cast<double>(along[i]));
      }
    };
    add(dq, along_q), add(dk, along_k), add(dv, along_v);
    EXPECT_NEAR(slope, (loss(1e-3f) - loss(-1e-3f)) / 2e-3, 1e-3 * magnitude);
  }
};

TEST_F(AttentionBwd, HeadsShareKeys) { check({2, 6, 2, 5, 7, 4, 3, false, 0.5f}); }
TEST_F(AttentionBwd, CausalWithMoreKeys) { check({1, 2, 2, 3, 8, 4, 4, true, 1}); }
TEST_F(AttentionBwd, PartsOfTilesAddUp) { check({1, 2, 1, 5000, 3000, 4, 2, true, 1}); }

// Without queries, the gradients of keys and values are empty sums, which are 0.
TEST_F(AttentionBwd, WithoutQueriesGivesZeros) {
  const bph_tensor none = out({1, 2, 0, 4}), keys = f32({1, 2, 3, 4}, numbers(24));
  const bph_tensor dk = f32({1, 2, 3, 4}, numbers(24)), dv = f32({1, 2, 3, 4}, numbers(24));
  const auto attributes = sized(bp_attention_attributes{0, 0, 1, 0, 0, 0});
  run(BP_OP_ATTENTION_BWD, {none, none, keys, keys, none, out({1, 2, 0})}, {none, dk, dv}, &attributes);
  expect_near(dk, std::vector<double>(24), 0);
  expect_near(dv, std::vector<double>(24), 0);
}

TEST_F(AttentionBwd, SoftcapHasItsSlope) { check({1, 4, 2, 5, 6, 4, 3, false, 2, 0.5f}); }

TEST_F(Attention, SinksAreOneScorePerHead) {
  check({2, 6, 2, 5, 7, 4, 3, false, 0.5f}, false, true);
  check({2, 6, 3, 5, 7, 4, 3, true, 0.5f}, true, true);
}
TEST_F(Attention, SoftcapLimitsScoresBeforeTheMask) {
  check({2, 6, 2, 5, 7, 4, 3, false, 2, 0.5f}, true, false);
  check({2, 6, 2, 5, 7, 4, 3, false, 2, 0.5f}, true, true);
}
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
