// SPDX-License-Identifier: Apache-2.0
// Defects that crash, exit, hang, throw or fork while a plan of the operator `floor` is created or
// executed. The defects must not affect the other cases of the run.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

// A plan_create slot that first calls `kDo` if the operator is `floor`.
template <void (*kDo)()>
bp_status create_or(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  if (desc != nullptr && desc->op == BP_OP_FLOOR) kDo();
  return kHonest.plan_create(device, desc, out, info, error);
}
template <void (*kDo)()>
constexpr Mutation at_floor() {
  return on_slot<&bp_device_api::plan_create, create_or<kDo>>();
}

void crash() { __builtin_trap(); }
void abort_now() { std::abort(); }
void exit_now() { std::exit(0); }
void hang() {
  while (true) ::pause();
}
void spin() {
  for (volatile bool on = true; on;) {
  }
}
void throw_something() { throw std::runtime_error("mutant: thrown across the boundary"); }
void fork_off() {
  if (::fork() == 0) ::_exit(0);
}
// Both the child and the parent return from the slot, so two processes report the case's result.
void fork_on() { (void)!::fork(); }
void close_descriptors() {
  for (int descriptor = 0; descriptor < 256; ++descriptor) ::close(descriptor);
}
void flood() {
  for (int i = 0; i < 1 << 18; ++i)
    std::fputs("mutant: nothing of interest, and much of it, for ever and ever\n", stdout);
  std::fflush(stdout);
}
void allocate() {
  while (true) {
    constexpr std::size_t kBytes = std::size_t{16} << 20;
    auto* memory = static_cast<volatile char*>(std::malloc(kBytes));
    if (memory == nullptr) std::abort();
    for (std::size_t i = 0; i < kBytes; i += 4096) memory[i] = 1;
  }
}
// Recurses deeper than any stack allows.
int descend(int depth) {
  volatile char page[1 << 16];
  page[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : descend(depth - 1) + page[0];
}
void overflow_stack() { (void)descend(1 << 20); }
void terminate_process() { std::raise(SIGTERM); }

void hang_in_kernel(const Call&) { hang(); }
void crash_in_kernel(const Call&) { crash(); }
void throw_in_kernel(const Call& call) {
  honest_kernel(call)(call);
  throw std::runtime_error("mutant: the kernel failed");
}
// write_input changes one byte of the input. write_before changes one byte of memory before the
// output.
void write_input(const Call& call) {
  honest_kernel(call)(call);
  if (call.in(0).data != nullptr && call.out().data != call.in(0).data) call.in(0).data[0] ^= std::byte{1};
}
void write_before(const Call& call) {
  honest_kernel(call)(call);
  if (call.out().data != nullptr) call.out().data[-8] ^= std::byte{1};
}

}  // namespace

const Mutation defect::crashes = at_floor<crash>();
const Mutation defect::aborts = at_floor<abort_now>();
const Mutation defect::exits = at_floor<exit_now>();
const Mutation defect::hangs = at_floor<hang>();
const Mutation defect::spins = at_floor<spin>();
const Mutation defect::throws = at_floor<throw_something>();
const Mutation defect::forks = at_floor<fork_off>();
const Mutation defect::forks_and_goes_on = at_floor<fork_on>();
const Mutation defect::closes_descriptors = at_floor<close_descriptors>();
const Mutation defect::floods_output = at_floor<flood>();
const Mutation defect::allocates_without_end = at_floor<allocate>();
const Mutation defect::overflows_stack = at_floor<overflow_stack>();
const Mutation defect::raises_termination = at_floor<terminate_process>();
const Mutation defect::kernel_hangs = on_op<hang_in_kernel, BP_OP_FLOOR>();
const Mutation defect::kernel_crashes = on_op<crash_in_kernel, BP_OP_FLOOR>();
const Mutation defect::kernel_throws = on_op<throw_in_kernel, BP_OP_FLOOR>();
const Mutation defect::kernel_writes_input = on_op<write_input, BP_OP_FLOOR>();
const Mutation defect::kernel_writes_before_output = on_op<write_before, BP_OP_FLOOR>();

}  // namespace backplane::conformance::mutants
