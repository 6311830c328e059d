// SPDX-License-Identifier: Apache-2.0
// Adds the layers of the models of `bench model` to a graph.
#pragma once

#include "bench/model_graph.hpp"

namespace tool {

// Views all elements of a value.
inline View whole(size_t value) { return {.value = value}; }

// Adds layers that process sequences. Parameters and results of type size_t are indices of the graph's values.
class SequenceBuilder {
 public:
  // The values between layers have the shape [rows, width].
  SequenceBuilder(ModelGraph& graph, int64_t rows, int64_t width) : graph_(graph), rows_(rows), width_(width) {}

  size_t linear(size_t x, int64_t inputs, int64_t outputs, const char* activation = "activation=0",
                Role role = Role::temporary);
  // Multiplies `x` by a matrix of 4-bit weights. Each block of 32 weights has one scale.
  size_t linear_w4(size_t x, int64_t inputs, int64_t outputs);
  size_t layer_norm(size_t x, Role role = Role::temporary);
  size_t rms_norm(size_t x);
  size_t add(size_t a, size_t b, Role role = Role::temporary);
  // Returns silu(a) * b.
  size_t gate(size_t a, size_t b);
  // Applies the operator `rope` to each head of the value `x`, whose shape is [rows, heads * extent].
  size_t rope(size_t x, size_t position, int64_t heads);
  // Returns a view [1, heads, rows, extent] of a value [rows, heads * extent].
  View heads(size_t value, int64_t heads) const;
  // Adds a cache of `most` rows per head, and copies a value of the shape [1, heads * extent] to `row` of the cache.
  // Returns a view of the rows from 0 to `row`.
  View append(size_t value, int64_t heads, int64_t row, int64_t most);
  // `heads` is the number of heads of `q`, and `keys` is the number of keys of `k` and `v`.
  size_t attention(size_t q, const View& k, const View& v, int64_t heads, int64_t keys);

 private:
  int64_t last_extent(size_t value) const { return graph_.values()[value].shape.back(); }
  size_t temporary(const Extents& shape) { return graph_.add_value({.role = Role::temporary, .shape = shape}); }

  ModelGraph& graph_;
  int64_t rows_, width_;
};

// Adds layers that process images. Parameters and results of type size_t are indices of the graph's values.
class ImageBuilder {
 public:
  // Images have `side` rows and columns.
  ImageBuilder(ModelGraph& graph, int64_t side) : graph_(graph), side_(side) {}

  // Adds a convolution with `outputs` channels. The padding keeps the image's number of rows and columns.
  size_t conv(size_t x, int64_t outputs, int64_t kernel, const char* activation = "activation=0");
  size_t group_norm(size_t x, int64_t groups);
  // `x` may have any shape.
  size_t silu(size_t x);
  // Adds two images, or an image and a value [1, channels].
  size_t add(size_t x, size_t y, Role role = Role::temporary);
  void relu_in_place(size_t x);

 private:
  int64_t channels(size_t value) const { return graph_.values()[value].shape[1]; }
  size_t image(int64_t channels, Role role = Role::temporary) {
    return graph_.add_value({.role = role, .shape = {1, channels, side_, side_}});
  }

  ModelGraph& graph_;
  int64_t side_;
};

}  // namespace tool
