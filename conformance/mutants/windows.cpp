// SPDX-License-Identifier: Apache-2.0
// Native composites with a sliding window: conv, max_pool, avg_pool.
#include <cmath>

#include "composites.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr int kDims = 3;
using Extents = std::array<int64_t, kDims>;

enum class WindowFlaw {
  kNone,
  kPadOffByOne,
  kPadSwapped,
  kDilationIgnored,
  kGroupsIgnored,
  kFlipped,
  kCountsPadding,
  kDividesByNothing,
  kPadsWithZero
};

int64_t volume(const Extents& extents) { return extents[0] * extents[1] * extents[2]; }
int64_t linear(const Extents& at, const Extents& extents) { return (at[0] * extents[1] + at[1]) * extents[2] + at[2]; }
Extents split(int64_t n, const Extents& extents) {
  return {n / extents[2] / extents[1], n / extents[2] % extents[1], n % extents[2]};
}
// Returns the extents of the spatial dimensions. Missing dimensions have extent 1.
Extents spatial(const View& view) {
  Extents out{1, 1, 1};
  for (uint32_t d = 2; d < view.rank; ++d) out[d - 2] = view.shape[d];
  return out;
}

struct Window {
  Extents kernel, stride, dilation, pad;

  template <WindowFlaw kFlaw, class Attributes>
  static Window of(const Attributes& attributes, const Extents& kernel) {
    Window out{kernel, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}};
    for (uint32_t d = 0; d < attributes.spatial_rank; ++d) {
      out.stride[d] = attributes.stride[d];
      out.dilation[d] = kFlaw == WindowFlaw::kDilationIgnored ? 1 : attributes.dilation[d];
      out.pad[d] = kFlaw == WindowFlaw::kPadSwapped ? attributes.pad_end[d] : attributes.pad_begin[d];
      if (kFlaw == WindowFlaw::kPadOffByOne && out.pad[d] > 0) --out.pad[d];
    }
    return out;
  }
  // Calls visit(tap, offset) for each tap of the kernel. `tap` is the tap's flat index. `offset` is the flat index of
  // the image's element under the tap, or -1 in the padding.
  template <class Visit>
  void taps(const Extents& at, const Extents& image, const Visit& visit) const {
    for (int64_t t = 0; t < volume(kernel); ++t) {
      const Extents tap = split(t, kernel);
      Extents position;
      bool inside = true;
      for (int d = 0; d < kDims; ++d) {
        position[d] = at[d] * stride[d] - pad[d] + tap[d] * dilation[d];
        inside = inside && position[d] >= 0 && position[d] < image[d];
      }
      visit(t, inside ? linear(position, image) : -1);
    }
  }
};

double activate(uint32_t activation, double x) {
  switch (activation) {
    case BP_ACTIVATION_RELU:
      return x < 0 ? 0 : x;
    case BP_ACTIVATION_GELU_ERF:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case BP_ACTIVATION_GELU_TANH:
      return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case BP_ACTIVATION_SILU:
      return x / (1 + std::exp(-x));
    case BP_ACTIVATION_SIGMOID:
      return 1 / (1 + std::exp(-x));
    default:
      return x;
  }
}

// Operands: x[N,C,..], w[O,C/g,..], [bias[O]] -> y[N,O,..]
template <WindowFlaw kFlaw>
void conv(const Call& call) {
  const auto& attributes = call.attributes<bp_conv_attributes>();
  const Values x(call.in(0)), w(call.in(1)), bias(call, 2);
  Values y(call.out());
  const Extents image = spatial(call.in(0)), result = spatial(call.out());
  const Window window = Window::of<kFlaw>(attributes, spatial(call.in(1)));
  const int64_t channels = call.in(0).shape[1], per_group = call.in(1).shape[1], outputs = call.in(1).shape[0];
  const int64_t outputs_per_group = std::max<int64_t>(outputs / attributes.groups, 1), taps = volume(window.kernel);
  for (int64_t n = 0; n < y.size(); ++n) {
    const int64_t batch = n / volume(result) / outputs, out = n / volume(result) % outputs;
    const int64_t group = kFlaw == WindowFlaw::kGroupsIgnored ? 0 : out / outputs_per_group;
    double sum = bias.or_else(out, 0);
    window.taps(split(n % volume(result), result), image, [&](int64_t tap, int64_t offset) {
      if (offset < 0) return;
      const int64_t at = kFlaw == WindowFlaw::kFlipped ? taps - 1 - tap : tap;
      for (int64_t c = 0; c < per_group; ++c) {
        sum += x[(batch * channels + group * per_group + c) * volume(image) + offset] *
               w[(out * per_group + c) * taps + at];
      }
    });
    y[n] = activate(attributes.activation, sum);
  }
  y.store();
}

template <WindowFlaw kFlaw>
void pool(const Call& call) {
  const auto& attributes = call.attributes<bp_pool_attributes>();
  const bool average = call.op->id == BP_OP_AVG_POOL;
  const Values x(call.in(0));
  Values y(call.out());
  const Extents image = spatial(call.in(0)), result = spatial(call.out());
  Extents kernel{1, 1, 1};
  std::copy_n(attributes.kernel, attributes.spatial_rank, kernel.begin());
  const Window window = Window::of<kFlaw>(attributes, kernel);
  std::vector<double> index;
  for (int64_t n = 0; n < y.size(); ++n) {
    double sum = 0, most = -INFINITY;
    int64_t count = 0, found = -1;
    window.taps(split(n % volume(result), result), image, [&](int64_t, int64_t offset) {
      if (offset < 0 && kFlaw == WindowFlaw::kPadsWithZero) most = std::max(most, 0.0);
      if (offset < 0) return;
      const double value = x[n / volume(result) * volume(image) + offset];
      sum += value;
      ++count;
      if (found < 0 || value > most || (std::isnan(value) && !std::isnan(most))) {
        if (!(kFlaw == WindowFlaw::kPadsWithZero && value < most)) most = value;
        found = offset;
      }
    });
    const bool all = attributes.count_padding != 0 || kFlaw == WindowFlaw::kCountsPadding;
    const int64_t divisor = all ? volume(kernel) : count;
    const bool nothing = divisor == 0 && kFlaw != WindowFlaw::kDividesByNothing;  // in this case, sum is 0
    y[n] = average ? sum / static_cast<double>(nothing ? 1 : divisor) : most;
    index.push_back(static_cast<double>(found));
  }
  y.store();
  if (call.outputs.size() > 1 && call.out(1).dtype != 0) write(call.out(1), index);
}

// Returns whether the channels are the innermost dimension of an image.
bool is_channels_last(const View& image) {
  return image.shape[1] > 1 && image.strides[1] == 1 && image.strides[image.rank - 1] == image.shape[1];
}
template <Kernel kFlawed, Kernel kRight>
void if_channels_last(const Call& call) {
  (is_channels_last(call.in(0)) ? kFlawed : kRight)(call);
}
template <Kernel kFlawed, Kernel kRight>
void if_more_images(const Call& call) {
  constexpr int64_t kAtOnce = 8;
  (call.in(0).shape[0] > kAtOnce ? kFlawed : kRight)(call);
}

template <uint32_t kOp, Kernel kRun>
constexpr Mutation native() {
  return {.kernels = [](Kernels& kernels) { add_native(kernels, kOp, kRun); }};
}

}  // namespace

void add_honest_windows(Kernels& kernels) {
  add_native(kernels, BP_OP_CONV, conv<WindowFlaw::kNone>);
  add_native(kernels, BP_OP_MAX_POOL, pool<WindowFlaw::kNone>);
  add_native(kernels, BP_OP_AVG_POOL, pool<WindowFlaw::kNone>);
}

const Mutation defect::pad_off_by_one = native<BP_OP_CONV, conv<WindowFlaw::kPadOffByOne>>();
const Mutation defect::pads_swapped = native<BP_OP_CONV, conv<WindowFlaw::kPadSwapped>>();
const Mutation defect::dilation_ignored = native<BP_OP_CONV, conv<WindowFlaw::kDilationIgnored>>();
const Mutation defect::groups_ignored = native<BP_OP_CONV, conv<WindowFlaw::kGroupsIgnored>>();
const Mutation defect::kernel_flipped = native<BP_OP_CONV, conv<WindowFlaw::kFlipped>>();
const Mutation defect::average_counts_padding = native<BP_OP_AVG_POOL, pool<WindowFlaw::kCountsPadding>>();
const Mutation defect::average_of_nothing = native<BP_OP_AVG_POOL, pool<WindowFlaw::kDividesByNothing>>();
const Mutation defect::conv_of_channels_last =
    native<BP_OP_CONV, if_channels_last<conv<WindowFlaw::kDilationIgnored>, conv<WindowFlaw::kNone>>>();
const Mutation defect::conv_of_images_beyond_8 =
    native<BP_OP_CONV, if_more_images<conv<WindowFlaw::kPadSwapped>, conv<WindowFlaw::kNone>>>();
const Mutation defect::pool_of_channels_last =
    native<BP_OP_MAX_POOL, if_channels_last<pool<WindowFlaw::kPadSwapped>, pool<WindowFlaw::kNone>>>();
const Mutation defect::max_pads_with_zero = native<BP_OP_MAX_POOL, pool<WindowFlaw::kPadsWithZero>>();

}  // namespace backplane::conformance::mutants
