// SPDX-License-Identifier: Apache-2.0
// A oneDNN primitive that belongs to the state of a plan.
#pragma once

#include <atomic>
#include <backplane/kit/call.hpp>
#include <initializer_list>

#include "runtime/dnnl_api.hpp"

namespace backplane::onednn {

// Returns the CPU engine, which exists until the process ends.
const dnnl::engine& engine();

// Returns attributes that request full precision, and that make the caller provide scratch memory. Environment
// variables of oneDNN do not change the precision.
dnnl::primitive_attr strict_attributes();

// Returns the status with which a plan slot reports a oneDNN failure in the operator `op`.
kit::Status status_of(const dnnl::error& failure, const char* op);

// Returns oneDNN's data type for `dtype`, or undef if oneDNN has none.
dnnl_api::Type type_of(uint32_t dtype);

// Any number of threads may run one primitive at the same time.
class Primitive {
 public:
  struct Argument {
    int role;  // DNNL_ARG_*
    dnnl_api::Md md;
  };

  // `primitive` must have been created for teams of `team` threads. run() uses a team of this size.
  Primitive(dnnl::primitive primitive, std::vector<Argument> arguments, const dnnl_api::Md& scratchpad, int team);
  ~Primitive();
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  uint64_t workspace_bytes() const { return workspace_bytes_; }

  // Runs the primitive and returns when it is done. `data` contains the addresses of the arguments,
  // in the order of the constructor's `arguments`. Throws on failure.
  void run(void* workspace, std::initializer_list<void*> data) const;

 private:
  struct Launch;
  std::unique_ptr<Launch> make_launch() const;

  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  uint64_t workspace_bytes_;
  int team_;
  mutable std::atomic<Launch*> spare_;  // kept for the next run, which then allocates nothing
};

// Returns `arguments`, followed by the bias unless `bias` is empty.
std::vector<Primitive::Argument> with_bias(std::vector<Primitive::Argument> arguments, const dnnl_api::Md& bias);

}  // namespace backplane::onednn
