// SPDX-License-Identifier: Apache-2.0
// Test cases for bp.external: memory that this process and another process export and import.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/runtime/external.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/health_check.hpp"
#include "cases/support/leak.hpp"
#include "cases/support/op_desc.hpp"
#include "cases/support/threads.hpp"
#include "harness/probe.hpp"
#include "harness/probe_external.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kSharedBytes = 65536;
constexpr uint32_t kBothWays = BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT;

void types_are_constant(Context& context) {
  Device& device = context.device();
  const bp_external_api table = external_of(context, device);
  const std::vector<bp_external_type> first = types_of(context, device);
  context.require(!first.empty(), "the device has bp.external and no type");
  uint32_t all = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    all |= first[i].flags;
    context.require(first[i].flags != 0, "type {} has no flag", first[i].name);
    for (size_t j = 0; j < i; ++j)
      context.require(std::strcmp(first[i].name, first[j].name) != 0, "two types have the name {}", first[i].name);
  }
  const auto needs = [&](uint32_t flag, bool has, const char* slot) {
    context.require((all & flag) == 0 || has, "a type has the flag {:#x}, and {} is null", flag, slot);
  };
  needs(BP_EXTERNAL_MEMORY_EXPORT, table.buffer_export != nullptr, "buffer_export");
  needs(BP_EXTERNAL_MEMORY_IMPORT, table.buffer_import != nullptr, "buffer_import");
  needs(BP_EXTERNAL_SEMAPHORE_EXPORT, table.semaphore_export != nullptr, "semaphore_export");
  needs(BP_EXTERNAL_SEMAPHORE_IMPORT, table.semaphore_import != nullptr, "semaphore_import");
  const bool semaphores = table.semaphore_create != nullptr || table.semaphore_import != nullptr;
  context.require(!semaphores || (table.semaphore_signal != nullptr && table.semaphore_wait != nullptr &&
                                  table.semaphore_destroy != nullptr),
                  "the device has semaphores, and a slot for them is null");
  Stream(device).wait();
  const std::vector<bp_external_type> again = types_of(context, device);
  context.require(std::equal(first.begin(), first.end(), again.begin(), again.end(),
                             [](const bp_external_type& a, const bp_external_type& b) {
                               return a.flags == b.flags && std::strcmp(a.name, b.name) == 0;
                             }),
                  "external_type gave other types after use");
  for (const uint32_t index : {static_cast<uint32_t>(first.size()), 4096u, UINT32_MAX}) {
    bp_external_type type = {};
    type.struct_size = sizeof(type);
    ErrorRecord error;
    expect_status(table.external_type(device.get(), index, &type, &error), error, "external_type", {BP_UNSUPPORTED});
  }
}

// Two buffers that share memory: an exported buffer, and a buffer that imports a part of it on the
// same device or on another device.
struct Twins {
  Twins(Context& given, Device& far_device, uint32_t kind, uint64_t offset)
      : context(given),
        far(far_device),
        type(type_with(given, kBothWays)),
        own(external_buffer(given, given.device(), type, kSharedBytes, kind)),
        exported(export_of(given, own, type)),
        part(part_of(exported.handle, offset)),
        twin(import_buffer(given, far, part)),
        start(offset) {}
  static bp_external_handle part_of(bp_external_handle handle, uint64_t offset) {
    handle.offset += offset;
    handle.bytes -= offset;
    return handle;
  }
  // Checks that bytes written through one buffer are read through the other buffer.
  void require_one_memory() {
    Buffer own_copy(own.device(), kSharedBytes), far_copy(far, part.bytes);
    Stream own_stream(own.device()), far_stream(far);
    for (int round = 0; round < 3; ++round) {
      Bytes data = noise(context, kSharedBytes);
      upload(own_copy, data);
      own_stream.copy(own.get(), 0, own_copy.get(), 0, kSharedBytes);
      own_stream.wait();
      far_stream.copy(far_copy.get(), 0, twin.get(), 0, part.bytes);
      far_stream.wait();
      require_same(context, download<unsigned char>(far_copy, part.bytes), Bytes(data.begin() + start, data.end()),
                   "imported memory, read");
      const Bytes back = noise(context, part.bytes);
      upload(far_copy, back);
      far_stream.copy(twin.get(), 0, far_copy.get(), 0, part.bytes);
      far_stream.wait();
      std::copy(back.begin(), back.end(), data.begin() + start);
      own_stream.copy(own_copy.get(), 0, own.get(), 0, kSharedBytes);
      own_stream.wait();
      require_same(context, download<unsigned char>(own_copy, kSharedBytes), data, "exported memory, written");
    }
  }
  Context& context;
  Device& far;
  std::string type;
  Buffer own;
  Exported exported;
  bp_external_handle part;
  Buffer twin;
  uint64_t start;
};

void is_one_memory_on_one_device(Context& context, uint32_t kind, uint64_t offset) {
  Twins(context, context.device(), kind, offset).require_one_memory();
}
void is_one_memory_on_two_devices(Context& context, uint32_t kind, uint64_t offset) {
  Device other(context.plugin(), importer_index(context, kind));
  Twins(context, other, kind, offset).require_one_memory();
}

void external_is_an_operand(Context& context) {
  Device& device = context.device();
  Twins twins(context, device, BP_MEMORY_DEVICE, 0);
  Words words(kSharedBytes / 4, 0);
  for (uint32_t i = 0; i < 1024; ++i) words[i] = i;
  upload(twins.own, words);
  Runner add(device, elementwise(BP_OP_ADD, BP_U32, 1024));
  Stream stream(device);
  add.enqueue(stream.get(), {{twins.own.get()}, {twins.own.get()}}, {{twins.own.get(), 4096}});
  stream.wait();
  for (uint32_t i = 0; i < 1024; ++i) words[1024 + i] = 2 * i;
  require_same(context, download<uint32_t>(twins.own, words.size()), words, "exported memory as an operand");
}

// The memory must exist until its last buffer is destroyed and its last file descriptor is closed.
void memory_outlives_its_creator(Context& context) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  const Bytes data = noise(context, kSharedBytes);
  for (int round = 0; round < 4; ++round) {
    auto exported = [&] {
      Buffer own = external_buffer(context, device, type, kSharedBytes);
      upload(own, data);
      return export_of(context, own, type);
    }();
    Buffer passing(device, kSharedBytes);
    upload(passing, Bytes(kSharedBytes, 0));
    auto imported = [&] {
      const Exported last = std::move(exported);
      { const Buffer first = import_buffer(context, device, last.handle); }
      return import_buffer(context, device, last.handle);
    }();
    require_same(context, download<unsigned char>(imported, kSharedBytes), data,
                 "memory whose creator and descriptors ended");
  }
}

// Each export must return a new file descriptor that is closed on exec. An import must not close the
// caller's file descriptor.
void descriptors_are_the_callers(Context& context) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  Buffer own = external_buffer(context, device, type, kSharedBytes);
  const Exported first = export_of(context, own, type);
  need_descriptor(context, first);
  const auto is_open = [](const Exported& exported) { return fcntl(static_cast<int>(exported.handle.fd), F_GETFD); };
  {
    const Exported second = export_of(context, own, type);
    context.require(second.handle.fd != first.handle.fd, "two exports gave the descriptor {}", first.handle.fd);
    context.require((is_open(second) & FD_CLOEXEC) != 0, "the exported descriptor is not closed on exec");
  }
  context.require(is_open(first) >= 0, "closing one exported descriptor closed another");
  for (const uint64_t bytes : {kSharedBytes, uint64_t{0}}) {
    bp_external_handle handle = first.handle;
    handle.bytes = bytes;  // 0 makes the import fail
    { const Wrapped<Buffer> imported = try_import(context, device, &handle); }
    context.require(is_open(first) >= 0, "an import of {} bytes closed the caller's descriptor", bytes);
  }
  Buffer imported = import_buffer(context, device, first.handle);
  const Bytes data = noise(context, kSharedBytes);
  upload(own, data);
  require_same(context, download<unsigned char>(imported, kSharedBytes), data, "memory after several exports");
}

// Imports a part of a buffer, exports the import, and imports the memory again.
void imports_are_exported(Context& context) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  Buffer own = external_buffer(context, device, type, kSharedBytes);
  const Exported exported = export_of(context, own, type);
  Buffer part = import_buffer(context, device, Twins::part_of(exported.handle, 4096));
  bp_external_handle again = {};
  again.struct_size = sizeof(again);
  again.fd = -1;
  ErrorRecord error;
  const bp_status status =
      external_of(context, device).buffer_export(device.get(), part.get(), type.c_str(), &again, &error);
  expect_status(status, error, "buffer_export", {BP_OK, BP_UNSUPPORTED});
  if (status != BP_OK) return;
  const Exported second(again);
  context.require(again.bytes == kSharedBytes - 4096, "the export of an import of {} bytes states {}",
                  kSharedBytes - 4096, again.bytes);
  Buffer third = import_buffer(context, device, again);
  const Bytes data = noise(context, kSharedBytes);
  upload(own, data);
  require_same(context, download<unsigned char>(third, again.bytes), Bytes(data.begin() + 4096, data.end()),
               "an import of an exported import");
}

void crosses_processes(Context& context) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  Buffer own = external_buffer(context, device, type, kSharedBytes);
  Bytes contents(kSharedBytes);
  for (uint64_t i = 0; i < kSharedBytes; ++i) contents[i] = external_byte(i, false);
  upload(own, contents);
  const Exported exported = export_of(context, own, type);
  ExternalObjects objects{};
  objects.memory = exported.handle;
  if (exported.handle.fd >= 0) fcntl(static_cast<int>(exported.handle.fd), F_SETFD, 0);
  const ProbeEnd end =
      run_probe(std::string(kExternalProbe), context.path(), context.device_index(), external_argument(objects));
  context.require(end.ok, "a process that imports memory of this process ended with {}", end.how);
  for (uint64_t i = 0; i < kSharedBytes; ++i) contents[i] = external_byte(i, true);
  require_same(context, download<unsigned char>(own, kSharedBytes), contents, "memory that another process wrote");
}

// The device may refuse to export a buffer that was not created for export. If the device exports
// the buffer, the import must share the buffer's memory.
void ordinary_memory(Context& context) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  Buffer own(device, kSharedBytes);
  const Bytes data = noise(context, kSharedBytes);
  upload(own, data);
  bp_external_handle handle = {};
  handle.struct_size = sizeof(handle);
  handle.fd = -1;
  ErrorRecord error;
  const bp_status status =
      external_of(context, device).buffer_export(device.get(), own.get(), type.c_str(), &handle, &error);
  expect_status(status, error, "buffer_export", {BP_OK, BP_UNSUPPORTED});
  if (status != BP_OK) return;
  const Exported exported(handle);
  const Buffer imported = import_buffer(context, device, handle);
  require_same(context, download<unsigned char>(imported, kSharedBytes), data, "exported ordinary memory");
  const Bytes later = noise(context, kSharedBytes);
  upload(own, later);
  require_same(context, download<unsigned char>(imported, kSharedBytes), later, "exported ordinary memory, written");
}

void external_leaves_nothing(Context& context) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  expect_no_leak(context, "creating, exporting and importing memory", 128, [&] {
    const Buffer own = external_buffer(context, device, type, kSharedBytes);
    const Exported exported = export_of(context, own, type);
    const Buffer imported = import_buffer(context, device, exported.handle);
    bp_external_handle wrong = exported.handle;
    wrong.bytes = wrong.object_bytes = UINT64_MAX / 2;
    const Wrapped<Buffer> none = try_import(context, device, &wrong);
  });
}

void external_from_threads(Context& context) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  const Buffer shared = external_buffer(context, device, type, kSharedBytes);
  in_threads(context, 4, [&](unsigned) {
    for (int i = 0; i < 50; ++i) {
      const Buffer own = external_buffer(context, device, type, 4096);
      const Exported exported = export_of(context, own, type), other = export_of(context, shared, type);
      const Buffer imported = import_buffer(context, device, exported.handle);
      const Buffer twin = import_buffer(context, device, other.handle);
    }
  });
}

// Changes a handle so that an import must fail with one of `statuses`.
using SpoilExternal = void (*)(bp_external_handle&);
void import_refuses(Context& context, SpoilExternal spoil, std::initializer_list<bp_status> statuses) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  const Buffer own = external_buffer(context, device, type, kSharedBytes);
  const Exported exported = export_of(context, own, type);
  bp_external_handle handle = exported.handle;
  spoil(handle);
  const Wrapped<Buffer> imported = try_import(context, device, &handle);
  expect_status(imported.status, imported.error, "buffer_import", statuses);
  require_healthy(context);
}
// Replaces the handle's file descriptor by the file descriptor that `open` returns.
using OpenFile = int (*)(const bp_external_handle&);
void import_refuses_file(Context& context, OpenFile open, std::initializer_list<bp_status> statuses) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  const Buffer own = external_buffer(context, device, type, kSharedBytes);
  const Exported exported = export_of(context, own, type);
  need_descriptor(context, exported);
  bp_external_handle handle = exported.handle;
  handle.fd = open(handle);
  const Exported closes(handle);
  context.require(handle.fd >= 0, "the suite cannot open a file");
  const Wrapped<Buffer> imported = try_import(context, device, &handle);
  expect_status(imported.status, imported.error, "buffer_import", statuses);
  require_healthy(context);
}

void set_external_type(bp_external_handle& handle, const std::string& type) {
  std::memset(handle.type, 0, sizeof(handle.type));
  type.copy(handle.type, sizeof(handle.type) - 1);
}

// Each slot that takes a type must refuse a type that the device does not have.
void refuses_types(Context& context) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  const bp_external_api table = external_of(context, device);
  const Buffer own = external_buffer(context, device, type, 4096);
  const bp_buffer_desc desc = {sizeof(desc), BP_MEMORY_DEVICE, 4096, 0};
  const std::string endless(200, 'a');
  for (const std::string& wrong :
       {std::string("conformance.unknown"), std::string(), type + "x", type.substr(0, type.size() - 1), endless}) {
    ErrorRecord error;
    auto* made = reinterpret_cast<bp_buffer*>(&error);
    expect_status(table.buffer_create_external(device.get(), &desc, wrong.c_str(), &made, &error), error,
                  "buffer_create_external", {BP_UNSUPPORTED});
    context.require(made == nullptr, "buffer_create_external failed and gave a buffer");
    bp_external_handle handle = {};
    handle.struct_size = sizeof(handle);
    expect_status(table.buffer_export(device.get(), own.get(), wrong.c_str(), &handle, &error), error, "buffer_export",
                  {BP_UNSUPPORTED});
  }
}

void create_refuses_sizes(Context& context) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  const bp_external_api table = external_of(context, device);
  const auto refused = [&](uint64_t bytes, uint64_t alignment, std::initializer_list<bp_status> statuses) {
    const bp_buffer_desc desc = {sizeof(desc), BP_MEMORY_DEVICE, bytes, alignment};
    ErrorRecord error;
    auto* made = reinterpret_cast<bp_buffer*>(&error);
    expect_status(table.buffer_create_external(device.get(), &desc, type.c_str(), &made, &error), error,
                  "buffer_create_external", statuses);
    context.require(made == nullptr, "buffer_create_external failed and gave a buffer");
  };
  refused(0, 0, {BP_INVALID_ARGUMENT});
  refused(4096, 3, {BP_INVALID_ARGUMENT, BP_UNSUPPORTED});
  for (const uint64_t bytes : {uint64_t{1} << 60, UINT64_MAX / 2, UINT64_MAX - 4095, UINT64_MAX})
    refused(bytes, 0, {BP_OUT_OF_MEMORY, BP_UNSUPPORTED});
  require_healthy(context);
}

void external_refuses_null(Context& context) {
  const std::string type = type_with(context, kBothWays);
  Device& device = context.device();
  const bp_external_api table = external_of(context, device);
  const Buffer own = external_buffer(context, device, type, 4096);
  const Exported exported = export_of(context, own, type);
  bp_external_handle handle = {};
  handle.struct_size = sizeof(handle);
  const bp_buffer_desc desc = {sizeof(desc), BP_MEMORY_DEVICE, 4096, 0};
  bp_buffer* made = nullptr;
  uint32_t kind = 0;
  ErrorRecord error;
  const auto refused = [&](bp_status status, const char* slot) {
    expect_status(status, error, slot, {BP_INVALID_ARGUMENT});
  };
  refused(table.external_type(device.get(), 0, nullptr, &error), "external_type");
  refused(table.buffer_create_external(device.get(), nullptr, type.c_str(), &made, &error), "buffer_create_external");
  refused(table.buffer_create_external(device.get(), &desc, nullptr, &made, &error), "buffer_create_external");
  refused(table.buffer_create_external(device.get(), &desc, type.c_str(), nullptr, &error), "buffer_create_external");
  refused(table.buffer_export(device.get(), nullptr, type.c_str(), &handle, &error), "buffer_export");
  refused(table.buffer_export(device.get(), own.get(), nullptr, &handle, &error), "buffer_export");
  refused(table.buffer_export(device.get(), own.get(), type.c_str(), nullptr, &error), "buffer_export");
  refused(table.buffer_import(device.get(), nullptr, &kind, &made, &error), "buffer_import");
  refused(table.buffer_import(device.get(), &exported.handle, &kind, nullptr, &error), "buffer_import");
}

int a_memfd(uint64_t bytes, int seals) {
  const int fd = memfd_create("conformance", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return -1;
  if (seals != 0 && fcntl(fd, F_ADD_SEALS, seals) != 0) return -1;
  return fd;
}

}  // namespace

void add_external_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.external." + std::move(what), std::move(requirements), std::move(run),
             kExternalExtension);
    catalogue.back().since = kExternalSince;
  };
  add("types_are_constant", {"BP-EXT-001"}, types_are_constant);
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    for (const uint64_t offset : {0u, 4096u, 12288u}) {
      add(fmt::format("is_one_memory.{}.from_{}.on_one_device", kind_name(kind), offset), {"BP-EXT-002"},
          [=](Context& context) { is_one_memory_on_one_device(context, kind, offset); });
      add(fmt::format("is_one_memory.{}.from_{}.on_two_devices", kind_name(kind), offset), {"BP-EXT-002"},
          [=](Context& context) { is_one_memory_on_two_devices(context, kind, offset); });
    }
  }
  add("is_an_operand", {"BP-EXT-002"}, external_is_an_operand);
  add("outlives_its_creator", {"BP-EXT-003"}, memory_outlives_its_creator);
  add("descriptors_are_the_callers", {"BP-EXT-004"}, descriptors_are_the_callers);
  add("imports_are_exported", {"BP-EXT-002"}, imports_are_exported);
  add("crosses_processes", {"BP-EXT-005"}, crosses_processes);
  add("ordinary_memory", {"BP-EXT-006"}, ordinary_memory);
  add("leaves_nothing", {"BP-EXT-007"}, external_leaves_nothing);
  add("from_threads", {"BP-EXT-002", "BP-THR-002"}, external_from_threads);
  add("refuses_types", {"BP-EXT-008"}, refuses_types);
  add("refuses_sizes", {"BP-EXT-008"}, create_refuses_sizes);
  add("refuses_null", {"BP-EXT-008"}, external_refuses_null);
  const auto add_refusal = [&](const char* what, std::initializer_list<bp_status> statuses, SpoilExternal spoil) {
    const std::vector<bp_status> all(statuses);
    const bp_status first = all.front(), last = all.back();
    add(fmt::format("import_refuses.{}", what), {"BP-EXT-008"}, [=](Context& context) {
      import_refuses(context, spoil, {first, last});
    });
  };
  add_refusal("unknown_type", {BP_UNSUPPORTED},
              [](bp_external_handle& handle) { set_external_type(handle, "conformance.unknown"); });
  add_refusal("no_type", {BP_UNSUPPORTED}, [](bp_external_handle& handle) { set_external_type(handle, ""); });
  add_refusal("longer_type", {BP_UNSUPPORTED},
              [](bp_external_handle& handle) { set_external_type(handle, std::string(handle.type) + "x"); });
  add_refusal("endless_type", {BP_UNSUPPORTED},
              [](bp_external_handle& handle) { std::memset(handle.type, 'a', sizeof(handle.type)); });
  add_refusal("reserved_field", {BP_UNSUPPORTED}, [](bp_external_handle& handle) { handle.reserved = 1; });
  add_refusal("uuid_of_another_device", {BP_UNSUPPORTED},
              [](bp_external_handle& handle) { handle.uuid[5] = static_cast<uint8_t>(handle.uuid[5] + 77); });
  add_refusal("no_bytes", {BP_INVALID_ARGUMENT}, [](bp_external_handle& handle) { handle.bytes = 0; });
  add_refusal("bytes_past_the_end", {BP_INVALID_ARGUMENT},
              [](bp_external_handle& handle) { handle.bytes = handle.object_bytes - handle.offset + 1; });
  add_refusal("bytes_without_end", {BP_INVALID_ARGUMENT},
              [](bp_external_handle& handle) { handle.bytes = UINT64_MAX; });
  add_refusal("offset_past_the_end", {BP_INVALID_ARGUMENT},
              [](bp_external_handle& handle) { handle.offset = handle.object_bytes; });
  add_refusal("offset_that_wraps", {BP_INVALID_ARGUMENT},
              [](bp_external_handle& handle) { handle.offset = UINT64_MAX - 4095; });
  // In these handles, the stated size of the object is too large. The device can detect this only if it asks the system
  // for the object's size.
  add_refusal("larger_object", {BP_INVALID_ARGUMENT}, [](bp_external_handle& handle) {
    handle.object_bytes += uint64_t{1} << 30;
    handle.bytes = handle.object_bytes - handle.offset;
  });
  add_refusal("huge_object", {BP_INVALID_ARGUMENT}, [](bp_external_handle& handle) {
    handle.object_bytes = UINT64_MAX;
    handle.bytes = UINT64_MAX - handle.offset;
  });
  const auto add_number = [&](const char* what, SpoilExternal spoil) {
    add(fmt::format("import_refuses.{}", what), {"BP-EXT-008"}, [=](Context& context) {
      const std::string type = type_with(context, kBothWays);
      const Buffer own = external_buffer(context, context.device(), type, kSharedBytes);
      const Exported exported = export_of(context, own, type);
      need_descriptor(context, exported);
      bp_external_handle handle = exported.handle;
      spoil(handle);
      const Wrapped<Buffer> imported = try_import(context, context.device(), &handle);
      expect_status(imported.status, imported.error, "buffer_import", {BP_INVALID_ARGUMENT});
    });
  };
  add_number("descriptor_minus_1", [](bp_external_handle& handle) { handle.fd = -1; });
  add_number("closed_descriptor", [](bp_external_handle& handle) { handle.fd = 1'000'000; });
  // The low 32 bits of this descriptor number are a valid file descriptor of the right type.
  add_number("descriptor_of_33_bits", [](bp_external_handle& handle) { handle.fd += int64_t{1} << 32; });
  add_number("least_descriptor", [](bp_external_handle& handle) { handle.fd = INT64_MIN; });
  const auto add_file = [&](const char* what, OpenFile open) {
    add(fmt::format("import_refuses.{}", what), {"BP-EXT-008"},
        [=](Context& context) { import_refuses_file(context, open, {BP_INVALID_ARGUMENT}); });
  };
  add_file("null_device", [](const bp_external_handle&) { return ::open("/dev/null", O_RDWR | O_CLOEXEC); });
  add_file("folder", [](const bp_external_handle&) { return ::open("/", O_RDONLY | O_CLOEXEC); });
  add_file("pipe", [](const bp_external_handle&) {
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    close(ends[1]);
    return ends[0];
  });
  add_file("short_file", [](const bp_external_handle& handle) {
    return a_memfd(handle.object_bytes / 2, F_SEAL_SHRINK | F_SEAL_GROW);
  });
  add_file("file_that_can_shrink", [](const bp_external_handle& handle) { return a_memfd(handle.object_bytes, 0); });
  add_file("file_without_writes", [](const bp_external_handle& handle) {
    return a_memfd(handle.object_bytes, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  });
  add_external_semaphore_cases(catalogue);
}

}  // namespace backplane::conformance
