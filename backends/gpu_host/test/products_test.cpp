// SPDX-License-Identifier: Apache-2.0
// Tests the library for matrix products: layouts, results, plans, handles and violations.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gpu_host/test/device_test.hpp"
#include "ops/operators.hpp"

namespace backplane::gpu_host::test {

using testing::HasSubstr;

namespace {

constexpr uint64_t kScratchBytes = uint64_t{1} << 20;

// A product of f32 matrices in HOST memory, so that the test can read them.
class ProductTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    bp_host host{};
    host.struct_size = sizeof(host);
    host.context = &log_;
    host.log = [](void* to, int32_t, const char* line) { *static_cast<std::string*>(to) += line; };
    ASSERT_TRUE(products().is_available(kit::Host(&host))) << log_;
    for (simt::Buffer*& each : buffers_) each = allocate(BP_MEMORY_HOST);
    scratch_ = context().allocate({sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, kScratchBytes, 256}).value();
    for (uint32_t i = 0; i < kBytes / sizeof(float); ++i) {
      values(1)[i] = static_cast<float>(i % 7) - 3;
      values(2)[i] = static_cast<float>(i % 5) - 2;
      values(3)[i] = static_cast<float>(i % 3);
    }
  }
  void TearDown() override {
    if (scratch_ == nullptr) return;
    for (simt::Buffer* each : buffers_) context().free(each);
    context().free(scratch_);
  }

  Products& products() const { return devices[0]->products; }
  float* values(int i) const { return reinterpret_cast<float*>(buffers_[i]->address); }
  simt::Place place(int i, uint64_t element = 0) const { return {buffers_[i], element * sizeof(float)}; }

  simt::MatrixProduct product(uint64_t rows, uint64_t columns, uint64_t depth, uint64_t batches = 1) const {
    const auto n = static_cast<int64_t>(columns), k = static_cast<int64_t>(depth), m = static_cast<int64_t>(rows);
    simt::MatrixProduct out{rows, columns, depth, batches};
    out.c = {place(0), BP_F32, n, 1, m * n};
    out.a = {place(1), BP_F32, k, 1, m * k};
    out.b = {place(2), BP_F32, n, 1, k * n};
    out.scratch = {scratch_, 0};
    out.scratch_bytes = kScratchBytes;
    return out;
  }
  // Computes the product, and compares c with sums on the host. Whole numbers make the sums exact.
  void expect_product(const simt::MatrixProduct& p) const {
    std::fill_n(values(0), kBytes / sizeof(float), NAN);
    const auto queue = create_queue();
    auto done = queue->multiply(p);
    ASSERT_TRUE(done.ok()) << done.status().message();
    ASSERT_TRUE(done.value());
    expect_passes(queue->mark(false).value());
    const auto element = [](const simt::Matrix& matrix, uint64_t batch, uint64_t row, uint64_t column) -> float& {
      const int64_t at = matrix.batch_stride * static_cast<int64_t>(batch) +
                         matrix.row_stride * static_cast<int64_t>(row) +
                         matrix.column_stride * static_cast<int64_t>(column);
      return reinterpret_cast<float*>(matrix.place.memory->address + matrix.place.offset)[at];
    };
    for (uint64_t batch = 0; batch < p.batches; ++batch) {
      for (uint64_t row = 0; row < p.rows; ++row) {
        for (uint64_t column = 0; column < p.columns; ++column) {
          float sum = p.bias_dtype == 0 ? 0 : values(3)[column];
          for (uint64_t k = 0; k < p.depth; ++k) sum += element(p.a, batch, row, k) * element(p.b, batch, k, column);
          ASSERT_EQ(element(p.c, batch, row, column), sum) << batch << " " << row << " " << column;
        }
      }
    }
  }
  // Multiplies a batch with the two dimensions sequence and head, each of which has its own stride.
  void expect_batch_of_heads(int64_t depth) const;
  // Returns the library's call for a product that it can compute.
  LtCall call_of(const simt::MatrixProduct& p) const {
    auto call = lt_call(p);
    EXPECT_TRUE(call.has_value());
    return *call;
  }

 private:
  std::string log_;
  simt::Buffer* buffers_[4] = {};  // c, a, b and the bias
  simt::Buffer* scratch_ = nullptr;
};

TEST_F(ProductTest, RowsOfAllOperandsAreContiguous) {
  expect_product(product(5, 7, 9));
  expect_product(product(1, 33, 65));
  expect_product(product(33, 1, 65));
  expect_product(product(1, 1, 1));
}

TEST_F(ProductTest, RowsMayHaveAPitch) {
  simt::MatrixProduct p = product(5, 7, 9);
  p.c.row_stride = 11;
  p.a.row_stride = 16;
  p.b.row_stride = 13;
  expect_product(p);
}

TEST_F(ProductTest, OperandsMayBeTransposed) {
  for (int mask = 1; mask < 8; ++mask) {
    simt::MatrixProduct p = product(5, 7, 9);
    if ((mask & 1) != 0) p.a.row_stride = 1, p.a.column_stride = 5;
    if ((mask & 2) != 0) p.b.row_stride = 1, p.b.column_stride = 9;
    if ((mask & 4) != 0) p.c.row_stride = 1, p.c.column_stride = 5;
    expect_product(p);
  }
}

TEST_F(ProductTest, AnInputOfABatchMayBeShared) {
  expect_product(product(5, 7, 9, 3));
  simt::MatrixProduct p = product(5, 7, 9, 3);
  p.b.batch_stride = 0;
  expect_product(p);
}

TEST_F(ProductTest, TheLibraryAddsABiasAlongRows) {
  simt::MatrixProduct p = product(5, 7, 9);
  p.bias = place(3);
  p.bias_dtype = BP_F32;
  expect_product(p);
  p.c.row_stride = 1;
  p.c.column_stride = 5;
  EXPECT_FALSE(lt_call(p).has_value());
}

TEST_F(ProductTest, TheAlignmentOfAddressesIsPartOfAPlan) {
  expect_product(product(4, 4, 4));
  const std::size_t before = products().stored_plans();
  simt::MatrixProduct p = product(4, 4, 4);
  p.a.place = place(1, 1);
  expect_product(p);
  EXPECT_EQ(products().stored_plans(), before + 1);
  expect_product(p);
  EXPECT_EQ(products().stored_plans(), before + 1);
}

// A launch copies `left` to a before the library reads a, and copies c to `result` after the library has written c.
TEST_F(ProductTest, AGraphCallsTheLibraryBetweenItsNodes) {
  constexpr uint64_t kElements = 16, kSize = kElements * sizeof(float);
  const simt::MatrixProduct p = product(4, 4, 4);
  simt::Buffer *const left = allocate(BP_MEMORY_HOST), *const result = allocate(BP_MEMORY_HOST),
                      *const other = allocate(BP_MEMORY_HOST);
  const auto floats = [](const simt::Buffer* buffer) { return reinterpret_cast<float*>(buffer->address); };
  const auto queue = create_queue();
  {
    const Graph::Range ranges[] = {{left, 0, kSize}, {result, 0, kSize}, {p.a.place.memory, 0, kSize}};
    Graph graph(context(), devices[0]->events, products(), ranges);
    queue->record(&graph, {});
    ASSERT_TRUE(queue->copy(p.a.place.memory->address, left->address, kSize).ok());
    auto done = queue->multiply(p);
    ASSERT_TRUE(done.ok() && done.value());
    ASSERT_TRUE(queue->copy(result->address, p.c.place.memory->address, kSize).ok());
    queue->record(nullptr, {});
    EXPECT_EQ(graph.size(), 3u);
    ASSERT_TRUE(graph.build().ok());
    // In the last launch, the third range replaces a by `other`.
    for (const bool replaced : {false, true}) {
      for (uint64_t i = 0; i < kElements; ++i) floats(left)[i] = replaced ? 2 : static_cast<float>(i % 3);
      std::fill_n(values(0), kElements, NAN);
      const Graph::Range launched[] = {ranges[0], ranges[1], replaced ? Graph::Range{other, 0, kSize} : ranges[2]};
      ASSERT_TRUE(queue->launch_graph(graph, launched).ok());
      expect_passes(queue->mark(false).value());
      for (uint64_t row = 0; row < 4; ++row) {
        for (uint64_t column = 0; column < 4; ++column) {
          float sum = 0;
          for (uint64_t k = 0; k < 4; ++k) sum += floats(left)[row * 4 + k] * values(2)[k * 4 + column];
          ASSERT_EQ(floats(result)[row * 4 + column], sum) << row << " " << column;
        }
      }
      EXPECT_EQ(floats(other)[0] == 2, replaced);
    }
  }
  for (simt::Buffer* each : {left, result, other}) context().free(each);
}

TEST_F(ProductTest, KernelsComputeOtherLayoutsAndTypes) {
  const auto expect_none = [&](const auto& change) {
    simt::MatrixProduct p = product(5, 7, 9, 2);
    change(p);
    EXPECT_FALSE(lt_call(p).has_value());
    auto done = create_queue()->multiply(p);
    EXPECT_TRUE(done.ok() && !done.value());
  };
  expect_none([](auto& p) { p.a.column_stride = 2, p.a.row_stride = 18; });
  expect_none([](auto& p) { p.b.row_stride = 6; });
  expect_none([](auto& p) { p.c.row_stride = 0; });
  expect_none([](auto& p) { p.a.row_stride = -9; });
  expect_none([](auto& p) { p.a.batch_stride = -45; });
  expect_none([](auto& p) { p.b.dtype = BP_F16; });
  expect_none([](auto& p) { p.a.dtype = p.b.dtype = p.c.dtype = BP_F64; });
  expect_none([](auto& p) { p.a.dtype = p.b.dtype = BP_I8, p.c.dtype = BP_I32; });
  expect_none([](auto& p) { p.c.dtype = BP_F16; });
}

TEST_F(ProductTest, OnlyAPermissionAllowsTf32) {
  simt::MatrixProduct p = product(4, 4, 4);
  EXPECT_EQ(call_of(p).product.allows_tf32, 0u);
  p.precision = BP_PRECISION_ALLOW_BF16 | BP_PRECISION_ALLOW_TF32;
  EXPECT_EQ(call_of(p).product.allows_tf32, 1u);
  p.a.dtype = p.b.dtype = BP_F16;
  EXPECT_EQ(call_of(p).product.allows_tf32, 0u);
}

TEST_F(ProductTest, PlansAreBounded) {
  const auto queue = create_queue();
  for (uint64_t rows = 1; rows <= 600; ++rows) {
    auto done = queue->multiply(product(rows, 2, 2));
    ASSERT_TRUE(done.ok() && done.value());
  }
  EXPECT_LE(products().stored_plans(), 512u);
  expect_passes(queue->mark(false).value());
}

// In memory, each row of a sequence contains one row of every head, so one stride cannot describe both dimensions of
// the batch.
void ProductTest::expect_batch_of_heads(int64_t depth) const {
  constexpr int64_t kSequences = 2, kHeads = 3, kRows = 5, kColumns = 5;
  simt::Operators operators;
  simt::add_operators(operators);
  kit::PlanForm form;
  form.op = rules::find_op(BP_OP_MATMUL);
  auto program = simt::compile(operators.find(BP_OP_MATMUL, {BP_F32, BP_F32})->kernel, form, devices[0]->kernels,
                               kit::Host(nullptr));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const auto view_of = [&](int i, std::array<int64_t, 4> shape, std::array<int64_t, 4> strides) {
    simt::View out;
    out.place = place(i);
    out.dtype = BP_F32;
    out.rank = 4;
    std::copy(shape.begin(), shape.end(), out.shape);
    std::copy(strides.begin(), strides.end(), out.strides);
    return out;
  };
  const int64_t pitch = kHeads * depth;
  const simt::View inputs[] = {view_of(1, {kSequences, kHeads, kRows, depth}, {kRows * pitch, depth, pitch, 1}),
                               view_of(2, {kSequences, kHeads, depth, kColumns}, {kColumns * pitch, depth, 1, pitch})};
  const simt::View outputs[] = {
      view_of(0, {kSequences, kHeads, kRows, kColumns}, {kHeads * kRows * kColumns, kRows * kColumns, kColumns, 1})};
  kit::Attributes attributes{};
  simt::Call call;
  call.op = form.op;
  call.inputs = inputs;
  call.outputs = outputs;
  call.attribute_bytes = &attributes;
  simt::Buffer* const workspace =
      context().allocate({sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, kScratchBytes, 256}).value();
  call.workspace = {workspace, 0};
  call.workspace_bytes = kScratchBytes;
  std::fill_n(values(0), kBytes / sizeof(float), NAN);
  const auto queue = create_queue();
  const kit::Status status = simt::execute(*queue, program.value(), call);
  ASSERT_TRUE(status.ok()) << status.message();
  expect_passes(queue->mark(false).value());
  EXPECT_EQ(queue->launched(), 2u) << "one product per sequence";
  for (int64_t s = 0; s < kSequences; ++s) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t column = 0; column < kColumns; ++column) {
          float sum = 0;
          for (int64_t k = 0; k < depth; ++k) {
            sum += values(1)[(s * kRows + row) * pitch + h * depth + k] *
                   values(2)[(s * kColumns + column) * pitch + h * depth + k];
          }
          ASSERT_EQ(values(0)[((s * kHeads + h) * kRows + row) * kColumns + column], sum);
        }
      }
    }
  }
  context().free(workspace);
}

TEST_F(ProductTest, ABatchWithSeveralStridesIsDivided) { expect_batch_of_heads(4); }

// The library rejects the second sequence, whose address is only a multiple of 4 bytes.
TEST_F(ProductTest, KernelsComputeAPartThatTheLibraryRejects) {
  if (context().stack().product_library().numbers.alignments[0] == kLtAbsent) GTEST_SKIP() << "no stated alignment";
  ::setenv("TEST_DRIVER_LACKS", "unaligned", 1);
  expect_batch_of_heads(3);
  ::unsetenv("TEST_DRIVER_LACKS");
}

// The sums of a linear layer with an activation are in the workspace, which has room for 3 of its 17 rows here.
TEST_F(ProductTest, ALayerWithAnActivationIsDividedByRows) {
  constexpr int64_t kRows = 17, kColumns = 40, kDepth = 30;
  constexpr uint64_t kRoom = 512;  // bytes of the workspace for sums: a row has 160 bytes
  static_assert(kRoom / (kColumns * sizeof(float)) == 3);
  simt::Operators operators;
  simt::add_operators(operators);
  const simt::OperatorEntry* const entry = operators.find(BP_OP_LINEAR, {BP_F32, BP_F32});
  ASSERT_NE(entry, nullptr);
  kit::PlanForm form;
  form.op = rules::find_op(BP_OP_LINEAR);
  auto program = simt::compile(entry->kernel, form, devices[0]->kernels, kit::Host(nullptr));
  ASSERT_TRUE(program.ok()) << program.status().message();

  simt::Buffer* const workspace =
      context().allocate({sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, kScratchBytes + kRoom, 256}).value();
  const auto view_of = [&](int i, std::initializer_list<int64_t> shape) {
    simt::View out;
    out.place = place(i);
    out.dtype = BP_F32;
    out.rank = static_cast<uint32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), out.shape);
    out.strides[out.rank - 1] = 1;
    if (out.rank == 2) out.strides[0] = out.shape[1];
    return out;
  };
  const simt::View inputs[] = {view_of(1, {kRows, kDepth}), view_of(2, {kColumns, kDepth}), view_of(3, {kColumns})};
  const simt::View outputs[] = {view_of(0, {kRows, kColumns})};
  kit::Attributes attributes{};
  bp_linear_attributes given{};
  given.activation = BP_ACTIVATION_RELU;
  std::memcpy(attributes.bytes, &given, sizeof(given));
  simt::Call call;
  call.op = form.op;
  call.inputs = inputs;
  call.outputs = outputs;
  call.attribute_bytes = &attributes;
  call.workspace = {workspace, 0};
  call.workspace_bytes = kScratchBytes + kRoom;
  std::fill_n(values(0), kBytes / sizeof(float), NAN);
  const auto queue = create_queue();
  const kit::Status status = simt::execute(*queue, program.value(), call);
  ASSERT_TRUE(status.ok()) << status.message();
  expect_passes(queue->mark(false).value());
  EXPECT_EQ(queue->launched(), 12u) << "a product and a kernel for each of 6 parts";
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) {
      float sum = values(3)[column];
      for (int64_t k = 0; k < kDepth; ++k) sum += values(1)[row * kDepth + k] * values(2)[column * kDepth + k];
      ASSERT_EQ(values(0)[row * kColumns + column], std::max(sum, 0.0f)) << row << " " << column;
    }
  }
  context().free(workspace);
}

TEST_F(ProductTest, PlansStateTheWorkspaceOfTheLibrary) {
  simt::Operators operators;
  simt::add_operators(operators);
  NativeDevice device(*devices[0], kit::Host(nullptr));
  bp_tensor_desc c{};
  c.dtype = BP_F32;
  c.rank = 2;
  c.shape[0] = c.shape[1] = 4096;
  kit::CheckedDesc checked;
  checked.desc.inputs = checked.desc.outputs = &c;
  const auto prepare = [&](uint32_t op, uint64_t flags) {
    checked.desc.op = op;
    checked.desc.flags = flags;
    kit::PlanNeeds needs;
    EXPECT_TRUE(device.prepare(operators.find(op, {BP_F32, BP_F32})->kernel, checked, needs).ok());
    return needs;
  };
  EXPECT_EQ(prepare(BP_OP_MATMUL, 0).workspace_bytes, uint64_t{32} << 20);
  EXPECT_EQ(prepare(BP_OP_LINEAR, 0).workspace_bytes, uint64_t{96} << 20);
  EXPECT_TRUE(prepare(BP_OP_LINEAR, 0).sized_workspace);
  EXPECT_FALSE(prepare(BP_OP_MATMUL, BP_OP_FLAG_DETERMINISTIC).sized_workspace);
  const simt::Program program{.op = operators.find(BP_OP_LINEAR, {BP_F32, BP_F32})->kernel};
  c.shape[0] = 1;
  checked.desc.op = BP_OP_LINEAR;
  EXPECT_EQ(device.workspace(program, checked.desc), (uint64_t{1} << 20) + 16384);
  checked.desc.flags = 0;
  EXPECT_EQ(device.is_deterministic(program.op, checked), context().stack().product_library().is_deterministic);
  checked.desc.flags = BP_OP_FLAG_DETERMINISTIC;
  EXPECT_TRUE(device.is_deterministic(program.op, checked));
}

TEST_F(ProductTest, ADeterministicProgramUsesKernels) {
  simt::Operators operators;
  simt::add_operators(operators);
  kit::PlanForm form;
  form.flags = BP_OP_FLAG_DETERMINISTIC;
  auto program = simt::compile(operators.find(BP_OP_MATMUL, {BP_F32, BP_F32})->kernel, form, devices[0]->kernels,
                               kit::Host(nullptr));
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE(program.value().deterministic);
}

TEST_F(ProductTest, StreamsHaveHandlesOfTheirOwn) {
  const auto first = create_queue(), second = create_queue();
  for (int i = 0; i < 8; ++i) {
    for (Queue* queue : {first.get(), second.get()}) {
      auto done = queue->multiply(product(16, 16, 16));
      ASSERT_TRUE(done.ok() && done.value());
    }
  }
  for (Queue* queue : {first.get(), second.get()}) expect_passes(queue->mark(false).value());
}

TEST_F(ProductTest, ThreadsMultiplyAtOnce) {
  const auto multiply = [&](uint64_t rows) {
    const auto queue = create_queue();
    for (int i = 0; i < 20; ++i) {
      simt::MatrixProduct p = product(rows, 8, 8);
      p.c.place = place(0, rows * 1024);  // the threads share inputs and plans, but not outputs
      p.scratch_bytes = 0;
      auto done = queue->multiply(p);
      EXPECT_TRUE(done.ok() && done.value());
      p = product(rows, 4, 4);
      p.c.place = place(0, rows * 1024);
      p.scratch_bytes = 0;
      p.bias = place(3, rows);
      p.bias_dtype = BP_F32;
      done = queue->multiply(p);
      EXPECT_TRUE(done.ok() && done.value());
    }
    expect_passes(queue->mark(false).value());
  };
  std::vector<std::thread> threads;
  for (const uint64_t rows : {4, 8, 12}) threads.emplace_back(multiply, rows);
  for (std::thread& each : threads) each.join();
}

// The library of the test driver reports violations. Each test below violates one rule.
class ProductRules : public ProductTest {
 protected:
  void SetUp() override {
    ProductTest::SetUp();
    if (IsSkipped()) return;
    std::string pattern = testing::TempDir() + "backplane_products_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("TEST_DRIVER_VIOLATIONS", (folder_ / "violations").c_str(), 1);
    scope_.emplace(context());
    const Stack& stack = context().stack();
    library = std::move(LtLibrary::open(stack.product_library(), stack.plugin()).value());
    handle = library->take_handle().value();
    stream = stack.create_stream(0).value();
  }
  void TearDown() override {
    if (scope_) {
      EXPECT_TRUE(context().stack().wait_stream(stream).ok());
      context().stack().destroy_stream(stream);
      scope_.reset();
      ::unsetenv("TEST_DRIVER_VIOLATIONS");
      std::filesystem::remove_all(folder_);
    }
    ProductTest::TearDown();
  }
  std::shared_ptr<LtPlan> plan_of(const LtCall& call) const {
    auto plan = library->plan(handle, call.product, call.addresses.bias);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.value();
  }
  void expect_violation(const kit::Status& status, const char* rule) const {
    EXPECT_FALSE(status.ok());
    context().stack().forget_failure();
    EXPECT_THAT(status.message(), HasSubstr("returned"));
    std::ifstream file(folder_ / "violations");
    EXPECT_THAT((std::string{std::istreambuf_iterator<char>(file), {}}), HasSubstr(rule));
  }

  std::unique_ptr<LtLibrary> library;
  Handle handle = nullptr, stream = nullptr;

 private:
  std::filesystem::path folder_;
  std::optional<Scope> scope_;
};

TEST_F(ProductRules, ColumnsDoNotOverlap) {
  LtCall call = call_of(product(5, 7, 9));
  call.product.ld_a = 6;
  expect_violation(library->plan(handle, call.product, nullptr).status(), "columns of a matrix overlap");
}

TEST_F(ProductRules, AddressesHaveTheAlignmentOfThePlan) {
  LtCall call = call_of(product(4, 4, 4));
  const auto plan = plan_of(call);
  call.addresses.scratch += 4;
  expect_violation(library->multiply(handle, *plan, call.addresses, stream), "misaligned");
}

TEST_F(ProductRules, AHandleHasOneStreamAtATime) {
  const LtCall call = call_of(product(4, 4, 4));
  const auto plan = plan_of(call);
  EXPECT_TRUE(library->multiply(handle, *plan, call.addresses, stream).ok());
  const Handle other = context().stack().create_stream(0).value();
  expect_violation(library->multiply(handle, *plan, call.addresses, other), "another stream uses the handle");
  context().stack().destroy_stream(other);
}

TEST_F(ProductRules, AStreamBelongsToTheContext) {
  const LtCall call = call_of(product(4, 4, 4));
  const auto plan = plan_of(call);
  Handle other = nullptr;
  {
    const Scope scope(context(1));
    other = context(1).stack().create_stream(0).value();
  }
  expect_violation(library->multiply(handle, *plan, call.addresses, other), "the stream has another context");
  const Scope scope(context(1));
  expect_violation(library->multiply(handle, *plan, call.addresses, other), "the handle has another context");
  context(1).stack().destroy_stream(other);
}

}  // namespace

}  // namespace backplane::gpu_host::test
