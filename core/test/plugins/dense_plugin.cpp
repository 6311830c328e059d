// SPDX-License-Identifier: Apache-2.0
// A minimal plugin with a few dense kernels, so that core stages all other layouts. Tests of the
// fallback use the operators that this plugin lacks.
#include <backplane/kit/loops.hpp>
#include <backplane/kit/plugin.hpp>

namespace {

using namespace backplane::kit;

void copy_f32(const Call& call) {
  map_unary<uint32_t, uint32_t>(call, [](uint32_t word) { return word; });
}

void fill_f32(const Call& call) {
  LoopNest<1>({&call.out()}).rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t i = 0; i < count; ++i) *reinterpret_cast<float*>(at[0] + i * strides[0]) = call.scalar<float>(0);
  });
}

// Ignores strides on purpose, so the result is correct only for dense views.
void sub_dense(const Call& call) {
  const int64_t count = call.out().elements();
  for (int64_t i = 0; i < count; ++i) call.out().as<float>()[i] = call.in(0).as<float>()[i] - call.in(1).as<float>()[i];
}

void add_dense(const Call& call) {
  const int64_t count = call.out().elements();
  for (int64_t i = 0; i < count; ++i) call.out().as<float>()[i] = call.in(0).as<float>()[i] + call.in(1).as<float>()[i];
}

// Multiplies matrices of rank 2.
void matmul_dense(const Call& call) {
  const int64_t rows = call.out().shape[0], cols = call.out().shape[1], depth = call.in(0).shape[1];
  for (int64_t i = 0; i < rows * cols; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += call.in(0).as<float>()[i / cols * depth + k] * call.in(1).as<float>()[k * cols + i % cols];
    call.out().as<float>()[i] = sum;
  }
}

// Reports BP_PLAN_SPECIALIZABLE, but makes a specialized plan only for more than eight rows.
Status prepare_matmul(const CheckedDesc& checked, Prepared& prepared) {
  prepared.any_size = (checked.desc.flags & BP_OP_FLAG_SPECIALIZE) == 0 || checked.desc.outputs[0].shape[0] <= 8;
  prepared.specializable = true;
  return {};
}

// Adds each source element to the output element at its index.
void scatter_dense(const Call& call) {
  const View& io = call.out();
  const View& index = call.in(0);
  for (int64_t i = 0; i < index.elements(); ++i) {
    const int32_t at = index.as<int32_t>()[i];
    if (at >= 0 && at < io.elements()) io.as<float>()[at] += call.in(1).as<float>()[i];
  }
}

class Driver : public HostDriver {
 public:
  explicit Driver(Host host) : HostDriver(host, {.name = "dense", .version = "1"}) {
    kernels().add(BP_OP_COPY, BP_F32, copy_f32);
    kernels().add(BP_OP_COPY, BP_I32, copy_f32);
    kernels().add(BP_OP_FILL, BP_F32, fill_f32);
    kernels().add(BP_OP_ADD, BP_F32, KernelSpec{.run = add_dense, .dense = true});
    kernels().add(BP_OP_MATMUL, BP_F32, KernelSpec{.run = matmul_dense, .dense = true, .prepare = prepare_matmul});
    kernels().add(BP_OP_SUB, BP_F32, KernelSpec{.run = sub_dense, .dense = true});
    kernels().add(BP_OP_SCATTER, BP_F32, KernelSpec{.run = scatter_dense, .dense = true});
  }
};

}  // namespace

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return query<Driver>(host, out, error);
}
