// SPDX-License-Identifier: Apache-2.0
// Implements Execution::run, which stages and uploads the operands, allocates the workspace and scalars, executes the
// operator and downloads the outputs.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "cases/numeric/execution.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

View packed_view(const std::vector<int64_t>& shape) { return lay_out(Layout::dense, {}, {{BP_U8, shape}}, 0).front(); }

oracle::Tensor scalar_tensor(uint64_t bits) {
  oracle::Tensor tensor{BP_I64, {}, std::vector<unsigned char>(sizeof(bits))};
  oracle::store(tensor, 0, bits);
  return tensor;
}

}  // namespace

// The state of one run. `regions` has one entry per operand, and `stage` replaces the entries of
// staged operands.
struct Execution::RunState {
  Arena arena;
  std::vector<size_t> regions;
  std::vector<bool> staged{};
  std::vector<bp_tensor_desc> views{};
  std::vector<size_t> scalars{};
  size_t workspace = 0;
  uint64_t workspace_bytes = 0;
  std::vector<Buffer> buffers{};

  bp_operand operand(size_t region) const {
    const Region& at = arena.region(region);
    return at.none ? bp_operand{} : bp_operand{buffers[at.image].get(), at.element_0, 0};
  }
};

// Allocates dense, fully aligned copies of the operands in the plan's staging masks, as core does.
void Execution::stage(RunState& state, const bp_plan_info& info) const {
  const size_t inputs = setup_.call.inputs.size();
  state.staged.resize(views_.size());
  for (size_t i = 0; i < views_.size(); ++i) {
    const bool input = i < inputs;
    state.staged[i] = ((input ? info.stage_inputs >> i : info.stage_outputs >> (i - inputs)) & 1) != 0;
    if (!state.staged[i]) continue;
    const oracle::Tensor& tensor = input ? setup_.call.inputs[i] : setup_.call.outputs[i - inputs];
    state.regions[i] = state.arena.allocate(fmt::format("the staged {}", arena_.region(regions_[i]).label),
                                            tensor.dtype, packed_view(tensor.shape), input);
    if (input || reads_outputs()) {
      state.arena.put(state.regions[i], tensor);
    } else if (i - inputs < poison_.size()) {
      state.arena.put(state.regions[i], poison_[i - inputs]);
    }
  }
  for (size_t i = 0; i < views_.size(); ++i) {
    const bool parted = views_[i].same_as >= 0 && state.staged[static_cast<size_t>(views_[i].same_as)];
    bp_tensor_desc view = describe(i, regions_[i], state.staged[i] || parted);
    if (state.staged[i]) {
      const Region& region = state.arena.region(state.regions[i]);
      view.flags = 0;
      view.alignment_log2 = static_cast<uint8_t>(
          std::min(std::countr_zero(state.arena.alignment() | region.element_0), BP_MAX_ALIGNMENT_LOG2));
      std::copy(region.view.strides.begin(), region.view.strides.end(), view.strides);
    }
    state.views.push_back(view);
  }
}

// Allocates the workspace. If the previous run used a workspace of the same size, copies its
// contents to the new workspace.
void Execution::allocate_workspace(RunState& state, const Prepared& prepared, const bp_op_desc& desc) const {
  uint64_t bytes = prepared.plan.info.workspace_bytes;
  if ((prepared.plan.info.flags & BP_PLAN_SIZED_WORKSPACE) != 0) {
    Device& device = context_.device();
    context_.require(device->plan_workspace != nullptr, "a plan has SIZED_WORKSPACE and the device no plan_workspace");
    ErrorRecord error;
    expect_ok(device->plan_workspace(device.get(), prepared.plan.get(), &desc, &bytes, &error), error,
              "plan_workspace");
  }
  state.workspace_bytes = bytes;
  if (bytes == 0) return;
  state.workspace = state.arena.allocate_bytes("the workspace", bytes);
  if (left_in_workspace_.size() != bytes) return;
  std::copy(left_in_workspace_.begin(), left_in_workspace_.end(),
            state.arena.bytes_of(state.arena.images(), state.workspace));
}

void Execution::upload(RunState& state) const {
  Device& device = context_.device();
  for (const std::vector<unsigned char>& image : state.arena.images()) {
    if (image.size() > device.info().max_buffer_bytes) {
      context_.not_claimed("the case needs a buffer of {} bytes, the device makes them up to {}", image.size(),
                           device.info().max_buffer_bytes);
    }
    state.buffers.emplace_back(device, std::max<size_t>(image.size(), 1));
    device.write(state.buffers.back().get(), 0, image.data(), image.size());
  }
}

void Execution::execute(RunState& state, Prepared& prepared, const bp_op_desc& desc) const {
  std::vector<bp_operand> operands, scalars;
  for (size_t i = 0; i < views_.size(); ++i) {
    operands.push_back(state.operand(state.regions[i]));
    if (state.arena.region(state.regions[i]).view.immediate && setup_.call.inputs[i].count() > 0) {
      operands.back().immediate = oracle::load(setup_.call.inputs[i], 0);
    }
  }
  for (size_t i = 0; i < setup_.call.scalars.size(); ++i) {
    scalars.push_back(state.scalars.empty() ? bp_operand{nullptr, 0, setup_.call.scalars[i]}
                                            : state.operand(state.scalars[i]));
  }
  const size_t inputs = setup_.call.inputs.size();
  bp_execution execution = {};
  execution.struct_size = sizeof(execution);
  execution.desc = &desc;
  execution.inputs = inputs == 0 ? nullptr : operands.data();
  execution.outputs = operands.data() + inputs;
  execution.scalars = scalars.empty() ? nullptr : scalars.data();
  if (state.workspace_bytes != 0) {
    const bp_operand at = state.operand(state.workspace);
    execution.workspace = at.buffer;
    execution.workspace_offset = at.offset;
    execution.workspace_bytes = state.workspace_bytes;
  }
  Device& device = context_.device();
  prepared.plan.execute(device.stream(), execution);
  ErrorRecord error;
  expect_ok(device->stream_wait(device.get(), device.stream(), BP_WAIT_FOREVER, &error), error, "stream_wait");
}

std::vector<oracle::Tensor> Execution::download(RunState& state) {
  Device& device = context_.device();
  std::vector<std::vector<unsigned char>> got = state.arena.images();
  for (size_t i = 0; i < got.size(); ++i) {
    device.read(state.buffers[i].get(), 0, got[i].data(), got[i].size());
  }
  if (state.workspace_bytes != 0) {
    const unsigned char* const left = state.arena.bytes_of(got, state.workspace);
    left_in_workspace_.assign(left, left + state.workspace_bytes);
  }
  const std::vector<size_t> written(state.regions.begin() + static_cast<ptrdiff_t>(setup_.call.inputs.size()),
                                    state.regions.end());
  const std::string stray = state.arena.stray_write(got, written);
  context_.require(stray.empty(), "{}: {}; {}", oracle::operator_of(setup_.call.op)->name, stray, text());
  std::vector<oracle::Tensor> outputs;
  outputs.reserve(written.size());
  for (const size_t region : written) outputs.push_back(state.arena.get(got, region));
  return outputs;
}

std::vector<oracle::Tensor> Execution::run(Prepared& prepared) {
  const bp_plan_info& info = prepared.plan.info;
  const bool must_not_stage = setup_.call.op == BP_OP_COPY || setup_.call.op == BP_OP_FILL;
  context_.require(!must_not_stage || (info.stage_inputs | info.stage_outputs) == 0,
                   "the plan requests staging of operands of {}, which must accept any strides itself",
                   oracle::operator_of(setup_.call.op)->name);
  RunState state{.arena = arena_, .regions = regions_};
  stage(state, info);
  const bp_op_desc desc = descriptor(state.views, prepared.flags);
  allocate_workspace(state, prepared, desc);
  for (size_t i = 0; (setup_.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0 && i < setup_.call.scalars.size(); ++i) {
    state.scalars.push_back(state.arena.allocate(fmt::format("scalar {}", i), BP_I64, packed_view({}), true));
    state.arena.put(state.scalars.back(), scalar_tensor(setup_.call.scalars[i]));
  }
  upload(state);
  execute(state, prepared, desc);
  return download(state);
}

}  // namespace backplane::conformance::numeric
