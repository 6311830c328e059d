// SPDX-License-Identifier: Apache-2.0
#include "host_side.hpp"

#include <algorithm>

#include "cases/support/samples.hpp"

namespace backplane::conformance {

bph_registry_desc HostLog::desc(const char* layers) {
  bph_registry_desc made = {};
  made.struct_size = sizeof(made);
  made.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
  made.search_path = "";
  made.layers = layers;
  made.log = &HostLog::take;
  made.log_context = this;
  return made;
}

std::vector<std::string> HostLog::lines() {
  const std::lock_guard guard(mutex_);
  return lines_;
}

void HostLog::take(void* context, int32_t, const char* message) {
  auto& log = *static_cast<HostLog*>(context);
  const std::lock_guard guard(log.mutex_);
  if (log.lines_.size() < 256) log.lines_.emplace_back(message);
}

HostSide::HostSide(Context& context, const char* layers, const bph_device_desc* desc)
    : registry(log.desc(layers)),
      plugin(registry.load(context.path())),
      device(plugin.open(context.device_index(), desc)),
      stream(device) {}

HostSide& shared_host_side(Context& context) {
  static HostSide* shared = nullptr;
  static std::string of;
  const std::string wanted = fmt::format("{}:{}", context.path(), context.device_index());
  if (shared == nullptr || of != wanted) {
    shared = new HostSide(context, "validation");
    of = wanted;
  }
  return *shared;
}

bph_tensor view_of(const bp_tensor_desc& desc, bph_buffer* buffer, uint64_t offset) {
  bph_tensor view = {};
  view.buffer = buffer;
  view.offset = offset;
  view.dtype = desc.dtype;
  view.rank = desc.rank;
  std::copy_n(desc.shape, BP_MAX_RANK, view.shape);
  std::copy_n(desc.strides, BP_MAX_RANK, view.strides);
  return view;
}

HostCall::HostCall(HostSide& side, OpDesc& desc, const std::vector<Bytes>& input_data,
                   const std::vector<Bytes>& output_data, std::vector<uint64_t> scalar_bits)
    : scalars(std::move(scalar_bits)), attributes(desc.attribute_bytes()) {
  const auto upload = [&](const bp_tensor_desc& view, const Bytes& bytes, std::vector<bph_tensor>& list) {
    bph_buffer_desc wanted = {};
    wanted.struct_size = sizeof(wanted);
    wanted.bytes = bytes.size();
    wanted.stream = side.stream.get();
    buffers.emplace_back(side.device.get(), wanted);
    backplane::detail::call(bph_copy_in, side.stream.get(), buffers.back().get(), uint64_t{0},
                            static_cast<const void*>(bytes.data()), uint64_t{bytes.size()}, uint32_t{0});
    list.push_back(view_of(view, buffers.back().get()));
  };
  for (size_t i = 0; i < input_data.size(); ++i) upload(desc.inputs()[i], input_data[i], inputs);
  for (size_t i = 0; i < output_data.size(); ++i) {
    upload(desc.outputs()[i], output_data[i], outputs);
    output_bytes.push_back(output_data[i].size());
  }
  side.stream.wait();
  call.struct_size = sizeof(call);
  call.op = desc.op();
  call.attributes = attributes.empty() ? nullptr : attributes.data();
  call.input_count = static_cast<uint32_t>(inputs.size());
  call.output_count = static_cast<uint32_t>(outputs.size());
  call.scalar_count = static_cast<uint32_t>(scalars.size());
}

const bph_call& HostCall::current() {
  call.inputs = inputs.data();
  call.outputs = outputs.data();
  call.scalars = scalars.data();
  return call;
}

bp_status HostCall::execute(HostSide& side, bp_error* error) {
  return bph_execute(side.stream.get(), &current(), error);
}

void HostCall::execute(Context& context, HostSide& side) {
  ErrorRecord error;
  const bp_status status = execute(side, &error);
  if (status == BP_UNSUPPORTED) context.not_claimed("{}", error.message);
  expect_ok(status, error, "bph_execute");
}

std::vector<Bytes> HostCall::results(HostSide& side) const {
  std::vector<Bytes> all;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Bytes bytes(output_bytes[i]);
    backplane::detail::call(bph_copy_out, side.stream.get(), static_cast<void*>(bytes.data()), outputs[i].buffer,
                            uint64_t{0}, uint64_t{bytes.size()}, uint32_t{0});
    all.push_back(std::move(bytes));
  }
  return all;
}

HostData::HostData(Context& context, const bph_op_info& op, OpDesc& desc) {
  Operands operands(context, op, desc);
  inputs = operands.input_bytes();
  outputs = operands.first_outputs();
  for (const bp_operand& scalar : operands.scalars()) scalars.push_back(scalar.immediate);
}

}  // namespace backplane::conformance
