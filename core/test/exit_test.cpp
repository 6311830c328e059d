// SPDX-License-Identifier: Apache-2.0
// Tests that a process can exit with live objects and pending work. A thousand processes must exit without a crash or a
// hang.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "host.hpp"

namespace backplane::core::test {
namespace {

constexpr int kProcesses = 1000;

// Creates a registry, a device, a stream, an event and a buffer, and enqueues work on the stream.
// Exits without releasing these objects. The exit code is 0, or the number of the step that failed.
[[noreturn]] void live_and_exit() {
  bph_registry_desc registry_desc = {};
  registry_desc.struct_size = sizeof(registry_desc);
  registry_desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
  registry_desc.search_path = "";
  bph_registry* registry = nullptr;
  bph_plugin* plugin = nullptr;
  bph_device* device = nullptr;
  bph_stream* stream = nullptr;
  bph_event* event = nullptr;
  if (bph_registry_create(&registry_desc, &registry, nullptr) != BP_OK) std::exit(1);
  if (bph_plugin_load(registry, REFERENCE_PLUGIN, &plugin, nullptr) != BP_OK) std::exit(2);
  if (bph_plugin_device_open(plugin, 0, nullptr, &device, nullptr) != BP_OK) std::exit(3);
  if (bph_stream_create(device, nullptr, &stream, nullptr) != BP_OK) std::exit(4);
  if (bph_event_create(device, 0, &event, nullptr) != BP_OK) std::exit(5);
  bph_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bytes = 1 << 20;
  desc.stream = stream;
  bph_tensor view = {};
  if (bph_buffer_create(device, &desc, &view.buffer, nullptr) != BP_OK) std::exit(6);
  view.dtype = BP_F32;
  view.rank = 1;
  view.shape[0] = desc.bytes / 4;
  view.strides[0] = 1;
  const Call call(BP_OP_NEG, {view}, {view});
  for (int i = 0; i < 8; ++i) {
    if (bph_execute(stream, &call, nullptr) != BP_OK) std::exit(7);
  }
  if (bph_event_record(event, stream, nullptr) != BP_OK) std::exit(8);
  std::exit(0);
}

TEST(Exit, WithEverythingAlive) {
  for (int i = 0; i < kProcesses; ++i) {
    std::fflush(nullptr);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) live_and_exit();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "process " << i << " ended by signal " << WTERMSIG(status);
    ASSERT_EQ(WEXITSTATUS(status), 0) << "process " << i;
  }
}

}  // namespace
}  // namespace backplane::core::test
