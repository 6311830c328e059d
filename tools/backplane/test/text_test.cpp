// SPDX-License-Identifier: Apache-2.0
// Tests the formatting of tables, JSON, values and arrays.
#include <backplane/backplane.h>
#include <gtest/gtest.h>

#include <limits>

#include "json.hpp"
#include "table.hpp"
#include "values.hpp"

namespace tool {
namespace {

TEST(Table, ColumnsLineUpByDisplayWidth) {
  Table table({"NAME", Cell("N", Style::plain, true)});
  table.add({"日本", Cell("1", Style::plain, true)});
  table.add({"é", Cell("20", Style::plain, true)});
  EXPECT_EQ(table.text(false), "NAME   N\n日本   1\né     20\n");
}

TEST(Table, ColourOnlyOnRequest) {
  Table table({});
  table.add({Cell("x", Style::bad)});
  EXPECT_EQ(table.text(false), "x\n");
  EXPECT_EQ(table.text(true), "\x1b[31mx\x1b[0m\n");
}

TEST(Table, NothingDrivesTheTerminal) {
  EXPECT_EQ(printable("a\x1b[31mb\n\x7f"), "a\\x1b[31mb\\x0a\\x7f");
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\u202e");
  EXPECT_EQ(printable("\xff\xc3(ü"), "\xEF\xBF\xBD\xEF\xBF\xBD(ü");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Json, WritesTextThatAParserAccepts) {
  Json json;
  json["text"] = "a\"\\\n\xff";
  json["numbers"] = Json::array();
  json["numbers"].push_back(1);
  json["numbers"].push_back(0.5);
  json["numbers"].push_back(std::numeric_limits<double>::infinity());
  json["flag"] = true;
  json["none"] = Json();
  json["empty"] = Json::object();
  EXPECT_EQ(json.text(),
            "{\n  \"text\": \"a\\\"\\\\\\u000a\xEF\xBF\xBD\",\n  \"numbers\": [\n    1,\n    0.5,\n    null\n  ],\n"
            "  \"flag\": true,\n  \"none\": null,\n  \"empty\": {}\n}");
}

TEST(Values, NumbersOfEveryDtypeComeBack) {
  for (const uint32_t dtype : {BP_U8, BP_I8, BP_I32, BP_U32, BP_I64, BP_F16, BP_BF16, BP_F32, BP_F64}) {
    EXPECT_EQ(element_text(dtype, parse_element(dtype, "7")), "7") << bph_dtype_name(dtype);
  }
  EXPECT_EQ(element_text(BP_I8, parse_element(BP_I8, "-7")), "-7");
  EXPECT_EQ(element_text(BP_I64, parse_element(BP_I64, "9007199254740993")), "9007199254740993");
  EXPECT_EQ(element_text(BP_BOOL, parse_element(BP_BOOL, "true")), "true");
  EXPECT_EQ(element_text(BP_F16, parse_element(BP_F16, "5.9604644775390625e-8")), "5.96e-08");
  EXPECT_EQ(element_text(BP_F16, 0xFC00), "-inf");
  EXPECT_EQ(element_text(BP_BF16, 0x7FC0), "nan");
}

TEST(Values, ShapesAndStridesAreChecked) {
  EXPECT_EQ(parse_shape("64x32"), (Extents{64, 32}));
  EXPECT_EQ(parse_shape("scalar"), Extents{});
  EXPECT_EQ(parse_strides("-32,1"), (Extents{-32, 1}));
  for (const char* bad : {"", "x", "2x", "-1", "2 x3", "99999999999999999999", "65536x65537"}) {
    EXPECT_THROW(parse_shape(bad), Failure) << bad;
  }
  EXPECT_THROW(parse_strides("1,,2"), Failure);
  EXPECT_EQ(dense_strides({2, 3, 4}), (Extents{12, 4, 1}));
  EXPECT_EQ(dense_strides({2, 0, 4}), (Extents{4, 4, 1}));
}

TEST(Values, ArraysAsNumpyPrintsThem) {
  Values values(BP_I32, {2, 3});
  for (size_t i = 0; i < 6; ++i) values.store(i, bph_scalar_from_i64(BP_I32, static_cast<int64_t>(i) * 5));
  EXPECT_EQ(array_text(values), "[[ 0  5 10]\n [15 20 25]]");
  EXPECT_EQ(array_text(Values(BP_F32, {0, 3})), "[] (shape 0x3)");
  EXPECT_EQ(array_text(Values(BP_F32, {})), "0");
  EXPECT_EQ(array_text(Values(BP_U8, {10}), 5, 2), "[0 0 ... 0 0]");
}

TEST(Values, RandomDataIsSeeded) {
  Values one(BP_F32, {64}), two(BP_F32, {64}), other(BP_F32, {64});
  fill_random(one, 3);
  fill_random(two, 3);
  fill_random(other, 4);
  EXPECT_EQ(one.bytes, two.bytes);
  EXPECT_NE(one.bytes, other.bytes);
  Values index(BP_I32, {64});
  fill_random_index(index, 5, 1);
  for (size_t i = 0; i < 64; ++i) EXPECT_LT(index.bits(i), 5u);
}

}  // namespace
}  // namespace tool
