// SPDX-License-Identifier: Apache-2.0
// Tests the content of the pipeline cache on a device. A damaged file only causes a line in the
// log.
#include "runtime/pipeline_cache.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "rig.hpp"
#include "runtime/pipelines.hpp"

namespace backplane::vulkan::test {

namespace {

namespace fs = std::filesystem;

class PipelineCaches : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    std::string pattern = testing::TempDir() + "backplane_pipelines_XXXXXX";
    folder = ::mkdtemp(pattern.data());
    ::setenv(kCacheSetting, folder.c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder); }

  // Simulates a separate process, which opens the device, compiles two pipelines, and saves the
  // cache.
  void run() {
    auto device = LogicalDevice::create(instance, 0);
    ASSERT_TRUE(device.ok());
    Pipelines pipelines(*device.value(), log());
    for (const char* shader : {"elementwise_unary_f32", "elementwise_binary_f32"}) {
      auto pipeline = pipelines.get(shader, {{kIdLayout, BACKPLANE_LAYOUT_DENSE}, {kIdOp, BP_OP_NEG}});
      ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
    }
    pipelines.cache().save(log());
  }
  Log log() {
    return [this](int32_t, const std::string& line) { lines.push_back(line); };
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
    return out;
  }

  std::string folder;
  std::vector<std::string> lines;
};

TEST_F(PipelineCaches, IsKeptAndTaken) {
  run();
  ASSERT_EQ(files().size(), 1u);
  const auto written = fs::last_write_time(files()[0]);
  run();
  EXPECT_EQ(fs::last_write_time(files()[0]), written) << "what is known already is not written again";
  EXPECT_THAT(lines, testing::IsEmpty());
}

TEST_F(PipelineCaches, ADamagedCacheIsLoggedAndReplaced) {
  run();
  ASSERT_EQ(files().size(), 1u);
  const fs::path file = files()[0];
  const auto whole = fs::file_size(file);
  fs::resize_file(file, whole - 1);
  run();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::AllOf(testing::HasSubstr(file.string()), testing::HasSubstr("is not used")));
  EXPECT_EQ(fs::file_size(file), whole);
  run();
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(PipelineCaches, DataThatTheDriverDoesNotKnowIsDropped) {
  run();
  ASSERT_EQ(files().size(), 1u);
  // The header of the file is valid, but the data is not a cache of the driver.
  const CacheFile own(folder, PipelineCache::key_of(instance->devices()[0]));
  ASSERT_EQ(own.path(), files()[0].string());
  ASSERT_EQ(own.store(std::vector<std::byte>(500, std::byte{0xA5})), "");
  run();
  EXPECT_THAT(lines, testing::IsEmpty());
  std::string objection;
  EXPECT_NE(own.load(objection), std::vector<std::byte>(500, std::byte{0xA5}));
}

TEST_F(PipelineCaches, AFolderThatCannotBeMadeIsLoggedOnce) {
  std::ofstream(folder + "/file") << "no folder";
  ::setenv(kCacheSetting, (folder + "/file").c_str(), 1);
  auto device = LogicalDevice::create(instance, 0);
  ASSERT_TRUE(device.ok());
  Pipelines pipelines(*device.value(), log());
  for (const uint32_t op : {BP_OP_NEG, BP_OP_ABS}) {
    EXPECT_TRUE(pipelines.get("elementwise_unary_f32", {{kIdLayout, BACKPLANE_LAYOUT_DENSE}, {kIdOp, op}}).ok());
    pipelines.cache().save(log());
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::AllOf(testing::HasSubstr("are not kept"), testing::HasSubstr(kCacheSetting)));
}

TEST_F(PipelineCaches, OffIsOff) {
  ::setenv(kCacheSetting, "off", 1);
  run();
  EXPECT_THAT(files(), testing::IsEmpty());
  EXPECT_THAT(lines, testing::IsEmpty());
}

}  // namespace

}  // namespace backplane::vulkan::test
