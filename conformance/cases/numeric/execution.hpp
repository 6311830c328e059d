// SPDX-License-Identifier: Apache-2.0
// Executes one operator on one device. An Execution either calls the plugin as core does (plan,
// staging, workspace, execution), or uses the host library, which decomposes the operator.
#pragma once

#include <memory>

#include "cases/numeric/arena.hpp"

namespace backplane::conformance {
struct HostSide;
}

namespace backplane::conformance::numeric {

// A plan with the descriptors for which it was created.
struct Prepared {
  Plan plan;
  std::vector<bp_tensor_desc> views;
  uint64_t flags;  // BP_OP_FLAG_*
};

class Execution {
 public:
  // Lays out the operands of `setup`, and changes the inputs so that elements that share memory are
  // equal.
  Execution(Context& context, Setup& setup, Layout layout);

  // Fills the outputs with values that the execution must replace, except outputs that the operator reads or that use
  // an input's memory. The values are signalling NaN. If the dtype has no NaN or the result is NaN, the values are the
  // inverted bits of the result.
  void poison(const std::vector<oracle::Expected>& expected);
  // Returns `given` if its plan is for the same descriptor, or is an any-size plan for the same
  // class. Otherwise returns a new plan.
  std::shared_ptr<Prepared> prepare(std::shared_ptr<Prepared> given = nullptr) {
    return prepare(std::move(given), setup_.flags);
  }
  // Returns a specialised plan for the sizes of this execution. Returns null if `any_size` is not
  // SPECIALIZABLE or the plugin declines the plan.
  std::shared_ptr<Prepared> prepare_specialized(const Prepared& any_size);
  // Executes the plan, checks that only the outputs and the workspace changed, and returns the
  // outputs. May be called repeatedly.
  std::vector<oracle::Tensor> run(Prepared& prepared);
  // Executes the operator through the host library, which decomposes the operator, and returns the outputs. Ends the
  // case as not claimed if the host library cannot decompose the operator.
  std::vector<oracle::Tensor> run_decomposed(HostSide& side);
  // Describes the operands for messages, such as "input 0 f32[3x5] strides [5,1] at byte 512".
  std::string text() const;

 private:
  bool reads_outputs() const;
  bp_tensor_desc describe(size_t operand, size_t region, bool staged) const;
  std::shared_ptr<Prepared> prepare(std::shared_ptr<Prepared> given, uint64_t flags);
  bp_op_desc descriptor(const std::vector<bp_tensor_desc>& views, uint64_t flags) const;
  void check_null_out(const bp_op_desc& desc, const Plan* plan);

  // ---- The steps of a run, in order
  struct RunState;
  void stage(RunState& state, const bp_plan_info& info) const;
  void allocate_workspace(RunState& state, const Prepared& prepared, const bp_op_desc& desc) const;
  void upload(RunState& state) const;
  void execute(RunState& state, Prepared& prepared, const bp_op_desc& desc) const;
  std::vector<oracle::Tensor> download(RunState& state);

  Context& context_;
  Setup& setup_;
  Arena arena_;
  std::vector<View> views_;
  std::vector<size_t> regions_;  // one region per operand
  std::vector<size_t> effective_;
  std::vector<oracle::Tensor> poison_;
  std::vector<unsigned char> left_in_workspace_;  // contents of the workspace after the previous run
};

}  // namespace backplane::conformance::numeric
