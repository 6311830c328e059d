// SPDX-License-Identifier: Apache-2.0
// Test cases for bp.external: semaphores that order streams of several devices and processes.
#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/runtime/external.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/health_check.hpp"
#include "cases/support/leak.hpp"
#include "harness/probe.hpp"
#include "harness/probe_external.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kSignalBytes = 65536;
constexpr uint64_t kShortNs = 2'000'000;
constexpr uint64_t kLongNs = 10'000'000'000;

// A stream that writes memory after a delay, and a stream that reads the memory.
struct SemaphoreScene {
  explicit SemaphoreScene(Context& given)
      : context(given),
        device(given.device()),
        delay(given),
        writer(device),
        reader(device),
        from(device, kSignalBytes),
        middle(device, kSignalBytes),
        to(device, kSignalBytes) {}
  // Enqueues slow work on `writer` that fills `middle`. Returns the bytes that `middle` then contains.
  Bytes write() {
    Bytes data = noise(context, kSignalBytes);
    upload(from, data);
    upload(middle, Bytes(kSignalBytes, 0));
    upload(to, Bytes(kSignalBytes, 0));
    delay.enqueue(writer, context.below(3000));
    writer.copy(middle.get(), 0, from.get(), 0, kSignalBytes);
    return data;
  }
  void read() { reader.copy(to.get(), 0, middle.get(), 0, kSignalBytes); }
  void require_read(const Bytes& data, std::string_view what) {
    reader.wait();
    require_same(context, download<unsigned char>(to, kSignalBytes), data, what);
    writer.wait();
  }
  Context& context;
  Device& device;
  Delay delay;
  Stream writer, reader;
  Buffer from, middle, to;
};

void orders_streams(Context& context, bool wait_first) {
  const Semaphore semaphore = semaphore_on(context, context.device());
  SemaphoreScene scene(context);
  for (uint64_t round = 1; round <= 32; ++round) {
    Bytes data;
    if (wait_first) {
      semaphore.wait(scene.reader, round);
      data = scene.write();
      scene.read();
      semaphore.signal(scene.writer, round);
    } else {
      data = scene.write();
      semaphore.signal(scene.writer, round);
      semaphore.wait(scene.reader, round);
      scene.read();
    }
    scene.require_read(data, "memory after a semaphore");
  }
}

// Streams of two open devices share a semaphore and memory. The reader may read only after the
// writer's device has signalled.
void orders_devices(Context& context) {
  const Semaphore own = semaphore_on(context, context.device());
  const std::string type = semaphore_type(context),
                    memory_type = type_with(context, BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT);
  Device other(context.plugin(), importer_index(context, BP_MEMORY_DEVICE));
  const Exported exported = own.exported(type);
  const Semaphore far = import_semaphore(context, other, exported.handle);
  SemaphoreScene scene(context);
  Buffer shared = external_buffer(context, context.device(), memory_type, kSignalBytes);
  const Exported memory = export_of(context, shared, memory_type);
  Buffer twin = import_buffer(context, other, memory.handle);
  Buffer far_to(other, kSignalBytes);
  Stream far_reader(other);
  for (uint64_t round = 1; round <= 32; ++round) {
    const Bytes data = scene.write();
    scene.writer.copy(shared.get(), 0, scene.middle.get(), 0, kSignalBytes);
    own.signal(scene.writer, 2 * round - 1);
    far.wait(far_reader, 2 * round - 1);
    far_reader.copy(far_to.get(), 0, twin.get(), 0, kSignalBytes);
    far.signal(far_reader, 2 * round);
    own.wait(scene.writer, 2 * round);  // the writer must not overwrite the memory before it has been read
    far_reader.wait();
    require_same(context, download<unsigned char>(far_to, kSignalBytes), data, "memory after a semaphore of a device");
  }
  scene.writer.wait();
}

void semaphore_crosses_processes(Context& context) {
  const Semaphore semaphore = semaphore_on(context, context.device());
  const std::string type = semaphore_type(context),
                    memory_type = type_with(context, BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT);
  Device& device = context.device();
  Buffer shared = external_buffer(context, device, memory_type, kSignalBytes);
  Buffer from(device, kSignalBytes), to(device, kSignalBytes);
  Bytes contents(kSignalBytes);
  for (uint64_t i = 0; i < kSignalBytes; ++i) contents[i] = external_byte(i, false);
  upload(from, contents);
  const Exported memory = export_of(context, shared, memory_type), handle = semaphore.exported(type);
  ExternalObjects objects{};
  objects.memory = memory.handle;
  objects.semaphore = handle.handle;
  for (const int64_t fd : {memory.handle.fd, handle.handle.fd})
    if (fd >= 0) fcntl(static_cast<int>(fd), F_SETFD, 0);
  Delay delay(context);
  Stream stream(device);
  delay.enqueue(stream, 3000);
  stream.copy(shared.get(), 0, from.get(), 0, kSignalBytes);
  semaphore.signal(stream, 1);
  semaphore.wait(stream, 2);
  stream.copy(to.get(), 0, shared.get(), 0, kSignalBytes);
  const ProbeEnd end =
      run_probe(std::string(kExternalProbe), context.path(), context.device_index(), external_argument(objects));
  context.require(end.ok, "a process that imports a semaphore of this process ended with {}", end.how);
  stream.wait();
  for (uint64_t i = 0; i < kSignalBytes; ++i) contents[i] = external_byte(i, true);
  require_same(context, download<unsigned char>(to, kSignalBytes), contents, "memory that another process signalled");
}

// A wait for a value must end when the semaphore has reached the value, and not earlier.
void reaches_values(Context& context, uint64_t start, uint64_t step) {
  Device& device = context.device();
  const Semaphore semaphore = semaphore_on(context, device, start);
  Stream signals(device), waits(device);
  const auto require_end = [&](uint64_t value) {
    context.require(waits.wait_for(kLongNs) == BP_OK, "a wait for {} did not end, and the semaphore has reached it",
                    value);
  };
  for (const uint64_t value : {uint64_t{0}, start / 2, start}) semaphore.wait(waits, value);
  require_end(start);
  semaphore.wait(waits, start + 2 * step);
  context.require(waits.wait_for(kShortNs) == BP_TIMEOUT, "a wait for {} ended at the value {}", start + 2 * step,
                  start);
  semaphore.signal(signals, start + step);
  signals.wait();
  context.require(waits.wait_for(kShortNs) == BP_TIMEOUT, "a wait for {} ended at the value {}", start + 2 * step,
                  start + step);
  semaphore.signal(signals, start + 2 * step);
  require_end(start + 2 * step);
  // A signal with a lower value must not lower the semaphore.
  semaphore.signal(signals, start + step);
  signals.wait();
  semaphore.wait(waits, start + 2 * step);
  require_end(start + 2 * step);
}

// While a stream waits for a semaphore, other streams and the host must be able to work.
void wait_blocks_no_other(Context& context) {
  Device& device = context.device();
  const Semaphore semaphore = semaphore_on(context, device);
  Stream blocked(device);
  semaphore.wait(blocked, 1);
  SemaphoreScene scene(context);
  const Bytes data = scene.write();
  scene.writer.wait();
  scene.read();
  scene.require_read(data, "work next to a stream that waits for a semaphore");
  require_healthy(context);
  context.require(blocked.wait_for(0) == BP_TIMEOUT, "a wait for a semaphore ended without a signal");
  semaphore.signal(scene.writer, 1);
  blocked.wait();
}

void host_raises(Context& context) {
  Device& device = context.device();
  const Semaphore semaphore = semaphore_on(context, device);
  Stream stream(device), other(device);
  for (uint64_t value = 1; value <= 16; ++value) {
    semaphore.wait(stream, value);
    if (semaphore.raise(value) != BP_OK) {
      semaphore.signal(other, value);
      stream.wait();
      other.wait();
      context.not_claimed("the host cannot raise a semaphore of this device");
    }
    stream.wait();
  }
}

void semaphore_outlives_its_creator(Context& context) {
  Device& device = context.device();
  const std::string type = semaphore_type(context);
  Stream stream(device);
  const Semaphore imported = [&] {
    const Exported exported = [&] {
      const Semaphore own = semaphore_on(context, device, 7);
      return own.exported(type);
    }();
    { const Semaphore first = import_semaphore(context, device, exported.handle); }
    return import_semaphore(context, device, exported.handle);
  }();
  imported.wait(stream, 7);
  context.require(stream.wait_for(kLongNs) == BP_OK, "an imported semaphore of the value 7 has not reached 7");
  imported.signal(stream, 8);
  imported.wait(stream, 8);
  context.require(stream.wait_for(kLongNs) == BP_OK, "an imported semaphore was raised to 8 and has not reached 8");
}

void semaphore_descriptors(Context& context) {
  Device& device = context.device();
  const std::string type = semaphore_type(context);
  const Semaphore own = semaphore_on(context, device);
  const Exported first = own.exported(type);
  need_descriptor(context, first);
  {
    const Exported second = own.exported(type);
    context.require(second.handle.fd != first.handle.fd, "two exports gave the descriptor {}", first.handle.fd);
    context.require((fcntl(static_cast<int>(second.handle.fd), F_GETFD) & FD_CLOEXEC) != 0,
                    "the exported descriptor is not closed on exec");
  }
  { const Semaphore imported = import_semaphore(context, device, first.handle); }
  context.require(fcntl(static_cast<int>(first.handle.fd), F_GETFD) >= 0, "an import closed the caller's descriptor");
}

void semaphores_leave_nothing(Context& context) {
  Device& device = context.device();
  const std::string type = semaphore_type(context);
  Stream stream(device);
  expect_no_leak(context, "creating, exporting and importing semaphores", 128, [&] {
    const Semaphore own = semaphore_on(context, device);
    const Exported exported = own.exported(type);
    const Semaphore imported = import_semaphore(context, device, exported.handle);
    own.signal(stream, 1);
    imported.wait(stream, 1);
    stream.wait();
  });
}

// Changes a handle so that an import must fail with `status`.
void semaphore_import_refuses(Context& context, void (*spoil)(bp_external_handle&), bp_status status) {
  Device& device = context.device();
  const Semaphore own = semaphore_on(context, device);
  const Exported exported = own.exported(semaphore_type(context));
  bp_external_handle handle = exported.handle;
  spoil(handle);
  if (handle.fd != exported.handle.fd) need_descriptor(context, exported);
  auto* made = reinterpret_cast<bp_semaphore*>(&handle);
  ErrorRecord error;
  expect_status(external_of(context, device).semaphore_import(device.get(), &handle, &made, &error), error,
                "semaphore_import", {status});
  context.require(made == nullptr, "semaphore_import failed and gave a semaphore");
}

// The device must not import exported memory as a semaphore.
void refuses_memory(Context& context) {
  Device& device = context.device();
  const Semaphore own = semaphore_on(context, device);
  const Exported exported = own.exported(semaphore_type(context));
  need_descriptor(context, exported);
  const std::string memory_type = type_with(context, BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT);
  for (const uint64_t bytes : {24u, 4096u, 65536u}) {
    Buffer buffer = external_buffer(context, device, memory_type, bytes);
    upload(buffer, Bytes(bytes, 0));
    const Exported memory = export_of(context, buffer, memory_type);
    need_descriptor(context, memory);
    bp_external_handle handle = exported.handle;
    handle.fd = memory.handle.fd;
    auto* made = reinterpret_cast<bp_semaphore*>(&handle);
    ErrorRecord error;
    expect_status(external_of(context, device).semaphore_import(device.get(), &handle, &made, &error), error,
                  "semaphore_import", {BP_INVALID_ARGUMENT, BP_UNSUPPORTED});
    context.require(made == nullptr, "semaphore_import failed and gave a semaphore");
  }
}

void semaphores_refuse_null(Context& context) {
  Device& device = context.device();
  const bp_external_api table = external_of(context, device);
  const Semaphore own = semaphore_on(context, device);
  const std::string type = semaphore_type(context);
  const Exported exported = own.exported(type);
  Stream stream(device);
  bp_external_handle handle = {};
  handle.struct_size = sizeof(handle);
  bp_semaphore* made = nullptr;
  ErrorRecord error;
  const auto refused = [&](bp_status status, const char* slot) {
    expect_status(status, error, slot, {BP_INVALID_ARGUMENT});
  };
  refused(table.semaphore_create(device.get(), nullptr, 0, &made, &error), "semaphore_create");
  refused(table.semaphore_create(device.get(), type.c_str(), 0, nullptr, &error), "semaphore_create");
  expect_status(table.semaphore_create(device.get(), "conformance.unknown", 0, &made, &error), error,
                "semaphore_create", {BP_UNSUPPORTED});
  refused(table.semaphore_export(device.get(), nullptr, type.c_str(), &handle, &error), "semaphore_export");
  refused(table.semaphore_export(device.get(), own.get(), nullptr, &handle, &error), "semaphore_export");
  refused(table.semaphore_export(device.get(), own.get(), type.c_str(), nullptr, &error), "semaphore_export");
  expect_status(table.semaphore_export(device.get(), own.get(), "conformance.unknown", &handle, &error), error,
                "semaphore_export", {BP_UNSUPPORTED});
  refused(table.semaphore_import(device.get(), nullptr, &made, &error), "semaphore_import");
  refused(table.semaphore_import(device.get(), &exported.handle, nullptr, &error), "semaphore_import");
  refused(table.semaphore_signal(device.get(), stream.get(), nullptr, 1, &error), "semaphore_signal");
  refused(table.semaphore_wait(device.get(), stream.get(), nullptr, 1, &error), "semaphore_wait");
  refused(table.semaphore_wait(device.get(), nullptr, own.get(), 1, &error), "semaphore_wait");
}

}  // namespace

void add_external_semaphore_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.external.semaphore." + std::move(what), std::move(requirements), std::move(run),
             kSemaphoreExtension);
    catalogue.back().since = kExternalSince;
  };
  add("orders_streams.signal_first", {"BP-EXT-009"}, [](Context& context) { orders_streams(context, false); });
  add("orders_streams.wait_first", {"BP-EXT-009"}, [](Context& context) { orders_streams(context, true); });
  add("orders_devices", {"BP-EXT-009"}, orders_devices);
  add("crosses_processes", {"BP-EXT-005", "BP-EXT-009"}, semaphore_crosses_processes);
  for (const uint64_t start : {uint64_t{0}, uint64_t{100}, (uint64_t{1} << 32) - 2, (uint64_t{1} << 63) - 2})
    add(fmt::format("reaches_values.from_{:x}", start), {"BP-EXT-010"},
        [=](Context& context) { reaches_values(context, start, 1); });
  add("reaches_values.by_40_bits", {"BP-EXT-010"},
      [](Context& context) { reaches_values(context, 1, uint64_t{1} << 40); });
  add("wait_blocks_no_other", {"BP-EXT-009"}, wait_blocks_no_other);
  add("host_raises", {"BP-EXT-010"}, host_raises);
  add("outlives_its_creator", {"BP-EXT-003"}, semaphore_outlives_its_creator);
  add("descriptors_are_the_callers", {"BP-EXT-004"}, semaphore_descriptors);
  add("leaves_nothing", {"BP-EXT-007"}, semaphores_leave_nothing);
  add("refuses_memory", {"BP-EXT-008"}, refuses_memory);
  add("refuses_null", {"BP-EXT-008"}, semaphores_refuse_null);
  const auto add_refusal = [&](const char* what, bp_status status, void (*spoil)(bp_external_handle&)) {
    add(fmt::format("import_refuses.{}", what), {"BP-EXT-008"},
        [=](Context& context) { semaphore_import_refuses(context, spoil, status); });
  };
  add_refusal("unknown_type", BP_UNSUPPORTED, [](bp_external_handle& handle) { handle.type[0] = 'z'; });
  add_refusal("endless_type", BP_UNSUPPORTED,
              [](bp_external_handle& handle) { std::memset(handle.type, 'a', sizeof(handle.type)); });
  add_refusal("reserved_field", BP_UNSUPPORTED, [](bp_external_handle& handle) { handle.reserved = 1; });
  add_refusal("closed_descriptor", BP_INVALID_ARGUMENT, [](bp_external_handle& handle) { handle.fd = 1'000'000; });
  add_refusal("descriptor_minus_1", BP_INVALID_ARGUMENT, [](bp_external_handle& handle) { handle.fd = -1; });
}

}  // namespace backplane::conformance
