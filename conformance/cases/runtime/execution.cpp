// SPDX-License-Identifier: Apache-2.0
// Test cases for executions of every operator. Results must not depend on earlier executions, on
// the workspace's contents or on other streams.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/guarded.hpp"
#include "cases/support/samples.hpp"

namespace backplane::conformance {

namespace {

constexpr int64_t kExecutionRows = 40;

void require_results(Context& context, const std::vector<Bytes>& got, const std::vector<Bytes>& expected,
                     std::string_view what) {
  for (size_t i = 0; i < expected.size(); ++i) require_same(context, got[i], expected[i], what);
}

// Creates a new plan, executes it on `operands` and returns the results.
std::vector<Bytes> by_a_fresh_plan(Context& context, Operands& operands, OpDesc desc) {
  Runner fresh(context.device(), std::move(desc));
  Stream stream(context.device());
  operands.reset_outputs();
  operands.enqueue(stream, fresh);
  stream.wait();
  return operands.results();
}

// An operator with operands and expected results.
struct Scene {
  Scene(Context& given, const bph_op_info& row, int64_t row_count = kExecutionRows)
      : context(given),
        device(given.device()),
        desc(sample_of_rows(row, usual_dtype(row), row_count)),
        operands(given, row, desc) {
    expected = by_a_fresh_plan(given, operands, desc);
    operands.reset_outputs();
  }
  void check(std::string_view what) { require_results(context, operands.results(), expected, what); }

  Context& context;
  Device& device;
  OpDesc desc;
  Operands operands;
  std::vector<Bytes> expected;
};

void again_and_again(Context& context, const bph_op_info& op) {
  Scene scene(context, op);
  Runner runner(scene.device, scene.desc);
  Stream stream(scene.device);
  for (int round = 0; round < 4; ++round) {
    scene.operands.reset_outputs();
    scene.operands.enqueue(stream, runner);
    stream.wait();
    scene.check("the same execution again");
  }
}

// Checks that a plan keeps no state from the previous execution.
void of_other_data(Context& context, const bph_op_info& op) {
  Scene first(context, op), second(context, op);
  Runner runner(first.device, first.desc);
  Stream stream(first.device);
  for (Scene* scene : {&first, &second, &first, &second}) {
    scene->operands.reset_outputs();
    scene->operands.enqueue(stream, runner);
    stream.wait();
    scene->check("an execution after one with other data");
  }
  // Now both executions are pending at once.
  first.operands.reset_outputs();
  second.operands.reset_outputs();
  first.operands.enqueue(stream, runner);
  second.operands.enqueue(stream, runner);
  stream.wait();
  first.check("the first of two executions that were pending together");
  second.check("the second of two executions that were pending together");
}

void of_another_size(Context& context, const bph_op_info& op) {
  Scene small(context, op, 6), large(context, op, 61);
  Runner runner(small.device, small.desc);
  if ((runner.plan().info.flags & BP_PLAN_ANY_SIZE) == 0) return;
  OpDesc desc = large.desc;
  state_alignment(large.device, desc);
  uint64_t bytes = runner.plan().info.workspace_bytes;
  ErrorRecord error;
  if ((runner.plan().info.flags & BP_PLAN_SIZED_WORKSPACE) != 0)
    expect_ok(large.device->plan_workspace(large.device.get(), runner.plan().get(), &desc.get(), &bytes, &error), error,
              "plan_workspace");
  const Buffer workspace(large.device, std::max<uint64_t>(bytes, 1));
  Stream stream(large.device);
  for (int round = 0; round < 2; ++round) {
    large.operands.reset_outputs();
    expect_ok(large.operands.try_enqueue(stream.get(), runner.plan().get(), desc.get(),
                                         bytes == 0 ? nullptr : workspace.get(), 0, bytes, &error),
              error, "plan_execute");
    stream.wait();
    large.check("an any-size plan made for 6 rows, run with 61");
    small.operands.reset_outputs();
    small.operands.enqueue(stream, runner);
    stream.wait();
    small.check("an any-size plan made for 6 rows, run with 61 before");
  }
}

// Checks that an execution gives the same results for any contents of the workspace, and that the plugin writes nothing
// outside the workspace.
void workspace_as_it_comes(Context& context, const bph_op_info& op) {
  constexpr uint64_t margin = 4096;
  Scene scene(context, op);
  Runner runner(scene.device, scene.desc);
  const uint64_t bytes = runner.plan().info.workspace_bytes;
  Stream stream(scene.device);
  OpDesc desc = runner.desc();
  for (const int fill : {0x00, 0xFF, 0xA5, 0x7F}) {
    Buffer workspace(scene.device, bytes + 2 * margin);
    const Bytes poison(bytes + 2 * margin, static_cast<unsigned char>(fill));
    upload(workspace, poison);
    // In the second execution, the workspace contains the bytes that the first execution left.
    for (int round = 0; round < 2; ++round) {
      scene.operands.reset_outputs();
      ErrorRecord error;
      expect_ok(
          scene.operands.try_enqueue(stream.get(), runner.plan().get(), desc.get(),
                                     bytes == 0 ? nullptr : workspace.get(), bytes == 0 ? 0 : margin, bytes, &error),
          error, "plan_execute");
      stream.wait();
      scene.check(fmt::format("an execution whose workspace held {:#x}", fill));
    }
    const Bytes edge(margin, static_cast<unsigned char>(fill));
    require_same(context, download<unsigned char>(workspace, margin), edge, "the bytes before the workspace");
    require_same(context, download<unsigned char>(workspace, margin, margin + bytes), edge,
                 "the bytes after the workspace");
  }
}

// Checks that the plugin reads the descriptor only until plan_create returns, and the structs of an
// execution only until plan_execute returns.
void borrowed_for_the_call(Context& context, const bph_op_info& op) {
  Scene scene(context, op);
  Device& device = scene.device;
  Delay delay(context);
  OpDesc kept = scene.desc;
  state_alignment(device, kept);
  // The memory stays mapped but is overwritten, so that a later read returns wrong data.
  const auto overwrite = [](OpDesc& lent, const GuardedStruct<bp_op_desc>& desc) {
    std::fill(lent.inputs().begin(), lent.inputs().end(), bp_tensor_desc{});
    std::fill(lent.outputs().begin(), lent.outputs().end(), bp_tensor_desc{});
    std::fill(lent.attribute_bytes().begin(), lent.attribute_bytes().end(), static_cast<unsigned char>(0xEE));
    std::memset(desc.bytes(), 0xEE, sizeof(bp_op_desc));
  };
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  bp_plan* plan = nullptr;
  ErrorRecord error;
  OpDesc of_create = kept;
  const GuardedStruct<bp_op_desc> create_desc(sizeof(bp_op_desc), of_create.get());
  expect_ok(device->plan_create(device.get(), create_desc.get(), &plan, &info, &error), error, "plan_create");
  overwrite(of_create, create_desc);
  const Owner<bp_plan, &bp_device_api::plan_destroy> owner(device, plan);
  const Buffer workspace(device, std::max<uint64_t>(info.workspace_bytes, 1));
  Stream stream(device);
  for (int round = 0; round < 3; ++round) {
    scene.operands.reset_outputs();
    delay.enqueue(stream, context.below(1200));
    OpDesc of_execute = kept;
    const GuardedStruct<bp_op_desc> desc(sizeof(bp_op_desc), of_execute.get());
    std::vector<bp_operand> in, out, scalars = scene.operands.scalars();
    for (const Buffer& buffer : scene.operands.inputs()) in.push_back({buffer.get(), 0, 0});
    for (const Buffer& buffer : scene.operands.outputs()) out.push_back({buffer.get(), 0, 0});
    bp_execution value = {};
    value.desc = desc.get();
    value.inputs = in.data();
    value.outputs = out.data();
    value.scalars = scalars.data();
    value.workspace = info.workspace_bytes == 0 ? nullptr : workspace.get();
    value.workspace_bytes = info.workspace_bytes;
    const GuardedStruct<bp_execution> execution(sizeof(bp_execution), value);
    expect_ok(device->plan_execute(device.get(), stream.get(), plan, execution.get(), &error), error, "plan_execute");
    overwrite(of_execute, desc);
    std::memset(execution.bytes(), 0xEE, sizeof(bp_execution));
    for (std::vector<bp_operand>* lent : {&in, &out, &scalars})
      std::fill(lent->begin(), lent->end(), bp_operand{nullptr, UINT64_MAX, 0xEEEEEEEE});
    stream.wait();
    scene.check("an execution whose descriptor and operands were overwritten after the call");
  }
}

// Destroys the plan as soon as plan_execute returns, and then creates other plans.
void plan_destroyed_while_pending(Context& context, const bph_op_info& op) {
  Scene scene(context, op);
  Delay delay(context);
  Stream stream(scene.device);
  Buffer workspace(scene.device, 1);
  for (int round = 0; round < 6; ++round) {
    scene.operands.reset_outputs();
    OpDesc desc = scene.desc;
    state_alignment(scene.device, desc);
    ErrorRecord error;
    {
      const Plan plan(scene.device, desc.get());
      const uint64_t bytes = plan.info.workspace_bytes;
      if (bytes > workspace.bytes) workspace = Buffer(scene.device, bytes);
      delay.enqueue(stream, 200 + context.below(1500));
      expect_ok(scene.operands.try_enqueue(stream.get(), plan.get(), desc.get(), bytes == 0 ? nullptr : workspace.get(),
                                           0, bytes, &error),
                error, "plan_execute");
    }
    std::vector<Plan> others;
    for (const uint32_t other :
         {uint32_t{BP_OP_BITNOT}, uint32_t{BP_OP_AND}, uint32_t{BP_OP_MAX}, uint32_t{BP_OP_COPY}})
      for (int i = 0; i < 2; ++i) {
        OpDesc made = elementwise(other, BP_U8, 64 + i);
        others.emplace_back(scene.device, made.get());
      }
    stream.wait();
    scene.check("an execution whose plan was destroyed while it was pending");
  }
}

// Executes one plan on four streams at once. Each stream has its own data and workspace.
void on_streams_at_once(Context& context, const bph_op_info& op) {
  constexpr size_t count = 4;
  std::vector<std::unique_ptr<Scene>> scenes;
  std::vector<Stream> streams;
  std::vector<Buffer> workspaces;
  for (size_t i = 0; i < count; ++i) {
    scenes.push_back(std::make_unique<Scene>(context, op, 300));
    streams.emplace_back(context.device());
  }
  OpDesc desc = scenes[0]->desc;
  Runner runner(context.device(), desc);
  const uint64_t bytes = runner.plan().info.workspace_bytes;
  for (size_t i = 0; i < count; ++i) workspaces.emplace_back(context.device(), std::max<uint64_t>(bytes, 1));
  for (int round = 0; round < 3; ++round) {
    for (const auto& scene : scenes) scene->operands.reset_outputs();
    for (int repeat = 0; repeat < (op.shape_rule == BP_SHAPE_SCATTER ? 1 : 6); ++repeat)
      for (size_t i = 0; i < count; ++i) {
        ErrorRecord error;
        expect_ok(scenes[i]->operands.try_enqueue(streams[i].get(), runner.plan().get(), runner.desc().get(),
                                                  bytes == 0 ? nullptr : workspaces[i].get(), 0, bytes, &error),
                  error, "plan_execute");
      }
    for (Stream& stream : streams) stream.wait();
    for (const auto& scene : scenes) scene->check("one plan on four streams at once");
  }
}

// Checks that all plans for one descriptor compute the same bits, with any addresses and any other
// work on the device.
void deterministic(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  if (!device.has(BP_CAP_DETERMINISTIC)) context.not_claimed("the device does not declare BP_CAP_DETERMINISTIC");
  // The data have many magnitudes, so that a sum depends on the order of its terms.
  OpDesc desc = sample_of_rows(op, usual_dtype(op), 997);
  Operands operands(context, op, desc);
  for (size_t i = 0; i < operands.inputs().size(); ++i) {
    if (desc.inputs()[i].dtype != BP_F32) continue;
    Bytes bytes(operands.inputs()[i].bytes);
    for (size_t at = 0; at < bytes.size(); at += sizeof(float)) {
      const float value =
          std::ldexp(static_cast<float>(context.below(1u << 20)) - 5e5F, static_cast<int>(context.below(30)) - 25);
      std::memcpy(bytes.data() + at, &value, sizeof(value));
    }
    operands.set_input(i, std::move(bytes));
  }
  desc.flags(BP_OP_FLAG_DETERMINISTIC);
  const auto run = [&](Operands& on, uint64_t workspace_offset) {
    Runner runner(device, desc);
    const uint64_t bytes = runner.plan().info.workspace_bytes;
    const Buffer workspace(device, workspace_offset + std::max<uint64_t>(bytes, 1));
    Stream stream(device);
    on.reset_outputs();
    ErrorRecord error;
    expect_ok(on.try_enqueue(stream.get(), runner.plan().get(), runner.desc().get(),
                             bytes == 0 ? nullptr : workspace.get(), bytes == 0 ? 0 : workspace_offset, bytes, &error),
              error, "plan_execute");
    stream.wait();
    return on.results();
  };
  const std::vector<Bytes> first = run(operands, 0);
  for (int round = 0; round < 2; ++round) {
    require_results(context, run(operands, 0), first, "another run with BP_OP_FLAG_DETERMINISTIC");
  }
  // All operands exist at once, so that their addresses differ.
  std::vector<std::unique_ptr<Operands>> elsewhere;
  std::vector<Buffer> between;
  for (uint64_t round = 1; round <= 4; ++round) {
    between.emplace_back(device, round * device.info().alignment);
    elsewhere.push_back(std::make_unique<Operands>(context, operands));
    require_results(context, run(*elsewhere.back(), round * device.info().alignment), first,
                    "a run with BP_OP_FLAG_DETERMINISTIC whose buffers and workspace have other addresses");
  }
  Delay delay(context);
  Stream busy(device);
  // Repeats the run until two runs overlap the work of the stream `busy`. Each attempt uses a
  // longer delay, because a loaded machine may prevent the overlap.
  unsigned concurrent = 0;
  for (unsigned attempt = 0; attempt < 5 && concurrent < 2; ++attempt) {
    delay.enqueue(busy, 3000u << attempt);
    require_results(context, run(operands, 0), first,
                    "a run with BP_OP_FLAG_DETERMINISTIC during another stream's work");
    concurrent += busy.wait_for(0) == BP_TIMEOUT ? 1 : 0;
    busy.wait();
  }
}

struct Check {
  const char* name;
  std::vector<std::string_view> requirements;
  void (*run)(Context&, const bph_op_info&);
  const char* extension = "";
};

}  // namespace

void add_execution_cases(Catalogue& catalogue) {
  const Check checks[] = {
      {"again_and_again", {"BP-EXE-001", "BP-EXE-004"}, again_and_again},
      {"of_other_data", {"BP-EXE-002", "BP-PLAN-011"}, of_other_data},
      {"of_another_size", {"BP-PLAN-016", "BP-PLAN-017"}, of_another_size},
      {"workspace_as_it_comes", {"BP-EXE-004", "BP-EXE-005", "BP-EXE-008"}, workspace_as_it_comes},
      {"borrowed_for_the_call", {"BP-PLAN-009", "BP-EXE-002"}, borrowed_for_the_call},
      {"plan_destroyed_while_pending", {"BP-PLAN-010"}, plan_destroyed_while_pending},
      {"on_streams_at_once", {"BP-PLAN-011", "BP-EXE-005"}, on_streams_at_once},
      {"deterministic", {"BP-EXE-006", "BP-DEV-016"}, deterministic, "DETERMINISTIC"},
  };
  for (const bph_op_info& op : primitives())
    for (const Check& check : checks)
      catalogue.push_back({.id = fmt::format("runtime.execute.{}.{}", op.name, check.name),
                           .profile = op.profile,
                           .extension = check.extension,
                           .op = op.op,
                           .dtype = usual_dtype(op),
                           .requirements = check.requirements,
                           .run = [op, run = check.run](Context& context) { run(context, op); }});
}

}  // namespace backplane::conformance
