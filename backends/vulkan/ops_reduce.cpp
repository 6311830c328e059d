// SPDX-License-Identifier: Apache-2.0
// Reductions and extrema's indices: a thread or a workgroup an output, by how much there is to reduce.
#include "ops.hpp"

namespace backplane::vulkan {

namespace {

constexpr int64_t kLong = 256;  // from so many elements on, a workgroup shares an output

// Places in Params::extra; see shaders/reduce.comp.
constexpr uint32_t kCount = 0, kRank = 1, kShape = 2, kStrides = 10;

class Reduce : public Operator {
 public:
  Reduce(std::string shader, uint32_t op) : shader_(std::move(shader)), op_(op) {}

  std::vector<Kernel> kernels(const kit::Plan& plan, bool) const override {
    const uint32_t out = plan.dtypes.second;
    return {{shader_, {0, op_, out, 0}}, {shader_, {0, op_, out, 1}}};
  }

  kit::Status enqueue(Stream& stream, const Plan& plan, const kit::Call& call) const override {
    const bool one_axis = op_ == BP_OP_ARGMAX || op_ == BP_OP_ARGMIN;
    const uint32_t axes =
        one_axis ? 1u << call.attributes<bp_axis_attributes>().axis : call.attributes<bp_reduce_attributes>().axes;
    const kit::View& in = call.in(0);
    Nest kept = Nest::of({&call.out(), &in}), reduced = Nest::of({&in});
    for (uint32_t i = in.rank; i-- > 0;) {
      if ((axes >> i & 1u) != 0) {
        kept.drop(i);
      } else {
        reduced.drop(i);
      }
    }
    if (is_immediate(in)) std::fill_n(reduced.operand[0].strides, BP_MAX_RANK, 0);
    const int64_t count = reduced.count();
    kept.merge();
    reduced.merge();
    const Accesses accesses = accesses_of(call);
    const bool shared = count >= kLong;
    return kept.for_parts([&](const Nest& part, int64_t) {
      const auto outputs = static_cast<uint64_t>(part.count());
      const Stream::Dispatch dispatch{
          plan.pipelines[shared ? 1 : 0], {groups_for(outputs, shared ? 1 : kGroup), 1, 1}, accesses};
      return stream.dispatch(dispatch, [&](Params& params, uint64_t address) {
        part.fill(params, address);
        params.extra[kCount] = count;
        params.extra[kRank] = reduced.rank;
        for (uint32_t i = 0; i < BP_MAX_RANK; ++i) {
          params.extra[kShape + i] = reduced.shape[i];
          params.extra[kStrides + i] = i < reduced.rank ? reduced.operand[0].strides[i] : 0;
        }
      });
    });
  }

 private:
  const std::string shader_;
  const uint32_t op_;
};

}  // namespace

void add_reduce(kit::Kernels& kernels) {
  for (const uint32_t op :
       {BP_OP_REDUCE_SUM, BP_OP_REDUCE_PROD, BP_OP_REDUCE_MAX, BP_OP_REDUCE_MIN, BP_OP_ARGMAX, BP_OP_ARGMIN}) {
    for_dtypes(kComputed & kit::find_op(op)->dtypes, [&](uint32_t dtype) {
      kernels.add(op, dtype,
                  kit::KernelSpec{.state = std::make_shared<const Reduce>(shader_name("reduce", dtype), op)});
    });
  }
}

}  // namespace backplane::vulkan
