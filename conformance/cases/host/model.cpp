// SPDX-License-Identifier: Apache-2.0
// Compares small models of primitives on the device with the same models in double on the host.
#include <cmath>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/host/math.hpp"

namespace backplane::conformance {

namespace {

struct Weights {
  std::vector<Array> arrays;
  std::vector<int32_t> rows;
};

template <typename Math>
using Values = std::vector<typename Math::Value>;

// In each model, `draw_all` draws the inputs and weights, and `run` receives them as `w` in the
// same order.
struct Mlp {
  static Weights draw_all(Context& context) {
    return {{draw(context, {32, 16}, 1), draw(context, {16, 48}, 0.4), draw(context, {1, 48}, 0.2),
             draw(context, {48, 24}, 0.3), draw(context, {1, 24}, 0.2), draw(context, {24, 10}, 0.4)},
            {}};
  }
  template <typename Math>
  static typename Math::Value run(Math& math, const Values<Math>& w, const Weights&) {
    const auto first = math.relu(math.add(math.matmul(w[0], w[1]), w[2]));
    const auto second = math.tanh(math.add(math.matmul(first, w[3]), w[4]));
    return softmax(math, math.matmul(second, w[5]), 1);
  }
};

struct Convolution {
  static Weights draw_all(Context& context) {
    return {{draw(context, {3, 2, 10, 10}, 1), draw(context, {18, 8}, 0.3), draw(context, {1, 8}, 0.2),
             draw(context, {72, 6}, 0.2), draw(context, {6, 5}, 0.5)},
            {}};
  }
  template <typename Math>
  static typename Math::Value run(Math& math, const Values<Math>& w, const Weights&) {
    auto x = math.relu(math.add(math.matmul(math.patches(w[0], 3), w[1]), w[2]));  // shape [3*8*8, 8]
    x = math.permute(math.reshape(x, {3, 8, 8, 8}), {0, 3, 1, 2});
    x = math.relu(math.matmul(math.patches(math.reshape(x, {3, 8, 8, 8}), 3), w[3]));  // shape [3*6*6, 6]
    x = math.times(math.sum(math.reshape(x, {3, 36, 6}), 2), 1.0 / 36);
    x = math.matmul(math.reshape(x, {3, 6}), w[4]);
    return math.log(softmax(math, x, 1));
  }
};

struct Attention {
  static Weights draw_all(Context& context) {
    return {{draw(context, {12, 16}, 1), draw(context, {16, 16}, 0.4), draw(context, {16, 16}, 0.4),
             draw(context, {16, 16}, 0.4), draw(context, {16, 16}, 0.4)},
            {}};
  }
  template <typename Math>
  static typename Math::Value run(Math& math, const Values<Math>& w, const Weights&) {
    const auto heads = [&](const typename Math::Value& by) {
      return math.permute(math.reshape(math.matmul(w[0], by), {12, 4, 4}), {1, 0, 2});
    };
    const auto q = heads(w[1]), k = heads(w[2]), v = heads(w[3]);
    const auto scores = math.causal(math.times(math.matmul(q, math.transpose(k)), 0.5), -1e9);
    const auto mixed = math.matmul(softmax(math, scores, 2), v);
    const auto joined = math.reshape(math.permute(mixed, {1, 0, 2}), {12, 16});
    return normalized(math, math.add(w[0], math.matmul(joined, w[4])), 16);
  }
};

struct FeedForward {
  static Weights draw_all(Context& context) {
    return {{draw(context, {20, 24}, 2), draw(context, {24, 96}, 0.2), draw(context, {1, 96}, 0.1),
             draw(context, {96, 24}, 0.2)},
            {}};
  }
  template <typename Math>
  static typename Math::Value run(Math& math, const Values<Math>& w, const Weights&) {
    const auto wide = gelu(math, math.add(math.matmul(normalized(math, w[0], 24), w[1]), w[2]));
    return normalized(math, math.add(w[0], math.matmul(wide, w[3])), 24);
  }
};

struct Recurrent {
  static Weights draw_all(Context& context) {
    return {{draw(context, {6, 10}, 1), draw(context, {10, 10}, 0.4), draw(context, {6, 10}, 0.5)}, {}};
  }
  template <typename Math>
  static typename Math::Value run(Math& math, const Values<Math>& w, const Weights&) {
    auto state = w[0];
    for (int step = 0; step < 12; ++step)
      state = math.tanh(math.add(math.matmul(state, w[1]), math.times(w[2], 1.0 / (step + 1))));
    return state;
  }
};

struct Embedding {
  static Weights draw_all(Context& context) {
    Weights made = {{draw(context, {30, 12}, 1), draw(context, {12, 4}, 0.5)}, {}};
    for (int i = 0; i < 18; ++i) made.rows.push_back(static_cast<int32_t>(context.below(30)));
    return made;
  }
  template <typename Math>
  static typename Math::Value run(Math& math, const Values<Math>& w, const Weights& weights) {
    const auto rows = math.cumsum(math.gather_rows(w[0], weights.rows), 0);
    return math.cos(math.sin(math.matmul(math.times(rows, 0.1), w[1])));
  }
};

template <typename Model, typename Math>
Array run_on(Math& math, const Weights& weights) {
  Values<Math> values;
  for (const Array& each : weights.arrays) values.push_back(math.constant(each));
  return math.read(Model::run(math, values, weights));
}

template <typename Model>
void agrees(Context& context) {
  HostSide side(context);
  DeviceMath device(side.stream);
  HostMath host;
  for (int round = 0; round < 3; ++round) {
    const Weights weights = Model::draw_all(context);
    const Array got = run_on<Model>(device, weights), expected = run_on<Model>(host, weights);
    context.require(got.shape == expected.shape && got.values.size() == expected.values.size(),
                    "the results have different shapes");
    for (size_t i = 0; i < got.values.size(); ++i) {
      const double error = std::abs(got.values[i] - expected.values[i]),
                   bound = 1e-4 * (1 + std::abs(expected.values[i]));
      context.note_error(error / bound);
      context.require(error <= bound, "element {} of {} is {}, in double precision {}; the bound is {}", i,
                      got.values.size(), got.values[i], expected.values[i], bound);
    }
  }
}

}  // namespace

void add_host_model_cases(Catalogue& catalogue) {
  const auto add = [&](const char* name, void (*run)(Context&)) {
    catalogue.push_back({.id = fmt::format("host.model.{}", name),
                         .profile = BP_PROFILE_INFER,
                         .requirements = {"BP-USE-008"},
                         .run = not_claimed_where_declined(run)});
  };
  add("mlp", agrees<Mlp>);
  add("convolution", agrees<Convolution>);
  add("attention", agrees<Attention>);
  add("feed_forward", agrees<FeedForward>);
  add("recurrent", agrees<Recurrent>);
  add("embedding", agrees<Embedding>);
}

}  // namespace backplane::conformance
