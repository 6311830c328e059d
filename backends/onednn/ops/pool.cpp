// SPDX-License-Identifier: Apache-2.0
// The operators max_pool and avg_pool. Both operators are separable. First, the image lines that contribute to
// a line of the output are combined into one padded line. Then the elements of each window along the padded
// line are combined. In channels-last images, the elements of one window are combined for all channels at once.
// max_pool with indices searches element by element.
#include "simd/pool.hpp"

#include <backplane/kit/plan.hpp>
#include <backplane/kit/types.hpp>
#include <limits>

#include "ops/channels_last.hpp"
#include "ops/f32_cast.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "runtime/threads.hpp"
#include "simd/memory_moves.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

constexpr int64_t kPoolGrain = int64_t{1} << 16;  // number of combined elements that justify waking a thread

// A window over an image of three dimensions. An image of fewer dimensions gets leading dimensions of extent 1.
struct Window {
  int64_t image[3] = {1, 1, 1}, result[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, begin[3] = {}, end[3] = {};

  Window(const bp_pool_attributes& attributes, const View& x, const View& y) {
    const uint32_t rank = attributes.spatial_rank, shift = 3 - rank;
    for (uint32_t d = 0; d < rank; ++d) {
      image[shift + d] = x.shape[2 + d], result[shift + d] = y.shape[2 + d];
      kernel[shift + d] = attributes.kernel[d], stride[shift + d] = attributes.stride[d];
      dilation[shift + d] = attributes.dilation[d];
      begin[shift + d] = attributes.pad_begin[d], end[shift + d] = attributes.pad_end[d];
    }
    for (int d = 0; d < 3; ++d)
      stride[d] = result[d] == 1 ? 1 : stride[d];  // the stride of a single position has no effect
  }
  // The taps that lie within the image, in one dimension of the window at one position of the result.
  struct Taps {
    int64_t first, last;  // the range of taps is [first, last)
    int64_t at;           // the image position of tap 0, which may be outside the image
  };
  Taps taps(int d, int64_t position) const {
    const int64_t at = position * stride[d] - begin[d], step = dilation[d];
    const int64_t first = at >= 0 ? 0 : (-at + step - 1) / step;
    const int64_t last = at >= image[d] ? 0 : (image[d] - at + step - 1) / step;
    return {std::min(first, kernel[d]), std::max(std::min(first, kernel[d]), std::min(last, kernel[d])), at};
  }
  // steps() is the length of a line of the result, rounded up to whole vectors. padded_line() is the length of
  // a padded line of the image, from which the kernels can compute steps() results.
  int64_t steps() const { return (result[2] + kPoolStep - 1) / kPoolStep * kPoolStep; }
  int64_t padded_line() const {
    const int64_t padded = begin[2] + image[2] + end[2];
    if (stride[2] > kPoolStrides) return padded;
    return std::max(padded, stride[2] * steps() + (kernel[2] - 1) * dilation[2]);
  }
  int64_t plane() const { return image[0] * image[1] * image[2]; }
  int64_t results() const { return result[0] * result[1] * result[2]; }
};

// Computes lines of the output for one thread. The images are dense.
class PoolLine {
 public:
  PoolLine(const Call& call, const Window& window, float* scratch)
      : window_(window),
        average_(call.op->id == BP_OP_AVG_POOL),
        counts_padding_(call.attributes<bp_pool_attributes>().count_padding != 0),
        kernels_(call.prepared<PoolKernels>()),
        x_(call.in(0)),
        y_(call.out()),
        bytes_(static_cast<int64_t>(dtype_bytes(x_.dtype))),
        narrow_(F32Cast::from_f32(x_.dtype)),
        line_(scratch),
        out_(line_ + window.padded_line()),
        columns_(out_ + window.steps()),
        empty_(average_ ? 0 : -std::numeric_limits<float>::infinity()) {
    std::fill_n(line_, window.padded_line(), empty_);
    std::fill_n(out_, window.steps(), 0.0f);
    for (int64_t i = 0; i < window.steps(); ++i) {
      const auto taps = window.taps(2, std::min(i, window.result[2] - 1));
      columns_[i] = static_cast<float>(counts_padding_ ? window.kernel[2] : taps.last - taps.first);
    }
  }

  // Returns the number of floats of scratch memory for one PoolLine.
  static int64_t scratch_size(const Window& window) { return window.padded_line() + 2 * window.steps(); }

  void operator()(int64_t plane, int64_t slice, int64_t row) const {
    const auto slices = window_.taps(0, slice), rows = window_.taps(1, row);
    // Only the middle of the padded line changes. The padding on both sides retains its initial value.
    float* middle = line_ + window_.begin[2];
    const void* pending[kLines];
    int64_t pending_count = 0;
    bool more = false;
    const auto combine = [&] {
      if (pending_count != 0) kernels_.lines(middle, pending, pending_count, more, window_.image[2]);
      more = more || pending_count != 0;
      pending_count = 0;
    };
    for (int64_t s = slices.first; s < slices.last; ++s) {
      for (int64_t r = rows.first; r < rows.last; ++r) {
        if (pending_count == kLines) combine();
        const int64_t at = (slices.at + s * window_.dilation[0]) * window_.image[1] + rows.at + r * window_.dilation[1];
        pending[pending_count++] = x_.data + (plane * window_.plane() + at * window_.image[2]) * bytes_;
      }
    }
    combine();
    if (!more) std::fill_n(middle, window_.image[2], empty_);
    const int64_t count = window_.result[2];
    kernels_.taps(out_, line_, window_.stride[2], window_.kernel[2], window_.dilation[2], count);
    if (average_) {
      const int64_t lines = counts_padding_ ? window_.kernel[0] * window_.kernel[1]
                                            : (slices.last - slices.first) * (rows.last - rows.first);
      kernels_.divide(out_, columns_, static_cast<float>(lines), count);
    }
    std::byte* to = y_.data + ((plane * window_.result[0] + slice) * window_.result[1] + row) * count * bytes_;
    narrow_(out_, to, count);
  }

 private:
  static constexpr int64_t kLines = 16;  // maximum number of lines that are combined at once

  const Window& window_;
  const bool average_, counts_padding_;
  const PoolKernels& kernels_;
  const View &x_, &y_;
  const int64_t bytes_;
  const F32Cast narrow_;
  float *line_, *out_, *columns_;
  const float empty_;
};

void run_pool(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  if (y.elements() == 0) return;
  const Window window(call.attributes<bp_pool_attributes>(), x, y);
  const int64_t planes = x.shape[0] * x.shape[1], lines = window.result[0] * window.result[1];
  const int64_t size = PoolLine::scratch_size(window);
  float* memory = scratch_floats(*call.scratch, team_size() * size);
  const int64_t work = y.elements() * window.kernel[0] * window.kernel[1] * window.kernel[2];
  parallel(work, kPoolGrain, [&](int part, int parts) noexcept {
    const PoolLine each(call, window, memory + part * size);
    const Range range = range_of(planes * lines, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i)
      each(i / lines, i % lines / window.result[1], i % window.result[1]);
  });
}

// Computes lines of the output for one thread. The images are channels-last.
class ChannelsLastLine {
 public:
  ChannelsLastLine(const Call& call, const Window& window, float* scratch)
      : window_(window),
        average_(call.op->id == BP_OP_AVG_POOL),
        counts_padding_(call.attributes<bp_pool_attributes>().count_padding != 0),
        kernels_(call.prepared<PoolKernels>()),
        x_(call.in(0)),
        channels_(x_.shape[1]),
        bytes_(channels_ * static_cast<int64_t>(dtype_bytes(x_.dtype))),
        narrow_(F32Cast::from_f32(x_.dtype)),
        combined_(scratch),
        ones_(scratch + padded(channels_)) {
    std::fill_n(ones_, padded(channels_), 1.0f);
  }

  // Returns the number of floats of scratch memory for one ChannelsLastLine.
  static int64_t scratch_size(int64_t channels) { return 2 * padded(channels); }

  // Stores the results of one line of the output, channels-last, at `to`. `line` is slice * result[1] + row.
  void operator()(int64_t image, int64_t line, std::byte* to) const {
    const auto slices = window_.taps(0, line / window_.result[1]), rows = window_.taps(1, line % window_.result[1]);
    const int64_t padding_count = window_.kernel[0] * window_.kernel[1] * window_.kernel[2];
    for (int64_t column = 0; column < window_.result[2]; ++column, to += bytes_) {
      const auto taps = window_.taps(2, column);
      // The results of f32 maxima are stored in the output directly. Averages are not: divide() writes whole
      // vectors, which may exceed the channels of a position.
      float* const sums = x_.dtype == BP_F32 && !average_ ? reinterpret_cast<float*>(to) : combined_;
      combine(image, slices, rows, taps, sums);
      if (average_) {
        const int64_t inside = (slices.last - slices.first) * (rows.last - rows.first) * (taps.last - taps.first);
        kernels_.divide(sums, ones_, static_cast<float>(counts_padding_ ? padding_count : inside), channels_);
      }
      if (sums == combined_) narrow_(combined_, to, channels_);
    }
  }

 private:
  // Combines the elements of one window into sums[c] for each channel c.
  void combine(int64_t image, const Window::Taps& slices, const Window::Taps& rows, const Window::Taps& columns,
               float* sums) const {
    const void* pending[kMost];
    int64_t pending_count = 0;
    bool more = false;
    const auto flush = [&] {
      if (pending_count != 0) kernels_.lines(sums, pending, pending_count, more, channels_);
      more = more || pending_count != 0;
      pending_count = 0;
    };
    for (int64_t s = slices.first; s < slices.last; ++s) {
      for (int64_t r = rows.first; r < rows.last; ++r) {
        const int64_t line =
            (slices.at + s * window_.dilation[0]) * window_.image[1] + rows.at + r * window_.dilation[1];
        const std::byte* at = x_.data + (image * window_.plane() + line * window_.image[2] + columns.at +
                                         columns.first * window_.dilation[2]) *
                                            bytes_;
        for (int64_t c = columns.first; c < columns.last; ++c, at += window_.dilation[2] * bytes_) {
          if (pending_count == kMost) flush();
          pending[pending_count++] = at;
        }
      }
    }
    flush();
    if (!more) std::fill_n(sums, channels_, average_ ? 0 : -std::numeric_limits<float>::infinity());
  }

  static constexpr int64_t kMost = 16;  // maximum number of elements that are combined at once
  static int64_t padded(int64_t count) { return (count + kPoolStep - 1) / kPoolStep * kPoolStep; }

  const Window& window_;
  const bool average_, counts_padding_;
  const PoolKernels& kernels_;
  const View& x_;
  const int64_t channels_, bytes_;
  const F32Cast narrow_;
  float *combined_, *ones_;
};

// Pools channels-last images. The output is channels-last or dense.
void run_pool_channels_last(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  if (y.elements() == 0) return;
  const Window window(call.attributes<bp_pool_attributes>(), x, y);
  const int64_t channels = x.shape[1], bytes = static_cast<int64_t>(dtype_bytes(y.dtype)), width = window.result[2];
  const bool transposes = y.strides[1] != 1;
  constexpr int64_t kTile = 64;  // number of positions that are transposed at once; a longer line is transposed whole
  const int64_t height = std::max<int64_t>(kTile / width, 1), lines = window.result[0] * window.result[1];
  const int64_t own = ChannelsLastLine::scratch_size(channels);
  const int64_t size = own + (transposes ? height * width * channels : 0);
  float* memory = scratch_floats(*call.scratch, team_size() * size);
  const int64_t tiles = (lines + height - 1) / height;
  const int64_t work = y.elements() * window.kernel[0] * window.kernel[1] * window.kernel[2];
  parallel(work, kPoolGrain, [&](int part, int parts) noexcept {
    const ChannelsLastLine each(call, window, memory + part * size);
    auto* const tile = reinterpret_cast<std::byte*>(memory + part * size + own);
    const Range range = range_of(x.shape[0] * tiles, part, parts);
    for (int64_t t = range.begin; t < range.end; ++t) {
      const int64_t image = t / tiles, first = t % tiles * height, count = std::min(height, lines - first);
      std::byte* const to = y.data + image * channels * lines * width * bytes;
      std::byte* const row = transposes ? tile : to + first * width * channels * bytes;
      for (int64_t l = 0; l < count; ++l) each(image, first + l, row + l * width * channels * bytes);
      if (!transposes) continue;
      memory_moves().transpose[bytes == 4 ? 2 : 1](tile, channels * bytes, to + first * width * bytes, lines * width,
                                                   count * width, channels);
    }
  });
}

// Computes the maximum of each window, and the index of this maximum in its plane. If several elements are
// equal to the maximum, the first one counts. If the window contains NaN, the first NaN is the maximum. If a
// window covers only padding, the index is the greatest value of Index.
template <class T, class Index>
void run_indexed(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  if (y.elements() == 0) return;
  const Window window(call.attributes<bp_pool_attributes>(), x, y);
  const int64_t results = window.results(), planes = x.shape[0] * x.shape[1];
  const int64_t work = y.elements() * window.kernel[0] * window.kernel[1] * window.kernel[2];
  constexpr Index kNone = std::numeric_limits<Index>::max();
  const auto search = [&](const T* image, const auto(&taps)[3], T& value, Index& index) {
    float best = -std::numeric_limits<float>::infinity();
    index = kNone;
    for (int64_t s = taps[0].first; s < taps[0].last; ++s) {
      for (int64_t r = taps[1].first; r < taps[1].last; ++r) {
        const int64_t line =
            (taps[0].at + s * window.dilation[0]) * window.image[1] + taps[1].at + r * window.dilation[1];
        for (int64_t c = taps[2].first; c < taps[2].last; ++c) {
          const int64_t at = line * window.image[2] + taps[2].at + c * window.dilation[2];
          const float element = widen(image[at]);
          if (index != kNone && (!(element > best || element != element) || best != best)) continue;
          best = element;
          index = static_cast<Index>(at);
        }
      }
    }
    value = narrow<T>(best);
  };
  parallel(work, kPoolGrain, [&](int part, int parts) noexcept {
    const Range range = range_of(planes * results, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t at = i % results, row = at / window.result[2];
      const Window::Taps taps[3] = {window.taps(0, row / window.result[1]), window.taps(1, row % window.result[1]),
                                    window.taps(2, at % window.result[2])};
      search(x.as<const T>() + i / results * window.plane(), taps, y.as<T>()[i], call.out(1).as<Index>()[i]);
    }
  });
}

template <class Index>
Kernel indexed_kernel(uint32_t dtype) {
  if (dtype == BP_F32) return run_indexed<float, Index>;
  return dtype == BP_F16 ? Kernel{run_indexed<f16, Index>} : Kernel{run_indexed<bf16, Index>};
}

Status prepare_pool(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  const uint32_t dtype = desc.inputs[0].dtype, index = desc.output_count > 1 ? desc.outputs[1].dtype : 0;
  stage_all_but({1, 1}, checked, prepared);
  const bool channels_last = index == 0 && (prepared.stage_inputs & 1u) == 0 && is_channels_last(desc.inputs[0]);
  if (!channels_last) stage_all_but({0, 0}, checked, prepared);
  prepared.any_size = !channels_last;  // false for channels-last images, because other layouts of their class need
                                       // other kernels
  if (channels_last) prepared.run = run_pool_channels_last;
  if (index == BP_I32) prepared.run = indexed_kernel<int32_t>(dtype);
  if (index == BP_I64) prepared.run = indexed_kernel<int64_t>(dtype);
  return {};
}

}  // namespace

void add_pool(Kernels& kernels) {
  for (const uint32_t op : {BP_OP_MAX_POOL, BP_OP_AVG_POOL}) {
    for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
      const PoolKernels steps = pool_kernels(op == BP_OP_AVG_POOL, dtype);
      if (steps.lines == nullptr) return;
      kernels.add(op, dtype,
                  {.run = run_pool,
                   .prepare = prepare_pool,
                   .state = std::make_shared<PoolKernels>(steps),
                   .mixed = rules::kMixedIndex});
    }
  }
}

}  // namespace backplane::onednn
