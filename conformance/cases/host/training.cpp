// SPDX-License-Identifier: Apache-2.0
// Gradients against finite differences, and training against the same training in double.
#include <cmath>

#include "cases/host/host_side.hpp"
#include "cases/host/math.hpp"

namespace bp::conformance {

namespace {

using V = backplane::Tensor;

Array draw(Context& context, const Shape& shape, double scale) {
  Array made = {shape, {}};
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  for (int64_t i = 0; i < count; ++i)
    made.values.push_back(static_cast<float>((static_cast<double>(context.below(2001)) - 1000) / 1000 * scale));
  return made;
}

// A chain of operators f(x), some with a weight w; and the gradient of sum(c * f(x)) by x, written out.
struct Chain {
  const char* name;
  V (*forward)(DeviceMath&, const V& x, const V& w);
  V (*gradient)(DeviceMath&, const V& x, const V& w, const V& c);
};

V one_less_square(DeviceMath& m, const V& y) { return m.plus(m.times(m.mul(y, y), -1), 1); }

const Chain chains[] = {
    {"matmul_tanh", [](DeviceMath& m, const V& x, const V& w) { return m.tanh(m.matmul(x, w)); },
     [](DeviceMath& m, const V& x, const V& w, const V& c) {
       return m.matmul(m.mul(one_less_square(m, m.tanh(m.matmul(x, w))), c), m.transpose(w));
     }},
    {"two_layers", [](DeviceMath& m, const V& x, const V& w) { return m.tanh(m.matmul(m.tanh(m.matmul(x, w)), w)); },
     [](DeviceMath& m, const V& x, const V& w, const V& c) {
       const V h = m.tanh(m.matmul(x, w)), y = m.tanh(m.matmul(h, w));
       const V dh = m.matmul(m.mul(one_less_square(m, y), c), m.transpose(w));
       return m.matmul(m.mul(one_less_square(m, h), dh), m.transpose(w));
     }},
    {"softmax", [](DeviceMath& m, const V& x, const V&) { return softmax(m, x, 1); },
     [](DeviceMath& m, const V& x, const V&, const V& c) {
       const V y = softmax(m, x, 1);
       return m.mul(y, m.sub(c, m.sum(m.mul(c, y), 2)));
     }},
    {"log_softmax", [](DeviceMath& m, const V& x, const V&) { return m.log(softmax(m, x, 1)); },
     [](DeviceMath& m, const V& x, const V&, const V& c) { return m.sub(c, m.mul(softmax(m, x, 1), m.sum(c, 2))); }},
    {"gelu", [](DeviceMath& m, const V& x, const V&) { return gelu(m, x); },
     [](DeviceMath& m, const V& x, const V&, const V& c) {
       const V share = m.times(m.plus(m.erf(m.times(x, 0.70710678118654752)), 1), 0.5);
       const V density = m.times(m.exp(m.times(m.mul(x, x), -0.5)), 0.39894228040143268);
       return m.mul(c, m.add(share, m.mul(x, density)));
     }},
    {"normalized", [](DeviceMath& m, const V& x, const V&) { return normalized(m, x, 8); },
     [](DeviceMath& m, const V& x, const V&, const V& c) {
       const V y = normalized(m, x, 8), centred = m.sub(x, m.times(m.sum(x, 2), 0.125));
       const V root = m.rsqrt(m.plus(m.times(m.sum(m.mul(centred, centred), 2), 0.125), 1e-5));
       const V inner = m.sub(m.sub(c, m.times(m.sum(c, 2), 0.125)), m.mul(y, m.times(m.sum(m.mul(c, y), 2), 0.125)));
       return m.mul(root, inner);
     }},
    {"sin_cos", [](DeviceMath& m, const V& x, const V&) { return m.mul(m.sin(x), m.cos(x)); },
     [](DeviceMath& m, const V& x, const V&, const V& c) {
       return m.mul(c, m.sub(m.mul(m.cos(x), m.cos(x)), m.mul(m.sin(x), m.sin(x))));
     }},
    {"div", [](DeviceMath& m, const V& x, const V&) { return m.div(x, m.plus(m.mul(x, x), 1)); },
     [](DeviceMath& m, const V& x, const V&, const V& c) {
       const V below = m.plus(m.mul(x, x), 1);
       return m.mul(c, m.div(one_less_square(m, x), m.mul(below, below)));
     }},
    {"sqrt_rsqrt",
     [](DeviceMath& m, const V& x, const V&) {
       const V under = m.plus(m.mul(x, x), 1);
       return m.add(m.sqrt(under), m.rsqrt(under));
     },
     [](DeviceMath& m, const V& x, const V&, const V& c) {
       const V root = m.rsqrt(m.plus(m.mul(x, x), 1));
       return m.mul(c, m.mul(x, m.sub(root, m.mul(root, m.mul(root, root)))));
     }},
    {"exp_log", [](DeviceMath& m, const V& x, const V&) { return m.log(m.plus(m.exp(x), 1)); },
     [](DeviceMath& m, const V& x, const V&, const V& c) { return m.mul(c, m.div(m.exp(x), m.plus(m.exp(x), 1))); }},
    {"cumsum", [](DeviceMath& m, const V& x, const V&) { return m.cumsum(m.mul(x, x), 1); },
     [](DeviceMath& m, const V& x, const V&, const V& c) {
       return m.mul(m.times(x, 2), m.add(m.sub(m.sum(c, 2), m.cumsum(c, 1)), c));
     }},
};

void gradient_agrees(Context& context, const Chain& chain) {
  constexpr double step = 1.0 / 64;
  HostSide side(context);
  DeviceMath math(side.stream);
  Array x = draw(context, {6, 8}, 1.5);
  const Array weights = draw(context, {6, 8}, 1);
  const V w = math.constant(draw(context, {8, 8}, 0.5)), c = math.constant(weights);
  const Array gradient = math.read(chain.gradient(math, math.constant(x), w, c));
  const auto loss = [&](const Array& at) {
    const Array y = math.read(chain.forward(math, math.constant(at), w));
    double sum = 0;
    for (size_t i = 0; i < y.values.size(); ++i) sum += y.values[i] * weights.values[i];
    return sum;
  };
  for (int i = 0; i < 16; ++i) {
    const uint64_t at = context.below(x.values.size());
    const double before = x.values[at];
    const auto moved = [&](double by) {
      x.values[at] = before + by;
      return loss(x);
    };
    // Of fourth order, so that the step may be wide beside the rounding of f32.
    const double slope = (8 * (moved(step) - moved(-step)) - (moved(2 * step) - moved(-2 * step))) / (12 * step);
    x.values[at] = before;
    const double error = std::abs(slope - gradient.values[at]), bound = 2e-3 * (1 + std::abs(slope));
    context.note_error(error / bound);
    context.require(error <= bound, "the gradient at {} is {}, by finite differences {}; the bound is {}", at,
                    gradient.values[at], slope, bound);
  }
}

struct Task {
  Array x, target, w1, b1, w2;
};

// One hidden layer that learns what another network does; the loss of each step.
template <typename Math>
std::vector<double> regress(Math& m, const Task& task, int steps) {
  const double share = 1.0 / static_cast<double>(task.target.values.size());
  const auto x = m.constant(task.x), target = m.constant(task.target);
  auto w1 = m.constant(task.w1), b1 = m.constant(task.b1), w2 = m.constant(task.w2);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const auto h = m.tanh(m.add(m.matmul(x, w1), b1));
    const auto error = m.sub(m.matmul(h, w2), target);
    losses.push_back(m.read(m.sum(m.mul(error, error), 3)).values[0] * share);
    const auto dy = m.times(error, 2 * share);
    const auto dh = m.mul(m.matmul(dy, m.transpose(w2)), m.plus(m.times(m.mul(h, h), -1), 1));
    w2 = m.sub(w2, m.times(m.matmul(m.transpose(h), dy), 0.5));
    w1 = m.sub(w1, m.times(m.matmul(m.transpose(x), dh), 0.5));
    b1 = m.sub(b1, m.times(m.sum(dh, 1), 0.5));
  }
  return losses;
}

// Classes by cross entropy, with momentum.
template <typename Math>
std::vector<double> classify(Math& m, const Task& task, int steps) {
  const double share = 1.0 / static_cast<double>(task.x.shape[0]);
  const auto x = m.constant(task.x), target = m.constant(task.target);
  auto w1 = m.constant(task.w1), w2 = m.constant(task.w2);
  auto v1 = m.times(w1, 0), v2 = m.times(w2, 0);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const auto before = m.matmul(x, w1);
    const auto h = m.relu(before);
    const auto p = softmax(m, m.matmul(h, w2), 1);
    losses.push_back(-m.read(m.sum(m.mul(target, m.log(p)), 3)).values[0] * share);
    const auto dz = m.times(m.sub(p, target), share);
    const auto dh = m.mul(m.matmul(dz, m.transpose(w2)), m.is_positive(before));
    v2 = m.add(m.times(v2, 0.9), m.matmul(m.transpose(h), dz));
    v1 = m.add(m.times(v1, 0.9), m.matmul(m.transpose(x), dh));
    w2 = m.sub(w2, m.times(v2, 0.1));
    w1 = m.sub(w1, m.times(v1, 0.1));
  }
  return losses;
}

void require_curve(Context& context, const std::vector<double>& got, const std::vector<double>& expected) {
  context.require(expected.back() < expected.front() / 3, "the loss goes from {} to {} only: the task teaches nothing",
                  expected.front(), expected.back());
  for (size_t step = 0; step < got.size(); ++step) {
    const double error = std::abs(got[step] - expected[step]), bound = 1e-3 + 0.02 * expected[step];
    context.note_error(error / bound);
    context.require(error <= bound, "after {} steps the loss is {}, in double precision {}; the bound is {}", step,
                    got[step], expected[step], bound);
  }
}

void learns_a_function(Context& context) {
  HostSide side(context);
  DeviceMath device(side.stream);
  HostMath host;
  Task task = {draw(context, {48, 6}, 1),
               {},
               draw(context, {6, 20}, 0.7),
               draw(context, {1, 20}, 0.3),
               draw(context, {20, 3}, 0.4)};
  task.target = host.matmul(host.tanh(host.matmul(task.x, draw(context, {6, 5}, 1))), draw(context, {5, 3}, 0.7));
  for (double& value : task.target.values) value = static_cast<float>(value);
  require_curve(context, regress(device, task, 200), regress(host, task, 200));
}

void learns_classes(Context& context) {
  HostSide side(context);
  DeviceMath device(side.stream);
  HostMath host;
  Task task = {draw(context, {60, 8}, 1),
               {{60, 4}, std::vector<double>(240)},
               draw(context, {8, 24}, 0.5),
               {},
               draw(context, {24, 4}, 0.4)};
  const Array scores = host.matmul(task.x, draw(context, {8, 4}, 1));
  for (size_t row = 0; row < 60; ++row) {
    size_t best = 0;
    for (size_t column = 1; column < 4; ++column)
      if (scores.values[row * 4 + column] > scores.values[row * 4 + best]) best = column;
    task.target.values[row * 4 + best] = 1;
  }
  require_curve(context, classify(device, task, 200), classify(host, task, 200));
}

}  // namespace

void add_host_training_cases(Catalogue& catalogue) {
  const auto add = [&](std::string id, std::string_view requirement, std::function<void(Context&)> run) {
    catalogue.push_back(
        {.id = std::move(id), .profile = BP_PROFILE_TRAIN, .requirements = {requirement}, .run = std::move(run)});
  };
  for (const Chain& chain : chains)
    add(fmt::format("host.gradient.{}", chain.name), "BP-USE-009",
        [&chain](Context& context) { gradient_agrees(context, chain); });
  add("host.training.learns_a_function", "BP-USE-010", learns_a_function);
  add("host.training.learns_classes", "BP-USE-010", learns_classes);
}

}  // namespace bp::conformance
