// SPDX-License-Identifier: Apache-2.0
// Tests that a kernel is found for exactly the dtypes that its plugin registered.
#include <backplane/kit/plan.hpp>

#include "driver.hpp"

namespace backplane::kit::test {
namespace {

using rules::Mixed;

bp_tensor_desc tensor_of(uint32_t dtype, std::initializer_list<int64_t> shape) {
  bp_tensor_desc out = view(shape);
  out.dtype = static_cast<uint16_t>(dtype);
  return out;
}

// Returns a kernel whose state is the number `mark`.
KernelSpec marked(int mark, uint32_t mixed = 0) {
  return {.run = [](const Call&) {}, .state = std::make_shared<const int>(mark), .mixed = mixed};
}
int mark_of(const KernelSpec* spec) { return spec == nullptr ? 0 : *static_cast<const int*>(spec->state.get()); }

TEST(Kernels, KeysOfOperatorsAndDtypesDiffer) {
  Kernels kernels;
  constexpr uint32_t kVendor = 0x80000000u, kLater = BP_DTYPE_LIMIT;
  kernels.add(2, kLater + 1, marked(1));
  kernels.add(3, 1, marked(2));
  kernels.add(kVendor, BP_F32, marked(3));
  kernels.add(kVendor + 1, BP_F32, marked(4));
  kernels.add(5, BP_F32, 40, marked(5));
  EXPECT_EQ(mark_of(kernels.find(2, {kLater + 1, kLater + 1})), 1);
  EXPECT_EQ(mark_of(kernels.find(3, {1, 1})), 2);
  EXPECT_EQ(mark_of(kernels.find(kVendor, {BP_F32, BP_F32})), 3);
  EXPECT_EQ(mark_of(kernels.find(kVendor + 1, {BP_F32, BP_F32})), 4);
  EXPECT_EQ(mark_of(kernels.find(5, {BP_F32, 40})), 5);
  EXPECT_EQ(kernels.find(0, {BP_F32, BP_F32}), nullptr);
  EXPECT_EQ(kernels.find(5, {BP_F32 + 1, 8}), nullptr);
}

// A descriptor that differs from the plain form of its operator (rules/mixed.hpp). `mixed` is the
// difference (rules::Mixed), and `word` is a text that the error message must contain.
struct Departure {
  uint32_t op;
  uint32_t dtype;  // KernelDtypes::first under which the kernel is registered
  std::vector<bp_tensor_desc> in, out;
  std::shared_ptr<const void> attributes;
  uint32_t mixed;
  const char* word;
};

std::vector<Departure> departures() {
  const auto norm = sized(bp_norm_attributes{0, 2, 1e-5f, 0});
  const auto last = sized(bp_axis_attributes{0, 1});
  const auto attention = sized(bp_attention_attributes{0, 0, 0.5f, 0, 0, 0});
  const auto weights = sized(bp_quantized_matmul_attributes{0, 8, 0, 0});
  const auto adamw = sized(bp_adamw_attributes{0, 0.9f, 0.999f, 1e-8f, 0, 0});
  const auto x = tensor_of(BP_BF16, {3, 4}), kept = tensor_of(BP_F32, {3, 1}), lane = tensor_of(BP_F32, {4});
  const auto q = tensor_of(BP_F32, {1, 2, 3, 4}), y = q, k = tensor_of(BP_F16, {1, 2, 5, 4}),
             mask = tensor_of(BP_F16, {1, 2, 3, 5});
  const auto wide_k = tensor_of(BP_F32, {1, 2, 5, 4});
  const auto w = tensor_of(BP_I8, {5, 4}), result = tensor_of(BP_BF16, {3, 5});
  return {
      {BP_OP_LAYER_NORM, BP_BF16, {x, lane, lane}, {x, kept, kept}, norm, rules::kMixedParameters, "f32 parameters"},
      {BP_OP_SOFTMAX, BP_BF16, {x}, {tensor_of(BP_F32, {3, 4})}, last, rules::kMixedWide, "an f32 result"},
      {BP_OP_ADAMW,
       BP_BF16,
       {x},
       {x, tensor_of(BP_F32, {3, 4}), tensor_of(BP_F32, {3, 4})},
       adamw,
       rules::kMixedState,
       "f32 state"},
      {BP_OP_ADAMW,
       BP_BF16,
       {x},
       {tensor_of(BP_F32, {3, 4}), tensor_of(BP_F32, {3, 4}), tensor_of(BP_F32, {3, 4})},
       adamw,
       rules::kMixedParameters,
       "f32 parameters"},
      {BP_OP_ATTENTION, BP_F32, {q, k, k}, {y}, attention, rules::kMixedHalves, "16-bit operands"},
      {BP_OP_ATTENTION, BP_F32, {q, wide_k, wide_k, mask}, {y}, attention, rules::kMixedMask, "a mask"},
      {BP_OP_ATTENTION,
       BP_F32,
       {q, wide_k, wide_k, {}, tensor_of(BP_F32, {2})},
       {y},
       attention,
       rules::kMixedSinks,
       "sinks"},
      {BP_OP_ATTENTION,
       BP_F32,
       {q, wide_k, wide_k},
       {y},
       sized(bp_attention_attributes{0, 0, 0.5f, 0, 30, 0}),
       rules::kMixedSoftcap,
       "a softcap"},
      {BP_OP_BATCH_NORM,
       BP_F32,
       {wide_k},
       {wide_k},
       sized(bp_batch_norm_attributes{0, 1, 0, 0, 1, 0}),
       rules::kMixedUnbiased,
       "unbiased"},
      {BP_OP_LINEAR,
       BP_F32,
       {tensor_of(BP_F32, {3, 4}), tensor_of(BP_BF16, {5, 4})},
       {tensor_of(BP_F32, {3, 5})},
       sized(bp_linear_attributes{0, 0, 0, 0}),
       rules::kMixedHalves,
       "16-bit operands"},
      {BP_OP_ROPE,
       BP_BF16,
       {x, tensor_of(BP_I64, {3})},
       {x},
       sized(bp_rope_attributes{0, 0, 10000, 0}),
       rules::kMixedIndex,
       "i64 indices"},
      {BP_OP_QUANTIZED_MATMUL,
       BP_BF16,
       {x, w, tensor_of(BP_F16, {5})},
       {result},
       weights,
       rules::kMixedScale,
       "scales"},
      {BP_OP_QUANTIZED_MATMUL,
       BP_BF16,
       {x, w, tensor_of(BP_BF16, {5}), {}, {}, {}, {}, tensor_of(BP_BF16, {5})},
       {result},
       weights,
       rules::kMixedMinimum,
       "a minimum"},
  };
}

class MixedDtypes : public testing::Test {
 protected:
  Status made(const Departure& one, uint32_t served) {
    Kernels kernels;
    kernels.add(one.op, one.dtype, marked(1, served));
    bp_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.op = one.op;
    desc.attributes = one.attributes.get();
    desc.inputs = one.in.data(), desc.outputs = one.out.data();
    desc.input_count = static_cast<uint32_t>(one.in.size());
    desc.output_count = static_cast<uint32_t>(one.out.size());
    desc.scalar_count = find_op(one.op)->scalars_max;
    Plan plan;
    bp_plan_info info{};
    info.struct_size = sizeof(info);
    return make_plan(kernels, &desc, plan, info);
  }
  // Returns the status of plan creation, with the message in `error`.
  bp_status plan_status(const Departure& one, uint32_t served) {
    error = {};
    error.struct_size = sizeof(error);
    const Status status = made(one, served);
    return report(&error, status.code(), status.message(), status.op());
  }
  bp_error error{};
};

TEST_F(MixedDtypes, AreServedOnlyIfTheKernelDeclaresThem) {
  for (const Departure& one : departures()) {
    const std::string what = text(find_op(one.op)->name, ", ", one.word);
    EXPECT_EQ(plan_status(one, 0), BP_UNSUPPORTED) << what;
    EXPECT_THAT(error.message, testing::HasSubstr(one.word)) << what;
    EXPECT_EQ(plan_status(one, UINT32_MAX & ~one.mixed), BP_UNSUPPORTED) << what;
    EXPECT_EQ(plan_status(one, one.mixed), BP_OK) << what << ": " << error.message;
  }
}

// If x is f16 or bf16, statistics must be f32. All parameters must have one dtype, which is f32 or
// the dtype of x.
TEST_F(MixedDtypes, OtherCombinationsAreRefused) {
  const Departure good = departures()[0];
  const auto refused = [&](const auto& change, const char* word) {
    Departure bad = good;
    change(bad);
    EXPECT_EQ(plan_status(bad, UINT32_MAX), BP_UNSUPPORTED) << word;
    EXPECT_THAT(error.message, testing::HasSubstr(word));
  };
  refused([](Departure& bad) { bad.out[1].dtype = BP_BF16; }, "output 1 is bf16; it may be one of f32");
  refused([](Departure& bad) { bad.in[2].dtype = BP_BF16; }, "input 2 is bf16; it may be one of f32");
  refused([](Departure& bad) { bad.in[1].dtype = BP_F16; }, "input 1 is f16; it may be one of bf16, f32");
  refused([](Departure& bad) { bad.in[0].dtype = BP_I32; }, "input 0 is i32");
  const Departure cache = departures()[4];
  Departure uneven = cache;
  uneven.in[2].dtype = BP_BF16;
  EXPECT_EQ(plan_status(uneven, UINT32_MAX), BP_UNSUPPORTED);
  EXPECT_THAT(error.message, testing::HasSubstr("input 2 is bf16; it may be one of f16"));
}

TEST_F(MixedDtypes, TheUnmixedFormNeedsNoFlag) {
  Departure plain = departures()[0];
  plain.in[1].dtype = plain.in[2].dtype = BP_BF16;
  EXPECT_EQ(plan_status(plain, 0), BP_OK) << error.message;
}

}  // namespace
}  // namespace backplane::kit::test
