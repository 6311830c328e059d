// SPDX-License-Identifier: Apache-2.0
// Matrix products, batched, of any strides.
#include "ops.hpp"

namespace backplane::vulkan {

namespace {

constexpr int64_t kMostDepth = 8 * kMostSteps;  // of one dispatch; a thread takes 8 steps an iteration
constexpr int64_t kRows = 64, kColumns = 32;    // of a workgroup's tile; see shaders/matmul.comp

class Matmul : public Operator {
 public:
  Matmul(std::string shader, bool shared_memory) : shader_(std::move(shader)), shared_memory_(shared_memory) {}

  std::vector<Kernel> kernels(const kit::Plan& plan, bool) const override {
    return {{shader_, {0, 0, plan.dtypes.second, shared_memory_ ? 1u : 0u}}};
  }

  kit::Status enqueue(Stream& stream, const Plan& plan, const kit::Call& call) const override {
    const kit::View &out = call.out(), &a = call.in(0), &b = call.in(1);
    const uint32_t rank = out.rank, m = rank - 2, n = rank - 1;
    Nest batch = Nest::of({&out, &a, &b});
    if (batch.count() == 0) return {};
    const auto stride = [&](uint32_t operand, uint32_t axis) {
      const bool immediate = is_immediate(*batch.operand[operand].view);
      return immediate ? 0 : batch.operand[operand].strides[axis];
    };
    const int64_t depth = a.shape[n], a_along = stride(1, n), b_along = stride(2, m);
    int64_t numbers[] = {out.shape[m], out.shape[n], depth,   stride(0, m), stride(0, n),
                         stride(1, m), a_along,      b_along, stride(2, n), 0};
    // Halves are rounded once, so theirs is not divided.
    const int64_t step = kit::dtype_bytes(out.dtype) == sizeof(float) ? kMostDepth : std::max<int64_t>(depth, 1);
    batch.drop(n);
    batch.drop(m);
    batch.merge();
    const uint64_t tiles = static_cast<uint64_t>((out.shape[m] + kRows - 1) / kRows) *
                           static_cast<uint64_t>((out.shape[n] + kColumns - 1) / kColumns);
    const Accesses accesses = accesses_of(call);
    kit::Status status;
    for (int64_t first = 0; status.ok() && (first == 0 || first < depth); first += step) {
      numbers[2] = std::min(step, depth - first);
      numbers[9] = first == 0 ? 0 : 1;
      batch.operand[1].address = reinterpret_cast<uint64_t>(a.data) + static_cast<uint64_t>(first * a_along);
      batch.operand[2].address = reinterpret_cast<uint64_t>(b.data) + static_cast<uint64_t>(first * b_along);
      status = batch.for_parts([&](const Nest& part, int64_t) {
        const Stream::Dispatch dispatch{
            plan.pipelines[0], {groups_for(tiles * static_cast<uint64_t>(part.count()), 1), 1, 1}, accesses};
        return stream.dispatch(dispatch, [&](Params& params, uint64_t address) {
          part.fill(params, address);
          std::copy(std::begin(numbers), std::end(numbers), params.extra);
        });
      });
    }
    return status;
  }

 private:
  const std::string shader_;
  const bool shared_memory_;
};

}  // namespace

void add_matmul(kit::Kernels& kernels, const PhysicalDevice& device) {
  // A CPU's shared memory is memory like any other: passing tiles through it only adds work.
  for_dtypes(BP_SET_MATMUL & kComputed, [&](uint32_t dtype) {
    kernels.add(
        BP_OP_MATMUL, dtype,
        kit::KernelSpec{.state = std::make_shared<const Matmul>(shader_name("matmul", dtype), !device.is_cpu())});
  });
}

void add_operators(kit::Kernels& kernels, const PhysicalDevice& device) {
  add_elementwise(kernels, device);
  add_index(kernels);
  add_lanes(kernels);
  add_reduce(kernels, device);
  add_adamw(kernels);
  add_norm(kernels, device);
  add_softmax(kernels, device);
  add_matmul(kernels, device);
}

}  // namespace backplane::vulkan
