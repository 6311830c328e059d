// SPDX-License-Identifier: Apache-2.0
// Tests valid and hostile manifests. The refusal of an invalid manifest must state the broken rule.
#include "loading/manifest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "loading/loader.hpp"

namespace backplane::core::test {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string text_with(const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> keys = {{"manifest_version", "1"},
                                             {"name", R"("example_1")"},
                                             {"library", R"("libexample.so")"},
                                             {"abi", R"({"min": "0.1", "max": "0.2"})"},
                                             {"architectures", R"(["x86_64", "aarch64"])"}};
  for (const auto& [key, value] : changes) keys[key] = value;
  std::string text = "{";
  for (const auto& [key, value] : keys) {
    if (!value.empty()) text += (text.size() > 1 ? ", \"" : "\"") + key + "\": " + value;
  }
  return text + "}";
}

// Returns the rule that refuses the text, or "good" if no rule does.
std::string rule_of(const std::string& text, std::string* message = nullptr) {
  Manifest manifest;
  try {
    parse_manifest(text, "/place/example.json", manifest);
    return "good";
  } catch (const Refusal& refusal) {
    EXPECT_THAT(refusal.what(), HasSubstr("/place/example.json: "));
    if (message != nullptr) *message = refusal.what();
    return refusal.rule;
  }
}
std::string rule_with(const std::string& key, const std::string& value) { return rule_of(text_with({{key, value}})); }

TEST(Manifest, EveryKeyIsRead) {
  Manifest manifest;
  parse_manifest(text_with({{"sha256", '"' + std::string(32, 'A') + std::string(32, '9') + '"'},
                            {"description", R"("made for tests: ü")"},
                            {"vendor_note", "[1, {}]"}}),
                 "x.json", manifest);
  EXPECT_EQ(manifest.name, "example_1");
  EXPECT_EQ(manifest.library, "libexample.so");
  EXPECT_EQ(manifest.abi_min, 1u);
  EXPECT_EQ(manifest.abi_max, 2u);
  EXPECT_THAT(manifest.architectures, ElementsAre("x86_64", "aarch64"));
  EXPECT_EQ(manifest.sha256, std::string(32, 'a') + std::string(32, '9'));
  EXPECT_THAT(manifest.unknown_keys, ElementsAre("vendor_note"));
}

TEST(Manifest, RequiredKeysAndTheirTypes) {
  for (const auto& [key, rule] : std::map<std::string, std::string>{{"manifest_version", "manifest.version"},
                                                                    {"name", "manifest.name"},
                                                                    {"library", "manifest.library"},
                                                                    {"abi", "manifest.abi"},
                                                                    {"architectures", "manifest.architectures"}}) {
    EXPECT_EQ(rule_with(key, ""), rule) << key;
    for (const char* value : {"null", "true", "-7", "1e999", "1.5", "[]", "{}", R"("")", R"([[]])", R"([{"a": 1}])"}) {
      EXPECT_EQ(rule_with(key, value), std::string(value) == "1e999" ? "manifest.json" : rule) << key << ": " << value;
    }
  }
  for (const char* value : {"7", R"("abc")", "null", "[]"}) EXPECT_EQ(rule_with("sha256", value), "manifest.sha256");
  EXPECT_EQ(rule_with("sha256", '"' + std::string(64, 'g') + '"'), "manifest.sha256");
  EXPECT_EQ(rule_with("description", "1"), "manifest.description");
}

TEST(Manifest, Names) {
  EXPECT_EQ(rule_with("name", '"' + std::string(63, 'a') + '"'), "good");
  EXPECT_EQ(rule_with("name", '"' + std::string(64, 'a') + '"'), "manifest.name");
  for (const char* name : {"Upper", "with space", "a-b", "a/b", "..", "a:0", "\\u0000", "na\\u0000me", "ünï"}) {
    EXPECT_EQ(rule_with("name", std::string("\"") + name + '"'), "manifest.name") << name;
  }
}

TEST(Manifest, LibraryStaysBelowItsFolder) {
  for (const char* good : {"lib.so", "sub/lib.so", "./lib.so", "/opt/vendor/lib.so", "a..b.so", "..."}) {
    EXPECT_EQ(rule_with("library", std::string("\"") + good + '"'), "good") << good;
  }
  for (const char* bad : {"../lib.so", "sub/../../lib.so", "..", "sub/..", "/opt/../lib.so", "sub/", "/",
                          "a\\u0000b.so", "a\\nb.so", "a\\u007f"}) {
    EXPECT_EQ(rule_with("library", std::string("\"") + bad + '"'), "manifest.library") << bad;
  }
  EXPECT_EQ(rule_with("library", '"' + std::string(1024, 'x') + '"'), "manifest.library");
}

TEST(Manifest, Versions) {
  for (const char* range :
       {R"({"min": "0.2", "max": "0.1"})", R"({"min": "0.1"})", R"({"min": 0.1, "max": 0.1})",
        R"({"min": "0", "max": "0.1"})", R"({"min": "0.1.0", "max": "0.1"})", R"({"min": "-0.1", "max": "0.1"})",
        R"({"min": "0.70000", "max": "0.70000"})", R"({"min": " 0.1", "max": "0.1"})", R"({"min": "", "max": ""})"}) {
    EXPECT_EQ(rule_with("abi", range), "manifest.abi") << range;
  }
  std::string message;
  EXPECT_EQ(rule_of(text_with({{"manifest_version", "2"}}), &message), "manifest.version");
  EXPECT_THAT(message, HasSubstr("manifest_version is 2, not 1"));
}

TEST(Manifest, HostileText) {
  const std::string deep = std::string(17, '[') + std::string(17, ']');
  const std::string bottomless(60000, '[');
  std::string many = "{";
  for (int i = 0; i < 257; ++i) many += fmt::format("\"k{}\": 0, ", i);
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{}}"), std::string("nul"), std::string("[1, 2]"),
        std::string("\"x\""), std::string("\0\0\0", 3), std::string("{\"name\": \"\xFF\xFE\"}"),
        std::string("{\"name\": \"\xC0\xAF\"}"), deep, bottomless, many + "\"last\": 0}",
        std::string(R"({"name": "a", "name": "b"})"), std::string(R"({"abi": {"min": "0.1", "min": "0.1"}})"),
        std::string("{\"a\": 1e99999}")}) {
    EXPECT_EQ(rule_of(text), "manifest.json") << text.substr(0, 60);
  }
  std::string message;
  EXPECT_EQ(rule_of("{\"name\": tru", &message), "manifest.json");
  EXPECT_THAT(message, HasSubstr("line 1, column"));
  EXPECT_EQ(rule_of(text_with({{"extra", std::string(15, '[') + std::string(15, ']')}})), "good") << "depth 16";
  EXPECT_EQ(rule_of(text_with({{"extra", std::string(16, '[') + std::string(16, ']')}})), "manifest.json")
      << "depth 17";
}

TEST(Manifest, ForThisMachineAndHost) {
  const auto rule = [](const char* key, const char* value) -> std::string {
    Manifest manifest;
    parse_manifest(text_with({{key, value}}), "/place/example.json", manifest);
    try {
      check_manifest(manifest, "/place/example.json");
      return "good";
    } catch (const Refusal& refusal) {
      return std::string(refusal.rule) + " " + refusal.side;
    }
  };
  const char* everywhere = R"(["x86_64", "i686", "aarch64", "arm", "riscv64", "ppc64le", "s390x"])";
  EXPECT_EQ(rule("architectures", everywhere), "good");
  EXPECT_EQ(rule("architectures", R"(["other"])"), "manifest.architecture plugin");
  EXPECT_EQ(rule("abi", R"({"min": "0.2", "max": "0.9"})"), "good") << "max is information";
  EXPECT_EQ(rule("abi", R"({"min": "0.0", "max": "0.1"})"), "good") << "the library says what it was built for";
  EXPECT_EQ(rule("abi", R"({"min": "0.4", "max": "0.4"})"), "abi.range host");
  EXPECT_EQ(rule("abi", R"({"min": "1.0", "max": "2.0"})"), "abi.range host");
}

// The arguments are the host's version, the oldest host version that the plugin supports, and the
// version for which the plugin was built.
TEST(Manifest, Compatibility) {
  constexpr uint32_t v0_1 = 1, v0_2 = 2, v0_3 = 3, v0_5 = 5, v1_0 = 1u << 16, v1_1 = v1_0 + 1, v1_5 = v1_0 + 5,
                     v2_0 = 2u << 16;
  constexpr SpokenMajor host_0_2 = {v0_2, v0_2}, host_0_5 = {v0_5, v0_2}, host_0_5_after_a_break = {v0_5, v0_3},
                        host_1_1 = {v1_1, v1_0}, host_1_5 = {v1_5, v1_0}, host_2_0 = {v2_0, v2_0};
  EXPECT_TRUE(compatible(host_0_2, v0_2, v0_2));
  EXPECT_TRUE(compatible(host_0_5, v0_2, v0_3))
      << "from 0.2 on a minor only appends: an older plugin has a shorter table";
  EXPECT_TRUE(compatible(host_0_2, v0_2, v0_5)) << "a newer plugin has a longer table";
  EXPECT_FALSE(compatible(host_0_2, v0_3, v0_5)) << "it says that the host is too old";
  EXPECT_FALSE(compatible(host_0_2, v0_1, v0_1)) << "0.2 was a break";
  EXPECT_FALSE(compatible(host_0_5_after_a_break, v0_2, v0_2)) << "so was 0.3 to this host";
  EXPECT_TRUE(compatible(host_0_5_after_a_break, v0_2, v0_5));
  EXPECT_TRUE(compatible(host_1_5, v1_0, v1_1));
  EXPECT_TRUE(compatible(host_1_1, v1_0, v1_5));
  EXPECT_FALSE(compatible(host_2_0, v1_0, v1_5));
  EXPECT_FALSE(compatible(host_1_5, v1_0, v2_0));
  EXPECT_FALSE(compatible(host_1_5, v0_2, v0_5)) << "asked again as a host of 0.x";
  EXPECT_FALSE(compatible(host_1_5, v1_5, v1_0)) << "a range that is upside down";
}

TEST(Manifest, WhatAHostSpeaksIsSaidInWords) {
  constexpr SpokenMajor today[] = {{BP_VERSION(0, 2), BP_VERSION(0, 2)}};
  constexpr SpokenMajor later[] = {{BP_VERSION(0, 5), BP_VERSION(0, 2)}};
  constexpr SpokenMajor two[] = {{BP_VERSION(1, 3), BP_VERSION(1, 0)}, {BP_VERSION(0, 0xFFFF), BP_VERSION(0, 2)}};
  EXPECT_EQ(spoken_text(today), "0.2");
  EXPECT_EQ(spoken_text(later), "0.2 to 0.5");
  EXPECT_EQ(spoken_text(two), "1.0 to 1.3 and 0.2 or later");
}

TEST(Manifest, TheBuildNamesTheVersionsOfTheHeaders) {
  EXPECT_EQ(version_text(BP_ABI_VERSION), ABI_VERSION);
  EXPECT_EQ(version_text(BP_ABI_VERSION_OLDEST), ABI_OLDEST);
}

}  // namespace

}  // namespace backplane::core::test
