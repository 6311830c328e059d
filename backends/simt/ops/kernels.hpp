// SPDX-License-Identifier: Apache-2.0
// Helpers that operators share: sets of dtypes, names of modules, and elementwise operators.
#pragma once

#include <bit>

#include "ops/nest.hpp"

namespace backplane::simt {

// The dtypes that kernels compute with. f64 is excluded, because kernels only copy and cast f64.
inline constexpr uint64_t kComputed = BP_SET_ALL & ~BP_DTYPE_BIT(BP_F64);

// Maximum length of slices that sort and topk order by counting, which takes one launch.
inline constexpr int64_t kMaxCounted = 512;

template <class Body>
void for_dtypes(uint64_t set, const Body& body) {
  for (uint32_t dtype = 0; dtype < BP_DTYPE_LIMIT; ++dtype) {
    if (kit::in_set(set, dtype)) body(dtype);
  }
}

// The name of a module consists of the name of its source and a suffix. The suffix is the dtype or,
// for sources that only move elements, the size of the dtype in bits.
inline std::string module_name(const char* source, uint32_t dtype) {
  return kit::text(source, "_", kit::dtype_name(dtype));
}
inline std::string moved_module(const char* source, uint32_t dtype) {
  return kit::text(source, "_", 8 * kit::dtype_bytes(dtype));
}

// Returns the parameters with which kernels divide indices below 2^31 by `extent`.
inline DivisorParams divisor_params(int64_t extent) {
  const auto divisor = static_cast<uint32_t>(std::max<int64_t>(extent, 1));
  const auto bits = static_cast<uint32_t>(std::bit_width(divisor - 1));
  const uint64_t power = uint64_t{1} << (31 + bits);
  return {divisor, static_cast<uint32_t>((power + divisor - 1) / divisor), 31 + bits, 0};
}

// Returns operand `i` of `views`, or null if that operand is absent.
inline const View* given(std::span<const View> views, std::size_t i) {
  return i < views.size() && views[i].dtype != 0 ? &views[i] : nullptr;
}

// Operators with one kernel for any strides and one kernel for rows, such as those of SIMT_MAP1.
class Map : public Operator {
 public:
  Map(std::string module, std::string function) : module_(std::move(module)), function_(std::move(function)) {}

  KernelNames kernels(const kit::PlanForm&) const override {
    return {{{module_, function_ + "_nest"}, {module_, function_ + "_rows"}}};
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    Nest nest = Nest::over(call.out());
    nest.add(call.out());
    for (const View& view : call.inputs) nest.add(view);
    return launch_map(launcher, program.kernels[0], program.kernels[1], nest, option(call));
  }

 protected:
  // Returns the number that the kernels receive as `option`.
  virtual uint32_t option(const Call&) const { return 0; }
  const std::string& module() const { return module_; }
  const std::string& function() const { return function_; }

 private:
  const std::string module_, function_;
};

}  // namespace backplane::simt
