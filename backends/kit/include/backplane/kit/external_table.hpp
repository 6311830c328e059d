// SPDX-License-Identifier: Apache-2.0
// The C table of the interface "bp.external", implemented by a C++ device class. The interface exists if the class
// has the method external_types, and the method returns at least one type. The other methods are optional; a slot
// without its method is null.
//   std::span<const ExternalType> external_types() const;
//   Result<Buffer*> create_external(const bp_buffer_desc&, std::string_view type);
//   Result<bp_external_handle> export_memory(Buffer&, std::string_view type);
//   Result<Buffer*> import_external(const bp_external_handle&, uint32_t& kind);
//       The kit has already rejected 0 bytes, and ranges that end past object_bytes.
//   Result<Semaphore*> create_semaphore(std::string_view type, uint64_t value);
//   Result<bp_external_handle> export_semaphore(Semaphore&, std::string_view type);
//   Result<Semaphore*> import_semaphore(const bp_external_handle&);
//   Status signal(Stream*, Semaphore&, uint64_t value);
//       If the stream is null, signals the semaphore during the call.
//   Status wait(Stream&, Semaphore&, uint64_t value);
//   void destroy(Semaphore*);
//       A class with any of the semaphore methods must also have the type Semaphore.
#pragma once

#include <backplane/kit/external.hpp>
#include <backplane/kit/slot.hpp>
#include <span>

namespace backplane::kit {

// The type Semaphore of a device class, or NoSemaphore if the class has no semaphores.
struct NoSemaphore {};
template <class Device>
struct SemaphoreOf {
  using Type = NoSemaphore;
};
template <class Device>
  requires requires { typename Device::Semaphore; }
struct SemaphoreOf<Device> {
  using Type = typename Device::Semaphore;
};

template <class Device>
class ExternalTable : DeviceSlots<Device> {
  using Slots = DeviceSlots<Device>;
  using Slots::of;
  using Slots::slot;
  using typename Slots::Buffer;
  using typename Slots::Stream;
  using Semaphore = typename SemaphoreOf<Device>::Type;

  static Semaphore& of(bp_semaphore* semaphore) { return *reinterpret_cast<Semaphore*>(semaphore); }

  static constexpr bool kCreates =
      requires(Device& d, const bp_buffer_desc& desc, std::string_view type) { d.create_external(desc, type); };
  static constexpr bool kExports =
      requires(Device& d, Buffer& buffer, std::string_view type) { d.export_memory(buffer, type); };
  static constexpr bool kImports =
      requires(Device& d, const bp_external_handle& handle, uint32_t& kind) { d.import_external(handle, kind); };
  static constexpr bool kCreatesSemaphores =
      requires(Device& d, std::string_view type) { d.create_semaphore(type, 0u); };
  static constexpr bool kExportsSemaphores =
      requires(Device& d, Semaphore& semaphore, std::string_view type) { d.export_semaphore(semaphore, type); };
  static constexpr bool kImportsSemaphores =
      requires(Device& d, const bp_external_handle& handle) { d.import_semaphore(handle); };
  static constexpr bool kSemaphores = kCreatesSemaphores || kImportsSemaphores;

  static bp_status external_type(bp_device* device, uint32_t index, bp_external_type* out, bp_error* error) {
    return slot(
        error, "external_type",
        [&]() -> Status {
          Status status = check_output(out, BP_EXTERNAL_TYPE_MIN_SIZE, "bp_external_type");
          if (!status.ok()) return status;
          const std::span<const ExternalType> types = of(device).external_types();
          if (index >= types.size()) {
            return unsupported("external_type: type ", index, " requested, there are ", types.size());
          }
          bp_external_type type{};
          type.flags = types[index].flags;
          types[index].name.copy(type.name, sizeof(type.name) - 1);
          write_output(out, type);
          return {};
        },
        device);
  }

  // Returns a type's name. Reads at most 32 characters.
  static Result<std::string_view> read_type(const char* name, const char* type) {
    if (type == nullptr) return invalid_argument(name, ": the type is null; pass the name of a bp_external_type");
    return std::string_view(type, strnlen(type, sizeof(bp_external_type::name)));
  }
  static Status read_handle(const bp_external_handle* given, bp_external_handle& out) {
    Status status = read_input(given, BP_EXTERNAL_HANDLE_MIN_SIZE, "bp_external_handle", out);
    if (status.ok() && out.reserved != 0) {
      return unsupported("bp_external_handle.reserved is ", out.reserved, ", only 0 is known");
    }
    return status;
  }

  static bp_status buffer_create_external(bp_device* device, const bp_buffer_desc* desc, const char* type,
                                          bp_buffer** out, bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Buffer*> {
      bp_buffer_desc known;
      Status status = read_input(desc, BP_BUFFER_DESC_MIN_SIZE, "bp_buffer_desc", known);
      if (!status.ok()) return status;
      auto name = read_type("buffer_create_external", type);
      if (!name.ok()) return name.status();
      return of(device).create_external(known, name.value());
    });
  }

  // Writes the handle that `make(type)` returns.
  template <class Make, class... Handles>
  static bp_status get(bp_error* error, const char* name, const char* type, bp_external_handle* out, const Make& make,
                       const Handles*... handles) {
    return slot(
        error, name,
        [&]() -> Status {
          Status status = check_output(out, BP_EXTERNAL_HANDLE_MIN_SIZE, "bp_external_handle");
          if (!status.ok()) return status;
          auto known = read_type(name, type);
          if (!known.ok()) return known.status();
          Result<bp_external_handle> made = make(known.value());
          if (made.ok()) write_output(out, made.value());
          return made.status();
        },
        handles...);
  }
  static bp_status buffer_export(bp_device* device, bp_buffer* buffer, const char* type, bp_external_handle* out,
                                 bp_error* error) {
    return get(
        error, "buffer_export", type, out,
        [&](std::string_view known) { return of(device).export_memory(Slots::of(buffer), known); }, device, buffer);
  }

  static bp_status buffer_import(bp_device* device, const bp_external_handle* handle, uint32_t* out_kind,
                                 bp_buffer** out, bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Buffer*> {
      bp_external_handle known;
      if (Status status = read_handle(handle, known); !status.ok()) return status;
      if (known.bytes == 0 || known.offset > known.object_bytes || known.bytes > known.object_bytes - known.offset) {
        return invalid_argument("buffer_import: ", known.bytes, " bytes at offset ", known.offset,
                                " are not in memory of ", known.object_bytes,
                                " bytes; state at least 1 byte inside the memory");
      }
      uint32_t kind = 0;
      auto result = of(device).import_external(known, kind);
      if (result.ok() && out_kind != nullptr) *out_kind = kind;
      return result;
    });
  }

  static bp_status semaphore_create(bp_device* device, const char* type, uint64_t value, bp_semaphore** out,
                                    bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Semaphore*> {
      auto name = read_type("semaphore_create", type);
      if (!name.ok()) return name.status();
      return of(device).create_semaphore(name.value(), value);
    });
  }
  static bp_status semaphore_export(bp_device* device, bp_semaphore* semaphore, const char* type,
                                    bp_external_handle* out, bp_error* error) {
    return get(
        error, "semaphore_export", type, out,
        [&](std::string_view known) { return of(device).export_semaphore(of(semaphore), known); }, device, semaphore);
  }
  static bp_status semaphore_import(bp_device* device, const bp_external_handle* handle, bp_semaphore** out,
                                    bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Semaphore*> {
      bp_external_handle known;
      if (Status status = read_handle(handle, known); !status.ok()) return status;
      return of(device).import_semaphore(known);
    });
  }
  static bp_status semaphore_signal(bp_device* device, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                                    bp_error* error) {
    return slot(
        error, "semaphore_signal",
        [&] { return of(device).signal(reinterpret_cast<Stream*>(stream), of(semaphore), value); }, device, semaphore);
  }
  static bp_status semaphore_wait(bp_device* device, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                                  bp_error* error) {
    return slot(
        error, "semaphore_wait", [&] { return of(device).wait(Slots::of(stream), of(semaphore), value); }, device,
        stream, semaphore);
  }
  static void semaphore_destroy(bp_device* device, bp_semaphore* semaphore) {
    if (semaphore != nullptr) of(device).destroy(&of(semaphore));
  }

  static constexpr bp_external_api make() {
    bp_external_api api{};
    api.struct_size = sizeof(bp_external_api);
    api.external_type = external_type;
    if constexpr (kCreates) api.buffer_create_external = buffer_create_external;
    if constexpr (kExports) api.buffer_export = buffer_export;
    if constexpr (kImports) api.buffer_import = buffer_import;
    if constexpr (kCreatesSemaphores) api.semaphore_create = semaphore_create;
    if constexpr (kExportsSemaphores) api.semaphore_export = semaphore_export;
    if constexpr (kImportsSemaphores) api.semaphore_import = semaphore_import;
    if constexpr (kSemaphores) {
      api.semaphore_signal = semaphore_signal;
      api.semaphore_wait = semaphore_wait;
      api.semaphore_destroy = semaphore_destroy;
    }
    return api;
  }

 public:
  static constexpr bp_external_api table = make();
};

// Whether a device class implements "bp.external".
template <class Device>
constexpr bool kHasExternal = requires(const Device& d) { d.external_types(); };

}  // namespace backplane::kit
