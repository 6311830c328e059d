// SPDX-License-Identifier: Apache-2.0
#include "runtime/primitive.hpp"

#include <stdexcept>

#include "runtime/threads.hpp"

namespace backplane::onednn {

const dnnl::engine& engine() {
  static const auto* const cpu = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // never destroyed
  return *cpu;
}

dnnl::primitive_attr strict_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attributes;
}

kit::Status status_of(const dnnl::error& failure, const char* op) {
  switch (failure.status) {
    case dnnl_out_of_memory:
      return {BP_OUT_OF_MEMORY, kit::text(op, ": oneDNN ran out of memory; free memory and try again"), failure.status};
    case dnnl_unimplemented:
      return {BP_UNSUPPORTED, kit::text(op, ": oneDNN does not support these operands; choose another dtype or device"),
              failure.status};
    default:
      return {BP_INTERNAL, kit::text(op, ": oneDNN failed: ", failure.what(), "; report this to the plugin's authors"),
              failure.status};
  }
}

dnnl_api::Type type_of(uint32_t dtype) {
  using Type = dnnl_api::Type;
  switch (dtype) {
    case BP_F32:
      return Type::f32;
    case BP_BF16:
      return Type::bf16;
    case BP_U8:
      return Type::u8;
    case BP_I8:
      return Type::s8;
    case BP_I32:
      return Type::s32;
    default:
      return Type::undef;
  }
}

// The oneDNN objects of one execution.
struct Primitive::Launch {
  dnnl::stream stream;
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;
};

Primitive::Primitive(dnnl::primitive primitive, std::vector<Argument> arguments, const dnnl_api::Md& scratchpad,
                     int team)
    : primitive_(std::move(primitive)),
      arguments_(std::move(arguments)),
      workspace_bytes_(dnnl_api::bytes_of(scratchpad)),
      team_(team) {
  if (workspace_bytes_ != 0) arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratchpad});
  spare_ = make_launch().release();
}

Primitive::~Primitive() { delete spare_.load(); }

std::unique_ptr<Primitive::Launch> Primitive::make_launch() const {
  auto launch = std::make_unique<Launch>(Launch{dnnl::stream(engine()), {}, {}});
  for (const Argument& argument : arguments_) {
    const auto& memory = launch->memories.emplace_back(argument.md, engine(), static_cast<void*>(nullptr));
    launch->arguments.push_back({argument.role, memory.get()});
  }
  return launch;
}

void Primitive::run(void* workspace, std::initializer_list<void*> data) const {
  std::unique_ptr<Launch> launch(spare_.exchange(nullptr));
  if (launch == nullptr) launch = make_launch();
  std::size_t i = 0;
  for (void* address : data) launch->memories[i++].set_data_handle(address);
  if (workspace_bytes_ != 0) launch->memories[i].set_data_handle(workspace);

  const TeamSize team(team_);
  std::unique_lock lock(team_mutex(), std::defer_lock);
  if (team_ > 1) lock.lock();
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), launch->stream.get(), static_cast<int>(launch->arguments.size()), launch->arguments.data());
  if (status != dnnl_success) throw std::runtime_error(kit::text("oneDNN returned status ", int{status}));
  delete spare_.exchange(launch.release());
}

std::vector<Primitive::Argument> with_bias(std::vector<Primitive::Argument> arguments, const dnnl_api::Md& bias) {
  if (!bias.is_zero()) arguments.push_back({DNNL_ARG_BIAS, bias});
  return arguments;
}

}  // namespace backplane::onednn
