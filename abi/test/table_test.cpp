// SPDX-License-Identifier: Apache-2.0
// The tables of operators and dtypes as data, and the guard of late fields.
#include <backplane/plugin.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace {

struct Row {
  int id;
  std::string name;
  int kind, inputs_min, inputs_max, outputs_min, outputs_max, scalars, profile;
  uint32_t dtypes;
  size_t attribute_bytes;
};

const std::vector<Row> rows = {
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, \
                  acc, prof, since, doc)                                                                               \
  {id,                                                                                                                 \
   name,                                                                                                               \
   BP_KIND_##kind,                                                                                                     \
   imin,                                                                                                               \
   imax,                                                                                                               \
   omin,                                                                                                               \
   omax,                                                                                                               \
   smax,                                                                                                               \
   BP_PROFILE_##prof,                                                                                                  \
   BP_SET_##dtypes,                                                                                                    \
   sizeof(bp_##attrs##_attributes)},
#include <backplane/ops.def>
#undef BP_OP_ROW
};

TEST(Table, HasEveryOperatorOnce) {
  std::set<int> ids;
  std::set<std::string> names;
  for (const Row& row : rows) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  const auto primitives =
      std::count_if(rows.begin(), rows.end(), [](const Row& r) { return r.kind == BP_KIND_PRIMITIVE; });
  EXPECT_EQ(primitives, 43);
  EXPECT_EQ(rows.size() - static_cast<size_t>(primitives), 28u);
}

TEST(Table, IdsTellTheKind) {
  for (const Row& row : rows) {
    const bool primitive = row.kind == BP_KIND_PRIMITIVE;
    EXPECT_TRUE(primitive ? row.id >= 1 && row.id <= 99 : row.id >= 101 && row.id < BP_OP_LIMIT) << row.name;
    EXPECT_EQ(primitive, row.profile != BP_PROFILE_COMPOSITE) << row.name;
  }
}

TEST(Table, NamesAreLowerCase) {
  for (const Row& row : rows)
    for (const char letter : row.name)
      EXPECT_TRUE((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_') << row.name;
}

TEST(Table, OperandsFitTheMasks) {
  for (const Row& row : rows) {
    EXPECT_LE(row.inputs_min, row.inputs_max) << row.name;
    EXPECT_LE(row.outputs_min, row.outputs_max) << row.name;
    EXPECT_GE(row.outputs_min, 1) << row.name;
    EXPECT_LE(std::max(row.inputs_max, row.outputs_max), BP_MAX_OPERANDS) << row.name;
    EXPECT_NE(row.dtypes, 0u) << row.name;
  }
}

TEST(Table, AttributesAreWholeEightBytes) {
  for (const Row& row : rows) EXPECT_EQ(row.attribute_bytes % 8, 0u) << row.name;
}

TEST(Table, DtypesFitTheMask) {
  std::set<int> ids;
  uint32_t mask = 0;
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) \
  EXPECT_TRUE(ids.insert(id).second) << name;             \
  EXPECT_GT(id, 0) << name;                               \
  EXPECT_LT(id, BP_DTYPE_LIMIT) << name;                  \
  mask |= BP_DTYPE_BIT(id);
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
  EXPECT_EQ(mask, BP_SET_ALL);
}

// What a reader built for a longer struct meets in one of an older peer's.
TEST(HasField, NeedsTheWholeField) {
  const size_t end = offsetof(bp_device_api, plan_workspace) + sizeof(bp_device_api::plan_workspace);
  EXPECT_TRUE(BP_HAS_FIELD(end, bp_device_api, plan_workspace));
  EXPECT_TRUE(BP_HAS_FIELD(end + 8, bp_device_api, plan_workspace));
  for (size_t cut = 1; cut <= sizeof(bp_device_api::plan_workspace); ++cut)
    EXPECT_FALSE(BP_HAS_FIELD(end - cut, bp_device_api, plan_workspace)) << cut;
  EXPECT_FALSE(BP_HAS_FIELD(0, bp_device_api, struct_size));
}

TEST(HasField, MinimumHoldsWhatCameFirst) {
  EXPECT_TRUE(BP_HAS_FIELD(BP_DEVICE_API_MIN_SIZE, bp_device_api, plan_execute));
  EXPECT_TRUE(BP_HAS_FIELD(BP_PLUGIN_MIN_SIZE, bp_plugin, shutdown));
  EXPECT_TRUE(BP_HAS_FIELD(BP_HOST_MIN_SIZE, bp_host, get_interface));
  EXPECT_TRUE(BP_HAS_FIELD(BP_ERROR_MIN_SIZE, bp_error, message));
}

}  // namespace
