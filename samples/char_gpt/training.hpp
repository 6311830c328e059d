// SPDX-License-Identifier: Apache-2.0
// The optimizer, and the order in which training reads the text. Several streams divide each batch, so that
// small operators use several processors.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model.hpp"

namespace char_gpt {

struct Schedule {
  // Number of steps of the whole training run. The learning rate of the last step is a tenth of the peak rate.
  int64_t steps = 2400;
  int64_t batch = 4;  // texts per step; each text has `context` characters
  // Number of streams, which must divide `batch`. It determines the order in which gradients are added, and
  // thus the rounding.
  int64_t streams = 2;
  double peak_rate = 2e-3;  // learning rate after the warm-up
  uint64_t seed = 1;        // seed of the initial weights and of each step's text

  bool operator==(const Schedule&) const = default;
};
// Throws std::runtime_error if a number is out of range. The message states the number and its range.
void check(const Schedule& schedule);
// Returns the learning rate for step `step`, from 0 to steps - 1. The rate rises during the first twentieth of
// the steps, or during the first 100 steps if that is longer. Then the rate falls along half a cosine wave.
double learning_rate(const Schedule& schedule, int64_t step);

// The state from which training continues.
struct State {
  int64_t steps_done = 0;
  std::vector<float> parameters, moment1, moment2;
};

class Trainer {
 public:
  // `text` must be longer than the context. `call_flags` apply to every operator.
  Trainer(const backplane::Device& device, const Config& config, const Schedule& schedule, const std::string& text,
          uint64_t call_flags = 0);

  // Runs one step and waits for its end. Returns the mean loss per character, in nats, of the parameters before
  // the step.
  double step();
  int64_t steps_done() const { return done_; }
  const Model& model() const { return lanes_.front()->model; }
  // Returns the stream of model().
  const backplane::Stream& stream() const { return lanes_.front()->stream; }

  State state() const;
  // Throws std::runtime_error if the state belongs to another model.
  void set_state(const State& state);

 private:
  // A stream, and the tensors for its part of the batch.
  struct Lane {
    Lane(const backplane::Device& device, const Config& config, const backplane::Tensor& parameters, int64_t batch,
         uint64_t call_flags);
    void read(const backplane::Tensor& text, const Schedule& schedule, uint64_t first);

    backplane::Stream stream;
    Model model;
    Activations activations;
    Gradients gradients;
    std::vector<int32_t> host_starts;  // the positions in the text at which the lane's texts begin
    backplane::Tensor starts, offsets, positions, tokens, targets;  // all have the dtype i32
    backplane::Tensor loss;
    backplane::Event done;
  };
  void update();

  Schedule schedule_;
  int64_t done_ = 0;
  backplane::Tensor parameters_, text_;  // `text_` is the whole text as i32
  std::vector<std::unique_ptr<Lane>> lanes_;
  backplane::Tensor moment1_, moment2_, squares_, norm_;
  backplane::Event updated_;
};

}  // namespace char_gpt
