// SPDX-License-Identifier: Apache-2.0
// Trains small networks on the device and in double on the host, and compares the loss of each
// step.
#include <cmath>
#include <numeric>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/host/math.hpp"

namespace backplane::conformance {

namespace {

struct Task {
  Array x, target, w1, b1, w2;
};

// Trains a network with one hidden layer to imitate another network. Returns the loss of each step.
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

// Trains a classifier with cross entropy and momentum. Returns the loss of each step.
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

struct Images {
  Array patches, target;  // shapes [images * positions, taps] and [images, classes]
  Array w1, b1, w2;
  int64_t images, positions;
};

// Trains a network for images with cross entropy and momentum. The layers are a convolution, relu,
// the mean over each image, and a classifier.
template <typename Math>
std::vector<double> look(Math& m, const Images& task, int steps) {
  const int64_t images = task.images, positions = task.positions, filters = task.w1.shape[1];
  const double share = 1.0 / static_cast<double>(images), position_share = 1.0 / static_cast<double>(positions);
  const auto x = m.constant(task.patches), target = m.constant(task.target);
  auto w1 = m.constant(task.w1), b1 = m.constant(task.b1), w2 = m.constant(task.w2);
  auto v1 = m.times(w1, 0), vb = m.times(b1, 0), v2 = m.times(w2, 0);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const auto before = m.add(m.matmul(x, w1), b1);
    const auto maps = m.reshape(m.relu(before), {images, positions, filters});
    const auto pooled = m.times(m.reshape(m.sum(maps, 2), {images, filters}), position_share);
    const auto p = softmax(m, m.matmul(pooled, w2), 1);
    losses.push_back(-m.read(m.sum(m.mul(target, m.log(p)), 3)).values[0] * share);
    const auto dz = m.times(m.sub(p, target), share);
    const auto dpooled = m.times(m.reshape(m.matmul(dz, m.transpose(w2)), {images, 1, filters}), position_share);
    const auto open = m.reshape(m.is_positive(before), {images, positions, filters});
    const auto dh = m.reshape(m.mul(open, dpooled), {images * positions, filters});
    v2 = m.add(m.times(v2, 0.9), m.matmul(m.transpose(pooled), dz));
    v1 = m.add(m.times(v1, 0.9), m.matmul(m.transpose(x), dh));
    vb = m.add(m.times(vb, 0.9), m.sum(dh, 1));
    w2 = m.sub(w2, m.times(v2, 0.1));
    w1 = m.sub(w1, m.times(v1, 0.1));
    b1 = m.sub(b1, m.times(vb, 0.1));
  }
  return losses;
}

// A sequence of tokens, and the initial parameters of the network. `given` contains each token as a one-hot vector, and
// `next` contains each token's successor as a one-hot vector.
struct Sequence {
  std::vector<int32_t> tokens;
  Array given, next;  // both have shape [length, vocabulary]
  Array embedding, position, wq, wk, wv, wo, w1, w2, head;
};

// Trains one decoder block with causal attention and a feed-forward layer. Each part has
// pre-normalisation and a residual connection. The gradients are written out by hand.
template <typename Math>
std::vector<double> read_on(Math& m, const Sequence& task, int steps) {
  const int64_t length = task.given.shape[0], width = task.wq.shape[0];
  const double share = 1.0 / static_cast<double>(length), scale = 1 / std::sqrt(static_cast<double>(width));
  const auto extent = static_cast<double>(width);
  const auto given = m.constant(task.given), next = m.constant(task.next);
  auto embedding = m.constant(task.embedding), position = m.constant(task.position);
  auto wq = m.constant(task.wq), wk = m.constant(task.wk), wv = m.constant(task.wv), wo = m.constant(task.wo);
  auto w1 = m.constant(task.w1), w2 = m.constant(task.w2), head = m.constant(task.head);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const auto x = m.add(m.gather_rows(embedding, task.tokens), position);
    const auto n = normalized(m, x, extent);
    const auto q = m.matmul(n, wq), k = m.matmul(n, wk), v = m.matmul(n, wv);
    const auto a = softmax(m, m.causal(m.times(m.matmul(q, m.transpose(k)), scale), -1e9), 1);
    const auto mixed = m.matmul(a, v);
    const auto y = m.add(x, m.matmul(mixed, wo));
    const auto ny = normalized(m, y, extent);
    const auto u = m.matmul(ny, w1), g = gelu(m, u);
    const auto f = m.add(y, m.matmul(g, w2));
    const auto p = softmax(m, m.matmul(f, head), 1);
    losses.push_back(-m.read(m.sum(m.mul(next, m.log(p)), 3)).values[0] * share);

    const auto by = [&](const auto& left, const auto& right) { return m.matmul(m.transpose(left), right); };
    const auto learn = [&](auto& weights, const auto& gradient) { weights = m.sub(weights, m.times(gradient, 0.3)); };
    const auto dz = m.times(m.sub(p, next), share);
    const auto df = m.matmul(dz, m.transpose(head));
    const auto du = m.mul(m.matmul(df, m.transpose(w2)), gelu_slope(m, u));
    const auto dy = m.add(df, normalized_gradient(m, y, ny, m.matmul(du, m.transpose(w1)), extent));
    const auto dmixed = m.matmul(dy, m.transpose(wo));
    const auto da = m.matmul(dmixed, m.transpose(v));
    const auto ds = m.times(m.mul(a, m.sub(da, m.sum(m.mul(a, da), 2))), scale);
    const auto dq = m.matmul(ds, k), dk = by(ds, q), dv = by(a, dmixed);
    const auto dn =
        m.add(m.add(m.matmul(dq, m.transpose(wq)), m.matmul(dk, m.transpose(wk))), m.matmul(dv, m.transpose(wv)));
    const auto dx = m.add(dy, normalized_gradient(m, x, n, dn, extent));
    learn(head, by(f, dz));
    learn(w2, by(g, df));
    learn(w1, by(ny, du));
    learn(wo, by(mixed, dy));
    learn(wv, by(n, dv));
    learn(wk, by(n, dk));
    learn(wq, by(n, dq));
    learn(position, dx);
    learn(embedding, by(given, dx));
  }
  return losses;
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

// Trains on three classes of images: horizontal stripes, vertical stripes and no stripes.
void learns_images(Context& context) {
  constexpr int64_t images = 24, extent = 8, taps = 9, positions = 36, classes = 3;
  HostSide side(context);
  DeviceMath device(side.stream);
  HostMath host;
  Array pictures = draw(context, {images, 1, extent, extent}, 1);
  Images task = {{},
                 {{images, classes}, std::vector<double>(images * classes)},
                 draw(context, {taps, 8}, 0.5),
                 draw(context, {1, 8}, 0.2),
                 draw(context, {8, classes}, 0.5),
                 images,
                 positions};
  for (int64_t image = 0; image < images; ++image) {
    const int64_t kind = image % classes;
    task.target.values[static_cast<size_t>(image * classes + kind)] = 1;
    for (int64_t at = 0; at < extent * extent; ++at) {
      const int64_t line = kind == 0 ? at / extent : at % extent;
      const double stripe = line % 2 == 0 ? 0.75 : -0.75;
      double& value = pictures.values[static_cast<size_t>(image * extent * extent + at)];
      value = kind == 2 ? value : stripe + value / 4;
    }
  }
  task.patches = host.patches(pictures, 3);
  require_curve(context, look(device, task, 200), look(host, task, 200));
}

// Trains on a sequence that advances through the vocabulary by one token, and by two tokens at
// every third step. The model can predict the next token from the position or from the previous
// tokens.
void learns_a_sequence(Context& context) {
  constexpr int64_t length = 24, vocabulary = 8, width = 16;
  HostSide side(context);
  DeviceMath device(side.stream);
  HostMath host;
  std::vector<int32_t> order(vocabulary);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[context.below(i)]);
  Sequence task = {{},
                   {{length, vocabulary}, std::vector<double>(length * vocabulary)},
                   {{length, vocabulary}, std::vector<double>(length * vocabulary)},
                   draw(context, {vocabulary, width}, 1),
                   draw(context, {length, width}, 0.3),
                   draw(context, {width, width}, 0.4),
                   draw(context, {width, width}, 0.4),
                   draw(context, {width, width}, 0.4),
                   draw(context, {width, width}, 0.4),
                   draw(context, {width, 32}, 0.4),
                   draw(context, {32, width}, 0.3),
                   draw(context, {width, vocabulary}, 0.4)};
  const auto token = [&](int64_t at) { return order[static_cast<size_t>((at + at / 3) % vocabulary)]; };
  for (int64_t at = 0; at < length; ++at) {
    task.tokens.push_back(token(at));
    task.given.values[static_cast<size_t>(at * vocabulary + token(at))] = 1;
    task.next.values[static_cast<size_t>(at * vocabulary + token(at + 1))] = 1;
  }
  require_curve(context, read_on(device, task, 200), read_on(host, task, 200));
}

}  // namespace

void add_host_training_cases(Catalogue& catalogue) {
  const auto add = [&](const char* what, void (*run)(Context&)) {
    catalogue.push_back({.id = fmt::format("host.training.{}", what),
                         .profile = BP_PROFILE_TRAIN,
                         .requirements = {"BP-USE-010"},
                         .run = not_claimed_where_declined(run)});
  };
  add("learns_a_function", learns_a_function);
  add("learns_classes", learns_classes);
  add("learns_images", learns_images);
  add("learns_a_sequence", learns_a_sequence);
}

}  // namespace backplane::conformance
