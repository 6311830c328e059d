// SPDX-License-Identifier: Apache-2.0
// Test cases for bp.pack: executions with packed operands, the order of packings, and lifetimes.
#include "cases/runtime/cases.hpp"
#include "cases/runtime/graph.hpp"
#include "cases/runtime/pack.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/leak.hpp"

namespace backplane::conformance {

namespace {

constexpr PackSize kPackSizes[] = {{1, 3, 2}, {5, 24, 33}, {2, 70, 130}, {37, 300, 19}};
constexpr PackSize kUsualPack = {3, 40, 50};

// Packs an operand between two guard bands of 256 bytes. The packing must not write other bytes. Executions with the
// packed operand must not need the plain operand or the bp_pack.
void equals_plain(Context& context, const PackSubject& subject) {
  for (const PackSize& size : kPackSizes) {
    PackScene scene(context, subject.make(size));
    constexpr uint64_t guard = 256;
    Buffer packed(scene.device, scene.info.bytes + 2 * guard);
    upload(packed, Bytes(packed.bytes, 0xC3));
    scene.pack(scene.stream, scene.create(), packed, guard);
    scene.stream.wait();
    scene.spoil();
    const Bytes edge(guard, 0xC3);
    require_same(context, download<unsigned char>(packed, guard), edge, "bytes before a packed operand");
    require_same(context, download<unsigned char>(packed, guard, guard + scene.info.bytes), edge,
                 "bytes after a packed operand");
    Runner runner = scene.packed_plan();
    for (int round = 0; round < 2; ++round) {
      require_same(context, scene.result(runner, packed.get(), guard), scene.expected,
                   "the result for a packed operand");
    }
  }
}

// Packs a plain operand whose elements are not contiguous. `set` changes its view and returns the byte
// offset of element 0.
void packs_any_strides(Context& context, uint64_t (*set)(bp_tensor_desc& view)) {
  for (const PackSize& size : kPackSizes) {
    OpDesc desc = packed_matmul(size);
    const uint64_t offset = set(desc.inputs()[kConstantInput]);
    desc.inputs()[kConstantInput].alignment_log2 = 2;
    PackScene scene(context, packed_matmul(size));
    // The view contains the elements of the dense operand at other offsets.
    const bp_tensor_desc& view = desc.inputs()[kConstantInput];
    const auto rows = static_cast<uint64_t>(view.shape[0]), columns = static_cast<uint64_t>(view.shape[1]);
    const auto values = download<uint32_t>(scene.constant(), rows * columns);
    Buffer spread(scene.device, uint64_t{1} << 20);
    Words words(spread.bytes / 4, 0x7FC00000);  // NaNs, which no result may contain
    for (uint64_t r = 0; r < rows; ++r) {
      for (uint64_t c = 0; c < columns; ++c) {
        const int64_t at = static_cast<int64_t>(offset / 4) + static_cast<int64_t>(r) * view.strides[0] +
                           static_cast<int64_t>(c) * view.strides[1];
        words[static_cast<size_t>(at)] = values[r * columns + c];
      }
    }
    upload(spread, words);
    bp_pack_info info;
    bp_pack* made = nullptr;
    ErrorRecord error;
    expect_ok(scene.try_create(desc, kConstantInput, &made, info, error), error, "pack_create");
    const Pack pack(scene.table, scene.device, made);
    Buffer to(scene.device, info.bytes);
    expect_ok(scene.try_pack(scene.stream, pack, spread.get(), offset, to.get(), 0, error), error, "pack_execute");
    scene.stream.wait();
    OpDesc packed = scene.packed_desc(info);
    expect_ok(scene.try_plan(packed, error), error, "plan_create");
    Runner runner(scene.device, packed);
    require_same(context, scene.result(runner, to.get()), scene.expected,
                 "the result for a packed operand with strides");
  }
}

uint64_t transposed(bp_tensor_desc& view) {
  view.strides[0] = 1;
  view.strides[1] = view.shape[0];
  return 0;
}
uint64_t reversed(bp_tensor_desc& view) {
  const int64_t last = view.shape[0] * view.shape[1] - 1;
  view.strides[0] = -view.shape[1];
  view.strides[1] = -1;
  return static_cast<uint64_t>(last) * 4;
}
uint64_t spread_out(bp_tensor_desc& view) {
  view.strides[1] = 2;
  view.strides[0] = view.shape[1] * 2 + 3;
  return 20;
}

// Packs a batch of matrices. `shared` is a bit mask of batch dimensions with stride 0, along which all matrices are the
// same.
void packs_batches(Context& context, uint32_t shared) {
  OpDesc desc(BP_OP_MATMUL);
  desc.input(dense_view(BP_F32, {2, 3, 5, 24})).input(dense_view(BP_F32, {2, 3, 24, 33}));
  desc.output(dense_view(BP_F32, {2, 3, 5, 33})).attributes(bp_matmul_attributes{});
  for (uint32_t d = 0; d < 2; ++d) {
    if ((shared >> d & 1u) != 0) desc.inputs()[kConstantInput].strides[d] = 0;
  }
  PackScene scene(context, desc);
  const Buffer packed = scene.packed();
  scene.spoil();
  Runner runner = scene.packed_plan();
  require_same(context, scene.result(runner, packed.get()), scene.expected,
               "the result for packed matrices of a batch");
}

// A packing must read the values that earlier work of its stream wrote. Later work may overwrite
// the plain operand.
void packs_in_order(Context& context, bool other_stream) {
  PackScene scene(context, packed_matmul(kUsualPack));
  Runner runner = scene.packed_plan();
  const Pack pack = scene.create();
  Delay slow(context);
  Stream second(scene.device);
  Event ready(scene.device);
  Buffer values(scene.device, scene.constant().bytes), zeros(scene.device, values.bytes),
      to(scene.device, scene.info.bytes), out(scene.device, scene.output_bytes());
  upload(zeros, Bytes(zeros.bytes, 0));
  Stream& user = other_stream ? second : scene.stream;
  for (unsigned round = 0; round < 32; ++round) {
    const Bytes expected = scene.refresh();
    upload(values, download<unsigned char>(scene.constant(), values.bytes));
    upload(scene.constant(), Bytes(values.bytes, 0));
    slow.enqueue(scene.stream, context.below(2000));
    scene.stream.copy(scene.constant().get(), 0, values.get(), 0, values.bytes);
    scene.pack(scene.stream, pack, to);
    scene.stream.record(ready.get());
    scene.stream.copy(scene.constant().get(), 0, zeros.get(), 0, values.bytes);
    if (other_stream) user.wait_event(ready.get());
    scene.enqueue(user, runner, to.get(), 0, out);
    user.wait();
    scene.stream.wait();
    require_same(context, download<unsigned char>(out, out.bytes), expected,
                 "the result for an operand packed in order");
  }
}

void packing_does_not_wait(Context& context) {
  PackScene scene(context, packed_matmul(kUsualPack));
  const Pack pack = scene.create();
  Buffer to(scene.device, scene.info.bytes);
  require_no_wait(context, "pack_execute", [&](Stream& busy) { scene.pack(busy, pack, to); });
}

// One plan serves many packed operands on many streams, so neither the plan nor the bp_pack may
// store a packed operand.
void serves_many_operands(Context& context) {
  PackScene scene(context, packed_matmul(kUsualPack));
  Runner runner = scene.packed_plan();
  const Pack pack = scene.create();
  constexpr size_t kOperands = 4;
  std::vector<Buffer> packed, outputs;
  std::vector<Bytes> expected;
  std::vector<Stream> streams;
  for (size_t i = 0; i < kOperands; ++i) {
    expected.push_back(scene.refresh());
    packed.emplace_back(scene.device, scene.info.bytes);
    outputs.emplace_back(scene.device, scene.output_bytes());
    streams.emplace_back(scene.device);
    scene.pack(scene.stream, pack, packed.back());
    scene.stream.wait();
  }
  scene.spoil();
  for (unsigned round = 0; round < 16; ++round) {
    // The plan has only one workspace, so only one stream at a time uses the workspace.
    for (size_t i = 0; i < kOperands; ++i) {
      scene.enqueue(streams[i], runner, packed[(i + round) % kOperands].get(), 0, outputs[i]);
      streams[i].wait();
    }
    for (size_t i = 0; i < kOperands; ++i) {
      require_same(context, download<unsigned char>(outputs[i], outputs[i].bytes), expected[(i + round) % kOperands],
                   "the result for one of several packed operands");
    }
  }
}

// A packed operand must remain valid without the plan, the bp_pack and the plain operand. A plan
// must remain valid without a packed operand.
void outlive_each_other(Context& context) {
  PackScene scene(context, packed_matmul(kUsualPack));
  Runner early = scene.packed_plan();
  Buffer first(scene.device, scene.info.bytes);
  {
    Pack pack = scene.create();
    scene.pack(scene.stream, pack, first);
    pack.reset();
  }
  scene.stream.wait();
  scene.spoil();
  require_same(context, scene.result(early, first.get()), scene.expected,
               "the result of a plan made before the packing");
  { Runner gone = std::move(early); }
  {
    Runner late = scene.packed_plan();
    require_same(context, scene.result(late, first.get()), scene.expected,
                 "the result of a plan made after the packing");
  }
  Runner kept = scene.packed_plan();
  require_same(context, scene.result(kept, first.get()), scene.expected, "the result before the operand's end");
  first.reset();
  const Bytes expected = scene.refresh();
  const Buffer second = scene.packed();
  scene.spoil();
  require_same(context, scene.result(kept, second.get()), expected,
               "the result of a plan whose first operand is destroyed");
}

void leaves_nothing_behind(Context& context) {
  PackScene scene(context, packed_matmul(kUsualPack));
  Buffer to(scene.device, scene.info.bytes);
  expect_no_leak(context, "packing an operand", 128, [&] {
    scene.pack(scene.stream, scene.create(), to);
    scene.stream.wait();
    (void)scene.packed_plan();
  });
}

void executes_in_graphs(Context& context) {
  PackScene scene(context, packed_matmul(kUsualPack));
  const GraphCalls graphs(context);
  Runner runner = scene.packed_plan();
  Buffer out(scene.device, scene.output_bytes());
  const Pack pack = scene.create();
  Buffer packed(scene.device, scene.info.bytes);
  graphs.begin(scene.stream);
  scene.enqueue(scene.stream, runner, packed.get(), 0, out);
  const Graph graph = graphs.end(scene.stream, 1);
  for (int round = 0; round < 3; ++round) {
    const Bytes expected = scene.refresh();
    scene.pack(scene.stream, pack, packed);
    graphs.launch(scene.stream, graph);
    scene.stream.wait();
    require_same(context, download<unsigned char>(out, out.bytes), expected,
                 "the result of a graph with a packed operand");
  }
}

}  // namespace

void add_pack_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.pack." + std::move(what), std::move(requirements), std::move(run), kPackExtension);
    catalogue.back().since = kPackSince;
  };
  for (const PackSubject& subject : pack_subjects()) {
    add(fmt::format("equals_plain.{}", subject.name), {"BP-PACK-001", "BP-PACK-002"},
        [&subject](Context& context) { equals_plain(context, subject); });
  }
  add("packs_strides.transposed", {"BP-PACK-003"}, [](Context& context) { packs_any_strides(context, transposed); });
  add("packs_strides.reversed", {"BP-PACK-003"}, [](Context& context) { packs_any_strides(context, reversed); });
  add("packs_strides.spread", {"BP-PACK-003"}, [](Context& context) { packs_any_strides(context, spread_out); });
  for (uint32_t shared = 0; shared < 4; ++shared) {
    add(fmt::format("packs_batches.shared_{}", shared), {"BP-PACK-003"},
        [shared](Context& context) { packs_batches(context, shared); });
  }
  add("packs_in_order.one_stream", {"BP-PACK-004"}, [](Context& context) { packs_in_order(context, false); });
  add("packs_in_order.two_streams", {"BP-PACK-004"}, [](Context& context) { packs_in_order(context, true); });
  add("does_not_wait", {"BP-PACK-004"}, packing_does_not_wait);
  add("serves_many_operands", {"BP-PACK-005"}, serves_many_operands);
  add("outlive_each_other", {"BP-PACK-005"}, outlive_each_other);
  add("leaves_nothing", {"BP-PACK-006"}, leaves_nothing_behind);
  add("executes_in_graphs", {"BP-PACK-002"}, executes_in_graphs);
}

}  // namespace backplane::conformance
