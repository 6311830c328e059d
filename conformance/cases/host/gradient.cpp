// SPDX-License-Identifier: Apache-2.0
// Test cases that compare gradients with finite differences.
#include <cmath>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/host/math.hpp"

namespace backplane::conformance {

namespace {

using V = backplane::Tensor;

// A chain of operators f(x), optionally with a weight w, and the gradient of sum(c * f(x)) with
// respect to x.
struct GradientChain {
  const char* name;
  V (*forward)(DeviceMath&, const V& x, const V& w);
  V (*gradient)(DeviceMath&, const V& x, const V& w, const V& c);
};

V one_less_square(DeviceMath& m, const V& y) { return m.plus(m.times(m.mul(y, y), -1), 1); }

const GradientChain kChains[] = {
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
     [](DeviceMath& m, const V& x, const V&, const V& c) { return m.mul(c, gelu_slope(m, x)); }},
    {"normalized", [](DeviceMath& m, const V& x, const V&) { return normalized(m, x, 8); },
     [](DeviceMath& m, const V& x, const V&, const V& c) {
       return normalized_gradient(m, x, normalized(m, x, 8), c, 8);
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

void gradient_agrees(Context& context, const GradientChain& chain) {
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
    // The step of a fourth-order difference can be large, which makes f32 rounding errors
    // negligible.
    const double slope = (8 * (moved(step) - moved(-step)) - (moved(2 * step) - moved(-2 * step))) / (12 * step);
    x.values[at] = before;
    const double error = std::abs(slope - gradient.values[at]), bound = 2e-3 * (1 + std::abs(slope));
    context.note_error(error / bound);
    context.require(error <= bound, "the gradient at {} is {}, by finite differences {}; the bound is {}", at,
                    gradient.values[at], slope, bound);
  }
}

}  // namespace

void add_host_gradient_cases(Catalogue& catalogue) {
  for (const GradientChain& chain : kChains)
    catalogue.push_back(
        {.id = fmt::format("host.gradient.{}", chain.name),
         .profile = BP_PROFILE_TRAIN,
         .requirements = {"BP-USE-009"},
         .run = not_claimed_where_declined([&chain](Context& context) { gradient_agrees(context, chain); })});
}

}  // namespace backplane::conformance
