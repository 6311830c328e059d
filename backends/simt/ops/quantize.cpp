// SPDX-License-Identifier: Apache-2.0
// The operators quantize and dequantize, for 8-bit values or two 4-bit values per byte.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

class Quantize : public Operator {
 public:
  explicit Quantize(uint32_t dtype) : module_(module_name("quantize", dtype)) {}

  KernelNames kernels(const kit::PlanForm& plan) const override {
    const std::string name = plan.op->name;
    return {{{module_, name + "_nest"}, {module_, name + "_rows"}}};
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const bool forward = call.op->id == BP_OP_QUANTIZE, packed = call.attributes<bp_quantize_attributes>().bits == 4;
    const View& floats = forward ? call.in(0) : call.out();
    const View& bytes = forward ? call.out() : call.in(0);
    Nest nest = Nest::over(floats);
    nest.add(call.out());
    nest.add(call.in(0));
    add_parameter(nest, call.in(1));
    if (const View* zero = given(call.inputs, 2); zero != nullptr) {
      add_parameter(nest, *zero);
    } else {
      nest.add_absent().is_immediate = true;
    }
    const uint32_t flags = bytes.dtype == BP_I8 ? uint32_t{kIsSigned} : 0;
    if (!packed) return run(launcher, program, nest, flags, {});
    // The last dimension of the loops counts bytes. The first launch processes bytes that contain
    // two values. If the extent is odd, a second launch processes the last byte of each row.
    const uint32_t last = floats.rank - 1, own = forward ? 1 : 0;
    const int64_t extent = floats.shape[last], pairs = extent / 2;
    std::array<int64_t, 3> seconds;
    for (uint32_t i = 0; i < 3; ++i) {
      int64_t& stride = nest.operand[i == 0 ? own : i + 1].strides[last];
      seconds[i] = stride;
      stride *= 2;
    }
    Nest odd = nest;
    nest.shape[last] = pairs;
    kit::Status status = run(launcher, program, nest, flags | kIsPacked | kHasSecond, seconds);
    if (!status.ok() || extent % 2 == 0) return status;
    odd.shape[last] = 1;
    for (uint32_t k = 0; k < odd.operands; ++k) odd.advance(k, pairs * odd.operand[k].strides[last]);
    return run(launcher, program, odd, flags | kIsPacked, seconds);
  }

 private:
  enum Kernel : uint32_t { kNest, kRows };
  enum Flag : uint32_t { kIsSigned = 1, kIsPacked = 2, kHasSecond = 4 };  // as in device/quantize.h

  // Adds a scale or zero point. An operand with a single element may have any rank.
  static void add_parameter(Nest& nest, const View& view) {
    View shown = view;
    std::fill(std::begin(shown.strides), std::end(shown.strides), 0);
    if (view.rank == nest.rank) {
      for (uint32_t i = 0; i < view.rank; ++i) shown.strides[i] = view.shape[i] == 1 ? 0 : view.strides[i];
    }
    nest.add(shown);
  }

  kit::Status run(Launcher& launcher, const Program& program, Nest nest, uint32_t flags,
                  const std::array<int64_t, 3>& seconds) const {
    nest.merge();
    if (!has_plain_rows(nest, launcher.limits(), flags, seconds)) {
      return launch_nest(launcher, program.kernels[kNest], nest, [&](NestParams& params, int64_t) {
        params.option = flags;
        std::copy(seconds.begin(), seconds.end(), params.extra);
      });
    }
    return launch_rows(launcher, program.kernels[kRows], nest, flags);
  }

  // Returns whether rows have the form that the kernels for rows require. `seconds` contains the strides from the first
  // value of a byte to the second, which merge() does not see.
  static bool has_plain_rows(const Nest& nest, const Limits& limits, uint32_t flags,
                             const std::array<int64_t, 3>& seconds) {
    if (nest.rank == 0 || nest.shape[nest.rank - 1] < limits.width || (flags & (kIsPacked | kHasSecond)) == kIsPacked)
      return false;
    const auto stride = [&](uint32_t k) { return nest.operand[k].strides[nest.rank - 1]; };
    const int64_t step = (flags & kIsPacked) != 0 ? 2 : 1;  // floats per byte
    if (step == 2 && (seconds[0] != 1 || seconds[1] != 0 || seconds[2] != 0)) return false;
    const bool forward = nest.operand[0].bytes == 1;
    if (stride(0) != (forward ? 1 : step) || stride(1) != (forward ? step : 1)) return false;
    return (stride(2) == 0 && stride(3) == 0) || (step == 1 && stride(2) == 1 && (stride(3) == 0 || stride(3) == 1));
  }

  const std::string module_;
};

}  // namespace

void add_quantize(Operators& operators) {
  for_dtypes(kComputed & BP_SET_FLOATS, [&](uint32_t dtype) {
    for (const uint32_t whole : {BP_U8, BP_I8}) {
      operators.add(BP_OP_QUANTIZE, dtype, whole, entry_of<Quantize>(dtype));
      operators.add(BP_OP_DEQUANTIZE, whole, dtype, entry_of<Quantize>(dtype));
    }
  });
}

}  // namespace backplane::simt
