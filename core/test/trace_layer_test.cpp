// SPDX-License-Identifier: Apache-2.0
// Tests the layer `trace`: the content of its file, and how the file is written.
#include <backplane/backplane.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "host.hpp"
#include "layer_fixture.hpp"
#include "layers/trace/file.hpp"

namespace backplane::core::test {

namespace {

using layers::TraceFile;
using nlohmann::json;
using testing::HasSubstr;

// Returns a path to which this process has not written a trace.
std::string fresh_path() {
  static int count = 0;
  return testing::TempDir() + "trace_layer_test_" + std::to_string(getpid()) + "_" + std::to_string(++count) + ".json";
}

struct Trace {
  std::vector<json> events;

  explicit Trace(const std::string& path) {
    std::ifstream file(path);
    const json document = json::parse(file);
    events = document["traceEvents"].get<std::vector<json>>();
  }
  std::vector<json> of(const std::string& phase, const std::string& name) const {
    std::vector<json> found;
    for (const json& event : events) {
      if (event["ph"] == phase && event["name"] == name) found.push_back(event);
    }
    return found;
  }
};

class TraceTest : public LayerTest {
 protected:
  void open(const std::string& where) {
    path = where;
    layer = layers::trace(&puppet.instance.table, &puppet.host, TraceFile::open(path, "the test"));
    api = layer->device_api;
    ASSERT_OK(layer->device_open(layer, 0, nullptr, &device, &error));
  }
  // Flushes the trace and reads the file.
  Trace written() {
    TraceFile::open(path, "the test").flush(puppet.host);
    return Trace(path);
  }
  void TearDown() override {
    LayerTest::TearDown();
    std::filesystem::remove(path);
  }
  std::string path;
};

TEST_F(TraceTest, AnOperatorIsASpanOfItsStream) {
  open(fresh_path());
  bp_stream* first = stream();
  bp_stream* second = stream();
  bp_buffer* memory = buffer();
  Addition work(memory, memory);
  work.views[1].strides[0] = 2;
  bp_plan* made = plan(work);
  EXPECT_OK(api->plan_execute(device, first, made, &work.execution, &error));
  EXPECT_OK(api->plan_execute(device, second, made, &work.execution, &error));
  const Trace trace = written();
  const auto spans = trace.of("X", "add");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0]["args"]["inputs"], (json{"f32[4]", "f32[4] strides [2]"}));
  EXPECT_EQ(spans[0]["args"]["outputs"], json{"f32[4]"});
  EXPECT_EQ(spans[0]["args"]["bytes"], 48);
  EXPECT_EQ(spans[0]["cat"], "op");
  EXPECT_GE(spans[0]["dur"], 0.0);
  EXPECT_NE(spans[0]["tid"], spans[1]["tid"]);
  EXPECT_EQ(spans[0]["pid"], spans[1]["pid"]);
  std::map<json, std::string> names;
  for (const json& event : trace.of("M", "thread_name")) names[event["tid"]] = event["args"]["name"];
  EXPECT_EQ(names[spans[0]["tid"]], "stream 1");
  EXPECT_EQ(names[spans[1]["tid"]], "stream 2");
  EXPECT_EQ(trace.of("M", "process_name").front()["args"]["name"], "puppet:0");
}

TEST_F(TraceTest, TheFirstExecutionOfAPlanIsAMiss) {
  open(fresh_path());
  bp_stream* s = stream();
  bp_buffer* memory = buffer();
  Addition work(memory, memory);
  for (int round = 0; round < 2; ++round) {
    bp_plan* made = plan(work);
    for (int i = 0; i < 2; ++i) {
      EXPECT_OK(api->plan_execute(device, s, made, &work.execution, &error));
    }
    forget(plans, made);
    api->plan_destroy(device, made);
  }
  const Trace trace = written();
  std::vector<std::string> plans_said;
  for (const json& span : trace.of("X", "add")) plans_said.push_back(span["args"]["plan"]);
  EXPECT_THAT(plans_said, testing::ElementsAre("miss", "hit", "miss", "hit"));
  ASSERT_EQ(trace.of("X", "plan_create").size(), 2u);
  EXPECT_EQ(trace.of("X", "plan_create")[0]["args"]["operator"], "add");
}

TEST_F(TraceTest, ArrowsLeadFromARecordToItsWaits) {
  open(fresh_path());
  bp_stream* first = stream();
  bp_stream* second = stream();
  bp_event* e1 = event();
  // The event was never recorded, so there is no arrow.
  EXPECT_OK(api->stream_wait_event(device, second, e1, &error));
  EXPECT_OK(api->event_record(device, e1, first, &error));
  EXPECT_OK(api->stream_wait_event(device, second, e1, &error));
  EXPECT_OK(api->event_wait(device, e1, BP_WAIT_FOREVER, &error));
  const Trace trace = written();
  ASSERT_EQ(trace.of("s", "event").size(), 1u);
  const auto ends = trace.of("t", "event");
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0]["id"], trace.of("s", "event")[0]["id"]);
  EXPECT_EQ(ends[0]["tid"], trace.of("X", "stream_wait_event")[1]["tid"]);
  EXPECT_EQ(ends[1]["tid"], trace.of("X", "event_wait")[0]["tid"]);
}

TEST_F(TraceTest, MemoryAndCopiesAreCounted) {
  open(fresh_path());
  bp_stream* s = stream();
  bp_buffer* one = buffer(BP_MEMORY_DEVICE, 4096);
  bp_buffer* two = buffer(BP_MEMORY_DEVICE, 1024);
  EXPECT_OK(api->copy(device, s, one, 0, two, 0, 512, &error));
  forget(buffers, one);
  EXPECT_OK(api->stream_wait(device, s, BP_WAIT_FOREVER, &error));
  api->buffer_destroy(device, one);
  const Trace trace = written();
  std::vector<int> levels;
  for (const json& event : trace.of("C", "DEVICE memory")) levels.push_back(event["args"]["bytes"]);
  EXPECT_THAT(levels, testing::ElementsAre(4096, 5120, 1024));
  EXPECT_EQ(trace.of("X", "copy")[0]["args"]["bytes"], 512);
  EXPECT_EQ(trace.of("X", "buffer_create")[1]["args"]["bytes"], 1024);
  EXPECT_EQ(trace.of("X", "buffer_destroy").size(), 1u);
}

TEST_F(TraceTest, ThePluginAnswersForADeviceThatHasNoPlace) {
  open(fresh_path());
  EXPECT_EQ(layer->device_open(layer, 0, nullptr, nullptr, &error), BP_INVALID_ARGUMENT);
}

TEST_F(TraceTest, AFailureIsAnEventWithItsStatus) {
  open(fresh_path());
  puppet.fail("event_create", BP_OUT_OF_MEMORY);
  bp_event* made = nullptr;
  EXPECT_EQ(api->event_create(device, 0, &made, &error), BP_OUT_OF_MEMORY);
  EXPECT_EQ(written().of("X", "event_create")[0]["args"]["status"], "OUT_OF_MEMORY");
}

TEST_F(TraceTest, ThreadsWriteOneWholeDocument) {
  open(fresh_path());
  constexpr int count = 2000;  // more events than the buffer holds
  std::vector<std::thread> threads;
  std::vector<bp_stream*> own;
  for (int i = 0; i < 4; ++i) own.push_back(stream());
  bp_buffer* memory = buffer();
  Addition work(memory, memory);
  bp_plan* made = plan(work);
  for (bp_stream* s : own) {
    threads.emplace_back([&, s] {
      for (int i = 0; i < count; ++i) api->plan_execute(device, s, made, &work.execution, nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Trace trace = written();
  const auto spans = trace.of("X", "add");
  EXPECT_EQ(spans.size(), 4u * count);
  EXPECT_EQ(std::count_if(spans.begin(), spans.end(), [](const json& e) { return e["args"]["plan"] == "miss"; }), 1);
}

// The program exits without releasing its objects. A forked child must not change the parent's
// file.
TEST_F(TraceTest, ExitWritesWhatIsBufferedAndAChildWritesNothing) {
  path = fresh_path();
  const pid_t program = fork();
  if (program == 0) {
    open(path);
    event();
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < 3000; ++i) api->event_wait(device, events.front(), 0, nullptr);
      std::exit(0);
    }
    waitpid(child, nullptr, 0);
    std::exit(0);
  }
  int status = -1;
  waitpid(program, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(Trace(path).of("X", "event_create").size(), 1u);
  EXPECT_TRUE(Trace(path).of("X", "event_wait").empty());
}

// If the disk is full, the layer logs one message, calls continue, and the file remains a complete
// document.
TEST_F(TraceTest, AFileThatCannotGrowIsOneMessage) {
  open(fresh_path());
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit little = {100 * 1024, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  bp_event* e1 = event();
  for (int i = 0; i < 3000; ++i) EXPECT_OK(api->event_wait(device, e1, 0, &error));
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_EQ(puppet.log.size(), 1u);
  EXPECT_THAT(puppet.log[0], HasSubstr("the trace ends here: make room, or trace less"));
  EXPECT_THAT(puppet.log[0], HasSubstr(path));
  puppet.log.clear();
  const Trace trace = written();
  EXPECT_GT(trace.of("X", "event_wait").size(), 100u);
  EXPECT_LT(trace.of("X", "event_wait").size(), 3000u);
}

class TraceHost : public testing::Test {
 protected:
  bp_status create(const char* layers, const char* trace, bp_error* record) {
    bph_registry_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
    desc.search_path = "";
    desc.layers = layers;
    desc.trace = trace;
    desc.log = [](void* context, int32_t, const char* message) {
      static_cast<std::vector<std::string>*>(context)->push_back(message);
    };
    desc.log_context = &log;
    Owned<bph_registry> registry;
    return bph_registry_create(&desc, registry.out(), record);
  }
  std::vector<std::string> log;
  bp_error error = fresh_error();
};

TEST_F(TraceHost, TheFileAndTheLayerComeTogether) {
  EXPECT_FAILS(create("trace", nullptr, &error), BP_INVALID_ARGUMENT, "set BACKPLANE_TRACE to a file");
  EXPECT_FAILS(create("trace", "/nowhere/at/all.json", &error), BP_INVALID_ARGUMENT,
               "bph_registry_desc.trace is \"/nowhere/at/all.json\", which cannot be written: "
               "No such file or directory; name a file in a directory of yours");
  EXPECT_FAILS(create("trace", testing::TempDir().c_str(), &error), BP_INVALID_ARGUMENT, "Is a directory");
  const std::string fifo = fresh_path();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FAILS(create("trace", fifo.c_str(), &error), BP_INVALID_ARGUMENT, "cannot be written");
  unlink(fifo.c_str());
  EXPECT_OK(create("", "some.json", &error));
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log.front(), HasSubstr("the layer trace is not named"));
}

TEST_F(TraceHost, ThePathMayHoldTheProcessId) {
  const std::string pattern = testing::TempDir() + "trace_%p_layer.json";
  const std::string path = testing::TempDir() + "trace_" + std::to_string(getpid()) + "_layer.json";
  EXPECT_OK(create("trace", pattern.c_str(), &error));
  EXPECT_TRUE(Trace(path).events.empty());
  unlink(path.c_str());
}

// A child that would write to its parent's file gets an error, even if another thread was opening a
// file during the fork.
TEST_F(TraceHost, AForkedChildNeedsAFileOfItsOwn) {
  const std::string path = fresh_path();
  ASSERT_OK(create("trace", path.c_str(), &error));
  std::atomic<bool> done{false};
  std::thread opens([&] {
#ifdef FORKS_BESIDE_THREADS
    while (!done) TraceFile::open(path, "the test");
#endif
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(30);  // ends the child if it deadlocks
      const bool told = create("trace", path.c_str(), &error) == BP_INVALID_ARGUMENT &&
                        std::string(error.message).find("%p") != std::string::npos;
      const std::string own = path + "." + std::to_string(getpid());
      const bool opened = create("trace", (path + ".%p").c_str(), &error) == BP_OK;
      unlink(own.c_str());
      // The system call bypasses the thread sanitizer, which would otherwise report that the child
      // leaks the parent's thread.
      syscall(SYS_exit_group, told && opened ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  done = true;
  opens.join();
  unlink(path.c_str());
}

// In a trace, a call that core makes for the user's operator, such as a staging copy, names that
// operator.
TEST_F(TraceHost, StagedCopiesNameTheirOperator) {
  const std::string path = fresh_path();
  setenv("BACKPLANE_LAYERS", "trace", 1);
  setenv("BACKPLANE_TRACE", path.c_str(), 1);
  {
    Host host(DENSE_PLUGIN);
    bph_tensor a = host.tensor<float>(BP_F32, {2, 2}, {1, 2, 3, 4});
    bph_tensor b = a;
    std::swap(b.strides[0], b.strides[1]);
    bph_tensor out = host.empty(BP_F32, {2, 2}, 16);
    const Call call(BP_OP_SUB, {a, b}, {out});
    EXPECT_OK(bph_execute(host.stream, &call, &error));
    EXPECT_OK(bph_stream_wait(host.stream, BP_WAIT_FOREVER, &error));
    EXPECT_GT(host.stats().staged_operands, 0u);
  }
  unsetenv("BACKPLANE_LAYERS");
  unsetenv("BACKPLANE_TRACE");
  const Trace trace(path);
  EXPECT_EQ(trace.of("X", "sub").size(), 1u);
  const auto copies = trace.of("X", "copy");
  EXPECT_TRUE(std::any_of(copies.begin(), copies.end(), [](const json& event) {
    return event["cat"] == "op" && event["args"].value("staging", "") == "sub";
  }));
  EXPECT_FALSE(trace.of("X", "sub")[0]["args"].contains("staging"));
  unlink(path.c_str());
}

}  // namespace

}  // namespace backplane::core::test
