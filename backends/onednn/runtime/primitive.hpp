// SPDX-License-Identifier: Apache-2.0
// A oneDNN primitive as the state of a plan.
#pragma once

#include <atomic>
#include <backplane/kit/call.hpp>
#include <initializer_list>

#include "runtime/dnnl_api.hpp"

namespace backplane::onednn {

// The processor as oneDNN sees it; lives until the process ends.
const dnnl::engine& engine();

// Full precision and scratch memory from the caller, whatever the environment says.
dnnl::primitive_attr strict_attributes();

// What a failure of oneDNN means to the caller of a plan slot.
kit::Status status_of(const dnnl::error& failure, const char* op);

// oneDNN's dtype, or undef where it has none.
dnnl_api::Type type_of(uint32_t dtype);

// Immutable but for what it keeps for the next run; any number of threads run it at once.
class Primitive {
 public:
  struct Argument {
    int role;  // DNNL_ARG_*
    dnnl_api::Md md;
  };

  // Made for `team` threads, and run by as many.
  Primitive(dnnl::primitive primitive, std::vector<Argument> arguments, const dnnl_api::Md& scratchpad, int team);
  ~Primitive();
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  uint64_t workspace_bytes() const { return workspace_bytes_; }

  // Runs on the addresses of the arguments, in their order, and returns when it has ended. Throws what fails the stream.
  void run(void* workspace, std::initializer_list<void*> data) const;

 private:
  struct Launch;
  std::unique_ptr<Launch> make_launch() const;

  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  uint64_t workspace_bytes_;
  int team_;
  mutable std::atomic<Launch*> spare_;  // so that a run allocates nothing, unless another one is in progress
};

}  // namespace backplane::onednn
