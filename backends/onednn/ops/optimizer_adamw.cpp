// SPDX-License-Identifier: Apache-2.0
// adamw in one pass over memory: gradient, parameter and both moments are read once, and the last three written.
#include <backplane/kit/plan.hpp>
#include <cmath>

#include "ops/dense_rows.hpp"
#include "ops/operators.hpp"
#include "runtime/threads.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optimizer_adamw.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "simd/simd-inl.h"

#ifndef BACKPLANE_ONEDNN_ADAMW
#define BACKPLANE_ONEDNN_ADAMW
namespace backplane::onednn {

// What every element is computed with.
struct AdamwStep {
  float keep1, add1, keep2, add2;  // of the moments: beta and 1 - beta
  float correction2, epsilon;
  float rate, decay;  // learning rate over the first moment's correction; learning rate times weight decay
};
using AdamwRow = void (*)(const AdamwStep& step, const void* gradient, void* parameter, void* first, void* second,
                          int64_t count);

}  // namespace backplane::onednn
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// Gradient of T, parameter of P, moments of R.
template <class T, class P, class R>
void adamw(const AdamwStep& step, const void* gradient, void* parameter, void* first, void* second, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const auto keep1 = c(step.keep1), add1 = c(step.add1), keep2 = c(step.keep2), add2 = c(step.add2);
  const auto correction2 = c(step.correction2), epsilon = c(step.epsilon), rate = c(step.rate), decay = c(step.decay);
  const auto one = [&](const T* g, P* p, R* m, R* v) HWY_ATTR {
    const auto x = load(d, g), before = load(d, static_cast<const P*>(p));
    const auto moment = hn::Add(hn::Mul(load(d, static_cast<const R*>(m)), keep1), hn::Mul(x, add1));
    const auto square = hn::Add(hn::Mul(load(d, static_cast<const R*>(v)), keep2), hn::Mul(hn::Mul(x, x), add2));
    const auto root = hn::Sqrt(hn::Div(square, correction2));
    const auto change = hn::Mul(hn::Div(moment, hn::Add(root, epsilon)), rate);
    store(d, hn::Sub(hn::Sub(before, hn::Mul(before, decay)), change), p);
    store(d, moment, m);
    store(d, square, v);
  };
  const auto* g = static_cast<const T*>(gradient);
  auto* p = static_cast<P*>(parameter);
  auto *m = static_cast<R*>(first), *v = static_cast<R*>(second);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) one(g + i, p + i, m + i, v + i);
  if (i == count) return;
  constexpr size_t kMost = HWY_MAX_BYTES / sizeof(float);
  T rest_g[kMost] = {};
  P rest_p[kMost] = {};
  R rest_m[kMost] = {}, rest_v[kMost] = {};
  const auto left = static_cast<size_t>(count - i);
  std::memcpy(rest_g, g + i, left * sizeof(T));
  std::memcpy(rest_p, p + i, left * sizeof(P));
  std::memcpy(rest_m, m + i, left * sizeof(R));
  std::memcpy(rest_v, v + i, left * sizeof(R));
  one(rest_g, rest_p, rest_m, rest_v);
  std::memcpy(p + i, rest_p, left * sizeof(P));
  std::memcpy(m + i, rest_m, left * sizeof(R));
  std::memcpy(v + i, rest_v, left * sizeof(R));
}

template <class T>
AdamwRow row_of(uint32_t parameter, uint32_t state) {
  if (parameter == BP_F32) return adamw<T, float, float>;
  return state == BP_F32 ? adamw<T, T, float> : adamw<T, T, T>;
}

// Null: none for this gradient.
AdamwRow find_adamw(uint32_t dtype, uint32_t parameter, uint32_t state) {
  if constexpr (kHasVectors) {
    switch (dtype) {
      case BP_F32:
        return adamw<float, float, float>;
      case BP_F16:
        return row_of<f16>(parameter, state);
      case BP_BF16:
        return row_of<bf16>(parameter, state);
      default:
        return nullptr;
    }
  }
  return nullptr;
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_adamw);
namespace {

using namespace kit;

constexpr int64_t kGrain = int64_t{1} << 16;  // elements that are worth a thread

void run(const Call& call) {
  const auto& attributes = call.attributes<bp_adamw_attributes>();
  const auto rest = [](float beta) { return static_cast<float>(1 - static_cast<double>(beta)); };
  const auto rate = call.scalar<float>(0), correction1 = call.scalar<float>(1);
  const AdamwStep step{.keep1 = attributes.beta1,
                       .add1 = rest(attributes.beta1),
                       .keep2 = attributes.beta2,
                       .add2 = rest(attributes.beta2),
                       .correction2 = call.scalar<float>(2),
                       .epsilon = attributes.epsilon,
                       .rate = rate / correction1,
                       .decay = rate * attributes.weight_decay};
  const View& gradient = call.in(0);
  const AdamwRow row = call.prepared<AdamwRow>();
  const int64_t elements = gradient.elements();
  parallel(elements, kGrain, [&](int part, int parts) noexcept {
    const Range range = range_of(elements, part, parts, 64);
    const auto at = [&](const View& view) {
      return view.data + range.begin * static_cast<int64_t>(dtype_bytes(view.dtype));
    };
    if (range.begin == range.end) return;
    row(step, at(gradient), at(call.out(0)), at(call.out(1)), at(call.out(2)), range.end - range.begin);
  });
}

Status prepare(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  prepared.any_size = true;
  prepared.state = std::make_shared<AdamwRow>(
      HWY_DYNAMIC_DISPATCH(find_adamw)(desc.inputs[0].dtype, desc.outputs[0].dtype, desc.outputs[1].dtype));
  return {};
}

}  // namespace

void add_adamw(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    if (HWY_DYNAMIC_DISPATCH(find_adamw)(dtype, dtype, dtype) == nullptr) continue;
    kernels.add(BP_OP_ADAMW, dtype,
                {.run = run, .dense = true, .prepare = prepare, .mixed = rules::kMixedParameters | rules::kMixedState});
  }
}

}  // namespace backplane::onednn
#endif
