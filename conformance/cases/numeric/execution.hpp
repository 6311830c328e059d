// SPDX-License-Identifier: Apache-2.0
// Executes one operator on one device: directly on the ABI as core would call it (plan, staging,
// workspace, execution), or through the host library as its decomposition.
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
  // Lays out the setup's operands, and adjusts its inputs so that elements that share memory are
  // equal.
  Execution(Context& context, Setup& setup, Layout layout);

  // Fills the outputs with values that must not remain: signalling NaN, or the inverted bits if NaN
  // is the expected result.
  void poison(const std::vector<oracle::Expected>& expected);
  // Returns `given` if it can execute these views (same descriptor, or any-size); otherwise a new
  // plan.
  std::shared_ptr<Prepared> prepare(std::shared_ptr<Prepared> given = nullptr) {
    return prepare(std::move(given), setup_.flags);
  }
  // Returns a plan for these sizes only if the any-size plan is SPECIALIZABLE; otherwise null.
  std::shared_ptr<Prepared> prepare_specialized(const Prepared& any_size);
  // Executes, checks that no other memory changed, and returns the outputs. May be called again.
  std::vector<oracle::Tensor> run(Prepared& prepared);
  // Does the same through the host library, which decomposes the operator. Ends the case as not
  // claimed if the library cannot decompose it.
  std::vector<oracle::Tensor> run_decomposed(HostSide& side);
  // Describes the operands for messages: "input 0 f32[3x5] strides [5,1] at byte 512; ...".
  std::string text() const;

 private:
  bool reads_outputs() const;
  bp_tensor_desc describe(size_t operand, size_t region, bool staged) const;
  std::shared_ptr<Prepared> prepare(std::shared_ptr<Prepared> given, uint64_t flags);
  bp_op_desc descriptor(const std::vector<bp_tensor_desc>& views, uint64_t flags) const;
  void check_null_out(const bp_op_desc& desc, const Plan* plan);

  // The steps of a run, in order.
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
  std::vector<size_t> regions_;  // one region per operand
  // the regions after `stage`, which replaces those of staged operands
  std::vector<size_t> effective_;
  std::vector<oracle::Tensor> poison_;
  std::vector<unsigned char> left_in_workspace_;  // what the previous run left
};

}  // namespace backplane::conformance::numeric
