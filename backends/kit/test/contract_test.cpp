// SPDX-License-Identifier: Apache-2.0
// Tests the guarantees of every plugin made with the kit: errors, struct roles, version
// negotiation, plans and memory.
#include <sys/mman.h>
#include <array>

#include "driver.hpp"

namespace backplane::kit::test {
namespace {

using testing::HasSubstr;

TEST(Error, MessagesAreCutBetweenCharacters) {
  bp_error error{};
  error.struct_size = sizeof(error);
  const std::string message = std::string(486, 'x') + "\xC3\xA4 and more";
  EXPECT_EQ(report(&error, BP_INTERNAL, message, 7, -3), BP_INTERNAL);
  EXPECT_EQ(error.message_length, 486u);
  EXPECT_EQ(std::string(error.message), std::string(486, 'x'));
  EXPECT_EQ(error.op, 7u);
  EXPECT_EQ(error.vendor_code, -3);
}

TEST(Error, ARecordThatIsTooSmallOrASuccessIsLeftAlone) {
  bp_error error{}, before{};
  for (const uint32_t size : {0u, BP_ERROR_MIN_SIZE - 1}) {
    error.struct_size = before.struct_size = size;
    EXPECT_EQ(report(&error, BP_INTERNAL, "x"), BP_INTERNAL);
    EXPECT_EQ(std::memcmp(&error, &before, sizeof(error)), 0);
  }
  error.struct_size = before.struct_size = sizeof(error);
  for (const bp_status status : {BP_OK, BP_NOT_READY, BP_TIMEOUT}) report(&error, status, "x");
  EXPECT_EQ(std::memcmp(&error, &before, sizeof(error)), 0);
  EXPECT_EQ(report(nullptr, BP_INTERNAL, "x"), BP_INTERNAL);
}

TEST(Error, ExceptionsStopAtTheBoundary) {
  bp_error error{};
  error.struct_size = sizeof(error);
  EXPECT_EQ(fence(&error, []() -> Status { throw std::bad_alloc(); }), BP_OUT_OF_MEMORY);
  EXPECT_EQ(fence(&error, []() -> Status { throw std::runtime_error("why"); }), BP_INTERNAL);
  EXPECT_STREQ(error.message, "why");
  EXPECT_EQ(fence(&error, []() -> Status { throw 1; }), BP_INTERNAL);
}

TEST(Error, NoResultIsLeftAfterANullHandle) {
  bp_error error{};
  error.struct_size = sizeof(error);
  int made = 0;
  int* out = &made;
  const bp_device* none = nullptr;
  EXPECT_EQ(fence_out(none, &out, &error, [&]() -> Result<int*> { return &made; }), BP_INVALID_ARGUMENT);
  EXPECT_EQ(out, nullptr);
  EXPECT_STREQ(error.message, "plugin: the handle is null");
  EXPECT_EQ(fence_out(&made, static_cast<int**>(nullptr), &error, [&]() -> Result<int*> { return &made; }),
            BP_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "plugin: the pointer for the result is null");
}

// A struct at the end of a page, so that any access past its end faults.
class Guarded {
 public:
  explicit Guarded(size_t bytes) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    size_ = 2 * page;
    memory_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + page, page, PROT_NONE);
    at = memory_ + page - bytes;
  }
  ~Guarded() { munmap(memory_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  std::byte* at;

 private:
  std::byte* memory_;
  size_t size_;
};

TEST_F(KitTest, CompositesHaveDtypesOfTheirOwnAndOperandsThatAreAbsent) {
  Op op;
  ASSERT_EQ(prepare_quantized_matmul(op), BP_OK) << error.message;
  bp_buffer *in = buffer(), *out = buffer();
  ASSERT_EQ(execute(a, op, {{in, 0, 0}, {in, 0, 0}, {in, 0, 0}, {}, {in, 0, 0}}, {out, 0, 0}), BP_OK) << error.message;
  ASSERT_EQ(wait(a), BP_OK);
  EXPECT_EQ(map(out)[0], 4);
}

TEST_F(KitTest, InputStructsRejectUnknownFields) {
  for (const auto& [size, tail, expected] :
       {std::tuple{BP_BUFFER_DESC_MIN_SIZE - 4, 0, BP_INVALID_ARGUMENT}, std::tuple{BP_BUFFER_DESC_MIN_SIZE, 0, BP_OK},
        std::tuple{BP_BUFFER_DESC_MIN_SIZE + 64, 0, BP_OK},
        std::tuple{BP_BUFFER_DESC_MIN_SIZE + 64, 1, BP_UNSUPPORTED}}) {
    const Guarded memory(size);
    const bp_buffer_desc desc{size, BP_MEMORY_DEVICE, 64, 0};
    std::memcpy(memory.at, &desc, std::min<size_t>(size, sizeof(desc)));
    if (tail != 0) memory.at[size - 1] = std::byte{1};
    bp_buffer* out = reinterpret_cast<bp_buffer*>(this);
    EXPECT_EQ(api->buffer_create(device, reinterpret_cast<const bp_buffer_desc*>(memory.at), &out, &error), expected)
        << size;
    EXPECT_EQ(out != nullptr, expected == BP_OK);
    if (out != nullptr) api->buffer_destroy(device, out);
  }
}

TEST_F(KitTest, OutputStructsAreWrittenToTheirEndAndNoFurther) {
  for (const uint32_t size : {BP_MEMORY_INFO_MIN_SIZE, BP_MEMORY_INFO_MIN_SIZE + 64}) {
    const Guarded memory(size);
    std::memset(memory.at, 0xFF, size);
    std::memcpy(memory.at, &size, sizeof(size));
    auto* info = reinterpret_cast<bp_memory_info*>(memory.at);
    ASSERT_EQ(api->memory_info(device, BP_MEMORY_DEVICE, info, &error), BP_OK);
    EXPECT_EQ(info->struct_size, size);
    EXPECT_EQ(info->total_bytes, uint64_t{1} << 20);
    for (uint32_t i = BP_MEMORY_INFO_MIN_SIZE; i < size; ++i) EXPECT_EQ(memory.at[i], std::byte{0});
  }
  bp_memory_info info{};
  info.struct_size = BP_MEMORY_INFO_MIN_SIZE - 1;
  EXPECT_EQ(api->memory_info(device, BP_MEMORY_DEVICE, &info, &error), BP_INVALID_ARGUMENT);
}

TEST_F(KitTest, AnOlderHostMustUpdate) {
  bp_host old = *host();
  old.abi_version = 0;
  const bp_plugin* out = plugin;
  EXPECT_EQ(query<Driver>(&old, &out, &error), BP_ABI_MISMATCH);
  EXPECT_EQ(out, nullptr);
  EXPECT_THAT(error.message, HasSubstr("update the host"));
  old.abi_version = BP_ABI_VERSION_OLDEST - 1;
  EXPECT_EQ(query<Driver>(&old, &out, &error), BP_ABI_MISMATCH);
  for (const uint32_t version : {BP_VERSION(BP_ABI_VERSION_MAJOR + 1, 0), BP_VERSION(0xFFFF, 0xFFFF)}) {
    old.abi_version = version;
    EXPECT_EQ(query<Driver>(&old, &out, &error), BP_ABI_MISMATCH) << version;
    EXPECT_EQ(out, nullptr);
    EXPECT_THAT(error.message, HasSubstr("install a newer build of the plugin"));
  }
  for (const uint32_t version : {BP_ABI_VERSION_OLDEST, BP_VERSION(BP_ABI_VERSION_MAJOR, 0xFFFF)}) {
    old.abi_version = version;
    ASSERT_EQ(query<Driver>(&old, &out, &error), BP_OK) << version;
    EXPECT_EQ(out->abi_version, BP_ABI_VERSION);
    EXPECT_EQ(out->abi_version_min, BP_ABI_VERSION_OLDEST);
    out->shutdown(out);
  }
  old.abi_version = BP_ABI_VERSION + 1;
  ASSERT_EQ(query<Driver>(&old, &out, &error), BP_OK);
  EXPECT_NE(out, plugin) << "every query is an instance of its own";
  out->shutdown(out);
  EXPECT_EQ(query<Driver>(nullptr, &out, &error), BP_INVALID_ARGUMENT);
}

TEST_F(KitTest, DevicesAreOpenedWithTheRequestedOptions) {
  bp_device* out = nullptr;
  EXPECT_EQ(plugin->device_open(plugin, 1, nullptr, &out, &error), BP_INVALID_ARGUMENT);
  bp_device_desc desc{sizeof(desc), 0, "speed=11"};
  EXPECT_EQ(plugin->device_open(plugin, 0, &desc, &out, &error), BP_UNSUPPORTED);
  EXPECT_THAT(error.message, HasSubstr("speed"));
  desc = {sizeof(desc), 1, nullptr};
  EXPECT_EQ(plugin->device_open(plugin, 0, &desc, &out, &error), BP_UNSUPPORTED);
}

TEST_F(KitTest, SupportIsReportedWithoutAPlan) {
  Op op, missing;
  EXPECT_EQ(prepare(BP_OP_COPY, op, true), BP_OK);
  EXPECT_EQ(op.info.flags, BP_PLAN_ANY_SIZE | BP_PLAN_DETERMINISTIC);
  EXPECT_EQ(prepare(BP_OP_SUB, missing), BP_UNSUPPORTED);
  EXPECT_EQ(missing.plan, nullptr);
  EXPECT_THAT(error.message, testing::AllOf(HasSubstr("sub"), HasSubstr("f32")));
  EXPECT_EQ(error.op, uint32_t{BP_OP_SUB});
}

TEST_F(KitTest, ADenseKernelHasOtherOperandsStaged) {
  Op op;
  op.in = {view({4}), view({4})};
  op.in[0].strides[0] = 2;
  op.in[1].strides[0] = 0;
  op.in[1].flags = BP_DESC_IMMEDIATE;
  op.out = {view({4})};
  ASSERT_EQ(prepare(BP_OP_ADD, op), BP_OK);
  EXPECT_EQ(op.info.stage_inputs, 3u);
  EXPECT_EQ(op.info.stage_outputs, 0u);
  EXPECT_EQ(op.info.workspace_bytes, 256u);
  op.in = {view({4}), view({4})};
  op.out[0].strides[0] = -1;
  ASSERT_EQ(prepare(BP_OP_ADD, op), BP_OK);
  EXPECT_EQ(op.info.stage_inputs, 0u);
  EXPECT_EQ(op.info.stage_outputs, 1u);
}

TEST_F(KitTest, APreparedKernelServesItsSizesAlone) {
  bp_buffer *x = buffer(64), *workspace = buffer(256);
  Op op, large;
  large.in = {view({9}), view({9})}, large.out = {view({9})};
  EXPECT_EQ(prepare(BP_OP_DIV, large), BP_UNSUPPORTED);
  EXPECT_EQ(Driver::prepared_alive, 0);

  op.in = {view({4}), view({4})};
  op.in[0].strides[0] = 2;
  ASSERT_EQ(prepare(BP_OP_DIV, op), BP_OK) << error.message;
  EXPECT_EQ(Driver::prepared_alive, 1);
  EXPECT_EQ(op.info.flags & BP_PLAN_ANY_SIZE, 0u);
  EXPECT_EQ(op.info.stage_inputs, 1u);
  EXPECT_EQ(op.info.workspace_bytes, 64u);

  op.in[0].strides[0] = 1;  // core makes staged operands dense
  std::fill_n(map(x), 4, 8.0f);
  ASSERT_EQ(execute(a, op, {{x, 0, 0}, {x, 0, 0}}, {x, 0, 0}, {}, workspace), BP_OK) << error.message;
  EXPECT_EQ(wait(a), BP_OK);
  EXPECT_EQ(map(x)[0], 0.25f);
  op.in[1].strides[0] = 2;
  EXPECT_EQ(execute(a, op, {{x, 0, 0}, {x, 0, 0}}, {x, 0, 0}, {}, workspace), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("make a plan for this one"));
  for (bp_tensor_desc* each : {&op.in[0], &op.in[1], &op.out[0]}) *each = view({3});
  EXPECT_EQ(execute(a, op, {{x, 0, 0}, {x, 0, 0}}, {x, 0, 0}, {}, workspace), BP_INVALID_ARGUMENT);
}

TEST_F(KitTest, PreparedStateLivesUntilTheLastRun) {
  bp_buffer *x = buffer(), *workspace = buffer(256);
  Op op;
  ASSERT_EQ(prepare(BP_OP_DIV, op), BP_OK);
  std::fill_n(map(x), 4, 8.0f);
  enqueue(a, BP_OP_FLOOR, x, x);
  ASSERT_EQ(execute(a, op, {{x, 0, 0}, {x, 0, 0}}, {x, 0, 0}, {}, workspace), BP_OK) << error.message;
  forget(op);
  EXPECT_EQ(Driver::prepared_alive, 1);
  gate_open = true;
  ASSERT_EQ(wait(a), BP_OK);
  EXPECT_EQ(map(x)[0], 0.25f);
  EXPECT_EQ(Driver::prepared_alive, 0);
}

TEST_F(KitTest, ScalarsMayLieOnTheDevice) {
  Op op;
  op.desc.flags = BP_OP_FLAG_DEVICE_SCALARS;
  ASSERT_EQ(prepare(BP_OP_FILL, op), BP_OK);
  bp_buffer *x = buffer(), *value = buffer();
  map(value)[2] = 1;
  enqueue(a, BP_OP_NEG, x, x);  // a slow kernel, so that the next commands are enqueued while it runs
  enqueue(a, BP_OP_FILL, nullptr, value, 6);
  ASSERT_EQ(execute(a, op, {}, {x, 0, 0}, {{value, 8, 0}}), BP_OK) << error.message;
  ASSERT_EQ(wait(a), BP_OK);
  EXPECT_EQ(map(x)[0], 6);
  EXPECT_EQ(execute(a, op, {}, {x, 0, 0}, {{value, 62, 0}}), BP_INVALID_ARGUMENT);
  EXPECT_EQ(execute(a, op, {}, {x, 0, 0}, {{nullptr, 0, 0}}), BP_INVALID_ARGUMENT);
  EXPECT_EQ(execute(a, op, {}, {x, 0, 0}, {{value, 6, 0}}), BP_INVALID_ARGUMENT) << "a f32 at byte 6";
  EXPECT_THAT(error.message, HasSubstr("natural alignment"));
  Op plain;
  ASSERT_EQ(prepare(BP_OP_FILL, plain), BP_OK);
  EXPECT_EQ(execute(a, plain, {}, {x, 0, 0}, {{value, 8, 0}}), BP_INVALID_ARGUMENT);
}

TEST_F(KitTest, DescriptorsAreChecked) {
  const auto plan_status = [&](uint32_t op, const auto& change) {
    Op made;
    made.in.assign(find_op(op)->inputs_min, view({4}));
    made.out.assign(1, view({4}));
    change(made);
    return prepare(op, made);
  };
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.in.pop_back(); }), BP_INVALID_ARGUMENT);
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.in[0].dtype = BP_F64; }), BP_UNSUPPORTED);
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.in[0].dtype = 31; }), BP_UNSUPPORTED);
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.in[0].rank = 9; }), BP_INVALID_ARGUMENT);
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.in[1].shape[0] = 1; }), BP_INVALID_ARGUMENT);
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.in[1].shape[0] = -4; }), BP_INVALID_ARGUMENT);
  const auto vast = [](Op& op) {
    for (bp_tensor_desc* each : {&op.in[0], &op.in[1], &op.out[0]}) *each = view({4, INT64_MAX / 2});
  };
  EXPECT_EQ(plan_status(BP_OP_MUL, vast), BP_UNSUPPORTED) << "elements beyond 63 bits";
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.in[1].dtype = 0; }), BP_INVALID_ARGUMENT) << "absent";
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.in[0].flags = BP_DESC_PACKED; }), BP_UNSUPPORTED);
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.out[0].alias = 3; }), BP_INVALID_ARGUMENT);
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.desc.flags = BP_OP_FLAGS_ALL + 1; }), BP_UNSUPPORTED);
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.desc.hints = UINT32_MAX, op.in[0].flags = BP_DESC_HINTS; }), BP_OK);
  const bp_no_attributes nothing{sizeof(nothing), 0}, something{sizeof(something), 1};
  EXPECT_EQ(plan_status(BP_OP_MUL, [&](Op& op) { op.desc.attributes = &nothing; }), BP_OK);
  EXPECT_EQ(plan_status(BP_OP_MUL, [&](Op& op) { op.desc.attributes = &something; }), BP_UNSUPPORTED)
      << "a later field";
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.in.push_back(bp_tensor_desc{}); }), BP_OK)
      << "an absent operand more";
  EXPECT_EQ(plan_status(BP_OP_MUL, [](Op& op) { op.in.push_back(view({4})); }), BP_UNSUPPORTED) << "a later operand";
  EXPECT_EQ(plan_status(BP_OP_REDUCE_SUM, [](Op&) {}), BP_INVALID_ARGUMENT) << "no attributes";
  const bp_reduce_attributes beyond{sizeof(beyond), 2}, kept{sizeof(kept), 0}, range{sizeof(range), 256};
  EXPECT_EQ(plan_status(BP_OP_REDUCE_SUM, [&](Op& op) { op.desc.attributes = &beyond; }), BP_INVALID_ARGUMENT);
  EXPECT_EQ(plan_status(BP_OP_REDUCE_SUM, [&](Op& op) { op.desc.attributes = &range; }), BP_UNSUPPORTED)
      << "a later value";
  EXPECT_EQ(plan_status(BP_OP_REDUCE_SUM, [&](Op& op) { op.desc.attributes = &kept; }), BP_UNSUPPORTED) << "no kernel";
  const bp_axis_attributes first{sizeof(first), 0}, second{sizeof(second), 1};
  EXPECT_EQ(plan_status(BP_OP_SOFTMAX, [&](Op& op) { op.desc.attributes = &first; }), BP_UNSUPPORTED) << "no kernel";
  EXPECT_EQ(plan_status(BP_OP_SOFTMAX, [&](Op& op) { op.desc.attributes = &second; }), BP_INVALID_ARGUMENT)
      << "an axis that is not below the rank";
}

TEST_F(KitTest, MemoryIsAccountedAndLimited) {
  const uint64_t half = uint64_t{1} << 19;
  const auto free_bytes = [&] {
    bp_memory_info info{};
    info.struct_size = sizeof(info);
    EXPECT_EQ(api->memory_info(device, BP_MEMORY_SHARED, &info, &error), BP_OK);
    return info.free_bytes;
  };
  const uint64_t before = free_bytes();
  buffer(half);
  EXPECT_EQ(free_bytes(), before - half);
  bp_buffer_desc desc{sizeof(desc), BP_MEMORY_DEVICE, half + 1, 0};
  bp_buffer* out = nullptr;
  EXPECT_EQ(api->buffer_create(device, &desc, &out, &error), BP_OUT_OF_MEMORY);
  EXPECT_THAT(error.message, HasSubstr("524289"));
  desc = {sizeof(desc), BP_MEMORY_DEVICE, 64, 4096};
  ASSERT_EQ(api->buffer_create(device, &desc, &out, &error), BP_OK);
  void* address = nullptr;
  EXPECT_EQ(api->buffer_map(device, out, &address, &error), BP_UNSUPPORTED);
  api->buffer_destroy(device, out);
  EXPECT_EQ(free_bytes(), before - half);
  for (const auto& [kind, bytes, alignment, expected] :
       {std::tuple{3u, 8u, 0u, BP_UNSUPPORTED}, std::tuple{0u, 0u, 0u, BP_INVALID_ARGUMENT},
        std::tuple{0u, 8u, 3u, BP_INVALID_ARGUMENT}, std::tuple{0u, 8u, 1u << 30, BP_UNSUPPORTED}}) {
    desc = {sizeof(desc), kind, bytes, alignment};
    EXPECT_EQ(api->buffer_create(device, &desc, &out, &error), expected);
  }
}

TEST_F(KitTest, OpenDevicesWithOneIndexShareTheirMemory) {
  bp_device* second = nullptr;
  ASSERT_EQ(plugin->device_open(plugin, 0, nullptr, &second, &error), BP_OK);
  const auto free_bytes = [&](bp_device* of) {
    bp_memory_info info{};
    info.struct_size = sizeof(info);
    EXPECT_EQ(api->memory_info(of, BP_MEMORY_DEVICE, &info, &error), BP_OK);
    return info.free_bytes;
  };
  const uint64_t before = free_bytes(device);
  const bp_buffer_desc desc{sizeof(desc), BP_MEMORY_DEVICE, 3 << 18, 0};
  bp_buffer *held = nullptr, *refused = nullptr;
  ASSERT_EQ(api->buffer_create(second, &desc, &held, &error), BP_OK);
  EXPECT_EQ(free_bytes(device), before - desc.bytes);
  EXPECT_EQ(free_bytes(second), before - desc.bytes);
  EXPECT_EQ(api->buffer_create(device, &desc, &refused, &error), BP_OUT_OF_MEMORY);
  api->buffer_destroy(second, held);
  api->close(second);
  EXPECT_EQ(free_bytes(device), before);
}

TEST_F(KitTest, HostMemoryCanBeImported) {
  EXPECT_EQ(plugin->get_interface(plugin, device, "bp.unknown", 1), nullptr);
  EXPECT_EQ(plugin->get_interface(plugin, device, BP_INTERFACE_IMPORT, 2), nullptr);
  const auto* import = static_cast<const bp_import_api*>(plugin->get_interface(plugin, device, BP_INTERFACE_IMPORT, 1));
  ASSERT_NE(import, nullptr);
  alignas(8) float memory[4] = {1, 2, 3, 4};
  uint32_t kind = 0;
  bp_buffer* x = nullptr;
  bp_import_desc desc = {sizeof(desc), BP_IMPORT_HOST, reinterpret_cast<uint64_t>(memory), sizeof(memory)};
  ASSERT_EQ(import->import_memory(device, &desc, &kind, &x, &error), BP_OK);
  EXPECT_EQ(kind, BP_MEMORY_SHARED);
  EXPECT_EQ(enqueue(a, BP_OP_NEG, x, x), BP_OK);
  EXPECT_EQ(wait(a), BP_OK);
  EXPECT_EQ(memory[3], -4);
  uint64_t address = 0;
  EXPECT_EQ(api->buffer_address(device, x, &address, &error), BP_OK);
  EXPECT_EQ(address, desc.address);
  api->buffer_destroy(device, x);
  desc.type = BP_IMPORT_DEVICE;
  ASSERT_EQ(import->import_memory(device, &desc, &kind, &x, &error), BP_OK);
  EXPECT_EQ(kind, BP_MEMORY_DEVICE);
  api->buffer_destroy(device, x);
  desc.type = 2;
  EXPECT_EQ(import->import_memory(device, &desc, &kind, &x, &error), BP_UNSUPPORTED);
  const std::array<bp_import_desc, 4> wrong = {{{sizeof(desc), BP_IMPORT_HOST, 0, 4},
                                                {sizeof(desc), BP_IMPORT_HOST, desc.address, 0},
                                                {sizeof(desc) - 1, BP_IMPORT_HOST, desc.address, 4},
                                                {BP_STRUCT_LIMIT + 1, BP_IMPORT_HOST, desc.address, 4}}};
  for (const bp_import_desc& bad : wrong) {
    EXPECT_EQ(import->import_memory(device, &bad, &kind, &x, &error), BP_INVALID_ARGUMENT);
    EXPECT_EQ(x, nullptr);
  }
  EXPECT_EQ(import->import_memory(device, nullptr, &kind, &x, &error), BP_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace backplane::kit::test
