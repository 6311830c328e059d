// SPDX-License-Identifier: Apache-2.0
// Tests of the operator table, the dtype table and the macro BP_HAS_FIELD.
#include <backplane/plugin.h>
#include <gtest/gtest.h>
#include <backplane/rules/op_table.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace {

using backplane::rules::op_rows;
using Row = backplane::rules::OpInfo;
const std::span<const Row> rows = op_rows();

TEST(Table, HasEveryOperatorOnce) {
  std::set<uint32_t> ids;
  std::set<std::string> names;
  for (const Row& row : rows) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  const auto primitives =
      std::count_if(rows.begin(), rows.end(), [](const Row& r) { return r.kind == BP_KIND_PRIMITIVE; });
  EXPECT_EQ(primitives, 43);
  EXPECT_EQ(rows.size() - static_cast<size_t>(primitives), 38u);
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
    for (const char letter : std::string_view(row.name))
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
  for (const auto* layout : backplane::rules::attribute_layouts()) EXPECT_EQ(layout->bytes % 8, 0u) << layout->stem;
}

TEST(Table, DtypesFitTheMask) {
  std::set<uint32_t> ids;
  uint64_t mask = 0;
  for (const auto& row : backplane::rules::dtype_rows()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.name;
    EXPECT_NE(BP_DTYPE_BIT(row.id), 0u) << row.name;
    mask |= BP_DTYPE_BIT(row.id);
  }
  EXPECT_EQ(mask, BP_SET_ALL);
}

// A reader built for a longer struct must also read the shorter struct of an older program.
TEST(HasField, NeedsTheWholeField) {
  const size_t end = offsetof(bp_device_api, plan_workspace) + sizeof(bp_device_api::plan_workspace);
  EXPECT_TRUE(BP_HAS_FIELD(end, bp_device_api, plan_workspace));
  EXPECT_TRUE(BP_HAS_FIELD(end + 8, bp_device_api, plan_workspace));
  for (size_t cut = 1; cut <= sizeof(bp_device_api::plan_workspace); ++cut)
    EXPECT_FALSE(BP_HAS_FIELD(end - cut, bp_device_api, plan_workspace)) << cut;
  EXPECT_FALSE(BP_HAS_FIELD(0, bp_device_api, struct_size));
}

TEST(HasField, MinimumContainsTheFirstFields) {
  EXPECT_TRUE(BP_HAS_FIELD(BP_DEVICE_API_MIN_SIZE, bp_device_api, plan_execute));
  EXPECT_TRUE(BP_HAS_FIELD(BP_PLUGIN_MIN_SIZE, bp_plugin, shutdown));
  EXPECT_TRUE(BP_HAS_FIELD(BP_HOST_MIN_SIZE, bp_host, get_interface));
  EXPECT_TRUE(BP_HAS_FIELD(BP_ERROR_MIN_SIZE, bp_error, message));
}

}  // namespace
