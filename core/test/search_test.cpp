// SPDX-License-Identifier: Apache-2.0
// Tests the searched directories: their order and their content.
#include <sys/stat.h>

#include "loader_fixture.hpp"
#include "loading/search.hpp"

namespace backplane::core::test {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Search : public LoaderTest {
 protected:
  ~Search() override {
    for (const char* name : {"BACKPLANE_PLUGIN_PATH", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_HOME"})
      unsetenv(name);
    setenv("HOME", home.c_str(), 1);
  }
  static std::vector<std::string> places(const char* search_path, bool defaults) {
    std::vector<std::string> result;
    for (const Place& place : search_places(search_path, defaults)) {
      result.push_back(std::string(place.origin) + " " + place.path);
    }
    return result;
  }
  // Searches `path`. Returns the rule of the only candidate, or "count N" if there are N candidates.
  std::string rule_of_place(const std::string& path) {
    EXPECT_OK(create(path.c_str(), &error));
    return count() == 1 ? candidate(0).rule : "count " + std::to_string(count());
  }

  std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "/";
};

TEST_F(Search, OrderOfPlaces) {
  setenv("BACKPLANE_PLUGIN_PATH", "/first::/second", 1);
  setenv("XDG_DATA_HOME", "/home_data", 1);
  setenv("XDG_DATA_DIRS", "/data_1:relative:/data_2", 1);
  const std::vector<std::string> all = places(nullptr, true);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0], "search_path /first");
  EXPECT_EQ(all[1], "search_path /second");
  EXPECT_EQ(all[2], "user /home_data/backplane/plugins");
  EXPECT_THAT(all[3], testing::EndsWith("/backplane/plugins"));
  EXPECT_EQ(all[4], "system /data_1/backplane/plugins");
  EXPECT_EQ(all[5], "system /data_2/backplane/plugins");
  EXPECT_THAT(places("/given", false), ElementsAre("search_path /given")) << "the argument wins over the environment";
  EXPECT_THAT(places("", false), ElementsAre());
}

TEST_F(Search, DefaultsOfTheEnvironment) {
  setenv("HOME", "/somewhere", 1);
  const std::vector<std::string> all = places(nullptr, true);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0], "user /somewhere/.local/share/backplane/plugins");
  EXPECT_EQ(all[2], "system /usr/local/share/backplane/plugins");
  EXPECT_EQ(all[3], "system /usr/share/backplane/plugins");
  EXPECT_EQ(default_config_file(), "/somewhere/.config/backplane/config.json");
  setenv("HOME", "relative", 1);
  EXPECT_EQ(places(nullptr, true).size(), 3u);
  EXPECT_EQ(default_config_file(), "");
}

TEST_F(Search, ADirectoryCountsOnce) {
  std::filesystem::create_directory(folder + "/a");
  std::filesystem::create_symlink(folder + "/a", folder + "/b");
  EXPECT_EQ(places((folder + "/a:" + folder + "/b:" + folder + "/a/").c_str(), false).size(), 1u);
}

TEST_F(Search, ByFileNameAndTheFirstOfANameWins) {
  for (const char* file : {"20.json", "10.json", "30.JSON", "README", ".hidden.json"}) {
    write(file, manifest_text("same", "missing.so"));
  }
  write("05.json", manifest_text("same", "missing.so", {{"architectures", R"(["another"])"}}));
  ASSERT_EQ(create(), BP_OK);
  ASSERT_EQ(count(), 3u);
  EXPECT_EQ(candidate(0).manifest, folder + "/05.json");
  EXPECT_STREQ(candidate(0).rule, "manifest.architecture");
  EXPECT_EQ(candidate(1).manifest, folder + "/10.json");
  EXPECT_EQ(candidate(1).shadowed, 0u) << "what does not fit this machine hides nothing";
  EXPECT_STREQ(candidate(1).rule, "library.missing");
  EXPECT_EQ(candidate(2).shadowed, 1u);
  EXPECT_EQ(load("same"), BP_UNAVAILABLE);
  EXPECT_THAT(error.message, HasSubstr("missing.so: no such library"));
}

TEST_F(Search, WhatIsNoManifest) {
  std::filesystem::create_directory(folder + "/x.json");
  EXPECT_EQ(rule_of_place(folder), "manifest.type");
  std::filesystem::remove(folder + "/x.json");
  ASSERT_EQ(mkfifo((folder + "/x.json").c_str(), 0600), 0);
  EXPECT_EQ(rule_of_place(folder), "manifest.type");
  EXPECT_EQ(rule_of_place(folder + "/x.json"), "manifest.type");
  std::filesystem::remove(folder + "/x.json");
  std::filesystem::create_symlink(folder + "/gone", folder + "/x.json");
  EXPECT_EQ(rule_of_place(folder), "manifest.missing");
  std::filesystem::remove(folder + "/x.json");
  write("x.json", std::string(64 * 1024 + 1, ' '));
  EXPECT_EQ(rule_of_place(folder), "manifest.size");
  write("x.json", manifest_text("good", "lib.so"));
  EXPECT_EQ(rule_of_place(folder), "library.missing");
  chmod((folder + "/x.json").c_str(), 0646);
  EXPECT_EQ(rule_of_place(folder), "manifest.permissions");
  EXPECT_THAT(candidate(0).message, HasSubstr("mode 0646"));
  EXPECT_STREQ(candidate(0).side, "system");
}

TEST_F(Search, WhatIsNoPlace) {
  EXPECT_EQ(rule_of_place(folder + "/none"), "place.missing");
  EXPECT_THAT(log, testing::Contains(HasSubstr("/none: no such directory")));
  write("file", "x");
  EXPECT_EQ(rule_of_place(folder + "/file"), "place.type");
  std::filesystem::create_directory(folder + "/open");
  chmod((folder + "/open").c_str(), 0777);
  EXPECT_EQ(rule_of_place(folder + "/open"), "place.permissions");
  std::filesystem::create_symlink(folder + "/open", folder + "/link");
  EXPECT_EQ(rule_of_place(folder + "/link"), "place.permissions") << "links do not help";
  chmod((folder + "/open").c_str(), 0755);
  for (int i = 0; i < 1025; ++i) write("open/" + std::to_string(i) + ".json", "{");
  EXPECT_EQ(rule_of_place(folder + "/open"), "place.size");
}

TEST_F(Search, UnknownKeysAreTold) {
  write("x.json", manifest_text("good", "lib.so", {{"color", "1"}}));
  ASSERT_EQ(create(), BP_OK);
  EXPECT_THAT(log, testing::Contains(HasSubstr("3 " + folder + "/x.json: unknown key \"color\" is ignored")));
}

TEST_F(Search, ALibraryWithoutAManifestIsNamed) {
  write("libbackplane_acme.so", "");
  write("libbackplane_good.so", "");
  write("good.json", manifest_text("good", "libbackplane_good.so"));
  ASSERT_EQ(create(), BP_OK);
  ASSERT_EQ(count(), 2u);
  EXPECT_STREQ(candidate(1).rule, "manifest.absent");
  EXPECT_STREQ(candidate(1).name, "acme");
  EXPECT_EQ(candidate(1).library, folder + "/libbackplane_acme.so");
  EXPECT_EQ(load("acme"), BP_UNAVAILABLE);
  EXPECT_EQ(error.message, folder +
                               "/libbackplane_acme.so: no manifest names this library; add its manifest acme.json to "
                               "the directory, or load the library by its path");
}

TEST_F(Search, ADefectiveManifestExplainsItsLibrary) {
  write("libbackplane_acme.so", "");
  write("acme.json", "{");
  ASSERT_EQ(create(), BP_OK);
  EXPECT_EQ(count(), 1u);
}

TEST_F(Search, NothingFoundSaysWhereItLooked) {
  ASSERT_EQ(create(), BP_OK);
  EXPECT_EQ(load("absent"), BP_UNAVAILABLE);
  EXPECT_THAT(error.message, HasSubstr("no plugin is named \"absent\"; found: none; searched: " + folder));
}

}  // namespace

}  // namespace backplane::core::test
