// SPDX-License-Identifier: Apache-2.0
// The classifier, a multilayer perceptron with an explicit backward pass. The device executes all its
// computations.
#pragma once

#include <backplane/backplane.hpp>

#include <array>
#include <cstdint>
#include <vector>

#include "data.hpp"

namespace digits {

// Images in device memory as [count, 10, 10]. Each image has a border of zeros, one pixel wide, so a view can
// shift all images by one pixel.
class DeviceImages {
 public:
  DeviceImages(const backplane::Stream& stream, const Images& images);

  int64_t count() const { return labels_.extent(0); }
  // Returns a view [count, 8, 8] of all images, shifted by (dy, dx) pixels. dy and dx are from -1
  // to 1.
  backplane::Tensor shifted(int64_t dy, int64_t dx) const;
  const backplane::Tensor& labels() const { return labels_; }  // [count] of i32

 private:
  backplane::Tensor padded_, labels_;
};

struct Totals {
  double loss = 0;     // mean cross entropy per image
  double correct = 0;  // fraction of correctly classified images
};

class Classifier {
 public:
  // `max_batch` is the maximum number of images in one call of train() or evaluate(). The classifier uses
  // `stream`, which must outlive it.
  Classifier(const backplane::Stream& stream, uint64_t seed, int64_t max_batch);

  // Enqueues one step of Adam on the images that `index` (i32) selects. Shifts four tenths of these images by
  // one pixel.
  void train(const DeviceImages& images, const backplane::Tensor& index, double learning_rate);
  // Enqueues the forward pass of all images. Writes the predicted labels to `predicted`, [count, 1] of i32.
  void evaluate(const DeviceImages& images, const backplane::Tensor& predicted);
  // Returns the mean loss and the fraction of correct predictions since the last call, and resets both totals.
  // Waits for the stream.
  Totals take_totals();
  // Returns all weights and biases. Waits for the stream.
  std::vector<float> parameters();

 private:
  struct Layer {
    backplane::Tensor weight, bias, d_weight, d_bias;  // views of parameters_ and gradients_
    // Tensors of a batch: the activations, their gradient, random bits, and two masks. `drawn` is the mask of
    // dropout. `kept` contains the elements through which gradients pass.
    backplane::Tensor out, delta, bits, drawn, kept;
  };

  backplane::Tensor scratch(uint32_t dtype, int64_t columns) const;
  void initialize();
  void random_bits(const backplane::Tensor& out);
  backplane::Tensor gather_batch(const DeviceImages& images, const backplane::Tensor& index);
  void forward(const backplane::Tensor& x, bool training);
  void score(const backplane::Tensor& labels, const backplane::Tensor& predicted);
  void backward(const backplane::Tensor& x);
  void update(double learning_rate);

  const backplane::Stream& stream_;
  uint64_t seed_;
  uint64_t random_counter_ = 0;
  int64_t max_batch_;
  int64_t steps_ = 0;
  int64_t scored_ = 0;  // number of images that were scored since the last take_totals()
  std::array<Layer, 3> layers_;
  backplane::Tensor parameters_, gradients_, moment1_, moment2_, update_;
  backplane::Tensor class_ids_, totals_;
  // More tensors of a batch.
  backplane::Tensor images_, labels_, predicted_, log_probability_, probability_, is_label_, row_, hit_, sum_;
};

}  // namespace digits
