// SPDX-License-Identifier: Apache-2.0
// The operators philox, uniform, normal and dropout of all dtypes except f64. Each operator makes one pass over
// memory. Core decomposes f64.
#include "simd/random.hpp"

#include <array>
#include <cstring>

#include "ops/f32_cast.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

constexpr int64_t kPart = 1024;                     // number of elements that a thread processes at once, in the cache
constexpr int64_t kRandomGrain = int64_t{1} << 16;  // number of elements that justify waking a thread
static_assert(kPart % kPhiloxWords == 0);

// The arrays of one thread. They contain one part of the elements at a time.
struct Part {
  alignas(64) uint32_t words[kPart];
  alignas(64) float numbers[kPart], x[kPart];
  alignas(64) uint8_t kept[kPart];
};

// Divides `elements` elements into parts, and computes the random words of each part. Then calls body(arrays,
// begin, count, padded), where `padded` is `count` rounded up to a multiple of kPhiloxWords.
template <class Body>
void each_part(const Call& call, const RandomKernels& kernels, int64_t elements, const Body& body) {
  const PhiloxSeed seed{call.scalar<uint64_t>(0), call.scalar<uint64_t>(1), call.scalar<uint64_t>(2)};
  parallel(elements, kRandomGrain, [&](int part, int parts) noexcept {
    const Range range = range_of(elements, part, parts, kPart);
    Part own;
    for (int64_t begin = range.begin; begin < range.end; begin += kPart) {
      const int64_t count = std::min(kPart, range.end - begin);
      const int64_t padded = (count + kPhiloxWords - 1) / kPhiloxWords * kPhiloxWords;
      kernels.words(seed, static_cast<uint64_t>(begin / 4), own.words, padded);
      body(own, begin, count, padded);
    }
  });
}

void run_philox(const Call& call) {
  const View& out = call.out();
  each_part(call, call.prepared<RandomKernels>(), out.elements(),
            [&](Part& own, int64_t begin, int64_t count, int64_t) {
              std::memcpy(out.as<uint32_t>() + begin, own.words, static_cast<std::size_t>(count) * sizeof(uint32_t));
            });
}

// Returns the number of random bits from which `uniform` makes a number of `dtype`.
int bits_of(uint32_t dtype) { return dtype == BP_BF16 ? 8 : dtype == BP_F16 ? 11 : 24; }

template <bool kNormal>
void run_numbers(const Call& call) {
  const View& out = call.out();
  const auto& kernels = call.prepared<RandomKernels>();
  const F32Cast narrow = F32Cast::from_f32(out.dtype);
  const auto bytes = static_cast<int64_t>(dtype_bytes(out.dtype));
  each_part(call, kernels, out.elements(), [&](Part& own, int64_t begin, int64_t count, int64_t padded) {
    if constexpr (kNormal) {
      kernels.normal(own.words, 24, own.numbers, padded);
    } else {
      kernels.uniform(own.words, bits_of(out.dtype), own.numbers, padded);
    }
    narrow(own.numbers, out.data + begin * bytes, count);
  });
}

void run_dropout(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  const View* const kept = optional_operand(call.outputs, 1);
  const auto& kernels = call.prepared<RandomKernels>();
  const float p = call.attributes<bp_dropout_attributes>().p;
  // If p is 1, the factor is infinite. It has no effect, because no uniform number is at least 1.
  const auto factor = static_cast<float>(1 / (1 - static_cast<double>(p)));
  const F32Cast widen = F32Cast::to_f32(x.dtype), narrow = F32Cast::from_f32(y.dtype);
  const auto bytes = static_cast<int64_t>(dtype_bytes(x.dtype));
  each_part(call, kernels, x.elements(), [&](Part& own, int64_t begin, int64_t count, int64_t padded) {
    widen(x.data + begin * bytes, own.x, count);
    std::fill(own.x + count, own.x + padded, 0.0f);
    kernels.dropout(own.words, own.x, p, factor, own.numbers, kept == nullptr ? nullptr : own.kept, padded);
    narrow(own.numbers, y.data + begin * bytes, count);
    if (kept != nullptr) std::memcpy(kept->data + begin, own.kept, static_cast<std::size_t>(count));
  });
}

}  // namespace

void add_random(Kernels& kernels) {
  const RandomKernels steps = random_kernels();
  if (steps.words == nullptr) return;
  const auto add = [&](uint32_t op, uint32_t dtype, Kernel run) {
    kernels.add(op, dtype, {.run = run, .dense = true, .state = std::make_shared<RandomKernels>(steps)});
  };
  add(BP_OP_PHILOX, BP_U32, run_philox);
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    add(BP_OP_UNIFORM, dtype, run_numbers<false>);
    add(BP_OP_NORMAL, dtype, run_numbers<true>);
    add(BP_OP_DROPOUT, dtype, run_dropout);
  }
}

}  // namespace backplane::onednn
