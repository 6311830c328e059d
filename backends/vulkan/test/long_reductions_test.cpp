// SPDX-License-Identifier: Apache-2.0
// Compares reductions, mostly of more than 1,024 elements, and top-k with results in double precision. The cases cover
// each size of workgroup, full and partial workgroups, vec4 and single elements, and splits. The build runs this test
// with BACKPLANE_VULKAN_ROWS=gpu and with BACKPLANE_VULKAN_ROWS=cpu.
#include <cmath>
#include <limits>
#include <numeric>

#include "rig.hpp"

namespace backplane::vulkan::test {

namespace {

using Numbers = std::vector<double>;
using Shape = std::vector<int64_t>;

struct Tensor {
  uint32_t dtype = 0;  // 0 if the tensor is absent
  Shape shape;
  Numbers values;  // empty if the tensor is an output
};

int64_t count_of(const Shape& shape) {
  int64_t out = 1;
  for (const int64_t extent : shape) out *= extent;
  return out;
}

void encode(std::byte* at, uint32_t dtype, double value) {
  const auto number = static_cast<float>(value);
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  if (dtype == BP_BF16) {
    const auto upper = static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    std::memcpy(at, &upper, sizeof(upper));
  } else if (dtype == BP_I32) {
    const auto whole = static_cast<int32_t>(value);
    std::memcpy(at, &whole, sizeof(whole));
  } else {
    std::memcpy(at, &bits, sizeof(bits));
  }
}
double decode(const std::byte* at, uint32_t dtype) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, dtype == BP_BF16 ? 2 : 4);
  if (dtype == BP_I32) return static_cast<double>(static_cast<int32_t>(bits));
  return double{std::bit_cast<float>(dtype == BP_BF16 ? bits << 16 : bits)};
}
double rounded(uint32_t dtype, double value) {
  std::byte bytes[4];
  encode(bytes, dtype, value);
  return decode(bytes, dtype);
}

// Returns pseudo-random values from -1 to 1. Equal arguments give equal values.
Numbers drawn(uint32_t dtype, int64_t count, uint32_t seed) {
  Numbers out(static_cast<std::size_t>(count));
  for (double& value : out) {
    seed = seed * 1664525 + 1013904223;
    value = rounded(dtype, static_cast<double>(seed >> 8) / 8388608.0 - 1.0);
  }
  return out;
}

class LongReductions : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    const char* tuning = std::getenv(kReductionsSetting);
    ASSERT_TRUE(tuning != nullptr) << kReductionsSetting << " is not set";
    ASSERT_EQ(instance->devices()[0].tuned_as_cpu, std::string_view(tuning) == "cpu");
    device_.reset(need(open_device(instance, 0, [](int32_t, const std::string&) {})));
    stream_ = need(device_->create_stream({}));
  }
  void TearDown() override {
    if (stream_ != nullptr) device_->destroy(stream_);
  }

  // Runs an operator and returns the values of its outputs.
  std::vector<Numbers> run(uint32_t op, const void* attributes, const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& outputs) {
    std::vector<Device::Buffer*> buffers;
    bp_tensor_desc views[10] = {};
    bp_operand operands[10] = {};
    std::vector<Tensor> all = inputs;
    all.insert(all.end(), outputs.begin(), outputs.end());
    for (std::size_t k = 0; k < all.size(); ++k) {
      const Tensor& tensor = all[k];
      if (tensor.dtype == 0) continue;
      views[k].dtype = static_cast<uint16_t>(tensor.dtype);
      views[k].rank = static_cast<uint8_t>(tensor.shape.size());
      int64_t stride = 1;
      for (std::size_t d = tensor.shape.size(); d-- > 0;) {
        views[k].shape[d] = tensor.shape[d];
        views[k].strides[d] = stride;
        stride *= tensor.shape[d];
      }
      const auto bytes = static_cast<uint64_t>(count_of(tensor.shape)) * 4;
      buffers.push_back(need(device_->create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_HOST, bytes, 0})));
      operands[k] = whole(buffers.back());
      for (std::size_t i = 0; i < tensor.values.size(); ++i)
        encode(buffers.back()->memory->mapped + i * bytes_of(tensor.dtype), tensor.dtype, tensor.values[i]);
    }
    bp_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.op = op;
    desc.inputs = views;
    desc.input_count = static_cast<uint32_t>(inputs.size());
    desc.outputs = views + inputs.size();
    desc.output_count = static_cast<uint32_t>(outputs.size());
    desc.attributes = attributes;
    const auto status = execute_once(*device_, *stream_, desc, operands);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<Numbers> results;
    for (std::size_t k = inputs.size(); k < all.size(); ++k) {
      const auto* from = reinterpret_cast<Device::Buffer*>(operands[k].buffer);
      Numbers& values = results.emplace_back(static_cast<std::size_t>(count_of(all[k].shape)));
      for (std::size_t i = 0; from != nullptr && i < values.size(); ++i)
        values[i] = decode(from->memory->mapped + i * bytes_of(all[k].dtype), all[k].dtype);
    }
    for (Device::Buffer* each : buffers) device_->destroy(each);
    return results;
  }

 private:
  static std::size_t bytes_of(uint32_t dtype) { return dtype == BP_BF16 ? 2 : 4; }

  std::unique_ptr<Device> device_;
  Device::Stream* stream_ = nullptr;
};

// The permitted error is relative to the larger of the value and `scale`.
void expect_near(const Numbers& got, const Numbers& expected, uint32_t dtype, double scale, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  const double share = dtype == BP_BF16 ? 0x1p-8 : 1e-5;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], share * std::max(std::abs(expected[i]), scale)) << what << ", element " << i;
}

// Widths that give full and partial workgroups of each size, and full and partial splits. Some
// widths are multiples of four.
constexpr int64_t kWidths[] = {1028, 1030, 4096, 4097, 16384, 20002, 32768, 50257, 100004};
constexpr int64_t kRows = 3;

// Calls `body` with each dtype and width. All kernels share the functions that load and store, so
// only the tests of softmax use a 16-bit dtype.
template <class Body>
void for_widths(std::initializer_list<uint32_t> dtypes, const Body& body) {
  for (const uint32_t dtype : dtypes) {
    for (const int64_t width : kWidths)
      body(dtype, width, std::to_string(width) + (dtype == BP_F32 ? " f32" : " bf16"));
  }
}

// Calls `body(first, last)` with the index range of each row.
template <class Body>
void for_rows(std::size_t elements, int64_t width, const Body& body) {
  for (std::size_t first = 0; first < elements; first += static_cast<std::size_t>(width))
    body(first, first + static_cast<std::size_t>(width));
}

struct Peak {
  double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
  Peak(const Numbers& x, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) greatest = std::max(greatest, x[i]);
    for (std::size_t i = first; i < last; ++i) sum += std::exp(x[i] - greatest);
  }
};

TEST_F(LongReductions, Softmax) {
  for_widths({BP_F32, BP_BF16}, [&](uint32_t dtype, int64_t width, const std::string& what) {
    Tensor x{dtype, {kRows, width}, drawn(dtype, kRows * width, 7)};
    for (double& value : x.values) value = rounded(dtype, value * 8);
    // Each row begins with -inf and ends with its maximum.
    for_rows(x.values.size(), width, [&](std::size_t first, std::size_t last) {
      x.values[first] = -std::numeric_limits<double>::infinity();
      x.values[last - 1] = 9;
    });
    const bp_axis_attributes attributes{sizeof(attributes), 1};
    Numbers y = x.values, logarithm = x.values;
    for_rows(y.size(), width, [&](std::size_t first, std::size_t last) {
      const Peak peak(x.values, first, last);
      for (std::size_t i = first; i < last; ++i) {
        y[i] = std::exp(x.values[i] - peak.greatest) / peak.sum;
        logarithm[i] = x.values[i] - peak.greatest - std::log(peak.sum);
      }
    });
    expect_near(run(BP_OP_SOFTMAX, &attributes, {x}, {{dtype, x.shape, {}}})[0], y, dtype, 1e-30, "softmax " + what);
    Numbers got = run(BP_OP_LOG_SOFTMAX, &attributes, {x}, {{dtype, x.shape, {}}})[0];
    for_rows(y.size(), width, [&](std::size_t first, std::size_t) {
      EXPECT_EQ(got[first], -std::numeric_limits<double>::infinity());
      got[first] = logarithm[first] = 0;
    });
    expect_near(got, logarithm, dtype, 1, "log_softmax " + what);
  });
}

// The softmax of a row is NaN if the row is all -inf, or contains +inf or NaN. Other rows are
// unaffected.
TEST_F(LongReductions, SoftmaxOfNonFiniteValues) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const int64_t width : {int64_t{2048}, int64_t{2049}, int64_t{50256}}) {
    Tensor x{BP_F32, {4, width}, Numbers(static_cast<std::size_t>(4 * width), 1.0)};
    std::fill_n(x.values.begin(), width, -kInfinity);
    x.values[static_cast<std::size_t>(2 * width - 1)] = kInfinity;
    x.values[static_cast<std::size_t>(2 * width)] = std::numeric_limits<double>::quiet_NaN();
    const bp_axis_attributes attributes{sizeof(attributes), 1};
    const Numbers got = run(BP_OP_SOFTMAX, &attributes, {x}, {{BP_F32, x.shape, {}}})[0];
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(std::isnan(got[i]), i < static_cast<std::size_t>(3 * width)) << width << ", " << i;
  }
}

TEST_F(LongReductions, SoftmaxBackward) {
  for_widths({BP_F32}, [&](uint32_t dtype, int64_t width, const std::string& what) {
    const Tensor dy{dtype, {kRows, width}, drawn(dtype, kRows * width, 3)};
    Tensor y{dtype, {kRows, width}, drawn(dtype, kRows * width, 5)};
    for (const uint32_t logarithm : {0u, 1u}) {
      for (double& value : y.values) value = rounded(dtype, logarithm != 0 ? -std::abs(value) : value / 64);
      Numbers dx = dy.values;
      for_rows(dx.size(), width, [&](std::size_t first, std::size_t last) {
        double total = 0;
        for (std::size_t i = first; i < last; ++i) total += dy.values[i] * (logarithm != 0 ? 1 : y.values[i]);
        for (std::size_t i = first; i < last; ++i)
          dx[i] = logarithm != 0 ? dy.values[i] - std::exp(y.values[i]) * total : y.values[i] * (dy.values[i] - total);
      });
      bp_softmax_bwd_attributes attributes{};
      attributes.struct_size = sizeof(attributes);
      attributes.axis = 1;
      attributes.log = logarithm;
      expect_near(run(BP_OP_SOFTMAX_BWD, &attributes, {dy, y}, {{dtype, dy.shape, {}}})[0], dx, dtype, 1,
                  "softmax_bwd " + what);
    }
  });
}

// A softmax along an axis other than the last has interleaved rows. The last workgroup is partial.
TEST_F(LongReductions, SoftmaxAlongAnOuterAxis) {
  constexpr int64_t kOuter = 2, kInner = 35;
  for (const uint32_t dtype : {BP_F32, BP_BF16}) {
    for (const int64_t length : {9, 256, 257, 1025, 3000}) {
      const Tensor x{dtype, {kOuter, length, kInner}, drawn(dtype, kOuter * length * kInner, 53)};
      const Tensor dy{dtype, x.shape, drawn(dtype, kOuter * length * kInner, 59)}, out{dtype, x.shape, {}};
      Numbers y = x.values, dx = x.values;
      for (int64_t row = 0; row < kOuter * kInner; ++row) {
        const auto position = [&](int64_t i) {
          return static_cast<std::size_t>((row / kInner * length + i) * kInner + row % kInner);
        };
        double greatest = -1, sum = 0, total = 0;
        for (int64_t i = 0; i < length; ++i) greatest = std::max(greatest, x.values[position(i)]);
        for (int64_t i = 0; i < length; ++i) sum += std::exp(x.values[position(i)] - greatest);
        for (int64_t i = 0; i < length; ++i) {
          y[position(i)] = std::exp(x.values[position(i)] - greatest) / sum;
          total += dy.values[position(i)] * x.values[position(i)];
        }
        for (int64_t i = 0; i < length; ++i) dx[position(i)] = x.values[position(i)] * (dy.values[position(i)] - total);
      }
      const std::string what = std::to_string(length) + (dtype == BP_F32 ? " f32" : " bf16");
      const bp_axis_attributes forward{sizeof(forward), 1};
      expect_near(run(BP_OP_SOFTMAX, &forward, {x}, {out})[0], y, dtype, 1e-30, "softmax " + what);
      bp_softmax_bwd_attributes backward{};
      backward.struct_size = sizeof(backward);
      backward.axis = 1;
      expect_near(run(BP_OP_SOFTMAX_BWD, &backward, {dy, x}, {out})[0], dx, dtype, 4, "softmax_bwd " + what);
    }
  }
}

struct Statistics {
  double mean = 0, rstd = 0;
  Statistics(const Numbers& x, std::size_t first, std::size_t last, bool centred, double epsilon) {
    const auto count = static_cast<double>(last - first);
    for (std::size_t i = first; centred && i < last; ++i) mean += x[i] / count;
    double variance = 0;
    for (std::size_t i = first; i < last; ++i) variance += (x[i] - mean) * (x[i] - mean) / count;
    rstd = 1 / std::sqrt(variance + epsilon);
  }
};

TEST_F(LongReductions, LayerAndRmsNorm) {
  for_widths({BP_F32}, [&](uint32_t dtype, int64_t width, const std::string& what) {
    Tensor x{dtype, {kRows, width}, drawn(dtype, kRows * width, 11)};
    for (double& value : x.values) value = rounded(dtype, value + 3);
    const Tensor gamma{dtype, {width}, drawn(dtype, width, 13)}, beta{dtype, {width}, drawn(dtype, width, 17)};
    const Tensor out{dtype, x.shape, {}}, statistic{dtype, {kRows, 1}, {}};
    bp_norm_attributes attributes{};
    attributes.struct_size = sizeof(attributes);
    attributes.axes = 2;
    attributes.epsilon = 1e-3f;
    for (const bool rms : {false, true}) {
      Numbers y = x.values, means, rstds;
      for_rows(y.size(), width, [&](std::size_t first, std::size_t last) {
        const Statistics found(x.values, first, last, !rms, double{attributes.epsilon});
        means.push_back(found.mean);
        rstds.push_back(found.rstd);
        for (std::size_t i = first; i < last; ++i)
          y[i] = (x.values[i] - found.mean) * found.rstd * gamma.values[i - first] + (rms ? 0 : beta.values[i - first]);
      });
      const auto got = rms ? run(BP_OP_RMS_NORM, &attributes, {x, gamma}, {out, statistic})
                           : run(BP_OP_LAYER_NORM, &attributes, {x, gamma, beta}, {out, statistic, statistic});
      expect_near(got[0], y, dtype, 4, (rms ? "rms_norm " : "layer_norm ") + what);
      if (!rms) expect_near(got[1], means, dtype, 1, "mean " + what);
      expect_near(got.back(), rstds, dtype, 1, "rstd " + what);
    }
  });
}

// Runs with both weights and smoothing, and with neither. Each configuration also runs without the
// gradient. One target is ignored, and one target is the last class.
TEST_F(LongReductions, CrossEntropy) {
  constexpr int32_t kIgnored = -100;
  for (const bool smoothed : {false, true}) {
    for_widths({BP_F32}, [&](uint32_t dtype, int64_t width, const std::string& what) {
      const Tensor x{dtype, {kRows, width}, drawn(dtype, kRows * width, 19)};
      const Tensor target{BP_I32, {kRows}, {7, kIgnored, static_cast<double>(width - 1)}};
      Tensor weight{smoothed ? dtype : 0, {width}, drawn(dtype, width, 23)};
      for (double& value : weight.values) value = smoothed ? std::abs(value) : 1;
      const double smoothing = smoothed ? 0.25 : 0, even = smoothing / static_cast<double>(width);
      Numbers losses, gradient = x.values;
      for_rows(gradient.size(), width, [&](std::size_t first, std::size_t last) {
        const Peak peak(x.values, first, last);
        const double chosen = target.values[losses.size()], logarithm = peak.greatest + std::log(peak.sum);
        const auto position = first + static_cast<std::size_t>(chosen < 0 ? 0 : chosen);
        const double own = weight.values[position - first] * (1 - smoothing);
        double loss = (logarithm - x.values[position]) * own, weights = 0;
        for (std::size_t i = first; i < last; ++i) {
          loss += (logarithm - x.values[i]) * weight.values[i - first] * even;
          weights += weight.values[i - first] * even;
        }
        for (std::size_t i = first; i < last; ++i) {
          gradient[i] = std::exp(x.values[i] - logarithm) * (own + weights) - weight.values[i - first] * even;
          if (i == position) gradient[i] -= own;
          if (chosen < 0) gradient[i] = 0;
        }
        losses.push_back(chosen < 0 ? 0 : loss);
      });
      bp_cross_entropy_attributes attributes{};
      attributes.struct_size = sizeof(attributes);
      attributes.reduction = BP_REDUCTION_NONE;
      attributes.ignore_index = kIgnored;
      attributes.label_smoothing = static_cast<float>(smoothing);
      const Tensor loss{dtype, {kRows}, {}};
      const auto got = run(BP_OP_CROSS_ENTROPY, &attributes, {x, target, weight}, {loss, {dtype, x.shape, {}}});
      expect_near(got[0], losses, dtype, 1, "cross_entropy " + what);
      expect_near(got[1], gradient, dtype, 1e-3, "gradient " + what);
      const auto alone = run(BP_OP_CROSS_ENTROPY, &attributes, {x, target, weight}, {loss});
      EXPECT_EQ(alone[0], got[0]) << what;
    });
  }
}

// Runs with and without the statistics of the forward pass as inputs.
TEST_F(LongReductions, NormBackward) {
  for_widths({BP_F32}, [&](uint32_t dtype, int64_t width, const std::string& what) {
    const Tensor dy{dtype, {kRows, width}, drawn(dtype, kRows * width, 29)};
    Tensor x{dtype, {kRows, width}, drawn(dtype, kRows * width, 31)};
    for (double& value : x.values) value = rounded(dtype, value + 0.5);
    const Tensor gamma{dtype, {width}, drawn(dtype, width, 37)};
    const Tensor parameter{dtype, {width}, {}}, absent;
    for (const auto& [rms, own] : {std::pair(false, true), {false, false}, {true, true}, {true, false}}) {
      bp_norm_bwd_attributes attributes{};
      attributes.struct_size = sizeof(attributes);
      attributes.norm = rms ? BP_NORM_RMS : BP_NORM_LAYER;
      attributes.axes = 2;
      attributes.epsilon = 1e-3f;
      Tensor mean{rms ? 0 : dtype, {kRows, 1}, {}}, rstd{dtype, {kRows, 1}, {}};
      Numbers dx = x.values, dgamma(static_cast<std::size_t>(width)), dbeta = dgamma;
      for_rows(dx.size(), width, [&](std::size_t first, std::size_t last) {
        Statistics found(x.values, first, last, !rms, double{attributes.epsilon});
        if (!own) found.mean = rounded(dtype, found.mean), found.rstd = rounded(dtype, found.rstd);
        mean.values.push_back(found.mean);
        rstd.values.push_back(found.rstd);
        double mean_g = 0, mean_product = 0;
        const auto terms = [&](std::size_t i) {
          return std::pair(dy.values[i] * gamma.values[i - first], (x.values[i] - found.mean) * found.rstd);
        };
        for (std::size_t i = first; i < last; ++i) {
          const auto [g, s] = terms(i);
          mean_g += rms ? 0 : g / static_cast<double>(width);
          mean_product += g * s / static_cast<double>(width);
          dgamma[i - first] += dy.values[i] * s;
          dbeta[i - first] += dy.values[i];
        }
        for (std::size_t i = first; i < last; ++i) {
          const auto [g, s] = terms(i);
          dx[i] = found.rstd * (g - mean_g - s * mean_product);
        }
      });
      const auto got = run(BP_OP_NORM_BWD, &attributes, {dy, x, gamma, own ? absent : mean, own ? absent : rstd},
                           {{dtype, x.shape, {}}, parameter, rms ? absent : parameter});
      const std::string name = (rms ? "rms_norm backward " : "layer_norm backward ") + what + (own ? " alone" : "");
      expect_near(got[0], dx, dtype, 4, name);
      expect_near(got[1], dgamma, dtype, 4, name + ", dgamma");
      if (!rms) expect_near(got[2], dbeta, dtype, 4, name + ", dbeta");
    }
  });
}

// The row of a channel has two dimensions that cannot be merged: the batch and the plane.
TEST_F(LongReductions, BatchNormAndItsBackward) {
  constexpr int64_t kImages = 2, kChannels = 3;
  for (const int64_t plane : {int64_t{700}, int64_t{4801}, int64_t{30000}}) {
    const Tensor x{BP_F32, {kImages, kChannels, plane}, drawn(BP_F32, kImages * kChannels * plane, 41)};
    const Tensor dy{BP_F32, x.shape, drawn(BP_F32, kImages * kChannels * plane, 43)};
    const Tensor each{BP_F32, {kChannels}, Numbers{0.5, 1, 2}}, out{BP_F32, {kChannels}, {}}, absent;
    Numbers y = x.values, dx = x.values;
    for (int64_t channel = 0; channel < kChannels; ++channel) {
      Numbers row, slope;
      const auto position = [&](int64_t i) {
        return static_cast<std::size_t>((i / plane * kChannels + channel) * plane + i % plane);
      };
      const auto scale = each.values[static_cast<std::size_t>(channel)];
      for (int64_t i = 0; i < kImages * plane; ++i) {
        row.push_back(x.values[position(i)]);
        slope.push_back(dy.values[position(i)] * scale);
      }
      const Statistics found(row, 0, row.size(), true, 1e-3);
      double mean_g = 0, mean_product = 0;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const double s = (row[i] - found.mean) * found.rstd;
        mean_g += slope[i] / static_cast<double>(row.size());
        mean_product += slope[i] * s / static_cast<double>(row.size());
        y[position(static_cast<int64_t>(i))] = s * scale + scale;
      }
      for (std::size_t i = 0; i < row.size(); ++i) {
        const double s = (row[i] - found.mean) * found.rstd;
        dx[position(static_cast<int64_t>(i))] = found.rstd * (slope[i] - mean_g - s * mean_product);
      }
    }
    bp_batch_norm_attributes forward{};
    forward.struct_size = sizeof(forward);
    forward.training = 1;
    forward.epsilon = 1e-3f;
    forward.momentum = 0.1f;
    const std::string what = "batch_norm of planes of " + std::to_string(plane);
    expect_near(run(BP_OP_BATCH_NORM, &forward, {x, each, each, each, each}, {{BP_F32, x.shape, {}}, out, out})[0], y,
                BP_F32, 4, what);
    bp_norm_bwd_attributes backward{};
    backward.struct_size = sizeof(backward);
    backward.norm = BP_NORM_BATCH;
    backward.epsilon = 1e-3f;
    expect_near(run(BP_OP_NORM_BWD, &backward, {dy, x, each, absent, absent}, {{BP_F32, x.shape, {}}})[0], dx, BP_F32,
                4, what + ", backward");
  }
}

// If elements are equal, topk selects the elements with the lowest indices. The first width equals k, which is
// BACKPLANE_TOPK_MAX.
TEST_F(LongReductions, TopK) {
  constexpr int64_t kCount = BACKPLANE_TOPK_MAX;
  for (const int64_t width : {kCount, int64_t{5000}, int64_t{524288}}) {
    for (const double levels : {3.0, 1e9}) {
      Tensor x{BP_F32, {2, width}, drawn(BP_F32, 2 * width, 47)};
      for (double& value : x.values) value = rounded(BP_F32, std::round(value * levels));
      for (const uint32_t smallest : {0u, 1u}) {
        bp_topk_attributes attributes{};
        attributes.struct_size = sizeof(attributes);
        attributes.axis = 1;
        attributes.smallest = smallest;
        Numbers values, positions;
        for_rows(x.values.size(), width, [&](std::size_t first, std::size_t) {
          std::vector<std::size_t> order(static_cast<std::size_t>(width));
          std::iota(order.begin(), order.end(), first);
          std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
            return smallest != 0 ? x.values[a] < x.values[b] : x.values[a] > x.values[b];
          });
          for (std::size_t i = 0; i < kCount; ++i) {
            values.push_back(x.values[order[i]]);
            positions.push_back(static_cast<double>(order[i] - first));
          }
        });
        const auto got = run(BP_OP_TOPK, &attributes, {x}, {{BP_F32, {2, kCount}, {}}, {BP_I32, {2, kCount}, {}}});
        EXPECT_EQ(got[0], values) << width << ", " << levels << ", " << smallest;
        EXPECT_EQ(got[1], positions) << width << ", " << levels << ", " << smallest;
      }
    }
  }
}

}  // namespace

}  // namespace backplane::vulkan::test
