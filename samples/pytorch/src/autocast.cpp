// SPDX-License-Identifier: Apache-2.0
// Autocast: the lists of operators that run in 16 bits, in f32, or in the widest dtype of their inputs. They
// are the lists of PyTorch's own backends.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

// PyTorch's macros use unqualified names of this namespace.
namespace at::autocast {
namespace {

// NOLINTBEGIN(readability-identifier-naming): PyTorch's macros call the library `m`.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

#define BACKPLANE_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define BACKPLANE_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define BACKPLANE_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define BACKPLANE_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(BACKPLANE_LOWER_PRECISION)
  AT_FORALL_FP32(BACKPLANE_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(BACKPLANE_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(BACKPLANE_PROMOTE)
  BACKPLANE_PROMOTE(cat)
  BACKPLANE_PROMOTE(stack)
}
// NOLINTEND(readability-identifier-naming)

}  // namespace
}  // namespace at::autocast
