// SPDX-License-Identifier: Apache-2.0
// The optimizer, and the order of the text. A batch is shared among streams, so that small operators fill several processors.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model.hpp"

namespace char_gpt {

struct Schedule {
  int64_t steps = 2400;     // of the whole training: the learning rate falls to a tenth at its end
  int64_t batch = 4;        // texts a step, each of `context` characters
  int64_t streams = 2;      // divides batch. Another number adds gradients in another order
  double peak_rate = 2e-3;  // learning rate behind the warm-up
  uint64_t seed = 1;        // draws the initial weights, and what each step reads

  bool operator==(const Schedule&) const = default;
};
// Throws std::runtime_error, saying which number is out of its range and what the range is.
void check(const Schedule& schedule);
// Of step `step`, 0 to steps - 1: warm-up over a twentieth, at least 100 steps, then half a cosine.
double learning_rate(const Schedule& schedule, int64_t step);

// What training goes on from.
struct State {
  int64_t steps_done = 0;
  std::vector<float> parameters, moment1, moment2;
};

class Trainer {
 public:
  // `text` is longer than the context; `call_flags` go with every operator.
  Trainer(const backplane::Device& device, const Config& config, const Schedule& schedule, const std::string& text,
          uint64_t call_flags = 0);

  // One step. Waits; the loss before it, mean per character in nats.
  double step();
  int64_t steps_done() const { return done_; }
  const Model& model() const { return lanes_.front()->model; }
  const backplane::Stream& stream() const { return lanes_.front()->stream; }  // that model() works on

  State state() const;
  // Throws std::runtime_error if the numbers are those of another model.
  void set_state(const State& state);

 private:
  // A stream with its share of the batch.
  struct Lane {
    Lane(const backplane::Device& device, const Config& config, const backplane::Tensor& parameters, int64_t batch,
         uint64_t call_flags);
    void read(const backplane::Tensor& text, const Schedule& schedule, uint64_t first);

    backplane::Stream stream;
    Model model;
    Activations activations;
    Gradients gradients;
    std::vector<int32_t> host_starts;                            // borrowed by the stream during a step
    backplane::Tensor starts, offsets, places, tokens, targets;  // i32
    backplane::Tensor loss;
    backplane::Event done;
  };
  void update();

  Schedule schedule_;
  int64_t done_ = 0;
  backplane::Tensor parameters_, text_;  // text_: i32, all of it
  std::vector<std::unique_ptr<Lane>> lanes_;
  backplane::Tensor moment1_, moment2_, squares_, norm_;
  backplane::Event updated_;
};

}  // namespace char_gpt
