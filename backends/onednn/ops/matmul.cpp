// SPDX-License-Identifier: Apache-2.0
// The operator matmul. The GEMM of ops/gemm.cpp computes any size. For a recurring size of f32, bf16 or 8-bit
// integers, a plan uses a oneDNN primitive that is created for this size. A plan whose right operand is packed
// in oneDNN's preferred layout also uses a primitive.
#include <backplane/kit/loops.hpp>
#include <backplane/kit/plan.hpp>
#include <numeric>
#include <optional>

#include "ops/gemm.hpp"
#include "ops/matmul_primitive.hpp"
#include "ops/operators.hpp"
#include "ops/packed_weights.hpp"
#include "runtime/primitive.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;
using dnnl_api::Dims;
using dnnl_api::Md;
using dnnl_api::Type;

// oneDNN 2.6 computes i8 x i8 as u8 x i8 and adds a correction in f32. The correction is exact if the sums are
// below 2^24. If the depth exceeds kExactDepthOfI8, this file shifts `a` to u8 and corrects the result in
// integer arithmetic.
constexpr int64_t kExactDepthOfI8 = 512;
// The product of i8 and i8 for any depth, computed as a * b = (a + 128) * b - 128 * (ones * b). The products on
// the right multiply u8 by i8, which is exact. A row of ones is appended to a + 128, so that one multiplication
// computes both products.
struct Shifted {
  int64_t batches, rows, cols, depth;
  // Bytes of workspace for a + 128 with its row of ones, and for their product with b.
  uint64_t left_bytes, sums_bytes;

  explicit Shifted(const bp_op_desc& desc) {
    const bp_tensor_desc& out = desc.outputs[0];
    batches = std::accumulate(out.shape, out.shape + out.rank - 2, int64_t{1}, std::multiplies<>());
    rows = out.shape[out.rank - 2], cols = out.shape[out.rank - 1], depth = desc.inputs[0].shape[out.rank - 1];
    const auto aligned = [](int64_t bytes) { return (static_cast<uint64_t>(bytes) + 63) / 64 * 64; };
    left_bytes = aligned(batches * (rows + 1) * depth);
    sums_bytes = aligned(batches * (rows + 1) * cols * 4);
  }
  // Returns the dense form of `view` with one more row and with elements of `type`.
  static Matrices with_row(const bp_tensor_desc& view, Type type) {
    bp_tensor_desc grown = view;
    ++grown.shape[view.rank - 2];
    Matrices out = matrices_of(dense_like(grown));
    out.type = type;
    return out;
  }

  void widen(const std::byte* a, std::byte* left) const {
    constexpr int64_t kGrain = int64_t{1} << 20;
    parallel(batches * rows * depth, kGrain, [&](int part, int parts) noexcept {
      const Range range = range_of(batches * (rows + 1), part, parts);
      for (int64_t r = range.begin; r < range.end; ++r) {
        std::byte* to = left + r * depth;
        if (r % (rows + 1) == rows) {
          std::memset(to, 1, static_cast<std::size_t>(depth));
          continue;
        }
        const std::byte* from = a + (r - r / (rows + 1)) * depth;
        int64_t k = 0;
        for (; k + 8 <= depth; k += 8) {
          uint64_t word;
          std::memcpy(&word, from + k, 8);
          word ^= 0x8080808080808080u;
          std::memcpy(to + k, &word, 8);
        }
        for (; k < depth; ++k) to[k] = from[k] ^ std::byte{0x80};
      }
    });
  }
  void correct(const std::byte* sums, std::byte* out) const {
    constexpr int64_t kGrain = int64_t{1} << 18;
    parallel(batches * rows * cols, kGrain, [&](int part, int parts) noexcept {
      const Range range = range_of(batches * rows, part, parts);
      for (int64_t r = range.begin; r < range.end; ++r) {
        const auto* block = reinterpret_cast<const uint32_t*>(sums) + r / rows * (rows + 1) * cols;
        const uint32_t *row = block + r % rows * cols, *of_b = block + rows * cols;
        auto* to = reinterpret_cast<uint32_t*>(out) + r * cols;
        BACKPLANE_KIT_INDEPENDENT
        for (int64_t c = 0; c < cols; ++c) to[c] = row[c] - 128u * of_b[c];
      }
    });
  }
};

struct ShiftedMatmul {
  std::shared_ptr<const MatmulPrimitive> matmul;
  Shifted shifted;
};

void run_shifted(const Call& call) {
  const auto& [matmul, shifted] = call.prepared<ShiftedMatmul>();
  std::byte *left = call.workspace, *sums = left + shifted.left_bytes, *scratch = sums + shifted.sums_bytes;
  shifted.widen(call.in(0).data, left);
  matmul->run(scratch, left, call.in(1).data, sums);
  shifted.correct(sums, call.out().data);
}

void run(const Call& call) {
  call.prepared<MatmulPrimitive>().run(call.workspace, call.in(0).data, call.in(1).data, call.out().data);
}

void run_any_size(const Call& call) { gemm(call.in(0), call.in(1), call.out(), {}, *call.scratch); }

// Returns the single matrix product that computes a matmul whose right operand is one matrix, plain or packed.
// If all matrices of a batch share the right operand, the rows of the product are the rows of all these
// matrices. Returns nothing if no packed operand can serve this matmul.
std::optional<Product> packable_product(const bp_op_desc& desc) {
  const bp_tensor_desc &a = desc.inputs[0], &b = desc.inputs[1], &out = desc.outputs[0];
  Product product{1, b.shape[b.rank - 2], b.shape[b.rank - 1], type_of(a.dtype), type_of(b.dtype), type_of(out.dtype)};
  for (uint32_t d = 0; d + 1 < a.rank; ++d) product.rows *= a.shape[d];
  const bool shared = rules::is_packed(b) || std::all_of(b.strides, b.strides + b.rank - 2, [&](const int64_t& stride) {
                        return stride == 0 || b.shape[&stride - b.strides] == 1;
                      });
  const bool exact = a.dtype != BP_I8 || product.depth <= kExactDepthOfI8;
  if (!shared || !exact || product.rows == 0) return std::nullopt;
  return product;
}

Status pack_right(const CheckedDesc& checked, uint32_t input, PreparedPack& prepared) {
  const std::optional<Product> product = packable_product(checked.desc);
  if (input != 1 || !product) return prefers_plain(checked, input);
  // For one row, each element of the weights is read once. The GEMM of ops/gemm.cpp reads plain weights faster
  // than oneDNN, but it does not support oneDNN's layouts. Weights that are packed for more rows also serve one
  // row.
  if (product->rows == 1 && !rules::is_packed(checked.desc.inputs[1])) return prefers_plain(checked, input);
  try {
    const auto made = describe_packed(*product);
    if (!made) return prefers_plain(checked, input);
    const Md plain({product->depth, product->cols}, product->weights, Dims{product->cols, 1});
    return prepare_packing(checked, input, plain, made.weights_desc(), product->x, prepared);
  } catch (const dnnl::error& failure) {
    return status_of(failure, "matmul");
  }
}

// Prepares a plan whose right operand is packed. The kit has checked that the operand's layout is that of
// pack_right().
Status prepare_packed(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  const std::optional<Product> product = packable_product(desc);
  if (!product) return prefers_plain(checked, 1);
  const bp_tensor_desc& a = desc.inputs[0];
  if (!rules::is_dense(a) || (a.flags & BP_DESC_IMMEDIATE) != 0) prepared.stage_inputs |= 1u;
  if (!rules::is_dense(desc.outputs[0])) prepared.stage_outputs |= 1u;
  try {
    const auto made = describe_packed(*product);
    if (!made) return prefers_plain(checked, 1);
    auto state = std::make_shared<MatmulPrimitive>(made, false);
    prepared.workspace_bytes = state->workspace_bytes();
    prepared.state = std::move(state);
    prepared.run = run;
  } catch (const dnnl::error& failure) {
    return status_of(failure, "matmul");
  }
  return {};
}

Status prepare(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  if (rules::is_packed(desc.inputs[1])) return prepare_packed(checked, prepared);
  const bp_tensor_desc &a = desc.inputs[0], &out = desc.outputs[0];
  prepared.any_size = prefers_any_size(desc);
  prepared.specializable = specializable(out);
  if (prepared.any_size) return {};
  const bool shifts = a.dtype == BP_I8 && a.shape[a.rank - 1] > kExactDepthOfI8;
  try {
    std::shared_ptr<const MatmulPrimitive> state;
    if (shifts) {
      MatmulOperands operands = fast_operands_of(desc, prepared);
      if (!rules::is_dense(a)) prepared.stage_inputs |= 1u;
      if (!rules::is_dense(out)) prepared.stage_outputs |= 1u;
      operands.a = Shifted::with_row(a, Type::u8);
      operands.out = Shifted::with_row(out, Type::s32);
      state = make_matmul(operands);
    } else {
      state = make_matmul(desc, prepared);
    }
    // If there is no primitive, the plan serves any size and uses the GEMM of ops/gemm.cpp.
    prepared.any_size = state == nullptr;
    if (prepared.any_size) return {};
    prepared.workspace_bytes = state->workspace_bytes();
    if (shifts) {
      const Shifted shifted(desc);
      prepared.workspace_bytes += shifted.left_bytes + shifted.sums_bytes;
      prepared.state = std::make_shared<ShiftedMatmul>(ShiftedMatmul{std::move(state), shifted});
      prepared.run = run_shifted;
      return {};
    }
    prepared.state = std::move(state);
    prepared.run = run;
  } catch (const dnnl::error& failure) {
    return status_of(failure, "matmul");
  }
  return {};
}

// Returns whether oneDNN computes 8-bit products exactly. On processors without VNNI, oneDNN adds pairs of
// products in saturating 16-bit arithmetic.
bool exact_in_8_bits() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return isa != dnnl::cpu_isa::sse41 && isa != dnnl::cpu_isa::avx && isa != dnnl::cpu_isa::avx2 &&
         isa != dnnl::cpu_isa::avx512_core;
}

}  // namespace

void add_matmul(Kernels& kernels) {
  const auto add = [&](uint32_t dtype, uint32_t second, Prepare for_size) {
    if (!gemm_supports(dtype)) return;
    const PreparePack pack = for_size == nullptr ? nullptr : pack_right;
    kernels.add(BP_OP_MATMUL, dtype, second, {.run = run_any_size, .prepare = for_size, .pack = pack});
  };
  const Prepare in_8_bits = exact_in_8_bits() ? prepare : nullptr;
  add(BP_F32, BP_F32, prepare);
  add(BP_BF16, BP_BF16, prepare);
  add(BP_BF16, BP_F32, prepare);
  add(BP_I8, BP_I32, in_8_bits);
  add(BP_U8, BP_I32, in_8_bits);
  add(BP_F16, BP_F16, nullptr);
  add(BP_F16, BP_F32, nullptr);
}

}  // namespace backplane::onednn
