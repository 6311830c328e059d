// SPDX-License-Identifier: Apache-2.0
// Tests that the layout of operands never changes a result. Runs every operator on permuted,
// reversed, gapped, broadcast and overlapping views, at ranks 0 and 8, without elements, and in
// place.
#include "fixture.hpp"

namespace backplane::reference::test {
namespace {

// An operator with valid attributes and shapes.
struct Case {
  uint32_t op;
  std::vector<Tensor> in, out;
  std::vector<unsigned char> attributes;
  std::vector<uint64_t> scalars;
};

template <class T>
std::vector<unsigned char> bytes(const T& value) {
  const auto* at = reinterpret_cast<const unsigned char*>(&value);
  return {at, at + sizeof(T)};
}

const std::vector<uint32_t>& elementwise_dtypes(uint32_t op) {
  switch (op) {
    case BP_OP_REM:
    case BP_OP_SHL:
    case BP_OP_SHR:
      return kInts;
    case BP_OP_AND:
    case BP_OP_OR:
    case BP_OP_XOR:
    case BP_OP_BITNOT:
      return kBits;
    case BP_OP_FLOOR:
    case BP_OP_RINT:
    case BP_OP_SQRT:
    case BP_OP_RSQRT:
    case BP_OP_EXP:
    case BP_OP_LOG:
    case BP_OP_SIN:
    case BP_OP_COS:
    case BP_OP_TANH:
    case BP_OP_ERF:
      return kFloats;
    default:
      return kNumeric;
  }
}

std::vector<Case> cases() {
  std::vector<Case> out;
  const Shape shape{3, 4, 5}, cut{3, 1, 5};
  const auto number = [&](uint32_t dtype, unsigned seed) { return small_numbers(dtype, shape, seed); };
  for (const uint32_t t : kAll) {
    out.push_back({BP_OP_FILL, {}, {Tensor(t, shape)}, {}, {1}});
    out.push_back({BP_OP_COPY, {number(t, 1)}, {Tensor(t, shape)}, {}, {}});
    for (const uint32_t to : kAll) out.push_back({BP_OP_CAST, {number(t, 1)}, {Tensor(to, shape)}, {}, {}});
    const auto axis = bytes(bp_axis_attributes{sizeof(bp_axis_attributes), 1});
    for (const uint32_t index : {BP_I32, BP_I64}) {
      out.push_back({BP_OP_GATHER, {number(t, 1), number(index, 2)}, {Tensor(t, shape)}, axis, {}});
      for (uint32_t mode = 0; mode < (t == BP_BOOL ? 1u : 4u); ++mode) {
        Tensor order(index, {3, 4, 5});  // no lane along axis 1 has duplicates, so SET is deterministic
        for (size_t i = 0; i < order.bits.size(); ++i) order.bits[i] = (i / 5 + i % 5) % 4;
        out.push_back({BP_OP_SCATTER,
                       {order, number(t, 3)},
                       {number(t, 4)},
                       bytes(bp_scatter_attributes{sizeof(bp_scatter_attributes), 1, mode, 0}),
                       {}});
      }
    }
    out.push_back({BP_OP_COMPARE,
                   {number(t, 1), number(t, 2)},
                   {Tensor(BP_BOOL, shape)},
                   bytes(bp_compare_attributes{sizeof(bp_compare_attributes), BP_COMPARE_GE}),
                   {}});
    out.push_back({BP_OP_SELECT, {number(BP_BOOL, 1), number(t, 2), number(t, 3)}, {Tensor(t, shape)}, {}, {}});
    for (const uint32_t axes : {2u, 5u, 7u, 0u}) {
      const auto reduce = bytes(bp_reduce_attributes{sizeof(bp_reduce_attributes), axes});
      const Shape kept{axes & 1 ? 1 : 3, axes & 2 ? 1 : 4, axes & 4 ? 1 : 5};
      for (const uint32_t op : {BP_OP_REDUCE_MAX, BP_OP_REDUCE_MIN})
        out.push_back({op, {number(t, 1)}, {Tensor(t, kept)}, reduce, {}});
      out.push_back(
          {BP_OP_REDUCE_SUM, {number(t, 1)}, {Tensor(t == BP_BOOL ? uint32_t{BP_I64} : t, kept)}, reduce, {}});
      if (t != BP_BOOL)
        out.push_back(
            {BP_OP_REDUCE_PROD, {number(t, 1)}, {Tensor(is_float(t) ? t : uint32_t{BP_I32}, kept)}, reduce, {}});
    }
    if (t == BP_BOOL) continue;
    out.push_back({BP_OP_IOTA, {}, {Tensor(t, shape)}, axis, {encode(t, 2), encode(t, 3)}});
    for (const uint32_t op : {BP_OP_ARGMAX, BP_OP_ARGMIN})
      out.push_back({op, {number(t, 1)}, {Tensor(BP_I32, cut)}, axis, {}});
    out.push_back({BP_OP_CUMSUM,
                   {number(t, 1)},
                   {Tensor(t, shape)},
                   bytes(bp_cumsum_attributes{sizeof(bp_cumsum_attributes), 1, 1, 1}),
                   {}});
    out.push_back({BP_OP_SORT,
                   {number(t, 1)},
                   {Tensor(t, shape), Tensor(BP_I32, shape)},
                   bytes(bp_sort_attributes{sizeof(bp_sort_attributes), 1, 1, 0}),
                   {}});
  }
  for (uint32_t op = BP_OP_NEG; op <= BP_OP_SHR; ++op) {
    for (const uint32_t t : elementwise_dtypes(op)) {
      std::vector<Tensor> in{number(t, 1)};
      if (op >= BP_OP_ADD) in.push_back(number(t, 2));
      out.push_back({op, in, {Tensor(t, shape)}, {}, {}});
    }
  }
  const auto matmul = bytes(bp_matmul_attributes{sizeof(bp_matmul_attributes), BP_PRECISION_ALLOW_TF32});
  for (const auto& [a, b, to] : std::vector<std::array<uint32_t, 3>>{{BP_F32, BP_F32, BP_F32},
                                                                     {BP_F64, BP_F64, BP_F64},
                                                                     {BP_F16, BP_F16, BP_F32},
                                                                     {BP_BF16, BP_BF16, BP_BF16},
                                                                     {BP_U8, BP_I8, BP_I32},
                                                                     {BP_I8, BP_I8, BP_I32}}) {
    out.push_back({BP_OP_MATMUL,
                   {small_numbers(a, {2, 3, 4}, 1), small_numbers(b, {2, 4, 5}, 2)},
                   {Tensor(to, {2, 3, 5})},
                   matmul,
                   {}});
  }
  out.push_back({BP_OP_PHILOX, {}, {Tensor(BP_U32, shape)}, {}, {1, 2, 3}});
  return out;
}

TEST(Layout, EveryOperatorGivesTheSameInEveryLayout) {
  for (const Case& c : cases()) {
    const void* attributes = c.attributes.empty() ? nullptr : c.attributes.data();
    const auto dense = run(c.op, attributes, c.in, c.out, c.scalars);
    for (const Layout layout : {Layout::kReversed, Layout::kNegative, Layout::kGapped}) {
      const auto other = run(c.op, attributes, c.in, c.out, c.scalars, layout);
      for (size_t i = 0; i < dense.size(); ++i) {
        ASSERT_EQ(other[i].bits, dense[i].bits)
            << "operator " << c.op << " " << dtype_text(c.out[i].dtype) << " layout " << static_cast<int>(layout);
      }
    }
  }
}

TEST(Layout, EveryPrimitiveIsCovered) {
  std::vector<bool> seen(BP_OP_LIMIT);
  for (const Case& c : cases()) seen[c.op] = true;
  for (uint32_t op = 1; op <= 43; ++op) EXPECT_TRUE(seen[op]) << op;
}

TEST(Layout, BroadcastAndOverlappingInputs) {
  const Tensor row = of_values(BP_F32, {6}, {1, 2, 3, 4, 5, 6});
  Placed base(device(), row, Layout::kDense), out(device(), Tensor(BP_F32, {4, 3}), Layout::kDense);
  Placed* in = &base;
  const auto view = [&](int64_t rows, int64_t cols, int64_t s0, int64_t s1) {
    in->desc.rank = 2;
    in->desc.shape[0] = rows, in->desc.shape[1] = cols, in->desc.strides[0] = s0, in->desc.strides[1] = s1;
  };
  view(4, 3, 1, 1);  // the rows are overlapping windows of three elements
  ASSERT_EQ(device().run(BP_OP_COPY, nullptr, {in}, {&out}), BP_OK) << device().error.message;
  EXPECT_EQ(out.read().bits, of_values(BP_F32, {12}, {1, 2, 3, 2, 3, 4, 3, 4, 5, 4, 5, 6}).bits);
  view(4, 3, 0, 1);
  ASSERT_EQ(device().run(BP_OP_NEG, nullptr, {in}, {&out}), BP_OK);
  EXPECT_EQ(out.read().bits, of_values(BP_F32, {12}, {-1, -2, -3, -1, -2, -3, -1, -2, -3, -1, -2, -3}).bits);
  view(4, 3, 1, 0);
  ASSERT_EQ(device().run(BP_OP_ADD, nullptr, {in, in}, {&out}), BP_OK);
  EXPECT_EQ(out.read().bits, of_values(BP_F32, {12}, {2, 2, 2, 4, 4, 4, 6, 6, 6, 8, 8, 8}).bits);
}

TEST(Layout, BroadcastOperandsOfEveryBinaryLoop) {
  // The innermost loop has separate paths for two vectors, for a vector with a scalar, and for a
  // scalar with a vector.
  const Tensor grid = of_values(BP_I32, {2, 3}, {10, 20, 30, 40, 50, 60}), line = of_values(BP_I32, {3}, {1, 2, 3});
  Placed a(device(), grid, Layout::kDense), b(device(), line, Layout::kDense),
      out(device(), Tensor(BP_I32, {2, 3}), Layout::kDense);
  b.desc.rank = 2, b.desc.shape[0] = 2, b.desc.shape[1] = 3;
  const auto strides = [&](int64_t s0, int64_t s1) { b.desc.strides[0] = s0, b.desc.strides[1] = s1; };
  strides(0, 1);
  ASSERT_EQ(device().run(BP_OP_SUB, nullptr, {&a, &b}, {&out}), BP_OK);
  EXPECT_EQ(out.read().bits, of_values(BP_I32, {6}, {9, 18, 27, 39, 48, 57}).bits);
  strides(1, 0);
  ASSERT_EQ(device().run(BP_OP_SUB, nullptr, {&a, &b}, {&out}), BP_OK);
  EXPECT_EQ(out.read().bits, of_values(BP_I32, {6}, {9, 19, 29, 38, 48, 58}).bits);
  ASSERT_EQ(device().run(BP_OP_SUB, nullptr, {&b, &a}, {&out}), BP_OK);
  EXPECT_EQ(out.read().bits, of_values(BP_I32, {6}, {-9, -19, -29, -38, -48, -58}).bits);
}

TEST(Layout, RankZeroAndEight) {
  const Tensor scalar = of_values(BP_F32, {}, {2.5}), cube = small_numbers(BP_F32, {2, 1, 3, 2, 1, 2, 2, 2}, 5);
  EXPECT_EQ(run1(BP_OP_NEG, nullptr, {scalar}, Tensor(BP_F32, {})).at(0), -2.5);
  const bp_reduce_attributes none{sizeof(none), 0}, all{sizeof(all), 255};
  EXPECT_EQ(run1(BP_OP_REDUCE_SUM, &none, {scalar}, Tensor(BP_F32, {})).at(0), 2.5);
  Real sum = 0;
  for (int64_t i = 0; i < 96; ++i) sum += cube.at(i);
  for (const Layout layout : kLayouts) {
    EXPECT_EQ(run1(BP_OP_REDUCE_SUM, &all, {cube}, Tensor(BP_F32, {1, 1, 1, 1, 1, 1, 1, 1}), {}, layout).at(0), sum);
    EXPECT_EQ(run1(BP_OP_COPY, nullptr, {cube}, Tensor(BP_F32, cube.shape), {}, layout).bits, cube.bits);
  }
}

TEST(Layout, NoElementsIsNoWork) {
  for (const Case& c : cases()) {
    if (c.op == BP_OP_MATMUL || c.op == BP_OP_ARGMAX || c.op == BP_OP_ARGMIN) continue;
    Case empty = c;
    for (auto* list : {&empty.in, &empty.out}) {
      for (Tensor& t : *list) {
        t.shape[0] = 0;
        t.bits.clear();
      }
    }
    if (c.op >= BP_OP_REDUCE_SUM && c.op <= BP_OP_REDUCE_MIN && (c.attributes[4] & 1) != 0) continue;
    const auto got = run(c.op, c.attributes.empty() ? nullptr : c.attributes.data(), empty.in, empty.out, c.scalars);
    EXPECT_TRUE(got[0].bits.empty());
  }
  const bp_matmul_attributes matmul{sizeof(matmul), 0};
  EXPECT_TRUE(run1(BP_OP_MATMUL, &matmul, {Tensor(BP_F32, {0, 4}), Tensor(BP_F32, {4, 3})}, Tensor(BP_F32, {0, 3}))
                  .bits.empty());
}

TEST(Layout, InPlaceIsLegal) {
  const Tensor a = small_numbers(BP_F32, {7, 9}, 1), b = small_numbers(BP_F32, {7, 9}, 2);
  for (const Layout layout : kLayouts) {
    const std::vector<uint64_t> expected = run1(BP_OP_SUB, nullptr, {a, b}, Tensor(BP_F32, a.shape)).bits;
    for (const uint16_t alias : {uint16_t{1}, uint16_t{2}}) {
      Placed left(device(), a, layout), right(device(), b, layout);
      Placed* shared = alias == 1 ? &left : &right;
      bp_tensor_desc views[2] = {left.desc, right.desc}, to = shared->desc;
      to.alias = alias;
      bp_operand data[2] = {left.operand, right.operand};
      bp_op_desc desc{};
      desc.struct_size = sizeof(desc);
      desc.op = BP_OP_SUB;
      desc.inputs = views, desc.outputs = &to, desc.input_count = 2, desc.output_count = 1;
      bp_plan_info info{};
      info.struct_size = sizeof(info);
      bp_plan* plan = nullptr;
      ASSERT_EQ(device().api->plan_create(device().handle, &desc, &plan, &info, &device().error), BP_OK);
      bp_execution execution{};
      execution.struct_size = sizeof(execution);
      execution.desc = &desc, execution.inputs = data, execution.outputs = &shared->operand;
      ASSERT_EQ(device().api->plan_execute(device().handle, device().stream, plan, &execution, &device().error), BP_OK);
      device().api->plan_destroy(device().handle, plan);
      ASSERT_EQ(device().api->stream_wait(device().handle, device().stream, BP_WAIT_FOREVER, &device().error), BP_OK);
      EXPECT_EQ(shared->read().bits, expected);
    }
  }
}

TEST(Immediates, AnInputMayBeAValue) {
  for (const uint32_t dtype : kNumeric) {
    const Tensor a = small_numbers(dtype, {4, 5}, 1), three = of_values(dtype, {4, 5}, std::vector<Real>(20, 3));
    Placed left(device(), a, Layout::kDense), value(device(), three, Layout::kDense, true);
    Placed out(device(), Tensor(dtype, {4, 5}), Layout::kDense);
    ASSERT_EQ(device().run(BP_OP_ADD, nullptr, {&left, &value}, {&out}), BP_OK) << device().error.message;
    std::vector<uint64_t> expected;
    for (int64_t i = 0; i < 20; ++i) expected.push_back(encode(dtype, a.at(i) + 3));
    EXPECT_EQ(out.read().bits, expected) << dtype_text(dtype);
  }
}

}  // namespace
}  // namespace backplane::reference::test
