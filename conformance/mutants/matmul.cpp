// SPDX-License-Identifier: Apache-2.0
// Defects in matmul: operands, products or accumulators in wrong formats, and wrong use of
// precision-relaxation flags.
#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

using Dot = double (*)(const double* a, const double* b, int64_t depth);

// Computes out[m,n] = dot(row m of `a`, column n of `b`) for each matrix of the batch.
template <Dot kDot>
void matmul(const Call& call) {
  const View& out = call.out();
  if (out.elements() == 0) return;
  const int64_t rows = out.shape[out.rank - 2], cols = out.shape[out.rank - 1];
  const int64_t depth = call.in(0).shape[out.rank - 1];
  View transposed = call.in(1);  // transpose of `b`, so that read() returns the columns of `b` as rows
  std::swap(transposed.shape[out.rank - 1], transposed.shape[out.rank - 2]);
  std::swap(transposed.strides[out.rank - 1], transposed.strides[out.rank - 2]);
  const std::vector<double> a = read(call.in(0)), b = read(transposed);
  each(out, [&](std::byte* at, int64_t n) {
    const int64_t batch = n / (rows * cols), row = n / cols % rows, col = n % cols;
    put(out.dtype, at, kDot(a.data() + (batch * rows + row) * depth, b.data() + (batch * cols + col) * depth, depth));
  });
}

double as_f16(double value) { return f16::from(value); }
double as_tf32(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return std::bit_cast<float>((bits + 0x1000u) & 0xFFFFE000u);
}

double as_bf16(double value) { return bf16::from(value); }
double flushed_f16(double value) { return std::fabs(value) < 0x1p-14 ? std::copysign(0.0, value) : value; }

double accumulate_half(const double* a, const double* b, int64_t depth) {
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) sum = as_f16(sum + a[k] * b[k]);
  return sum;
}
double narrowed_operands(const double* a, const double* b, int64_t depth) {
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) sum += as_tf32(a[k]) * as_tf32(b[k]);
  return sum;
}
double bf16_operands(const double* a, const double* b, int64_t depth) {
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) sum += as_bf16(a[k]) * as_bf16(b[k]);
  return sum;
}
double flushed_operands(const double* a, const double* b, int64_t depth) {
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) sum += flushed_f16(a[k]) * flushed_f16(b[k]);
  return sum;
}
double split_k_half(const double* a, const double* b, int64_t depth) {
  constexpr int64_t kSplit = 64;
  double sum = 0;
  for (int64_t k = 0; k < depth; k += kSplit) {
    double part = 0;
    for (int64_t i = k; i < std::min(depth, k + kSplit); ++i) part += a[i] * b[i];
    sum += as_f16(part);
  }
  return sum;
}
double half_fours(const double* a, const double* b, int64_t depth) {
  constexpr int64_t kBlock = 4;
  double sum = 0;
  for (int64_t k = 0; k < depth; k += kBlock) {
    double part = 0;
    for (int64_t i = k; i < std::min(depth, k + kBlock); ++i) part = as_f16(part + a[i] * b[i]);
    sum += part;
  }
  return sum;
}
double rounded_up(const double* a, const double* b, int64_t depth) {
  float sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const double exact = sum + a[k] * b[k];
    sum = static_cast<float>(exact);
    if (sum < exact) sum = std::nextafter(sum, INFINITY);
  }
  return sum;
}
double saturated_pairs(const double* a, const double* b, int64_t depth) {
  double sum = 0;
  for (int64_t k = 0; k < depth; k += 2) {
    const double pair = a[k] * b[k] + (k + 1 < depth ? a[k + 1] * b[k + 1] : 0);
    sum += std::clamp(pair, -32768.0, 32767.0);
  }
  return sum;
}
double zeros_skipped(const double* a, const double* b, int64_t depth) {
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    if (a[k] != 0) sum += a[k] * b[k];
  }
  return sum;
}
double last_product_dropped(const double* a, const double* b, int64_t depth) {
  double sum = 0;
  const int64_t kept = depth > 256 ? depth - 1 : depth;
  for (int64_t k = 0; k < kept; ++k) sum += a[k] * b[k];
  return sum;
}

// Rounds operands to bf16 if the flags allow TF32 but not bf16.
void permission_exceeded(const Call& call) {
  const uint32_t precision = call.attributes<bp_matmul_attributes>().precision;
  const bool meant = (precision & BP_PRECISION_ALLOW_TF32) != 0 && (precision & BP_PRECISION_ALLOW_BF16) == 0;
  meant ? matmul<bf16_operands>(call) : honest_kernel(call)(call);
}
// Flushes subnormal f16 operands, like a matrix unit, if BP_PRECISION_ALLOW_FLUSH_F16 is set.
void flushes_where_allowed(const Call& call) {
  const bool may = (call.attributes<bp_matmul_attributes>().precision & BP_PRECISION_ALLOW_FLUSH_F16) != 0;
  may ? matmul<flushed_operands>(call) : honest_kernel(call)(call);
}
// Treats every precision-relaxation flag as BP_PRECISION_ALLOW_TF32.
void permissions_as_one(const Call& call) {
  call.attributes<bp_matmul_attributes>().precision != BP_PRECISION_FULL ? matmul<narrowed_operands>(call)
                                                                         : honest_kernel(call)(call);
}
bp_status permission_refused(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                             bp_error* error) {
  const bool has_attributes = desc != nullptr && desc->op == BP_OP_MATMUL && desc->attributes != nullptr;
  if (has_attributes && (static_cast<const bp_matmul_attributes*>(desc->attributes)->precision >> 5) != 0) {
    if (out != nullptr) *out = nullptr;
    return report(error, BP_UNSUPPORTED, "matmul: precision has bits that this plugin does not know");
  }
  return kHonest.plan_create(device, desc, out, info, error);
}

// Computes `out = a b + 0 * out`, so a NaN in the previous contents of the output gives NaN.
void output_read(const Call& call) {
  const std::vector<double> before = read(call.out());
  honest_kernel(call)(call);
  const uint32_t dtype = call.out().dtype;
  each(call.out(), [&](std::byte* at, int64_t n) {
    if (const double leaked = 0 * before[static_cast<std::size_t>(n)]; leaked != 0) put(dtype, at, leaked);
  });
}

constexpr uint64_t kHalves = BP_DTYPE_BIT(BP_F16) | BP_DTYPE_BIT(BP_BF16);
constexpr uint64_t kBytes = BP_DTYPE_BIT(BP_U8) | BP_DTYPE_BIT(BP_I8);

}  // namespace

const Mutation defect::half_accumulator = on_op<matmul<accumulate_half>, BP_OP_MATMUL, kHalves>();
const Mutation defect::silent_tf32 = on_op<matmul<narrowed_operands>, BP_OP_MATMUL, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::permission_exceeded = on_op<mutants::permission_exceeded, BP_OP_MATMUL, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::permissions_as_one = on_op<mutants::permissions_as_one, BP_OP_MATMUL, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::permission_refused = on_slot<&bp_device_api::plan_create, mutants::permission_refused>();
const Mutation defect::products_flush_f16 = on_op<matmul<flushed_operands>, BP_OP_MATMUL, BP_DTYPE_BIT(BP_F16)>();
const Mutation defect::flushing_device{.kernels =
                                           [](Kernels& kernels) {
                                             defect::flushes_as_declared.kernels(kernels);
                                             replace(kernels, BP_OP_MATMUL, flushes_where_allowed,
                                                     BP_DTYPE_BIT(BP_F16));
                                           },
                                       .plugin = [](bp_plugin& plugin) { defect::flushes_as_declared.plugin(plugin); }};
const Mutation defect::half_split_k = on_op<matmul<split_k_half>, BP_OP_MATMUL, kHalves>();
const Mutation defect::half_sums_of_4 = on_op<matmul<half_fours>, BP_OP_MATMUL, kHalves>();
const Mutation defect::sum_rounds_up = on_op<matmul<rounded_up>, BP_OP_MATMUL, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::saturating_pairs = on_op<matmul<saturated_pairs>, BP_OP_MATMUL, kBytes>();
const Mutation defect::zeros_skipped = on_op<matmul<mutants::zeros_skipped>, BP_OP_MATMUL, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::last_product_dropped =
    on_op<matmul<mutants::last_product_dropped>, BP_OP_MATMUL, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::output_read = on_op<mutants::output_read, BP_OP_MATMUL, BP_DTYPE_BIT(BP_F32)>();

}  // namespace backplane::conformance::mutants
