// SPDX-License-Identifier: Apache-2.0
// Runs all cases except the numeric cases in this process. The reference plugin must pass.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "cases/catalogue.hpp"
#include "cases/support/large_buffer.hpp"
#include "harness/context.hpp"
#include "harness/probe.hpp"

namespace backplane::conformance::test {

namespace {

Catalogue behaviour() {
  Catalogue all;
  add_abi_cases(all);
  add_runtime_cases(all);
  add_negative_cases(all);
  add_host_cases(all);
  return all;
}

class Behaviour : public testing::TestWithParam<size_t> {
 protected:
  static void SetUpTestSuite() {
    session().path = std::getenv("BACKPLANE_TEST_REFERENCE");
    session().seed = 1;
  }
  static void TearDownTestSuite() { session().close(); }
  static Session& session() {
    static Session shared;
    return shared;
  }
};

const Catalogue& cases() {
  static const Catalogue all = behaviour();
  return all;
}

TEST_P(Behaviour, OfTheReferencePlugin) {
  const Case& which = cases()[GetParam()];
  Context context(session(), which);
  try {
    which.run(context);
  } catch (const CaseEnd& end) {
    if (is_failure(end.outcome)) {
      session().close();
      ADD_FAILURE() << name_of(end.outcome) << ": " << end.message;
    } else {
      GTEST_SKIP() << end.message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Case, Behaviour, testing::Range(size_t{0}, cases().size()),
                         [](const testing::TestParamInfo<size_t>& at) {
                           std::string name = cases()[at.param].id;
                           for (char& letter : name)
                             if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
                           return name;
                         });

// Loads the reference plugin, and provides its slots without copy_in and copy_out.
class Harness : public testing::Test {
 protected:
  Harness() : plugin(std::getenv("BACKPLANE_TEST_REFERENCE")), slots(plugin.slots()) {
    slots.copy_in = nullptr;
    slots.copy_out = nullptr;
  }
  Plugin plugin;
  bp_device_api slots;
};

TEST_F(Harness, AFailingMapIsReportedAndNotAvoided) {
  slots.buffer_map = [](bp_device*, bp_buffer*, void**, bp_error*) -> bp_status { return BP_INTERNAL; };
  Device device(plugin, 0, &slots);
  const Buffer buffer(device, 16);
  const char bytes[16] = {};
  try {
    device.write(buffer.get(), 0, bytes, sizeof(bytes));
    ADD_FAILURE() << "written";
  } catch (const CaseEnd& end) {
    begin_case();  // otherwise the owners in this and later tests would release nothing
    EXPECT_TRUE(is_failure(end.outcome));
    EXPECT_NE(end.message.find("buffer_map"), std::string::npos) << end.message;
  }
}

TEST_F(Harness, ALargeBufferWithoutRoomIsNotClaimed) {
  static std::atomic<int> creations{0};
  creations = 0;
  static bp_device_api honest;
  honest = plugin.slots();
  slots.buffer_create = [](bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
    return ++creations == 2 ? BP_OUT_OF_MEMORY : honest.buffer_create(device, desc, out, error);
  };
  Session session;
  session.plugin = std::make_unique<Plugin>(std::getenv("BACKPLANE_TEST_REFERENCE"));
  session.device = std::make_unique<Device>(*session.plugin, 0, &slots);
  const Case any;
  Context context(session, any);
  const Buffer first = make_large(context, 4096);
  EXPECT_EQ(first.bytes, 4096u);
  try {
    make_large(context, 4096);
    ADD_FAILURE() << "the device has room";
  } catch (const CaseEnd& end) {
    begin_case();
    EXPECT_EQ(name_of(end.outcome), "not_claimed") << end.message;
  }
  EXPECT_EQ(creations.load(), 2);
}

TEST_F(Harness, ThreadsWriteAndReadByOneStreamAtATime) {
  static std::atomic<int> inside{0}, together{0}, made{0};
  inside = together = made = 0;
  static bp_device_api honest;
  honest = plugin.slots();
  slots.stream_create = [](bp_device* device, const bp_stream_desc* desc, bp_stream** out, bp_error* error) {
    ++made;
    return honest.stream_create(device, desc, out, error);
  };
  slots.stream_wait = [](bp_device* device, bp_stream* stream, uint64_t timeout, bp_error* error) {
    if (++inside > 1) ++together;
    const bp_status status = honest.stream_wait(device, stream, timeout, error);
    --inside;
    return status;
  };
  Device device(plugin, 0, &slots);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&device, t] {
      const Buffer buffer(device, 4);
      for (int i = 0; i < 200; ++i) {
        const int32_t written = t * 1000 + i;
        int32_t read = -1;
        device.write(buffer.get(), 0, &written, sizeof(written));
        device.read(buffer.get(), 0, &read, sizeof(read));
        EXPECT_EQ(read, written);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together.load(), 0);
  EXPECT_EQ(made.load(), 1);
}

TEST(BehaviourCatalogue, IdsAreUniqueAndCite) {
  std::set<std::string> seen;
  for (const Case& each : cases()) {
    EXPECT_TRUE(seen.insert(each.id).second) << each.id;
    EXPECT_FALSE(each.requirements.empty()) << each.id;
    EXPECT_TRUE(each.run) << each.id;
  }
}

}  // namespace

}  // namespace backplane::conformance::test

int main(int argc, char** argv) {
  backplane::conformance::serve_probe(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
