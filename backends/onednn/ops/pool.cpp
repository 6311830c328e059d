// SPDX-License-Identifier: Apache-2.0
// max_pool and avg_pool. Both are separable: the lines of an image that a row of the output sees are joined into one, with its padding about it, and
// that is joined along itself. What asks for the maximum's place is searched element by element.
#include <backplane/kit/plan.hpp>
#include <cmath>
#include <limits>

#include "ops/vector_loop.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/pool.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "simd/simd-inl.h"

#ifndef BACKPLANE_ONEDNN_POOL
#define BACKPLANE_ONEDNN_POOL
namespace backplane::onednn {

struct PoolRows {
  // joined[i] = the join of lines[..][i], and of joined[i] itself if `more`; of at least one line
  void (*lines)(float* joined, const void* const* lines, int64_t line_count, bool more, int64_t count);
  // out[i] = the join of `kernel` taps of line, the first at i * stride, `dilation` apart. With strides of kPoolStrides and
  // less, line and out reach as far as `count` in whole kPoolSteps does
  void (*taps)(float* out, const float* line, int64_t stride, int64_t kernel, int64_t dilation, int64_t count);
  // by columns[i] * lines, or by 1 where that is 0; out and columns reach as far as `count` in whole kPoolSteps
  void (*divide)(float* out, const float* columns, float lines, int64_t count);
};
inline constexpr int64_t kPoolStep = 16;    // elements of the widest vectors, which have 64 bytes
inline constexpr int64_t kPoolStrides = 2;  // that vectors take

}  // namespace backplane::onednn
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

struct Most {  // NaN stays
  template <class V>
  static HWY_INLINE V join(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
  static float join(float a, float b) { return a > b || a != a ? a : b; }
};
struct Sum {
  template <class V>
  static HWY_INLINE V join(V a, V b) {
    return hn::Add(a, b);
  }
  static float join(float a, float b) { return a + b; }
};

template <class T, class How>
void join_lines(float* joined, const void* const* lines, int64_t line_count, bool more, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto line = [&](int64_t l) { return static_cast<const T*>(lines[l]); };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto result = load(d, line(0) + i);
    for (int64_t l = 1; l < line_count; ++l) result = How::join(result, load(d, line(l) + i));
    if (more) result = How::join(hn::LoadU(d, joined + i), result);
    hn::StoreU(result, d, joined + i);
  }
  for (; i < count; ++i) {
    auto result = static_cast<float>(line(0)[i]);
    for (int64_t l = 1; l < line_count; ++l) result = How::join(result, static_cast<float>(line(l)[i]));
    joined[i] = more ? How::join(joined[i], result) : result;
  }
}

template <class How>
void join_taps(float* out, const float* line, int64_t stride, int64_t kernel, int64_t dilation, int64_t count) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto join_all = [&](const auto& tap) HWY_ATTR {
    for (; i < count; i += lanes) {
      auto result = tap(line + i * stride);
      for (int64_t k = 1; k < kernel; ++k) result = How::join(result, tap(line + i * stride + k * dilation));
      hn::StoreU(result, d, out + i);
    }
  };
  if (stride == 1) join_all([&](const float* from) HWY_ATTR { return hn::LoadU(d, from); });
  if (stride == 2) {
    join_all([&](const float* from) HWY_ATTR {
      hn::Vec<decltype(d)> even, odd;
      hn::LoadInterleaved2(d, from, even, odd);
      return even;
    });
  }
#endif
  for (; i < count; ++i) {
    out[i] = line[i * stride];
    for (int64_t k = 1; k < kernel; ++k) out[i] = How::join(out[i], line[i * stride + k * dilation]);
  }
}

[[maybe_unused]] void divide(float* out, const float* columns, float lines, int64_t count) {
  const hn::ScalableTag<float> d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto number = hn::Max(hn::Mul(hn::LoadU(d, columns + i), hn::Set(d, lines)), hn::Set(d, 1.0f));
    hn::StoreU(hn::Div(hn::LoadU(d, out + i), number), d, out + i);
  }
}

template <class How>
PoolRows rows_of(uint32_t dtype) {
  return {dtype == BP_F32   ? join_lines<float, How>
          : dtype == BP_F16 ? join_lines<f16, How>
                            : join_lines<bf16, How>,
          join_taps<How>, divide};
}
PoolRows find_pool(bool average, uint32_t dtype) {
  if constexpr (kHasVectors) return average ? rows_of<Sum>(dtype) : rows_of<Most>(dtype);
  return {};
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_pool);
namespace {

using namespace kit;

constexpr int64_t kGrain = int64_t{1} << 16;  // joins that are worth a thread

// A window that moves over an image of up to three dimensions, missing ones first with extent 1.
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
    for (int d = 0; d < 3; ++d) stride[d] = result[d] == 1 ? 1 : stride[d];  // of one place, it says nothing
  }
  // The taps along a dimension that see the image, for a place in the result.
  struct Taps {
    int64_t first, last, at;  // [first, last); element 0's place, which may be outside
  };
  Taps taps(int d, int64_t place) const {
    const int64_t at = place * stride[d] - begin[d], step = dilation[d];
    const int64_t first = at >= 0 ? 0 : (-at + step - 1) / step;
    const int64_t last = at >= image[d] ? 0 : (image[d] - at + step - 1) / step;
    return {std::min(first, kernel[d]), std::max(std::min(first, kernel[d]), std::min(last, kernel[d])), at};
  }
  // Of a line of the result in whole vectors, and of the line that it is made from.
  int64_t steps() const { return (result[2] + kPoolStep - 1) / kPoolStep * kPoolStep; }
  int64_t padded_line() const {
    const int64_t padded = begin[2] + image[2] + end[2];
    if (stride[2] > kPoolStrides) return padded;
    return std::max(padded, stride[2] * steps() + (kernel[2] - 1) * dilation[2]);
  }
  int64_t plane() const { return image[0] * image[1] * image[2]; }
  int64_t results() const { return result[0] * result[1] * result[2]; }
};

// One thread's work on one line of the output.
class Lines {
 public:
  Lines(const Call& call, const Window& window, float* room)
      : window_(window),
        average_(call.op->id == BP_OP_AVG_POOL),
        counts_padding_(call.attributes<bp_pool_attributes>().count_padding != 0),
        rows_(call.prepared<PoolRows>()),
        x_(call.in(0)),
        y_(call.out()),
        bytes_(static_cast<int64_t>(dtype_bytes(x_.dtype))),
        narrow_(x_.dtype == BP_F32 ? nullptr : cast_row(BP_F32, x_.dtype)),
        line_(room),
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

  static int64_t room(const Window& window) { return window.padded_line() + 2 * window.steps(); }

  void operator()(int64_t plane, int64_t slice, int64_t row) const {
    const auto slices = window_.taps(0, slice), rows = window_.taps(1, row);
    // What lies about the image in the line stays as it is.
    float* middle = line_ + window_.begin[2];
    const void* seen[kLines];
    int64_t count_seen = 0;
    bool more = false;
    const auto join = [&] {
      if (count_seen != 0) rows_.lines(middle, seen, count_seen, more, window_.image[2]);
      more = more || count_seen != 0;
      count_seen = 0;
    };
    for (int64_t s = slices.first; s < slices.last; ++s) {
      for (int64_t r = rows.first; r < rows.last; ++r) {
        if (count_seen == kLines) join();
        const int64_t at = (slices.at + s * window_.dilation[0]) * window_.image[1] + rows.at + r * window_.dilation[1];
        seen[count_seen++] = x_.data + (plane * window_.plane() + at * window_.image[2]) * bytes_;
      }
    }
    join();
    if (!more) std::fill_n(middle, window_.image[2], empty_);
    const int64_t count = window_.result[2];
    rows_.taps(out_, line_, window_.stride[2], window_.kernel[2], window_.dilation[2], count);
    if (average_) {
      const int64_t lines = counts_padding_ ? window_.kernel[0] * window_.kernel[1]
                                            : (slices.last - slices.first) * (rows.last - rows.first);
      rows_.divide(out_, columns_, static_cast<float>(lines), count);
    }
    std::byte* to = y_.data + ((plane * window_.result[0] + slice) * window_.result[1] + row) * count * bytes_;
    const void* in[] = {out_};
    narrow_ == nullptr ? void(std::memcpy(to, out_, static_cast<std::size_t>(count) * sizeof(float)))
                       : narrow_(in, to, count);
  }

 private:
  static constexpr int64_t kLines = 16;  // that are joined at a time

  const Window& window_;
  const bool average_, counts_padding_;
  const PoolRows& rows_;
  const View &x_, &y_;
  const int64_t bytes_;
  const Row narrow_;
  float *line_, *out_, *columns_;
  const float empty_;
};

void run(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  if (y.elements() == 0) return;
  const Window window(call.attributes<bp_pool_attributes>(), x, y);
  const int64_t planes = x.shape[0] * x.shape[1], lines = window.result[0] * window.result[1];
  const int64_t room = Lines::room(window);
  auto* memory =
      reinterpret_cast<float*>(call.scratch->get(static_cast<std::size_t>(team_size() * room) * sizeof(float)));
  const int64_t work = y.elements() * window.kernel[0] * window.kernel[1] * window.kernel[2];
  parallel(work, kGrain, [&](int part, int parts) noexcept {
    const Lines each(call, window, memory + part * room);
    const Range range = range_of(planes * lines, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i)
      each(i / lines, i % lines / window.result[1], i % window.result[1]);
  });
}

// The maximum and its place in its plane: the first of equals, or the first NaN. A window of padding alone names none.
template <class T>
void run_indexed(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  if (y.elements() == 0) return;
  const Window window(call.attributes<bp_pool_attributes>(), x, y);
  const int64_t results = window.results(), planes = x.shape[0] * x.shape[1];
  const int64_t work = y.elements() * window.kernel[0] * window.kernel[1] * window.kernel[2];
  const auto search = [&](const T* image, const auto(&taps)[3], T& value, int32_t& place) {
    float best = -std::numeric_limits<float>::infinity();
    place = std::numeric_limits<int32_t>::max();
    for (int64_t s = taps[0].first; s < taps[0].last; ++s) {
      for (int64_t r = taps[1].first; r < taps[1].last; ++r) {
        const int64_t line =
            (taps[0].at + s * window.dilation[0]) * window.image[1] + taps[1].at + r * window.dilation[1];
        for (int64_t c = taps[2].first; c < taps[2].last; ++c) {
          const int64_t at = line * window.image[2] + taps[2].at + c * window.dilation[2];
          const float here = widen(image[at]);
          if (place != std::numeric_limits<int32_t>::max() && (!(here > best || here != here) || best != best))
            continue;
          best = here;
          place = static_cast<int32_t>(at);
        }
      }
    }
    value = narrow<T>(best);
  };
  parallel(work, kGrain, [&](int part, int parts) noexcept {
    const Range range = range_of(planes * results, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t at = i % results, row = at / window.result[2];
      const Window::Taps taps[3] = {window.taps(0, row / window.result[1]), window.taps(1, row % window.result[1]),
                                    window.taps(2, at % window.result[2])};
      search(x.as<const T>() + i / results * window.plane(), taps, y.as<T>()[i], call.out(1).as<int32_t>()[i]);
    }
  });
}

Status prepare(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  const uint32_t dtype = desc.inputs[0].dtype;
  const bool indexed = desc.output_count > 1 && desc.outputs[1].dtype != 0;
  prepared.any_size = true;
  if (indexed) {
    prepared.run = dtype == BP_F32 ? run_indexed<float> : dtype == BP_F16 ? run_indexed<f16> : run_indexed<bf16>;
  }
  return {};
}

}  // namespace

void add_pool(Kernels& kernels) {
  for (const uint32_t op : {BP_OP_MAX_POOL, BP_OP_AVG_POOL}) {
    for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
      const PoolRows rows = HWY_DYNAMIC_DISPATCH(find_pool)(op == BP_OP_AVG_POOL, dtype);
      if (rows.lines == nullptr) return;
      kernels.add(op, dtype,
                  {.run = run, .dense = true, .prepare = prepare, .state = std::make_shared<PoolRows>(rows)});
    }
  }
}

}  // namespace backplane::onednn
#endif
