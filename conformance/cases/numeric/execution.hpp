// SPDX-License-Identifier: Apache-2.0
// One operator on one device, straight on the ABI, as core would call it: plan, staging, workspace, execution. Or through the
// host library, as its decomposition.
#pragma once

#include <memory>

#include "cases/numeric/arena.hpp"

namespace backplane::conformance {
struct HostSide;
}

namespace backplane::conformance::numeric {

// A plan with what it was made for.
struct Prepared {
  Plan plan;
  std::vector<bp_tensor_desc> views;
  uint64_t flags;  // BP_OP_FLAG_*
};

class Execution {
 public:
  // Lays the setup's operands out and makes its inputs what their views say: elements that share memory are equal.
  Execution(Context& context, Setup& setup, Layout layout);

  // Fills the outputs with what none of them may keep: signalling NaN, or where NaN is right every bit turned round.
  void poison(const std::vector<oracle::Expected>& expected);
  // The plan: `given` if it serves these views too, being theirs or of any size, else a new one.
  std::shared_ptr<Prepared> prepare(std::shared_ptr<Prepared> given = nullptr) {
    return prepare(std::move(given), setup_.flags);
  }
  // A plan for these sizes alone, where the plan for any size says that one helps; null if there is none.
  std::shared_ptr<Prepared> prepare_specialized(const Prepared& any_size);
  // Executes, checks that nothing else changed, and returns the outputs. May be called again.
  std::vector<oracle::Tensor> run(Prepared& prepared);
  // The same without a plan of the operator: the host library decomposes it. Ends the case as not claimed where it cannot.
  std::vector<oracle::Tensor> run_decomposed(HostSide& side);
  // Operands, for messages: "input 0 f32[3x5] strides [5,1] at byte 512; ...".
  std::string text() const;

 private:
  bool reads_outputs() const;
  bp_tensor_desc describe(size_t operand, size_t region, bool staged) const;
  std::shared_ptr<Prepared> prepare(std::shared_ptr<Prepared> given, uint64_t flags);
  bp_op_desc descriptor(const std::vector<bp_tensor_desc>& views, uint64_t flags) const;
  void check_null_out(const bp_op_desc& desc, const Plan* plan);

  // The parts of a run, in order.
  struct RunState;
  void stage(RunState& state, const bp_plan_info& info) const;
  void place_workspace(RunState& state, const Prepared& prepared, const bp_op_desc& desc) const;
  void upload(RunState& state) const;
  void execute(RunState& state, Prepared& prepared, const bp_op_desc& desc) const;
  std::vector<oracle::Tensor> download(RunState& state);

  Context& context_;
  Setup& setup_;
  Arena arena_;
  std::vector<View> views_;
  std::vector<size_t> regions_;    // by operand
  std::vector<size_t> effective_;  // staged ones replaced, after `stage`
  std::vector<oracle::Tensor> poison_;
  std::vector<unsigned char> left_in_workspace_;  // by the run before
};

}  // namespace backplane::conformance::numeric
