// SPDX-License-Identifier: Apache-2.0
#include "probes.hpp"

#include <backplane/backplane.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "plugin.hpp"
#include "probe_external.hpp"

namespace backplane::conformance {

namespace {

// Creates live objects and pending work. Nothing releases the objects.
struct Life {
  Life(const std::string& path, uint32_t index) : plugin(*new Plugin(path)), device(*new Device(plugin, index)) {
    constexpr uint64_t bytes = 4u << 20;
    for (int i = 0; i < 3; ++i) {
      streams.push_back(new Stream(device));
      events.push_back(new Event(device));
      buffers.push_back(new Buffer(device, bytes));
    }
  }
  void work() {
    for (int i = 0; i < 20; ++i) streams[0]->copy(buffers[1]->get(), 0, buffers[0]->get(), 0, buffers[0]->bytes);
    streams[0]->record(events[0]->get());
    streams[1]->wait_event(events[0]->get());
    streams[1]->copy(buffers[2]->get(), 0, buffers[1]->get(), 0, buffers[0]->bytes);
    streams[1]->record(events[1]->get());
  }
  Plugin& plugin;
  Device& device;
  std::vector<Stream*> streams;
  std::vector<Event*> events;
  std::vector<Buffer*> buffers;
};

[[noreturn]] void leave() { std::exit(kProbeSucceeded); }

void opened_only(const std::string& path, uint32_t) {
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) _exit(1);
  leave();
}
void queried(const std::string& path, uint32_t) {
  new Plugin(path);
  leave();
}
void device_open(const std::string& path, uint32_t index) {
  new Device(*new Plugin(path), index);
  leave();
}
void idle(const std::string& path, uint32_t index) {
  Life& life = *new Life(path, index);
  life.work();
  for (Stream* stream : life.streams) stream->wait();
  leave();
}
void work_pending(const std::string& path, uint32_t index) {
  (new Life(path, index))->work();
  leave();
}
void all_ended(const std::string& path, uint32_t index) {
  {
    Plugin plugin(path);
    Device device(plugin, index);
    Stream(device).wait();
  }
  leave();
}
void from_another_thread(const std::string& path, uint32_t index) {
  (new Life(path, index))->work();
  std::thread(leave).join();
}
void while_a_thread_waits(const std::string& path, uint32_t index) {
  Life& life = *new Life(path, index);
  life.work();
  std::atomic<bool> begun{false};
  std::thread([&life, &begun] {
    begun = true;
    life.events[1]->wait_for(BP_WAIT_FOREVER);
  }).detach();
  while (!begun) std::this_thread::yield();
  leave();
}
void while_a_thread_enqueues(const std::string& path, uint32_t index) {
  Life& life = *new Life(path, index);
  std::atomic<int> done{0};
  std::thread([&life, &done] {
    for (;; ++done) life.streams[2]->copy(life.buffers[2]->get(), 0, life.buffers[0]->get(), 0, 4096);
  }).detach();
  while (done < 10) std::this_thread::yield();
  leave();
}
void quickly(const std::string& path, uint32_t index) {
  (new Life(path, index))->work();
  std::quick_exit(kProbeSucceeded);
}
void with_handlers(const std::string& path, uint32_t index) {
  static Life* life = nullptr;
  std::atexit([] { life = nullptr; });
  life = new Life(path, index);
  std::atexit([] { std::fflush(stdout); });
  life->work();
  leave();
}

void by_the_host(const std::string& path, uint32_t index, bool release) {
  bph_registry* registry = nullptr;
  bph_plugin* plugin = nullptr;
  bph_device* device = nullptr;
  bph_stream* stream = nullptr;
  bph_buffer* buffers[2] = {};
  bph_registry_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
  desc.search_path = "";
  const auto need = [](bp_status status) {
    if (status != BP_OK) _exit(1);
  };
  need(bph_registry_create(&desc, &registry, nullptr));
  need(bph_plugin_load(registry, path.c_str(), &plugin, nullptr));
  need(bph_plugin_device_open(plugin, index, nullptr, &device, nullptr));
  need(bph_stream_create(device, nullptr, &stream, nullptr));
  bph_buffer_desc wanted = {};
  wanted.struct_size = sizeof(wanted);
  wanted.bytes = 4u << 20;
  wanted.stream = stream;
  for (bph_buffer*& buffer : buffers) need(bph_buffer_create(device, &wanted, &buffer, nullptr));
  for (int i = 0; i < 20; ++i) need(bph_copy(stream, buffers[1], 0, buffers[0], 0, wanted.bytes, 0, nullptr));
  if (release) {
    for (bph_buffer* buffer : buffers) bph_buffer_release(buffer);
    bph_stream_release(stream);
    bph_device_release(device);
    bph_plugin_release(plugin);
    bph_registry_release(registry);
  }
  leave();
}

constexpr ProbeRow kRows[] = {
    {"library_opened_only", opened_only, false},
    {"queried", queried, false},
    {"device_open", device_open, false},
    {"everything_alive_and_idle", idle, false},
    {"everything_alive_and_pending", work_pending, false},
    {"everything_ended", all_ended, false},
    {"from_another_thread", from_another_thread, false},
    {"while_a_thread_waits", while_a_thread_waits, false},
    {"while_a_thread_enqueues", while_a_thread_enqueues, false},
    {"quick_exit", quickly, false},
    {"with_exit_handlers", with_handlers, false},
    {"host_objects_alive", [](const std::string& path, uint32_t index) { by_the_host(path, index, false); }, true},
    {"host_objects_released", [](const std::string& path, uint32_t index) { by_the_host(path, index, true); }, true},
};

}  // namespace

std::span<const ProbeRow> probe_rows() { return kRows; }

void do_probe(std::string_view name, const std::string& path, uint32_t device_index, std::string_view argument) {
  try {
    if (name == kExternalProbe) {
      use_external_objects(path, device_index, argument);
      leave();
    }
    for (const ProbeRow& row : kRows)
      if (name == row.name) row.run(path, device_index);
  } catch (const CaseEnd& end) {
    std::fprintf(stderr, "%s\n", end.message.c_str());
  }
  _exit(1);
}

}  // namespace backplane::conformance
