// SPDX-License-Identifier: Apache-2.0
// Tests of the rules: sets of dtypes, attributes of every size, canonical form, plan classes, and
// the ABI version that a descriptor needs.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <backplane/rules/check.hpp>
#include <backplane/rules/plan_class.hpp>
#include <backplane/rules/since.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace backplane::rules {
namespace {

const OpInfo& op(uint32_t id) { return *find_op(id); }

bp_status status_of(const std::function<void()>& check) {
  try {
    check();
    return BP_OK;
  } catch (const Violation& violation) {
    EXPECT_STRNE(violation.what(), "");
    return violation.status();
  }
}

// ---- Dtypes

TEST(Dtypes, AMaskHasABitForEachIdAndNoneForOthers) {
  static_assert(BP_DTYPE_BIT(63) == uint64_t{1} << 63);
  static_assert(BP_DTYPE_BIT(64) == 0 && BP_DTYPE_BIT(65535) == 0 && BP_DTYPE_BIT(UINT32_MAX) == 0);
  for (uint32_t dtype = 0; dtype < 200; ++dtype) EXPECT_EQ(in_set(UINT64_MAX, dtype), dtype < BP_DTYPE_LIMIT) << dtype;
  EXPECT_FALSE(in_set(BP_SET_ALL, BP_F32 + 64)) << "no bit is shared";
  EXPECT_EQ(dtype_name(65535), std::string("unknown"));
  EXPECT_EQ(dtype_bytes(BP_F32 + 64), 0u);
  EXPECT_EQ(dtype_list(BP_SET_FLOATS), "f16, bf16, f32, f64");
}

TEST(Dtypes, ReservedNumbersAreTakenOnce) {
  uint64_t seen = BP_SET_ALL;
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core)
#define BP_DTYPE_RESERVED(id, symbol, name, bytes) \
  EXPECT_EQ(seen& BP_DTYPE_BIT(id), 0u) << name;   \
  EXPECT_NE(BP_DTYPE_BIT(id), 0u) << name;         \
  EXPECT_EQ(find_dtype(id), nullptr) << name;      \
  EXPECT_EQ(dtype_by_name(name), 0u);              \
  seen |= BP_DTYPE_BIT(id);
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
  EXPECT_EQ(seen, (uint64_t{1} << 33) - 2) << "1 to 32, without a hole";
}

TEST(Dtypes, NaturalAlignmentIsAPowerOfTwoUpToEight) {
  const uint32_t expected[] = {1, 1, 2, 1, 4, 1, 2, 1, 8};
  for (uint32_t bytes = 0; bytes <= 8; ++bytes) EXPECT_EQ(natural_alignment(bytes), expected[bytes]) << bytes;
  EXPECT_EQ(natural_alignment(12), 4u);
  EXPECT_EQ(natural_alignment(16), 8u) << "c128";
}

// ---- The table

TEST(Operators, RowsAreFoundByIdAndInOrder) {
  uint32_t before = 0;
  for (const OpInfo& row : op_rows()) {
    EXPECT_GT(row.id, before);
    before = row.id;
    EXPECT_EQ(find_op(row.id), &row);
    EXPECT_EQ(row.since, row.id <= BP_OP_ADAMW ? BP_VERSION(0, 2) : BP_VERSION(0, 3));
    EXPECT_LE(row.scalars_min, row.scalars_max);
    EXPECT_EQ(row.attributes->bytes % 8, 0u);
  }
  for (const uint32_t none : {0u, 99u, uint32_t{BP_OP_LIMIT}, UINT32_MAX}) EXPECT_EQ(find_op(none), nullptr);
  EXPECT_EQ(op(BP_OP_DIV).accuracy.letter, 'U');
  EXPECT_EQ(op(BP_OP_RSQRT).accuracy.ulps, 2);
  EXPECT_STREQ(op(BP_OP_RSQRT).accuracy.text, "U(2)");
  EXPECT_EQ(op(BP_OP_PHILOX).scalar_dtype, uint32_t{BP_I64});
  EXPECT_EQ(op(BP_OP_FILL).scalar_dtype, 0u);
  EXPECT_EQ(op(BP_OP_ADD).i64_profile, uint32_t{BP_PROFILE_INFER});
  EXPECT_EQ(op(BP_OP_NEG).i64_profile, 0u);
  EXPECT_EQ(op(BP_OP_ADD).attributes->bytes, 0u);
  EXPECT_TRUE(op(BP_OP_ADD).attributes->optional);
  EXPECT_FALSE(op(BP_OP_SORT).attributes->optional);
  EXPECT_TRUE(op(BP_OP_SORT).attributes->has_axis());
  EXPECT_FALSE(op(BP_OP_REDUCE_SUM).attributes->has_axis());
}

// ---- Attributes

// A block of `size` bytes before an inaccessible page. A read beyond the block ends the process.
class Guarded {
 public:
  explicit Guarded(size_t size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (size + page - 1) / page * page;
    memory_ = static_cast<unsigned char*>(
        mmap(nullptr, bytes_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + bytes_, page, PROT_NONE);
    mapped_ = bytes_ + page;
    at = memory_ + bytes_ - size;
  }
  ~Guarded() { munmap(memory_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  unsigned char* at;

 private:
  unsigned char* memory_;
  size_t bytes_, mapped_;
};

bp_status read(uint32_t id, const void* attributes) {
  unsigned char out[kMaxAttributeBytes];
  return status_of([&] { copy_attributes(op(id), attributes, out); });
}

// Reads a struct whose struct_size is `claimed`. Only `held` bytes exist, and they begin with a
// copy of `from`.
bp_status read_sized(uint32_t id, const void* from, size_t from_bytes, uint32_t claimed, size_t held, int tail = 0) {
  const Guarded memory(held);
  std::memset(memory.at, 0, held);
  std::memcpy(memory.at, from, std::min(from_bytes, held));
  std::memcpy(memory.at, &claimed, std::min(sizeof(claimed), held));
  if (tail != 0) memory.at[held - 1] = static_cast<unsigned char>(tail);
  return read(id, memory.at);
}

TEST(Attributes, AreReadAtEverySize) {
  const bp_cumsum_attributes full{sizeof(full), 1, 0, 0};
  for (uint32_t size = 4; size <= 256; ++size) {
    const bp_status expected = size % 8 != 0 || size < 8 ? BP_INVALID_ARGUMENT : BP_OK;
    EXPECT_EQ(read_sized(BP_OP_CUMSUM, &full, sizeof(full), size, size), expected) << size;
    if (size <= sizeof(full) || size % 8 != 0) continue;
    EXPECT_EQ(read_sized(BP_OP_CUMSUM, &full, sizeof(full), size, size, 1), BP_UNSUPPORTED) << size;
  }
  EXPECT_EQ(read_sized(BP_OP_CUMSUM, &full, sizeof(full), BP_STRUCT_LIMIT, BP_STRUCT_LIMIT), BP_OK);
  for (const uint32_t size : {0u, 4u, BP_STRUCT_LIMIT + 8, 0xCCCCCCC8u, UINT32_MAX}) {
    EXPECT_EQ(read_sized(BP_OP_CUMSUM, &full, sizeof(full), size, sizeof(full)), BP_INVALID_ARGUMENT) << size;
  }
}

TEST(Attributes, OfMissingFieldsAreZero) {
  bp_cumsum_attributes out{};
  const bp_cumsum_attributes short_one{8, 1, 7, 7};  // the fields with 7 are beyond struct_size
  unsigned char room[kMaxAttributeBytes];
  std::memset(room, 0xFF, sizeof(room));
  copy_attributes(op(BP_OP_CUMSUM), &short_one, room);
  std::memcpy(&out, room, sizeof(out));
  EXPECT_EQ(out.struct_size, sizeof(out));
  EXPECT_EQ(out.axis, 1u);
  EXPECT_EQ(out.exclusive | out.reverse, 0u);
}

// Reading a shorter struct must return the same status as reading the whole struct with a zero
// tail, even if zero is illegal.
TEST(Attributes, AShortStructEqualsTheWholeStructWithAZeroTail) {
  for (const OpInfo& row : op_rows()) {
    if (row.attributes->bytes == 0) continue;
    for (uint32_t size = 8; size <= row.attributes->bytes; size += 8) {
      std::vector<unsigned char> bytes(row.attributes->bytes);
      std::memcpy(bytes.data(), &row.attributes->bytes, sizeof(uint32_t));
      const bp_status whole = read(row.id, bytes.data());
      EXPECT_EQ(read_sized(row.id, bytes.data(), size, size, size), whole) << row.name << ' ' << size;
    }
  }
}

TEST(Attributes, OutOfRangeAreUnsupported) {
  const bp_compare_attributes predicate{8, 6};
  EXPECT_EQ(read(BP_OP_COMPARE, &predicate), BP_UNSUPPORTED);
  const bp_sort_attributes reserved{16, 0, 0, 1};
  EXPECT_EQ(read(BP_OP_SORT, &reserved), BP_UNSUPPORTED);
  for (const float epsilon : {std::numeric_limits<float>::quiet_NaN(), -1.0f, std::numeric_limits<float>::infinity()}) {
    const bp_norm_attributes norm{sizeof(norm), 1, epsilon, 0};
    EXPECT_EQ(read(BP_OP_LAYER_NORM, &norm), BP_UNSUPPORTED) << epsilon;
  }
  bp_conv_attributes conv{};
  conv.struct_size = sizeof(conv), conv.spatial_rank = 1, conv.groups = 1;
  EXPECT_EQ(read(BP_OP_CONV, &conv), BP_OK);
  conv.pad_end[2] = -1;
  EXPECT_EQ(read(BP_OP_CONV, &conv), BP_UNSUPPORTED) << "the last of an array";
}

TEST(Attributes, OfOperatorsWithoutAnyMayBeNullOrZero) {
  const uint32_t zeros[] = {8, 0, 0, 0}, reserved[] = {8, 1, 0, 0}, late[] = {16, 0, 0, 1}, longer[] = {16, 0, 0, 0};
  for (const OpInfo& row : op_rows()) {
    const bool none = row.attributes->bytes == 0;
    EXPECT_EQ(read(row.id, nullptr), none ? BP_OK : BP_INVALID_ARGUMENT) << row.name;
    if (!none) continue;
    EXPECT_EQ(read(row.id, zeros), BP_OK) << row.name;
    EXPECT_EQ(read(row.id, longer), BP_OK) << row.name;
    EXPECT_EQ(read(row.id, reserved), BP_UNSUPPORTED) << row.name;
    EXPECT_EQ(read(row.id, late), BP_UNSUPPORTED) << row.name;
    const uint32_t odd[] = {12, 0, 0, 0};
    EXPECT_EQ(read(row.id, odd), BP_INVALID_ARGUMENT) << row.name;
  }
}

// ---- Canonical form

bp_tensor_desc view(uint32_t dtype, std::vector<int64_t> shape) {
  bp_tensor_desc out{};
  out.dtype = static_cast<uint16_t>(dtype);
  out.rank = static_cast<uint8_t>(shape.size());
  std::copy(shape.begin(), shape.end(), out.shape);
  make_dense(out);
  return out;
}

TEST(Canonical, TrailingAbsentOperandsDoNotCount) {
  bp_tensor_desc views[5] = {view(BP_F32, {2}), {}, view(BP_F32, {2}), {}, {}};
  EXPECT_EQ(trimmed(views, 5), 3u) << "an absent one in the middle stays";
  EXPECT_EQ(trimmed(views, 2), 1u);
  EXPECT_EQ(trimmed(views + 3, 2), 0u);
  EXPECT_EQ(trimmed<bp_tensor_desc>(nullptr, 0), 0u);
  bp_op_desc desc{};
  desc.inputs = desc.outputs = views;
  desc.input_count = 5;
  desc.output_count = UINT32_MAX;  // trim_operands must not read so many views
  trim_operands(desc);
  EXPECT_EQ(desc.input_count, 3u);
  EXPECT_EQ(desc.output_count, UINT32_MAX);
  desc.inputs = nullptr;
  trim_operands(desc);
  EXPECT_EQ(desc.input_count, 3u) << "a null array is refused later, not read";
}

TEST(Canonical, LaterScalarsOfZeroBitsDoNotCount) {
  OpInfo grown = op(BP_OP_ADAMW);
  grown.scalars_max = 5;
  const uint64_t zeros[] = {0, 0, 0, 0, 0}, last[] = {1, 1, 1, 0, 0x80000000};
  EXPECT_EQ(trimmed_scalars(grown, zeros, 5), 3u);
  EXPECT_EQ(trimmed_scalars(grown, last, 5), 5u) << "-0.0f is not zero bits";
  EXPECT_EQ(trimmed_scalars(grown, last, 4), 3u);
  EXPECT_EQ(trimmed_scalars(grown, zeros, 2), 2u);
}

TEST(Canonical, AttributesOfZerosAreNull) {
  alignas(8) unsigned char bytes[24] = {24, 0, 0, 0};
  EXPECT_EQ(trimmed_attributes(bytes, 24), 8u);
  bytes[15] = 0x80;
  EXPECT_EQ(trimmed_attributes(bytes, 24), 16u);
  EXPECT_EQ(trimmed_attributes(bytes, 8), 8u);
  const bp_no_attributes zero{8, 0}, later{8, 1};
  EXPECT_EQ(canonical_attributes(op(BP_OP_ADD), &zero), nullptr);
  EXPECT_EQ(canonical_attributes(op(BP_OP_ADD), &later), &later);
  const bp_axis_attributes axis{8, 0};
  EXPECT_EQ(canonical_attributes(op(BP_OP_SOFTMAX), &axis), &axis) << "null is not legal there";
}

// ---- Counts, views, dtypes, shapes

struct Made {
  std::vector<bp_tensor_desc> inputs, outputs;
  bp_op_desc desc{};
  const bp_op_desc& operator()() {
    desc.inputs = inputs.data();
    desc.outputs = outputs.data();
    desc.input_count = static_cast<uint32_t>(inputs.size());
    desc.output_count = static_cast<uint32_t>(outputs.size());
    return desc;
  }
};

bp_status check_binary(const std::function<void(Made&)>& change) {
  Made made{{view(BP_F32, {2, 3}), view(BP_F32, {2, 3})}, {view(BP_F32, {2, 3})}};
  change(made);
  bp_op_desc desc = made();
  trim_operands(desc);
  return status_of([&] { check(op(BP_OP_ADD), desc, nullptr); });
}

TEST(Check, SeparatesPermanentErrorsFromLaterExtensions) {
  EXPECT_EQ(check_binary([](Made&) {}), BP_OK);
  EXPECT_EQ(check_binary([](Made& m) { m.inputs.push_back({}); }), BP_OK);
  EXPECT_EQ(check_binary([](Made& m) { m.desc.hints = UINT32_MAX, m.inputs[0].flags = BP_DESC_HINTS; }), BP_OK);
  const std::function<void(Made&)> invalid_ones[] = {
      [](Made& m) { m.inputs.pop_back(); },
      [](Made& m) { m.inputs[0] = {}; },
      [](Made& m) { m.outputs.clear(); },
      [](Made& m) { m.inputs[0].rank = 9; },
      [](Made& m) { m.inputs[0].shape[0] = -1; },
      [](Made& m) { m.inputs[0].shape[0] = 3; },
      [](Made& m) { m.inputs[0].flags = BP_DESC_IMMEDIATE; },  // an immediate must not have strides
      [](Made& m) { m.outputs[0].alias = 3; },
  };
  for (size_t i = 0; i < std::size(invalid_ones); ++i)
    EXPECT_EQ(check_binary(invalid_ones[i]), BP_INVALID_ARGUMENT) << i;
  const std::function<void(Made&)> unsupported_ones[] = {
      [](Made& m) {
        m.inputs.push_back(view(BP_F32, {2, 3}));
      },
      [](Made& m) {
        m.outputs.push_back(view(BP_F32, {2, 3}));
      },
      [](Made& m) { m.desc.scalar_count = 1; },
      [](Made& m) { m.desc.flags = BP_OP_FLAGS_ALL + 1; },
      [](Made& m) { m.inputs[0].dtype = 65535; },
      [](Made& m) { m.inputs[0].dtype = 14; },  // a reserved dtype
      [](Made& m) { m.inputs[0].dtype = BP_F64; },
      [](Made& m) { m.inputs[0].dtype = m.inputs[1].dtype = m.outputs[0].dtype = BP_BOOL; },
      [](Made& m) { m.inputs[0].flags = BP_DESC_HINTS + 4; },
      [](Made& m) { m.outputs[0].flags = BP_DESC_PACKED; },
      [](Made& m) {
        m.inputs[0].flags = BP_DESC_PACKED | BP_DESC_IMMEDIATE;
        m.inputs[0].strides[0] = m.inputs[0].strides[1] = 0;
      },
      [](Made& m) {
        m.inputs[0].flags = BP_DESC_PACKED;
        m.inputs[0].strides[0] = 0;
      },
      [](Made& m) {
        m.inputs[0].flags = BP_DESC_PACKED;
        m.outputs[0].alias = 1;
      },
      [](Made& m) { m.outputs[0].flags = BP_DESC_IMMEDIATE; },
      [](Made& m) { m.inputs[0].strides[0] = INT64_MAX; },
  };
  for (size_t i = 0; i < std::size(unsupported_ones); ++i) {
    EXPECT_EQ(check_binary(unsupported_ones[i]), BP_UNSUPPORTED) << i;
  }
}

TEST(Check, DoesNotReadAbsentOutputs) {
  OpInfo sort = op(BP_OP_SORT);
  sort.outputs_min = 1;
  const bp_sort_attributes attributes{sizeof(attributes), 0, 0, 0};
  const auto one = std::make_unique<bp_tensor_desc>(view(BP_F32, {4}));
  bp_op_desc desc{};
  desc.inputs = desc.outputs = one.get();
  desc.input_count = desc.output_count = 1;
  EXPECT_EQ(status_of([&] { check(sort, desc, &attributes); }), BP_OK);
}

// ---- Classes

bool near_strided(std::vector<int64_t> shape, std::vector<int64_t> strides) {
  bp_tensor_desc of = view(BP_F32, std::move(shape));
  std::copy(strides.begin(), strides.end(), of.strides);
  return is_near(of);
}
bool near(std::vector<int64_t> shape) { return is_near(view(BP_F32, std::move(shape))); }

TEST(Class, NearEndsAtTheLimit) {
  constexpr int64_t limit = BP_NEAR_LIMIT;
  EXPECT_TRUE(near({}));
  EXPECT_TRUE(near({limit - 1}));
  EXPECT_FALSE(near({limit})) << "an extent";
  EXPECT_FALSE(near({limit, 0})) << "counts also where another is 0";
  EXPECT_TRUE(near({limit - 1, 0, limit - 1})) << "no elements, and each extent is near";
  EXPECT_FALSE(near({1 << 16, 1 << 15})) << "elements";
  EXPECT_TRUE(near({(1 << 16) - 32, (1 << 15) - 32}));
  EXPECT_TRUE(near_strided({2}, {limit - 1})) << "the distance of two";
  EXPECT_FALSE(near_strided({2}, {limit}));
  EXPECT_TRUE(near_strided({2}, {1 - limit})) << "its magnitude";
  EXPECT_FALSE(near_strided({2}, {-limit}));
  EXPECT_FALSE(near_strided({2, 2}, {limit / 2, limit / 2 + 1})) << "both directions";
  EXPECT_FALSE(near_strided({2, 2}, {limit / 2 + 1, -limit / 2})) << "magnitudes add up";
  EXPECT_TRUE(near_strided({1, 2}, {INT64_MAX, 1})) << "the stride of an extent of 1 counts as 0";
  EXPECT_FALSE(near_strided({1 << 16, 1 << 15}, {0, 0})) << "a broadcast has as many elements";
}

TEST(Class, OverflowIsFar) {
  constexpr int64_t limit = BP_NEAR_LIMIT;
  EXPECT_FALSE(near({INT64_MAX}));
  EXPECT_FALSE(near_strided({2}, {INT64_MIN}));
  EXPECT_FALSE(near_strided({3, 3}, {INT64_MAX, INT64_MIN}));
  EXPECT_FALSE(near(std::vector<int64_t>(8, limit - 1)));
  EXPECT_FALSE(near_strided(std::vector<int64_t>(8, limit - 1), std::vector<int64_t>(8, limit - 1)));
}

TEST(Class, KeepsDensenessNearnessAndClassesOfExtentAndStride) {
  const bp_tensor_desc base = view(BP_F32, {4, 6});
  const auto same = [&](std::vector<int64_t> shape, std::vector<int64_t> strides = {}) {
    bp_tensor_desc other = view(BP_F32, std::move(shape));
    std::copy(strides.begin(), strides.end(), other.strides);
    return same_class(base, other);
  };
  EXPECT_TRUE(same({7, 2}));
  EXPECT_FALSE(same({4, 6, 2})) << "rank";
  EXPECT_FALSE(same({1, 6}));
  EXPECT_FALSE(same({0, 6}));
  EXPECT_FALSE(same({4, 6}, {7, 1})) << "not dense";
  EXPECT_FALSE(same({4, 6}, {-6, 1}));
  EXPECT_FALSE(same({4, 6}, {0, 1}));
  EXPECT_FALSE(same({1 << 20, 1 << 20})) << "far";
  bp_tensor_desc one = view(BP_F32, {1, 6}), moved = one;
  moved.strides[0] = -99;
  EXPECT_TRUE(same_class(one, moved)) << "the stride of an extent of 1 does not count";
}

TEST(Class, FixesPackedOperands) {
  bp_tensor_desc packed = view(BP_F32, {4, 6});
  packed.flags = BP_DESC_PACKED;
  packed.strides[0] = 256;
  packed.strides[1] = INT64_MIN;  // a layout number with the highest bit set
  Extent extent{};
  EXPECT_TRUE(extent_of(packed, 4, &extent));
  EXPECT_EQ(extent.lo, 0);
  EXPECT_EQ(extent.hi, 256);
  EXPECT_FALSE(is_dense(packed));
  EXPECT_TRUE(is_near(packed));
  EXPECT_TRUE(same_class(packed, packed));
  bp_tensor_desc other = packed;
  other.strides[1] ^= 1;
  EXPECT_FALSE(same_class(packed, other)) << "another layout";
  other = packed;
  other.strides[0] = 320;
  EXPECT_FALSE(same_class(packed, other)) << "another size";
  other = packed;
  other.shape[0] = 5;
  EXPECT_FALSE(same_class(packed, other)) << "another shape";
  other = packed;
  other.flags = 0;
  EXPECT_FALSE(same_class(packed, other)) << "a plain view";
}

// ---- Growth

bool bias_is_wide(const bp_op_desc& desc) { return desc.input_count > 2 && desc.inputs[2].dtype == BP_F64; }

TEST(Since, IsTheGreatestOfTheParts) {
  constexpr uint32_t v3 = BP_VERSION(0, 3), v4 = BP_VERSION(0, 4);
  const AttributeLayout* compare = op(BP_OP_COMPARE).attributes;
  const AttributeLayout* sort = op(BP_OP_SORT).attributes;
  using What = Growth::What;
  const Growth later[] = {
      {.what = What::attribute, .since = v3, .layout = sort, .offset = offsetof(bp_sort_attributes, reserved)},
      {.what = What::value,
       .since = v3,
       .layout = compare,
       .offset = offsetof(bp_compare_attributes, predicate),
       .old_hi = BP_COMPARE_LE},
      {.what = What::inputs, .since = v3, .op = BP_OP_LINEAR, .index = 2},
      {.what = What::rule, .since = v4, .op = BP_OP_LINEAR, .predicate = bias_is_wide},
      {.what = What::outputs, .since = v3, .op = BP_OP_SORT, .index = 1},
      {.what = What::scalars, .since = v4, .op = BP_OP_FILL, .index = 1},
      {.what = What::dtype, .since = v4, .index = BP_F64},
      {.what = What::input_dtypes, .since = v3, .op = BP_OP_GATHER, .index = 1, .old_bits = BP_DTYPE_BIT(BP_I32)},
      {.what = What::output_dtypes, .since = v3, .op = BP_OP_ARGMAX, .index = 0, .old_bits = BP_DTYPE_BIT(BP_I32)},
      {.what = What::flags, .since = v3, .old_bits = 7},
      {.what = What::view_flags, .since = v4, .old_bits = BP_DESC_IMMEDIATE | BP_DESC_HINTS},
  };
  const bp_compare_attributes old_value{8, BP_COMPARE_LE}, new_value{8, BP_COMPARE_GE};
  const bp_sort_attributes plain{16, 1, 1, 0}, with_field{16, 1, 1, 0x80000000};
  const bp_axis_attributes axis{8, 0};
  const bp_linear_attributes linear{16, 0, 0, 0};
  const bp_tensor_desc f32 = view(BP_F32, {2}), f64 = view(BP_F64, {2}), i32 = view(BP_I32, {2}),
                       i64 = view(BP_I64, {2});
  const auto since = [&](uint32_t id, std::vector<bp_tensor_desc> in, std::vector<bp_tensor_desc> out,
                         const void* attributes = nullptr, uint64_t flags = 0, uint32_t scalars = 0) {
    Made made{std::move(in), std::move(out)};
    made.desc.flags = flags;
    made.desc.scalar_count = scalars;
    const bool packed = std::any_of(made.inputs.begin(), made.inputs.end(), is_packed);
    EXPECT_EQ(since_of(op(id), made(), attributes), BP_VERSION(0, packed ? 3 : 2)) << "only packed views have grown";
    return since_of(op(id), made(), attributes, later);
  };
  constexpr uint32_t v2 = BP_VERSION(0, 2);
  EXPECT_EQ(since(BP_OP_COMPARE, {f32, f32}, {f32}, &old_value), v2);
  EXPECT_EQ(since(BP_OP_COMPARE, {f32, f32}, {f32}, &new_value), v3);
  EXPECT_EQ(since(BP_OP_SORT, {f32}, {f32}, &plain), v2);
  EXPECT_EQ(since(BP_OP_SORT, {f32}, {f32}, &with_field), v3) << "-0.0 is not zero";
  EXPECT_EQ(since(BP_OP_SORT, {f32}, {f32, i32}, &plain), v3);
  EXPECT_EQ(since(BP_OP_SORT, {f64}, {f64, i32}, &plain), v4) << "the greatest";
  EXPECT_EQ(since(BP_OP_LINEAR, {f32, f32}, {f32}, &linear), v2);
  EXPECT_EQ(since(BP_OP_LINEAR, {f32, f32, f32}, {f32}, &linear), v3);
  EXPECT_EQ(since(BP_OP_LINEAR, {f32, f32, f64}, {f32}, &linear), v4);
  EXPECT_EQ(since(BP_OP_FILL, {}, {f32}, nullptr, 0, 1), v2);
  EXPECT_EQ(since(BP_OP_FILL, {}, {f32}, nullptr, 0, 2), v4);
  EXPECT_EQ(since(BP_OP_NEG, {f64}, {f64}), v4);
  EXPECT_EQ(since(BP_OP_GATHER, {f32, i32}, {f32}, &axis), v2);
  EXPECT_EQ(since(BP_OP_GATHER, {f32, i64}, {f32}, &axis), v3);
  EXPECT_EQ(since(BP_OP_ARGMAX, {i64}, {i32}, &axis), v2) << "an old dtype elsewhere";
  EXPECT_EQ(since(BP_OP_ARGMAX, {f32}, {i64}, &axis), v3);
  EXPECT_EQ(since(BP_OP_NEG, {f32}, {f32}, nullptr, 8), v3);
  bp_tensor_desc hinted = f32, packed = f32;
  hinted.flags = BP_DESC_HINTS;
  packed.flags = BP_DESC_PACKED;
  EXPECT_EQ(since(BP_OP_NEG, {hinted}, {f32}), v2) << "hints do not count";
  EXPECT_EQ(since(BP_OP_NEG, {packed}, {f32}), v4);
}

}  // namespace
}  // namespace backplane::rules
