// SPDX-License-Identifier: Apache-2.0
// Implements Execution::run_decomposed, which executes a composite through the host library.
#include <algorithm>

#include "cases/host/host_side.hpp"
#include "cases/numeric/execution.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

bph_tensor tensor_of(const Region& region, const std::vector<backplane::Buffer>& buffers) {
  bph_tensor tensor = {};
  tensor.dtype = static_cast<uint16_t>(region.dtype);
  tensor.rank = static_cast<uint8_t>(region.view.shape.size());
  std::copy(region.view.shape.begin(), region.view.shape.end(), tensor.shape);
  std::copy(region.view.strides.begin(), region.view.strides.end(), tensor.strides);
  tensor.flags = region.view.immediate ? BPH_TENSOR_IMMEDIATE : 0;
  if (!region.none) {
    tensor.buffer = buffers[region.image].get();
    tensor.offset = region.element_0;
  }
  return tensor;
}

}  // namespace

std::vector<oracle::Tensor> Execution::run_decomposed(HostSide& side) {
  const oracle::Operator& row = *oracle::operator_of(setup_.call.op);
  std::vector<backplane::Buffer> buffers;
  for (const std::vector<unsigned char>& image : arena_.images()) {
    bph_buffer_desc wanted = {};
    wanted.struct_size = sizeof(wanted);
    wanted.bytes = std::max<size_t>(image.size(), 1);
    wanted.stream = side.stream.get();
    buffers.emplace_back(side.device.get(), wanted);
    backplane::detail::call(bph_copy_in, side.stream.get(), buffers.back().get(), uint64_t{0},
                            static_cast<const void*>(image.data()), uint64_t{image.size()}, uint32_t{0});
  }
  const size_t inputs = setup_.call.inputs.size();
  std::vector<bph_tensor> tensors;
  for (size_t i = 0; i < views_.size(); ++i) {
    tensors.push_back(tensor_of(arena_.region(regions_[i]), buffers));
    const bool immediate = tensors.back().flags != 0 && setup_.call.inputs[i].count() > 0;
    if (immediate) tensors.back().immediate = oracle::load(setup_.call.inputs[i], 0);
  }
  bph_call call = {};
  call.struct_size = sizeof(call);
  call.op = setup_.call.op;
  call.flags = setup_.flags | BPH_CALL_NO_NATIVE;
  call.attributes = setup_.call.attributes.empty() ? nullptr : setup_.call.attributes.data();
  call.inputs = tensors.data();
  call.outputs = tensors.data() + inputs;
  call.scalars = setup_.call.scalars.data();
  call.input_count = static_cast<uint32_t>(inputs);
  call.output_count = static_cast<uint32_t>(views_.size() - inputs);
  call.scalar_count = static_cast<uint32_t>(setup_.call.scalars.size());
  ErrorRecord error;
  const bp_status status = bph_execute(side.stream.get(), &call, &error);
  // The stream borrows the images until it has executed the copies.
  ErrorRecord ignored;
  if (status != BP_OK) (void)bph_stream_wait(side.stream.get(), BP_WAIT_FOREVER, &ignored);
  if (status == BP_UNSUPPORTED) context_.not_claimed("{}", error.message);
  context_.require(status == BP_OK, "{} by decomposition: {}: {}; {}", row.name, bph_status_name(status), error.message,
                   text());

  std::vector<std::vector<unsigned char>> got = arena_.images();
  for (size_t i = 0; i < got.size(); ++i) {
    backplane::detail::call(bph_copy_out, side.stream.get(), static_cast<void*>(got[i].data()), buffers[i].get(),
                            uint64_t{0}, uint64_t{got[i].size()}, uint32_t{0});
  }
  const std::vector<size_t> written(regions_.begin() + static_cast<ptrdiff_t>(inputs), regions_.end());
  const std::string stray = arena_.stray_write(got, written);
  context_.require(stray.empty(), "{} by decomposition: {}; {}", row.name, stray, text());
  std::vector<oracle::Tensor> outputs;
  for (const size_t region : written) outputs.push_back(arena_.get(got, region));
  return outputs;
}

}  // namespace backplane::conformance::numeric
