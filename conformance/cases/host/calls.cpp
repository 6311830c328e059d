// SPDX-License-Identifier: Apache-2.0
// Test cases for scalars in device memory, and for host calls that submit several
// operator calls at once.
#include <cstring>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/exact.hpp"
#include "cases/support/samples.hpp"

namespace backplane::conformance {

namespace {

void check_log(Context& context, HostSide& side) {
  for (const std::string& line : side.log.lines())
    context.require(line.find("BP-VAL-") == std::string::npos, "the validation layer reports a violation: {}", line);
}

// The scalars of one operator, in device memory. Copies on the stream replace these scalars.
class DeviceScalars {
 public:
  DeviceScalars(HostSide& side, uint32_t dtype, size_t count) : side_(side), width_(bph_dtype_bytes(dtype)) {
    bph_buffer_desc wanted = {};
    wanted.struct_size = sizeof(wanted);
    wanted.bytes = 8;
    for (size_t i = 0; i < count; ++i) {
      buffers_.emplace_back(side.device.get(), wanted);
      bp_tensor_desc of{};
      of.dtype = static_cast<uint16_t>(dtype);
      views_.push_back(view_of(of, buffers_.back().get()));
    }
  }
  // Enqueues copies of the bits to the device. Each enqueue call reads its entry of `bits` before it returns.
  void set(const std::vector<uint64_t>& bits) {
    for (size_t i = 0; i < bits.size(); ++i) {
      backplane::detail::call(bph_copy_in, side_.stream.get(), buffers_[i].get(), uint64_t{0},
                              static_cast<const void*>(&bits[i]), width_, uint32_t{BPH_COPY_SOURCE_FREE});
    }
  }
  const std::vector<bph_tensor>& views() const { return views_; }

 private:
  HostSide& side_;
  uint64_t width_;
  std::vector<backplane::Buffer> buffers_;
  std::vector<bph_tensor> views_;
};

// Before each operator call, the case enqueues a copy that writes the scalars. After the operator call, the case
// enqueues a copy that replaces the scalars. The case does not wait for the stream in between.
void device_scalars(Context& context, const bph_op_info& op, const char* layers) {
  HostSide side(context, layers);
  OpDesc desc = sample_of_rows(op, usual_dtype(op), 40);
  const HostData data(context, op, desc);
  const uint32_t dtype = op.scalar_dtype != 0 ? op.scalar_dtype : usual_dtype(op);
  DeviceScalars scalars(side, dtype, data.scalars.size());
  for (int64_t round = 0; round < 8; ++round) {
    std::vector<uint64_t> bits = data.scalars;
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = bph_scalar_from_i64(dtype, round + static_cast<int64_t>(i));
    HostCall call(side, desc, data.inputs, data.outputs, {});
    scalars.set(bits);
    call.call.flags |= BP_OP_FLAG_DEVICE_SCALARS;
    call.call.scalar_count = static_cast<uint32_t>(bits.size());
    call.call.scalar_tensors = scalars.views().data();
    call.execute(context, side);
    scalars.set(std::vector<uint64_t>(bits.size(), bph_scalar_from_i64(dtype, 100)));
    const std::vector<Bytes> expected = exact_results(desc, data.inputs, data.outputs, bits);
    require_same(context, call.results(side)[0], expected[0],
                 fmt::format("{} with scalars that earlier work of the stream wrote", op.name));
  }
  check_log(context, side);
}

// A chain of additions: call i adds the result of call i - 1 to itself. If the plugin does not add
// u32, the case ends as not claimed.
struct Chain {
  Chain(Context& context, HostSide& side, size_t count) : first(noise_words(context, kWords)) {
    OpDesc desc = elementwise(BP_OP_ADD, BP_U32, kWords);
    Bytes bytes(kWords * 4);
    std::memcpy(bytes.data(), first.data(), bytes.size());
    for (size_t i = 0; i < count; ++i) {
      links.push_back(std::make_unique<HostCall>(side, desc, std::vector<Bytes>{bytes, bytes},
                                                 std::vector<Bytes>{Bytes(kWords * 4)}, std::vector<uint64_t>{}));
      if (i > 0) links[i]->inputs[0] = links[i]->inputs[1] = links[i - 1]->outputs[0];
      calls.push_back(&links[i]->current());
    }
    links[0]->execute(context, side);
  }
  void require_result(Context& context, HostSide& side, size_t index) {
    Words got(kWords), expected(kWords);
    std::memcpy(got.data(), links[index]->results(side)[0].data(), kWords * 4);
    for (size_t i = 0; i < kWords; ++i) expected[i] = first[i] << (index + 1);
    require_same(context, got, expected, fmt::format("call {} of bph_execute_many", index));
  }

  static constexpr size_t kWords = 1000;
  Words first;
  std::vector<std::unique_ptr<HostCall>> links;
  std::vector<const bph_call*> calls;
};

void many_in_order(Context& context, const char* layers) {
  HostSide side(context, layers);
  Chain chain(context, side, 24);
  uint32_t done = 0;
  backplane::execute_many(side.stream, chain.calls, &done);
  context.require(done == 24, "{} of 24 calls are done", done);
  chain.require_result(context, side, 23);
  check_log(context, side);
}

void many_until_a_failure(Context& context) {
  HostSide side(context);
  Chain chain(context, side, 8);
  chain.links[5]->call.op = 0xffff;
  uint32_t done = 0;
  ErrorRecord error;
  const bp_status status = bph_execute_many(side.stream.get(), chain.calls.data(), 8, &done, &error);
  context.require(status != BP_OK && done == 5, "call 5 of 8 is invalid: status {}, {} calls done",
                  static_cast<int>(status), done);
  chain.require_result(context, side, 4);
  const Bytes untouched = chain.links[6]->results(side)[0];
  require_same(context, untouched, Bytes(Chain::kWords * 4), "the output of a call after the failed call");
}

}  // namespace

void add_host_call_cases(Catalogue& catalogue) {
  for (const char* layers : {"", "validation"}) {
    const char* const how = *layers == 0 ? "plain" : "layered";
    for (const bph_op_info& op : primitives()) {
      if (op.scalars_max == 0) continue;
      // FILL needs no extension: for a plugin that reads scalars only from the host, core lowers FILL to COPY.
      catalogue.push_back({.id = fmt::format("host.scalars.{}.{}", op.name, how),
                           .profile = op.profile,
                           .extension = op.op == BP_OP_FILL ? "" : "DEVICE_SCALARS",
                           .op = op.op,
                           .dtype = usual_dtype(op),
                           .requirements = {"BP-USE-053"},
                           .run = [op, layers](Context& context) { device_scalars(context, op, layers); }});
    }
    add_case(catalogue, fmt::format("host.calls.in_order.{}", how), {"BP-USE-054"},
             [layers](Context& context) { many_in_order(context, layers); });
  }
  add_case(catalogue, "host.calls.until_a_failure", {"BP-USE-054"}, many_until_a_failure);
}

}  // namespace backplane::conformance
