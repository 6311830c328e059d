// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul_primitive.hpp"

#include <backplane/kit/plan.hpp>
#include <numeric>

#include "ops/gemm.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;
using dnnl_api::Dims;
using dnnl_api::Md;

// The GEMM of ops/gemm.cpp is as fast as oneDNN if two conditions are true: the output has at most kFewRows
// rows or columns, and its other extent and the depth are at least kManyElements. The GEMM is faster than
// oneDNN for up to kFewProducts multiplications.
constexpr int64_t kFewRows = 16, kManyElements = 256, kFewProducts = int64_t{1} << 14;

// Returns whether oneDNN has fast implementations for this layout. Rows or columns must be contiguous, and must
// not overlap. Batch strides must not be negative.
bool is_fast_layout(const Matrices& m) {
  const bool rows_contiguous = m.col_stride == 1 && m.row_stride >= m.cols;
  const bool cols_contiguous = m.row_stride == 1 && m.col_stride >= m.rows;
  return (rows_contiguous || cols_contiguous) &&
         std::all_of(m.strides.begin(), m.strides.end(), [](int64_t s) { return s >= 0; });
}

// Merges two adjacent batch dimensions if, in every operand, one stride can replace the two strides. Drops
// batch dimensions of extent 1.
void merge_batch(Matrices* const (&all)[3]) {
  std::vector<int64_t>& extents = all[2]->batch;
  for (std::size_t d = 0; d < extents.size();) {
    const bool last = d + 1 == extents.size();
    const bool merges = !last && std::all_of(std::begin(all), std::end(all), [&](const Matrices* m) {
      return m->strides[d] == m->strides[d + 1] * extents[d + 1];
    });
    if (extents[d] != 1 && !merges) {
      ++d;
      continue;
    }
    const int64_t extent = extents[d];
    const auto at = static_cast<std::ptrdiff_t>(d);
    for (Matrices* m : all) {
      if (merges) m->batch[d + 1] *= extent;
      m->batch.erase(m->batch.begin() + at);
      m->strides.erase(m->strides.begin() + at);
    }
  }
}

Md md_of(const Matrices& m) {
  Dims dims, strides;
  int64_t span = std::max(m.rows * m.row_stride, m.cols * m.col_stride);
  for (std::size_t d = 0; d < m.batch.size(); ++d) span = std::max(span, m.batch[d] * m.strides[d]);
  for (std::size_t d = 0; d < m.batch.size(); ++d) {
    dims.push_back(m.strides[d] == 0 ? 1 : m.batch[d]);
    strides.push_back(m.strides[d] == 0 ? span : m.strides[d]);
  }
  dims.insert(dims.end(), {m.rows, m.cols});
  strides.insert(strides.end(), {m.row_stride, m.col_stride});
  return {dims, m.type, strides};
}

// Creates the primitive. Returns null if oneDNN has no fast implementation for these layouts.
std::shared_ptr<const MatmulPrimitive> make(Matrices a, Matrices b, Matrices out) {
  merge_batch({&a, &b, &out});
  const bool swapped = out.col_stride != 1;
  if (swapped) {
    for (Matrices* m : {&a, &b, &out}) m->transpose();
    std::swap(a, b);
  }
  const int64_t batch = std::accumulate(out.batch.begin(), out.batch.end(), int64_t{1}, std::multiplies<>());
  const TeamSize team(batch * out.rows * out.cols * a.cols < kTeamWork ? 1 : team_size());
  const auto desc =
      dnnl_api::describe<dnnl::matmul>(engine(), strict_attributes(), md_of(a), md_of(b), Md(), md_of(out));
  if (!desc || std::string_view(desc.impl_info_str()).starts_with("ref")) return nullptr;
  return std::make_shared<MatmulPrimitive>(desc, swapped);
}

// Returns whether the GEMM of ops/gemm.cpp is preferred to a primitive. A batch of products with few rows is
// often a part of attention. Its sizes recur in all layers of one step of a model, but not in later steps.
// Therefore such a batch always uses the GEMM.
bool prefers_gemm(const bp_tensor_desc& a, const bp_tensor_desc& out) {
  const auto [few, many] = std::minmax(out.shape[out.rank - 2], out.shape[out.rank - 1]);
  if (few > kFewRows) return false;
  const int64_t depth = a.shape[a.rank - 1];
  const bool is_batch = std::any_of(out.shape, out.shape + out.rank - 2, [](int64_t extent) { return extent > 1; });
  const bool is_wide = std::min(many, depth) >= kManyElements;
  const bool is_tiny = std::max(many, depth) <= kFewProducts && few * many * depth <= kFewProducts;
  return is_batch || is_wide || is_tiny;
}

MatmulOperands dense_operands_of(const bp_op_desc& desc, Prepared& prepared) {
  prepared.stage_inputs |= 3u;
  prepared.stage_outputs |= 1u;
  return {matrices_of(dense_like(desc.inputs[0])), matrices_of(dense_like(desc.inputs[1])),
          matrices_of(dense_like(desc.outputs[0]))};
}

}  // namespace

Matrices matrices_of(const bp_tensor_desc& view) {
  const int r = view.rank - 2, c = view.rank - 1;
  Matrices out{type_of(view.dtype), {}, {}, view.shape[r], view.shape[c], view.strides[r], view.strides[c]};
  if (out.cols == 1) out.col_stride = 1;
  if (out.rows == 1) out.row_stride = out.col_stride == 1 ? std::max<int64_t>(out.cols, 1) : 1;
  for (int d = 0; d < r; ++d) {
    out.batch.push_back(view.shape[d]);
    out.strides.push_back(view.shape[d] == 1 ? 0 : view.strides[d]);
  }
  return out;
}

MatmulPrimitive::MatmulPrimitive(const dnnl::matmul::primitive_desc& desc, bool swapped)
    : primitive_(
          dnnl::matmul(desc),
          {{DNNL_ARG_SRC, desc.src_desc()}, {DNNL_ARG_WEIGHTS, desc.weights_desc()}, {DNNL_ARG_DST, desc.dst_desc()}},
          desc.scratchpad_desc(), team_size()),
      swapped_(swapped) {}

void MatmulPrimitive::run(std::byte* workspace, std::byte* a, std::byte* b, std::byte* out) const {
  if (swapped_) std::swap(a, b);
  primitive_.run(workspace, {a, b, out});
}

// With one row or one column, memory bandwidth limits the speed, and the GEMM of ops/gemm.cpp reaches this
// limit.
bool specializable(const bp_tensor_desc& out) { return out.shape[out.rank - 2] > 1 && out.shape[out.rank - 1] > 1; }

bool prefers_any_size(const bp_op_desc& desc) {
  const auto empty = [](const bp_tensor_desc& view) {
    return std::find(view.shape, view.shape + view.rank, 0) != view.shape + view.rank;
  };
  const bp_tensor_desc &a = desc.inputs[0], &b = desc.inputs[1], &out = desc.outputs[0];
  return (desc.flags & BP_OP_FLAG_SPECIALIZE) == 0 || empty(out) || empty(a) || empty(b) || prefers_gemm(a, out);
}

MatmulOperands fast_operands_of(const bp_op_desc& desc, Prepared& prepared) {
  MatmulOperands all{matrices_of(desc.inputs[0]), matrices_of(desc.inputs[1]), matrices_of(desc.outputs[0])};
  const auto stage = [&](uint32_t i, Matrices& input) {
    prepared.stage_inputs |= 1u << i;
    input = matrices_of(dense_like(desc.inputs[i]));
  };
  for (uint32_t i = 0; i < 2; ++i) {
    Matrices& input = i == 0 ? all.a : all.b;
    const bool staged = (prepared.stage_inputs >> i & 1u) != 0 || (desc.inputs[i].flags & BP_DESC_IMMEDIATE) != 0;
    if (staged || !is_fast_layout(input)) stage(i, input);
  }
  if (!is_fast_layout(all.out)) {
    prepared.stage_outputs |= 1u;
    all.out = matrices_of(dense_like(desc.outputs[0]));
  }
  for (std::size_t d = 0; d < all.out.batch.size(); ++d) {
    const bool repeated = all.a.strides[d] == 0 && all.b.strides[d] == 0 && all.out.batch[d] > 1;
    if (repeated) stage(0, all.a);
  }
  return all;
}

std::shared_ptr<const MatmulPrimitive> make_matmul(const MatmulOperands& operands) {
  try {
    return make(operands.a, operands.b, operands.out);
  } catch (const dnnl::error& failure) {
    // oneDNN returns these errors for views that overlap themselves.
    if (failure.status == dnnl_invalid_arguments || failure.status == dnnl_unimplemented) return nullptr;
    throw;
  }
}

std::shared_ptr<const MatmulPrimitive> make_matmul(const bp_op_desc& desc, Prepared& prepared) {
  if (auto made = make_matmul(fast_operands_of(desc, prepared))) return made;
  return make_matmul(dense_operands_of(desc, prepared));
}

}  // namespace backplane::onednn
