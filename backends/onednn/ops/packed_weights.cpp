// SPDX-License-Identifier: Apache-2.0
#include "ops/packed_weights.hpp"

#include "ops/gemm.hpp"
#include "runtime/primitive.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;
using dnnl_api::Md;

constexpr uint64_t kPackAlignment = 64;

// The state of a packing: a reorder that reads dense weights.
struct Packing {
  Packing(const dnnl::reorder::primitive_desc& desc, const Md& from, const Md& to, bool is_dense)
      : reorder(dnnl::reorder(desc), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, desc.scratchpad_desc(), team_size()),
        dense(is_dense) {}
  Primitive reorder;
  bool dense;
};

// Copies the elements of a view to dense memory.
void copy_dense(const View& from, std::byte* to) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(from.dtype));
  int64_t index[BP_MAX_RANK] = {};
  const std::byte* at = from.data;
  const uint32_t last = from.rank - 1;
  while (true) {
    for (int64_t i = 0; i < from.shape[last]; ++i, to += bytes) {
      std::memcpy(to, at + i * from.strides[last] * bytes, static_cast<std::size_t>(bytes));
    }
    uint32_t d = last;
    while (true) {
      if (d == 0) return;
      --d;
      const bool more = ++index[d] < from.shape[d];
      at += (more ? 1 : 1 - from.shape[d]) * from.strides[d] * bytes;
      if (more) break;
      index[d] = 0;
    }
  }
}

void pack_weights(const Call& call) {
  const auto& state = call.prepared<Packing>();
  const View& plain = call.in(0);
  const uint64_t copied = state.dense ? 0 : static_cast<uint64_t>(plain.elements()) * dtype_bytes(plain.dtype);
  const uint64_t offset = (copied + kPackAlignment - 1) / kPackAlignment * kPackAlignment;
  std::byte* memory = call.scratch->get(std::max<uint64_t>(offset + state.reorder.workspace_bytes(), 1));
  std::byte* from = plain.data;
  if (!state.dense) {
    copy_dense(plain, memory);
    from = memory;
  }
  state.reorder.run(memory + offset, {from, call.out().data});
}

}  // namespace

uint64_t layout_number(const bp_tensor_desc& view, std::span<const int64_t> properties) {
  uint64_t hash = view.dtype;
  const auto add = [&](int64_t value) { hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u; };
  for (uint32_t d = 0; d < view.rank; ++d) add(view.shape[d]);
  for (const int64_t value : properties) add(value);
  return hash ^ hash >> 32;  // the high bits of a product depend on all bits of its factors
}

dnnl::matmul::primitive_desc describe_packed(const Product& product) {
  const auto [rows, depth, cols, x, weights, y, bias] = product;
  const TeamSize team(rows * cols * depth < kTeamWork ? 1 : team_size());
  auto made =
      dnnl_api::describe<dnnl::matmul>(engine(), strict_attributes(), Md({rows, depth}, x, dnnl_api::Dims{depth, 1}),
                                       Md({depth, cols}, weights, dnnl::memory::format_tag::any), product.bias_md(),
                                       Md({rows, cols}, y, dnnl_api::Dims{cols, 1}));
  if (made && std::string_view(made.impl_info_str()).starts_with("ref")) return {};
  return made;
}

Status prepare_packing(const CheckedDesc& checked, uint32_t input, const Md& plain, const Md& wanted,
                       dnnl_api::Type source, PreparedPack& prepared) {
  const bp_tensor_desc& view = checked.desc.inputs[input];
  const std::vector<int64_t> layout = dnnl_api::layout_numbers(wanted);
  if (layout.empty() || wanted == plain) return prefers_plain(checked, input);
  prepared.bytes = dnnl_api::bytes_of(wanted);
  // The plain layout is a part of the number, because it distinguishes the weights [K, N] of matmul from
  // the weights [N, K] of linear, which have the same layout if they are packed.
  std::vector<int64_t> properties = dnnl_api::layout_numbers(plain);
  properties.push_back(static_cast<int64_t>(source));
  properties.insert(properties.end(), layout.begin(), layout.end());
  prepared.layout = layout_number(view, properties);
  if (rules::is_packed(view)) return {};
  const dnnl::reorder::primitive_desc desc(engine(), plain, engine(), wanted, strict_attributes());
  prepared.run = pack_weights;
  prepared.state = std::make_shared<const Packing>(desc, plain, wanted, rules::is_dense(view));
  return {};
}

}  // namespace backplane::onednn
