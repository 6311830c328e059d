// SPDX-License-Identifier: Apache-2.0
// Trains with AdamW, a warm-up and a cosine schedule. The seed and the number of a step determine which pieces
// of the text this step reads.
#include "training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <stdexcept>

#include "evaluation.hpp"

namespace char_gpt {

namespace bp = backplane;

namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.99;
constexpr float kWeightDecay = 0.1f;
constexpr double kMostNorm = 1;  // gradients with a larger norm are clipped to this norm

// SplitMix64 (Steele, Lea, Flood 2014). The pieces of the text that a step reads depend only on the seed and
// the step's number. Therefore training can resume at any step.
uint64_t hash(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

void check(const Schedule& schedule) {
  if (schedule.steps < 0) throw std::runtime_error(fmt::format("training: {} steps", schedule.steps));
  if (schedule.batch < 1 || schedule.streams < 1 || schedule.batch % schedule.streams != 0)
    throw std::runtime_error(fmt::format("training: {} streams do not share a batch of {}; choose a divisor",
                                         schedule.streams, schedule.batch));
}

double learning_rate(const Schedule& schedule, int64_t step) {
  const double warm_up = std::max(100.0, static_cast<double>(schedule.steps) / 20);
  const auto at = static_cast<double>(step + 1);
  if (at < warm_up) return schedule.peak_rate * at / warm_up;
  const double share = (at - warm_up) / std::max(1.0, static_cast<double>(schedule.steps) - warm_up);
  return schedule.peak_rate * (0.1 + 0.45 * (1 + std::cos(std::numbers::pi * std::min(share, 1.0))));
}

Trainer::Lane::Lane(const bp::Device& device, const Config& config, const bp::Tensor& parameters, int64_t batch,
                    uint64_t call_flags)
    : stream(device),
      model(stream, config, parameters),
      activations(stream, config, BP_F32, batch, config.context),
      gradients(stream, config, BP_F32, batch, config.context),
      host_starts(static_cast<size_t>(batch)),
      starts(bp::Tensor::empty(stream, BP_I32, {batch, 1})),
      offsets(bp::Tensor::empty(stream, BP_I32, {1, config.context})),
      positions(bp::Tensor::empty(stream, BP_I32, {batch, config.context})),
      tokens(bp::Tensor::empty(stream, BP_I32, {batch * config.context})),
      targets(bp::Tensor::empty(stream, BP_I32, {batch * config.context})),
      loss(bp::Tensor::empty(stream, BP_F32, {})),
      done(device) {
  stream.set_call_flags(call_flags);
  bp::iota(stream, offsets, 1, 0, 1);
}

// Enqueues the tokens and targets of the lane's next texts. Texts are numbered from the start of the training,
// and `first` is the number of the lane's first text.
void Trainer::Lane::read(const bp::Tensor& text, const Schedule& schedule, uint64_t first) {
  const auto most = static_cast<uint64_t>(text.extent(0) - model.config().context);
  for (size_t i = 0; i < host_starts.size(); ++i)
    host_starts[i] = static_cast<int32_t>(hash(hash(schedule.seed) + first + i) % most);
  bp::copy_in<int32_t>(stream, starts, host_starts, BPH_COPY_SOURCE_FREE);
  bp::add(stream, positions, starts, offsets);
  bp::gather(stream, tokens, text, positions.reshape(tokens.shape()), 0);
  bp::gather(stream, targets, text.slice(0, 1, text.extent(0)), positions.reshape(tokens.shape()), 0);
}

Trainer::Trainer(const bp::Device& device, const Config& config, const Schedule& schedule, const std::string& text,
                 uint64_t call_flags)
    : schedule_(schedule), updated_(device) {
  check(config);
  check(schedule);
  // These tensors belong to the device instead of one stream, because all lanes read them.
  parameters_ = bp::Tensor::empty(device, BP_F32, {count_parameters(config).all});
  text_ = bp::Tensor::empty(device, BP_I32, {static_cast<int64_t>(text.size())});
  for (int64_t i = 0; i < schedule.streams; ++i)
    lanes_.push_back(
        std::make_unique<Lane>(device, config, parameters_, schedule.batch / schedule.streams, call_flags));
  const bp::Stream& first = lanes_.front()->stream;
  initialize(first, config, parameters_, schedule.seed);
  for (bp::Tensor* moment : {&moment1_, &moment2_}) {
    *moment = bp::Tensor::empty(first, BP_F32, parameters_.shape());
    bp::fill(first, *moment, 0.0);
  }
  squares_ = bp::Tensor::empty(first, BP_F32, parameters_.shape());
  norm_ = bp::Tensor::empty(first, BP_F32, {1});
  const std::vector<int32_t> numbers = codes(text);
  bp::copy_in<int32_t>(first, text_, numbers);
  first.wait();  // copy_in borrows `numbers` until the stream has executed the copy
}

// Adds the gradients of all lanes in a fixed order, divides the sum by the number of lanes, and clips the
// result. Then takes a step of AdamW.
void Trainer::update() {
  const bp::Stream& stream = lanes_.front()->stream;
  const bp::Tensor& gradient = lanes_.front()->model.gradients();
  for (size_t i = 1; i < lanes_.size(); ++i) {
    stream.wait_event(lanes_[i]->done);
    bp::add(stream, gradient, gradient, lanes_[i]->model.gradients());
  }
  const double share = 1 / static_cast<double>(lanes_.size());
  if (lanes_.size() > 1) bp::mul(stream, gradient, gradient, bp::Tensor::scalar(BP_F32, share));
  bp::mul(stream, squares_, gradient, gradient);
  bp::reduce_sum(stream, norm_, squares_, bp::axes(0));
  bp::sqrt(stream, norm_, norm_);
  bp::max(stream, norm_, norm_, bp::Tensor::scalar(BP_F32, kMostNorm));
  bp::div(stream, gradient, gradient, norm_);

  auto attributes = bp::attributes<BP_OP_ADAMW>();
  attributes.beta1 = static_cast<float>(kBeta1);
  attributes.beta2 = static_cast<float>(kBeta2);
  attributes.epsilon = 1e-8f;
  const auto t = static_cast<double>(done_ + 1);
  const auto scalar = [](double value) { return bp::scalar_bits(BP_F32, value); };
  const auto apply = [&](int64_t begin, int64_t end, float decay) {
    const auto part = [&](const bp::Tensor& vector) { return vector.slice(0, begin, end); };
    attributes.weight_decay = decay;
    bp::execute(
        stream, BP_OP_ADAMW, {part(gradient)}, {part(parameters_), part(moment1_), part(moment2_)}, &attributes,
        {scalar(learning_rate(schedule_, done_)), scalar(1 - std::pow(kBeta1, t)), scalar(1 - std::pow(kBeta2, t))});
  };
  const ParameterCount count = count_parameters(model().config());
  apply(0, count.matrices, kWeightDecay);
  apply(count.matrices, count.all, 0);
  updated_.record(stream);
  for (size_t i = 1; i < lanes_.size(); ++i) lanes_[i]->stream.wait_event(updated_);
}

double Trainer::step() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    const auto texts = static_cast<uint64_t>(lane.host_starts.size());
    lane.read(text_, schedule_, (static_cast<uint64_t>(done_) * lanes_.size() + i) * texts);
    lane.model.forward(lane.activations, lane.tokens);
    lane.model.score(lane.activations, lane.targets, lane.loss, lane.gradients);
    lane.model.backward(lane.activations, lane.tokens, lane.gradients);
    lane.done.record(lane.stream);
  }
  update();
  ++done_;
  double sum = 0;
  for (const auto& lane : lanes_) {
    float loss = 0;
    bp::copy_out<float>(lane->stream, std::span(&loss, 1), lane->loss);
    sum += loss;
  }
  return sum / static_cast<double>(lanes_.size());
}

State Trainer::state() const {
  const auto read = [&](const bp::Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    bp::copy_out<float>(stream(), values, tensor);
    return values;
  };
  return {done_, read(parameters_), read(moment1_), read(moment2_)};
}

void Trainer::set_state(const State& state) {
  const auto count = static_cast<size_t>(parameters_.elements());
  if (state.parameters.size() != count || state.moment1.size() != count || state.moment2.size() != count)
    throw std::runtime_error(
        fmt::format("training: a state of {} parameters for a model of {}", state.parameters.size(), count));
  bp::copy_in<float>(stream(), parameters_, state.parameters);
  bp::copy_in<float>(stream(), moment1_, state.moment1);
  bp::copy_in<float>(stream(), moment2_, state.moment2);
  stream().wait();
  done_ = state.steps_done;
}

}  // namespace char_gpt
