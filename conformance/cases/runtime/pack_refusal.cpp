// SPDX-License-Identifier: Apache-2.0
// Test cases for bp.pack: queries, and what the slots and plan_create refuse.
#include <algorithm>
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/runtime/graph.hpp"
#include "cases/runtime/pack.hpp"
#include "cases/support/add_case.hpp"

namespace backplane::conformance {

namespace {

constexpr PackSize kRefusedPack = {3, 40, 50};
constexpr PackSize kSquarePack = {16, 16, 16};

// pack_create must return the same status and layout with and without an output pointer, and in
// repeated calls.
void queries_like_creation(Context& context, const PackSubject& subject) {
  PackScene scene(context, subject.make(kRefusedPack));
  for (int round = 0; round < 3; ++round) {
    const Pack made = scene.create();  // create() compares this layout with the query's layout
    bp_pack_info again;
    ErrorRecord error;
    expect_ok(scene.try_create(scene.desc, kConstantInput, nullptr, again, error), error, "pack_create");
    context.require(again.bytes == scene.info.bytes && again.layout == scene.info.layout,
                    "pack_create stated {} bytes in layout {:#x}, and then {} in {:#x}", scene.info.bytes,
                    scene.info.layout, again.bytes, again.layout);
  }
  ErrorRecord error;
  bp_pack* made = nullptr;
  const bp_op_desc& desc = scene.desc.get();
  expect_status(scene.table.pack_create(scene.device.get(), &desc, kConstantInput, &made, nullptr, &error), error,
                "pack_create", {BP_INVALID_ARGUMENT});
  context.require(made == nullptr, "pack_create failed and gave a pack");
}

// The device must refuse a packed view if no plan for the descriptor can read the view's layout.
void plans_refuse_layouts(Context& context, const PackSubject& subject) {
  PackScene scene(context, subject.make(kRefusedPack));
  const auto refused = [&](OpDesc desc, std::string_view what) {
    ErrorRecord error;
    const bp_status status = scene.try_plan(std::move(desc), error);
    context.require(status != BP_OK, "plan_create accepts {}", what);
    expect_status(status, error, "plan_create", {BP_UNSUPPORTED});
  };
  for (uint32_t bit = 0; bit < 64; bit += 7) {
    bp_pack_info other = scene.info;
    other.layout ^= uint64_t{1} << bit;
    refused(scene.packed_desc(other), "a packed operand of another layout");
  }
  bp_pack_info other = scene.info;
  for (const uint64_t bytes : {scene.info.bytes + scene.device.info().alignment, scene.info.bytes + 1,
                               scene.info.bytes - 1, scene.info.bytes / 2 + 1}) {
    other.bytes = bytes;
    if (bytes != scene.info.bytes) refused(scene.packed_desc(other), "a packed operand of another size");
  }
  // Returns `desc` with the scene's packed view as its constant input. The view keeps the shape that
  // `desc` states.
  const auto as_constant_of = [&](OpDesc desc) {
    bp_tensor_desc& view = desc.inputs()[kConstantInput];
    const bp_tensor_desc packed = scene.packed_desc().inputs()[kConstantInput];
    view.flags = packed.flags;
    view.alignment_log2 = packed.alignment_log2;
    std::memcpy(view.strides, packed.strides, sizeof(view.strides));
    return desc;
  };
  refused(as_constant_of(subject.make({kRefusedPack.rows, kRefusedPack.columns, kRefusedPack.depth})),
          "a packed operand of another shape");
  refused(as_constant_of(subject.make({kRefusedPack.rows, kRefusedPack.depth, kRefusedPack.columns - 1})),
          "a packed operand with a column less");
}

// Only a plan for matmul may accept an operand that was packed for matmul, and only as the input for which it was
// packed.
void other_operators_refuse(Context& context) {
  PackScene scene(context, packed_matmul(kSquarePack));
  const bp_tensor_desc packed = scene.packed_desc().inputs()[kConstantInput];
  const bp_tensor_desc plain = scene.desc.outputs()[0];
  const auto refused = [&](OpDesc desc, std::string_view what) {
    ErrorRecord error;
    const bp_status status = scene.try_plan(std::move(desc), error);
    context.require(status != BP_OK, "plan_create accepts a packed operand {}", what);
    expect_status(status, error, "plan_create", {BP_UNSUPPORTED});
  };
  for (const uint32_t op : {BP_OP_NEG, BP_OP_COPY, BP_OP_ADD, BP_OP_MAX}) {
    for (uint32_t i = 0; i < op_info(op).inputs_min; ++i) {
      OpDesc desc(op);
      for (uint32_t k = 0; k < op_info(op).inputs_min; ++k) desc.input(k == i ? packed : plain);
      refused(desc.output(plain), "of matmul as an input of another operator");
    }
  }
  const bp_reduce_attributes axes = {sizeof(axes), 1};
  refused(OpDesc(BP_OP_REDUCE_SUM).input(packed).output(dense_view(BP_F32, {1, 16})).attributes(axes),
          "of matmul as an input of reduce_sum");
  OpDesc left = scene.desc;
  left.inputs()[0] = packed;
  refused(left, "in place of another input");
  OpDesc out = scene.desc;
  out.outputs()[0] = packed;
  refused(out, "as an output");
}

// Two operators may read the same layout, but then the elements must have the same meaning. One of
// `from` and `to` is matmul. The other is linear, which reads its constant transposed.
void other_meanings_differ(Context& context, std::string_view from, std::string_view to) {
  const auto make = [&](std::string_view name) {
    const std::vector<PackSubject>& all = pack_subjects();
    return std::find_if(all.begin(), all.end(), [&](const PackSubject& each) { return each.name == name; })
        ->make({4, 64, 64});
  };
  PackScene source(context, make(from)), target(context, make(to));
  upload(target.constant(), download<unsigned char>(source.constant(), source.constant().bytes));
  const Bytes expected = target.plain_result();
  const Buffer packed = source.packed();
  const OpDesc desc = target.packed_desc(source.info);
  ErrorRecord error;
  const bp_status status = target.try_plan(desc, error);
  expect_status(status, error, "plan_create", {BP_OK, BP_UNSUPPORTED});
  if (status != BP_OK) return;
  Runner runner(target.device, desc);
  require_same(context, target.result(runner, packed.get()), expected,
               "the result for an operand packed for another operator");
}

void packs_no_bad_input(Context& context) {
  PackScene scene(context, packed_matmul(kSquarePack));
  const auto refused = [&](OpDesc desc, uint32_t input, std::string_view what) {
    bp_pack* made = nullptr;
    bp_pack_info info;
    ErrorRecord error;
    const bp_status status = scene.try_create(desc, input, &made, info, error);
    if (made != nullptr) scene.table.pack_destroy(scene.device.get(), made);
    context.require(status != BP_OK && made == nullptr, "pack_create accepts {}", what);
    expect_status(status, error, "pack_create", {BP_INVALID_ARGUMENT});
  };
  refused(scene.desc, 2, "an input that the descriptor lacks");
  refused(scene.desc, UINT32_MAX, "input 2^32 - 1");
  refused(scene.packed_desc(), kConstantInput, "an operand that is packed already");
  OpDesc immediate = scene.desc;
  bp_tensor_desc& view = immediate.inputs()[kConstantInput];
  view.flags = BP_DESC_IMMEDIATE;
  std::memset(view.strides, 0, sizeof(view.strides));
  refused(immediate, kConstantInput, "an immediate");
  refused(packed_matmul({16, 0, 16}), kConstantInput, "an operand without elements");
  refused(packed_matmul({16, 16, 0}), kConstantInput, "an operand without columns");
  OpDesc written = scene.desc;  // the output overwrites the right operand, which is therefore not constant
  written.outputs()[0].alias = kConstantInput + 1;
  refused(written, kConstantInput, "an input that an output overwrites");
}

void packs_inside_buffers(Context& context) {
  PackScene scene(context, packed_matmul(kSquarePack));
  const Pack pack = scene.create();
  const uint64_t alignment = std::min<uint64_t>(scene.device.info().alignment, uint64_t{1} << BP_MAX_ALIGNMENT_LOG2);
  const uint64_t source_bytes = scene.constant().bytes;
  Buffer to(scene.device, scene.info.bytes + alignment);
  Buffer both(scene.device, source_bytes + scene.info.bytes + 2 * alignment);
  const Bytes before(to.bytes, 0x77);
  upload(to, before);
  const auto refused = [&](bp_buffer* from, uint64_t from_offset, bp_buffer* dst, uint64_t to_offset,
                           std::string_view what) {
    ErrorRecord error;
    const bp_status status = scene.try_pack(scene.stream, pack, from, from_offset, dst, to_offset, error);
    context.require(status != BP_OK, "pack_execute accepts {}", what);
    expect_status(status, error, "pack_execute", {BP_INVALID_ARGUMENT});
  };
  bp_buffer* const from = scene.constant().get();
  refused(from, 0, to.get(), 2 * alignment, "a packed operand that reaches past its buffer");
  refused(from, 0, to.get(), UINT64_MAX - alignment + 1, "a packed operand at an offset near 2^64");
  refused(from, 0, to.get(), alignment / 2, "a packed operand that is not fully aligned");
  refused(from, 4, to.get(), 0, "a plain operand that reaches past its buffer");
  refused(from, UINT64_MAX - 3, to.get(), 0, "a plain operand at an offset near 2^64");
  refused(both.get(), 0, both.get(), 0, "a packed operand over the plain operand");
  refused(nullptr, 0, to.get(), 0, "a null source");
  refused(from, 0, nullptr, 0, "a null target");
  scene.stream.wait();
  require_same(context, download<unsigned char>(to, to.bytes), before, "memory after packings that were refused");
  scene.pack(scene.stream, pack, to, alignment);
  scene.stream.wait();
  Runner runner = scene.packed_plan();
  require_same(context, scene.result(runner, to.get(), alignment), scene.expected, "the result after refusals");
}

void packs_in_no_capture(Context& context) {
  PackScene scene(context, packed_matmul(kSquarePack));
  const GraphCalls graphs(context);
  const Pack pack = scene.create();
  Buffer to(scene.device, scene.info.bytes), copied(scene.device, scene.constant().bytes);
  graphs.begin(scene.stream);
  ErrorRecord error;
  expect_status(scene.try_pack(scene.stream, pack, scene.constant().get(), 0, to.get(), 0, error), error,
                "pack_execute", {BP_INVALID_ARGUMENT});
  scene.stream.copy(copied.get(), 0, scene.constant().get(), 0, copied.bytes);
  const Graph graph = graphs.end(scene.stream, 1);  // the copy is the only node, because pack_execute was refused
  graphs.launch(scene.stream, graph);
  scene.stream.wait();
  require_same(context, download<unsigned char>(copied, copied.bytes),
               download<unsigned char>(scene.constant(), copied.bytes), "memory of a graph that refused a packing");
}

}  // namespace

void add_pack_refusal_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.pack." + std::move(what), std::move(requirements), std::move(run), kPackExtension);
    catalogue.back().since = kPackSince;
  };
  for (const PackSubject& subject : pack_subjects()) {
    add(fmt::format("queries_like_creation.{}", subject.name), {"BP-PACK-001"},
        [&subject](Context& context) { queries_like_creation(context, subject); });
    add(fmt::format("plans_refuse_layouts.{}", subject.name), {"BP-PACK-007"},
        [&subject](Context& context) { plans_refuse_layouts(context, subject); });
  }
  add("other_operators_refuse", {"BP-PACK-007"}, other_operators_refuse);
  add("other_meanings_differ.matmul_to_linear", {"BP-PACK-007"},
      [](Context& context) { other_meanings_differ(context, "matmul.f32", "linear.f32"); });
  add("other_meanings_differ.linear_to_matmul", {"BP-PACK-007"},
      [](Context& context) { other_meanings_differ(context, "linear.f32", "matmul.f32"); });
  add("packs_no_bad_input", {"BP-PACK-008"}, packs_no_bad_input);
  add("packs_inside_buffers", {"BP-PACK-009"}, packs_inside_buffers);
  add("packs_in_no_capture", {"BP-PACK-009"}, packs_in_no_capture);
}

}  // namespace backplane::conformance
