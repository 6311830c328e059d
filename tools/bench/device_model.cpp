// SPDX-License-Identifier: Apache-2.0
#include "bench/device_model.hpp"

#include "bench/target.hpp"
#include "measure.hpp"

namespace tool {
namespace {

backplane::Dims dims(const Extents& extents) {
  return backplane::Dims(std::span<const int64_t>(extents.data(), extents.size()));
}

}  // namespace

DeviceModel::DeviceModel(const Device& device, const ModelGraph& graph, const std::vector<HostBlock>& data)
    : stream_(device), values_(graph.values()) {
  for (size_t i = 0; i < values_.size(); ++i) {
    const backplane::Tensor& tensor =
        tensors_.emplace_back(backplane::Tensor::empty(stream_, values_[i].dtype, dims(values_[i].shape)));
    if (data[i].bytes() == 0) continue;
    call(bph_copy_in, stream_.get(), tensor.view().buffer, tensor.offset(), static_cast<const void*>(data[i].data()),
         uint64_t{data[i].bytes()}, uint32_t{0});
  }
  call(bph_stream_wait, stream_.get(), kWaitNs);
  use_nodes(graph);
}

backplane::Tensor DeviceModel::view_of(const View& view, const Extents& output) const {
  if (view.number) return backplane::Tensor::scalar(BP_F32, *view.number).broadcast_to(dims(output));
  backplane::Tensor tensor = tensors_[view.value];
  if (!view.reshape.empty()) tensor = tensor.reshape(dims(view.reshape));
  if (view.slice) tensor = tensor.slice(view.slice->axis, view.slice->begin, view.slice->end);
  if (!view.permute.empty()) tensor = tensor.permute(dims(view.permute));
  if (!view.broadcast.empty()) tensor = tensor.broadcast_to(dims(view.broadcast));
  return tensor;
}

void DeviceModel::use_nodes(const ModelGraph& graph) {
  steps_.clear();
  for (const Node& node : graph.nodes()) {
    Step& step = steps_.emplace_back(node);
    const Extents& out = values_[node.outputs.front().value].shape;
    for (const View& view : node.inputs) {
      const bool weight =
          !view.number && values_[view.value].role == Role::weight && values_[view.value].shape.size() > 1;
      if (weight) step.weights.push_back(static_cast<uint32_t>(step.inputs.size()));
      step.inputs.push_back(view_of(view, out));
    }
    for (const View& view : node.outputs) step.outputs.push_back(view_of(view, out));
    step.call = sized<bph_call>();
    step.call.op = node.op.op;
  }
  for (Step& step : steps_) {  // the steps no longer move, so pointers into them stay valid
    step.call.attributes = step.attributes.data();
    step.call.inputs = step.inputs.data();
    step.call.outputs = step.outputs.data();
    step.call.input_count = static_cast<uint32_t>(step.inputs.size());
    step.call.output_count = static_cast<uint32_t>(step.outputs.size());
  }
}

size_t DeviceModel::pack_weights() {
  size_t count = 0;
  for (Step& step : steps_) {
    for (const uint32_t input : step.weights) {
      auto info = sized<bph_pack_info>();
      bp_error error = sized<bp_error>();
      const bp_status status = bph_pack_query(stream_.device(), &step.call, input, &info, &error);
      if (status == BP_UNSUPPORTED) continue;
      if (status != BP_OK) throw backplane::Error(status, error);
      auto desc = sized<bph_buffer_desc>();
      desc.bytes = info.bytes;
      desc.alignment = info.alignment;
      desc.stream = stream_.get();
      Buffer& buffer = packed_.emplace_back(stream_.device(), desc);
      bph_tensor packed{};
      call(bph_pack, stream_.get(), &step.call, input, buffer.get(), uint64_t{0}, &packed);
      step.inputs[input] = packed;
      ++count;
    }
  }
  call(bph_stream_wait, stream_.get(), kWaitNs);
  return count;
}

bool DeviceModel::record() {
  graph_ = Graph::record(stream_, [&] {
    for (const Step& step : steps_) call(bph_execute, stream_.get(), &step.call);
  });
  return (graph_->info().flags & BPH_GRAPH_NATIVE) != 0;
}

double DeviceModel::time(uint32_t calls, bool wait_each) {
  return timed_ns([&] {
    for (uint32_t i = 0; i < calls; ++i) {
      if (graph_) {
        graph_->launch(stream_);
      } else {
        for (const Step& step : steps_) call(bph_execute, stream_.get(), &step.call);
      }
      if (wait_each || i + 1 == calls) call(bph_stream_wait, stream_.get(), kWaitNs);
    }
  });
}

std::vector<HostBlock> DeviceModel::outputs() const {
  std::vector<HostBlock> outputs;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].role != Role::output) continue;
    const HostBlock& block = outputs.emplace_back(bytes_of(values_[i]));
    call(bph_copy_out, stream_.get(), static_cast<void*>(block.data()), tensors_[i].view().buffer, tensors_[i].offset(),
         uint64_t{block.bytes()}, uint32_t{0});
  }
  return outputs;
}

}  // namespace tool
