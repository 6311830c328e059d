// SPDX-License-Identifier: Apache-2.0
#include "cases/runtime/pack.hpp"

#include <backplane/rules/tables.hpp>
#include <cstring>

namespace backplane::conformance {

bp_pack_api pack_of(Context& context, Device& device) {
  const Plugin& plugin = device.plugin();
  const void* given = plugin->get_interface == nullptr
                          ? nullptr
                          : plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_PACK, 1);
  if (given == nullptr) context.not_claimed("the device has no bp.pack");
  const auto table = backplane::rules::known_part(*static_cast<const bp_pack_api*>(given), plugin->abi_version);
  context.require(table.pack_create != nullptr && table.pack_execute != nullptr && table.pack_destroy != nullptr,
                  "a slot of bp.pack is null");
  return table;
}

namespace {

template <uint32_t kDtype, uint32_t kRight, uint32_t kOut>
OpDesc matmul_of(PackSize size) {
  OpDesc desc(BP_OP_MATMUL);
  desc.input(dense_view(kDtype, {size.rows, size.depth})).input(dense_view(kRight, {size.depth, size.columns}));
  desc.output(dense_view(kOut, {size.rows, size.columns}));
  return desc.attributes(bp_matmul_attributes{});
}

template <uint32_t kDtype>
OpDesc linear_of(PackSize size) {
  OpDesc desc(BP_OP_LINEAR);
  desc.input(dense_view(kDtype, {size.rows, size.depth})).input(dense_view(kDtype, {size.columns, size.depth}));
  desc.input(dense_view(kDtype, {size.columns})).output(dense_view(kDtype, {size.rows, size.columns}));
  return desc.attributes(bp_linear_attributes{});
}

OpDesc conv_of(PackSize size) {
  bp_conv_attributes attributes{};
  attributes.spatial_rank = 2;
  attributes.groups = 1;
  for (int d = 0; d < 2; ++d) attributes.stride[d] = attributes.dilation[d] = 1;
  OpDesc desc(BP_OP_CONV);
  desc.input(dense_view(BP_F32, {1, size.depth, size.rows + 2, 5}));
  desc.input(dense_view(BP_F32, {size.columns, size.depth, 3, 3}));
  desc.output(dense_view(BP_F32, {1, size.columns, size.rows, 3}));
  return desc.attributes(attributes);
}

// Returns a descriptor of quantized_matmul. Weights of 4 bits have a scale per block of 32, and
// weights of 8 bits have a scale per column.
template <uint32_t kDtype, uint32_t kBits>
OpDesc quantized_of(PackSize size) {
  constexpr bool kFour = kBits == 4;
  bp_quantized_matmul_attributes attributes{};
  attributes.weight_bits = kBits;
  attributes.block = kFour ? 32 : 0;
  const int64_t bytes = kFour ? (size.depth + 1) / 2 : size.depth;
  OpDesc desc(BP_OP_QUANTIZED_MATMUL);
  desc.input(dense_view(kDtype, {size.rows, size.depth}));
  desc.input(dense_view(kFour ? BP_U8 : BP_I8, {size.columns, bytes}));
  desc.input(dense_view(kDtype, kFour ? Shape{size.columns, (size.depth + 31) / 32} : Shape{size.columns}));
  desc.output(dense_view(kDtype, {size.rows, size.columns}));
  return desc.attributes(attributes);
}

// Returns integers from -2 to 2, or from 0 to 4 for unsigned dtypes.
Bytes whole_numbers(Context& context, const bp_tensor_desc& view) {
  const uint32_t width = bph_dtype_bytes(view.dtype);
  Bytes bytes(bytes_of(dense_view(view.dtype, Shape(view.shape, view.shape + view.rank))));
  for (uint64_t i = 0; i < bytes.size(); i += width) {
    const auto number = static_cast<int64_t>(context.below(5)) - (view.dtype == BP_U8 ? 0 : 2);
    const uint64_t bits = bph_scalar_from_i64(view.dtype, number);
    std::memcpy(bytes.data() + i, &bits, width);
  }
  return bytes;
}

uint8_t full_alignment_log2(const Device& device) {
  uint8_t log2 = 0;
  while (log2 < BP_MAX_ALIGNMENT_LOG2 && (uint64_t{2} << log2) <= device.info().alignment) ++log2;
  return log2;
}

}  // namespace

OpDesc packed_matmul(PackSize size) { return matmul_of<BP_F32, BP_F32, BP_F32>(size); }

const std::vector<PackSubject>& pack_subjects() {
  static const std::vector<PackSubject> all = {
      {"matmul.f32", packed_matmul},
      {"matmul.f64", matmul_of<BP_F64, BP_F64, BP_F64>},
      {"matmul.f16", matmul_of<BP_F16, BP_F16, BP_F16>},
      {"matmul.bf16", matmul_of<BP_BF16, BP_BF16, BP_BF16>},
      {"matmul.bf16_to_f32", matmul_of<BP_BF16, BP_BF16, BP_F32>},
      {"matmul.i8", matmul_of<BP_I8, BP_I8, BP_I32>},
      {"matmul.u8", matmul_of<BP_U8, BP_I8, BP_I32>},
      {"linear.f32", linear_of<BP_F32>},
      {"linear.bf16", linear_of<BP_BF16>},
      {"conv.f32", conv_of},
      {"quantized_matmul.f32", quantized_of<BP_F32, 8>},
      {"quantized_matmul.f32_4", quantized_of<BP_F32, 4>},
      {"quantized_matmul.bf16_4", quantized_of<BP_BF16, 4>},
  };
  return all;
}

PackScene::PackScene(Context& given, OpDesc described)
    : context(given),
      device(given.device()),
      table(pack_of(given, device)),
      stream(device),
      desc(std::move(described)),
      plain_(device, desc),
      output_(device, bytes_of(desc.outputs()[0])) {
  desc = plain_.desc();  // states the alignment of the operands
  ErrorRecord error;
  const bp_status status = try_create(desc, kConstantInput, nullptr, info, error);
  expect_status(status, error, "pack_create", {BP_OK, BP_UNSUPPORTED});
  if (status != BP_OK) context.not_claimed("{}", error.message);
  context.require(info.bytes != 0 && info.bytes <= INT64_MAX, "pack_create stated {} bytes", info.bytes);
  for (const bp_tensor_desc& view : desc.inputs()) {
    const Bytes bytes = whole_numbers(context, view);
    inputs_.emplace_back(device, bytes.size());
    upload(inputs_.back(), bytes);
  }
  expected = plain_result();
}

bp_status PackScene::try_create(OpDesc& of, uint32_t input, bp_pack** made, bp_pack_info& facts,
                                ErrorRecord& error) const {
  std::memset(&facts, 0x5A, sizeof(facts));
  facts.struct_size = sizeof(facts);
  return table.pack_create(device.get(), &of.get(), input, made, &facts, &error);
}

Pack PackScene::create() {
  bp_pack* made = nullptr;
  bp_pack_info facts;
  ErrorRecord error;
  expect_ok(try_create(desc, kConstantInput, &made, facts, error), error, "pack_create");
  context.require(made != nullptr, "pack_create returned OK and no pack");
  context.require(facts.bytes == info.bytes && facts.layout == info.layout,
                  "pack_create stated {} bytes in layout {:#x}, its query {} in {:#x}", facts.bytes, facts.layout,
                  info.bytes, info.layout);
  return {table, device, made};
}

bp_status PackScene::try_pack(Stream& on, const Pack& pack, bp_buffer* from, uint64_t from_offset, bp_buffer* to,
                              uint64_t to_offset, ErrorRecord& error) const {
  return table.pack_execute(device.get(), on.get(), pack.get(), from, from_offset, to, to_offset, &error);
}

void PackScene::pack(Stream& on, const Pack& pack, Buffer& to, uint64_t to_offset) {
  ErrorRecord error;
  expect_ok(try_pack(on, pack, constant().get(), 0, to.get(), to_offset, error), error, "pack_execute");
}

Buffer PackScene::packed() {
  Buffer to(device, info.bytes);
  pack(stream, create(), to);
  stream.wait();
  return to;
}

OpDesc PackScene::packed_desc(const bp_pack_info& layout) const {
  OpDesc made = desc;
  bp_tensor_desc& view = made.inputs()[kConstantInput];
  view.flags = BP_DESC_PACKED;
  view.alignment_log2 = full_alignment_log2(device);
  std::memset(view.strides, 0, sizeof(view.strides));
  view.strides[0] = static_cast<int64_t>(layout.bytes);
  view.strides[1] = static_cast<int64_t>(layout.layout);
  return made;
}

bp_status PackScene::try_plan(OpDesc of, ErrorRecord& error) const {
  bp_plan_info facts = {};
  facts.struct_size = sizeof(facts);
  return device->plan_create(device.get(), &of.get(), nullptr, &facts, &error);
}

Runner PackScene::packed_plan() const {
  ErrorRecord error;
  expect_ok(try_plan(packed_desc(), error), error, "plan_create with the packed view that pack_create described");
  return {device, packed_desc()};
}

void PackScene::enqueue(Stream& on, Runner& runner, bp_buffer* constant, uint64_t offset, Buffer& to) {
  std::vector<bp_operand> operands;
  for (const Buffer& input : inputs_) operands.push_back({input.get(), 0, 0});
  operands[kConstantInput] = {constant, offset, 0};
  const bp_operand output = {to.get(), 0, 0};
  bp_execution execution = {};
  execution.struct_size = sizeof(execution);
  execution.desc = &runner.desc().get();
  execution.inputs = operands.data();
  execution.outputs = &output;
  execution.workspace = runner.workspace();
  execution.workspace_bytes = runner.plan().info.workspace_bytes;
  runner.plan().execute(on.get(), execution);
}

Bytes PackScene::result(Runner& runner, bp_buffer* constant, uint64_t offset) {
  upload(output_, Bytes(output_.bytes, 0xEE));
  enqueue(stream, runner, constant, offset, output_);
  stream.wait();
  return download<unsigned char>(output_, output_.bytes);
}

Bytes PackScene::refresh() {
  upload(constant(), whole_numbers(context, desc.inputs()[kConstantInput]));
  return plain_result();
}

void PackScene::spoil() { upload(constant(), Bytes(constant().bytes, 0x3F)); }

}  // namespace backplane::conformance
