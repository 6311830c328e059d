// SPDX-License-Identifier: Apache-2.0
// The operator attention, computed without a tensor of scores.
#include "ops/attention.hpp"

#include <cmath>

#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

constexpr uint32_t kMaxGroup = 256;  // threads
constexpr int64_t kMaxAttentionExtent = int64_t{1} << 30;

// Returns UNSUPPORTED for shapes that exceed the kernels' 32-bit indices.
kit::Status check_shapes(const int64_t* q, const int64_t* v) {
  double items = 1;
  bool fits = v[2] <= kMaxAttentionExtent && q[3] <= kMaxAttentionExtent && v[3] <= kMaxAttentionExtent;
  for (int d = 0; d < 3; ++d) items *= static_cast<double>(q[d]);
  fits = fits && items * std::ceil(static_cast<double>(v[3]) / SIMT_ATTENTION_COLUMNS) <= double{kMaxAttentionExtent};
  if (fits) return {};
  return kit::unsupported("attention: there are more than 2^30 keys, columns or queries; divide the operands");
}

AttentionStrides strides_of(const View& view) {
  return {view.strides[0], view.strides[1], view.strides[2], view.rank > 3 ? view.strides[3] : 0};
}

class Attention : public Operator {
 public:
  explicit Attention(uint32_t dtype) : module_(module_name("attention", dtype)) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    stage_immediates(checked, needs);
    return check_shapes(checked.desc.inputs[0].shape, checked.desc.inputs[2].shape);
  }
  KernelNames kernels(const kit::PlanForm&) const override {
    return {{{module_, "attention_tiles"}, {module_, "attention_rows"}}};
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const View &q = call.in(0), &v = call.in(2);
    if (q.shape[0] == 0 || q.shape[1] == 0 || q.shape[2] == 0) return {};
    if (kit::Status status = check_attention(call); !status.ok()) return status;
    const Limits& limits = launcher.limits();
    AttentionParams params = attention_params(call);
    const uint32_t rows = params.repeats * params.queries;
    const bool by_rows = rows <= limits.width / 4 && params.depth <= SIMT_ATTENTION_DEPTH;
    const uint32_t subgroups = by_rows ? row_subgroups(limits, params) : tile_subgroups(limits, params);
    params.columns = by_rows ? SIMT_ATTENTION_PARTS * limits.width : SIMT_ATTENTION_COLUMNS * subgroups;
    params.column_blocks = std::max((params.value_columns + params.columns - 1) / params.columns, 1u);
    params.tiles = by_rows ? rows : (rows + limits.width - 1) / limits.width;
    params.items = params.batches * params.groups * params.tiles * params.column_blocks;
    params.contiguous = call.in(1).strides[3] == 1 && v.strides[3] == 1 && params.depth % limits.width == 0 &&
                        params.value_columns % limits.width == 0;
    return launch(launcher, program.kernels[by_rows ? kRows : kTiles], groups_for(params.items, 1),
                  subgroups * limits.width, attention_places(call), params);
  }

 private:
  // kTiles assigns one row to each lane. kRows assigns one row to each group.
  enum Kernel : uint32_t { kTiles, kRows };

  // Returns the number of sub-groups per group of attention_tiles. The sub-groups divide the keys of
  // a step, and the columns of v.
  static uint32_t tile_subgroups(const Limits& limits, const AttentionParams& params) {
    constexpr uint32_t kLeast = SIMT_ATTENTION_KEYS / SIMT_ATTENTION_OWN_KEYS;
    const uint32_t most = std::min({kMaxGroup / limits.width, uint32_t{SIMT_ATTENTION_GROUPS}});
    uint32_t out = kLeast;
    while (out < most && out * SIMT_ATTENTION_COLUMNS < params.value_columns) out *= 2;
    return out;
  }
  static uint32_t row_subgroups(const Limits& limits, const AttentionParams& params) {
    if (limits.is_cpu) return 1;
    const uint32_t most = std::min({kMaxGroup / limits.width, uint32_t{SIMT_ATTENTION_GROUPS}});
    uint32_t out = 1;
    while (out < most && out * SIMT_ATTENTION_BLOCK < params.keys) out *= 2;
    return out;
  }

  const std::string module_;
};

}  // namespace

std::shared_ptr<const Operator> shared_attention(uint32_t dtype) { return std::make_shared<const Attention>(dtype); }

kit::Status check_attention(const Call& call) { return check_shapes(call.in(0).shape, call.in(2).shape); }

AttentionParams attention_params(const Call& call) {
  const View &q = call.in(0), &k = call.in(1), &v = call.in(2);
  const auto& attributes = call.attributes<bp_attention_attributes>();
  AttentionParams out{};
  out.batches = static_cast<u32>(q.shape[0]), out.groups = static_cast<u32>(k.shape[1]);
  out.repeats = static_cast<u32>(q.shape[1] / k.shape[1]);
  out.queries = static_cast<u32>(q.shape[2]), out.keys = static_cast<u32>(k.shape[2]);
  out.depth = static_cast<u32>(q.shape[3]), out.value_columns = static_cast<u32>(v.shape[3]);
  out.y = strides_of(call.out());
  out.q = strides_of(q), out.k = strides_of(k), out.v = strides_of(v);
  if (const View* mask = given(call.inputs, 3); mask != nullptr) {
    out.mask = strides_of(*mask);
    out.mask_kind = mask->dtype == BP_BOOL ? SIMT_MASK_BOOL : SIMT_MASK_ADDED;
  }
  if (const View* logsumexp = given(call.outputs, 1); logsumexp != nullptr) {
    out.logsumexp = strides_of(*logsumexp);
    out.has_logsumexp = 1;
  }
  out.causal = attributes.causal;
  out.scale = attributes.scale;
  return out;
}

std::array<Place, 6> attention_places(const Call& call) {
  std::array<Place, 6> out{};
  out[0] = call.out().place;
  if (const View* logsumexp = given(call.outputs, 1); logsumexp != nullptr) out[1] = logsumexp->place;
  for (uint32_t i = 0; i < 4; ++i) {
    if (const View* view = given(call.inputs, i); view != nullptr) out[2 + i] = view->place;
  }
  return out;
}

void add_attention(Operators& operators) {
  for_dtypes(kComputed & BP_SET_FLOATS,
             [&](uint32_t dtype) { operators.add(BP_OP_ATTENTION, dtype, entry_of<Attention>(dtype)); });
}

}  // namespace backplane::simt
