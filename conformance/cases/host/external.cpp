// SPDX-License-Identifier: Apache-2.0
// Test cases for external memory and semaphores through the host library.
#include "cases/runtime/external.hpp"

#include <fcntl.h>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/support/add_case.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kHostExternalBytes = 65536;

bph_buffer_desc external_desc(const backplane::Stream& stream, uint64_t bytes = kHostExternalBytes) {
  auto desc = backplane::detail::sized<bph_buffer_desc>();
  desc.bytes = bytes;
  desc.stream = stream.get();
  return desc;
}
void put(const backplane::Stream& stream, const backplane::Buffer& buffer, const Bytes& bytes) {
  backplane::detail::call(bph_copy_in, stream.get(), buffer.get(), uint64_t{0}, static_cast<const void*>(bytes.data()),
                          uint64_t{bytes.size()}, uint32_t{BPH_COPY_SOURCE_FREE});
}
Bytes get(const backplane::Stream& stream, const backplane::Buffer& buffer) {
  Bytes got(kHostExternalBytes);
  backplane::detail::call(bph_copy_out, stream.get(), static_cast<void*>(got.data()), buffer.get(), uint64_t{0},
                          kHostExternalBytes, uint32_t{0});
  return got;
}
std::string memory_type(Context& context) {
  return type_with(context, BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT);
}

// Shares memory between two registries, as two plugins would.
void host_shares_memory(Context& context, const char* layers) {
  const std::string type = memory_type(context);
  const HostSide side(context, layers), far(context, layers);
  const Bytes data = noise(context, kHostExternalBytes), back = noise(context, kHostExternalBytes);
  auto own = std::make_unique<backplane::Buffer>(
      backplane::Buffer::create_external(side.device.get(), external_desc(side.stream), type.c_str()));
  std::unique_ptr<backplane::Buffer> twin;
  {
    const Exported exported(own->export_as(type.c_str()));
    context.require(exported.handle.bytes == kHostExternalBytes && exported.handle.type == type,
                    "a buffer of {} bytes has a handle of type {} with {}", kHostExternalBytes, exported.handle.type,
                    exported.handle.bytes);
    twin = std::make_unique<backplane::Buffer>(
        backplane::Buffer::import_external(far.device.get(), exported.handle, far.stream.get()));
    context.require(exported.handle.fd < 0 || fcntl(static_cast<int>(exported.handle.fd), F_GETFD) >= 0,
                    "bph_buffer_import_external closed the caller's descriptor");
  }
  put(side.stream, *own, data);
  side.stream.wait();
  require_same(context, get(far.stream, *twin), data, "imported memory, read");
  put(far.stream, *twin, back);
  far.stream.wait();
  require_same(context, get(side.stream, *own), back, "exported memory, written");
  own.reset();
  side.stream.wait();
  side.device.trim();
  require_same(context, get(far.stream, *twin), back, "imported memory whose creator was released");
}

void host_types(Context& context) {
  const HostSide side(context);
  const std::vector<bp_external_type> types = types_of(context, context.device());
  for (uint32_t i = 0; i < types.size(); ++i) {
    const bp_external_type type = side.device.external_type(i);
    context.require(type.flags == types[i].flags && std::string(type.name) == types[i].name,
                    "bph_device_external_type gave another type {} than the plugin", i);
  }
  auto type = backplane::detail::sized<bp_external_type>();
  ErrorRecord error;
  expect_status(bph_device_external_type(side.device.get(), static_cast<uint32_t>(types.size()), &type, &error), error,
                "bph_device_external_type", {BP_UNSUPPORTED});
}

void host_refuses_external(Context& context) {
  const std::string type = memory_type(context);
  const HostSide side(context);
  const auto own = backplane::Buffer::create_external(side.device.get(), external_desc(side.stream), type.c_str());
  const Exported exported(own.export_as(type.c_str()));
  ErrorRecord error;
  bph_buffer* made = nullptr;
  const auto create = [&](bph_buffer_desc desc, const char* name, bp_status expected) {
    expect_status(bph_buffer_create_external(side.device.get(), &desc, name, &made, &error), error,
                  "bph_buffer_create_external", {expected});
    context.require(made == nullptr, "bph_buffer_create_external failed and gave a buffer");
  };
  create(external_desc(side.stream, 0), type.c_str(), BP_INVALID_ARGUMENT);
  create(external_desc(side.stream), nullptr, BP_INVALID_ARGUMENT);
  create(external_desc(side.stream), "", BP_INVALID_ARGUMENT);
  create(external_desc(side.stream), "conformance.unknown", BP_UNSUPPORTED);
  bph_buffer_desc desc = external_desc(side.stream);
  desc.flags = BPH_BUFFER_RAW;
  create(desc, type.c_str(), BP_UNSUPPORTED);
  desc = external_desc(side.stream);
  desc.alignment = 3;
  create(desc, type.c_str(), BP_INVALID_ARGUMENT);

  bp_external_handle out = {};
  out.struct_size = 8;
  expect_status(bph_buffer_export(own.get(), type.c_str(), &out, &error), error, "bph_buffer_export",
                {BP_INVALID_ARGUMENT});
  expect_status(bph_buffer_export(own.get(), type.c_str(), nullptr, &error), error, "bph_buffer_export",
                {BP_INVALID_ARGUMENT});
  out.struct_size = sizeof(out);
  const backplane::Buffer pooled(side.device.get(), external_desc(side.stream));
  expect_status(bph_buffer_export(pooled.get(), type.c_str(), &out, &error), error, "bph_buffer_export",
                {BP_INVALID_ARGUMENT});

  const auto import = [&](auto spoil, bp_status expected) {
    bp_external_handle handle = exported.handle;
    spoil(handle);
    expect_status(bph_buffer_import_external(side.device.get(), &handle, nullptr, &made, &error), error,
                  "bph_buffer_import_external", {expected});
    context.require(made == nullptr, "bph_buffer_import_external failed and gave a buffer");
  };
  import([](bp_external_handle& handle) { handle.bytes = 0; }, BP_INVALID_ARGUMENT);
  import([](bp_external_handle& handle) { handle.struct_size = 8; }, BP_INVALID_ARGUMENT);
  import([](bp_external_handle& handle) { handle.reserved = 1; }, BP_UNSUPPORTED);
  import([](bp_external_handle& handle) { handle.type[0] = 'Z'; }, BP_UNSUPPORTED);
  import([](bp_external_handle& handle) { handle.bytes = handle.object_bytes + 1; }, BP_INVALID_ARGUMENT);
  expect_status(bph_buffer_import_external(side.device.get(), nullptr, nullptr, &made, &error), error,
                "bph_buffer_import_external", {BP_INVALID_ARGUMENT});
}

// A semaphore orders the streams of two registries. At the end, the case releases the semaphores
// while streams may still use them, so the streams must keep the semaphores alive.
void host_signals(Context& context, const char* layers) {
  const std::string type = semaphore_type(context), shared_type = memory_type(context);
  const HostSide side(context, layers), far(context, layers);
  auto own = std::make_unique<backplane::Semaphore>(side.device.get(), type.c_str());
  const Exported exported(own->export_as(type.c_str()));
  auto twin =
      std::make_unique<backplane::Semaphore>(backplane::Semaphore::import_external(far.device.get(), exported.handle));
  const auto memory =
      backplane::Buffer::create_external(side.device.get(), external_desc(side.stream), shared_type.c_str());
  const Exported shared(memory.export_as(shared_type.c_str()));
  const auto far_memory = backplane::Buffer::import_external(far.device.get(), shared.handle, far.stream.get());
  const backplane::Buffer far_to(far.device.get(), external_desc(far.stream));
  for (uint64_t round = 1; round <= 16; ++round) {
    const Bytes data = noise(context, kHostExternalBytes);
    twin->wait(far.stream, 2 * round - 1);
    backplane::detail::call(bph_copy, far.stream.get(), far_to.get(), uint64_t{0}, far_memory.get(), uint64_t{0},
                            kHostExternalBytes, uint32_t{0});
    twin->signal(far.stream, 2 * round);
    put(side.stream, memory, data);
    own->signal(side.stream, 2 * round - 1);
    own->wait(side.stream, 2 * round);
    require_same(context, get(far.stream, far_to), data, "memory after a semaphore of another registry");
  }
  twin->wait(far.stream, 1000);
  own->signal(side.stream, 1000);
  own.reset();
  twin.reset();
  side.stream.wait();
  far.stream.wait();
}

void host_refuses_semaphores(Context& context) {
  const std::string type = semaphore_type(context);
  const HostSide side(context), far(context);
  const backplane::Semaphore own(side.device.get(), type.c_str(), 5);
  ErrorRecord error;
  bph_semaphore* made = nullptr;
  const auto refused = [&](bp_status status, const char* function, bp_status expected) {
    expect_status(status, error, function, {expected});
  };
  refused(bph_semaphore_wait(own.get(), far.stream.get(), 1, &error), "bph_semaphore_wait", BP_INVALID_ARGUMENT);
  refused(bph_semaphore_signal(own.get(), far.stream.get(), 6, &error), "bph_semaphore_signal", BP_INVALID_ARGUMENT);
  refused(bph_semaphore_wait(own.get(), nullptr, 1, &error), "bph_semaphore_wait", BP_INVALID_ARGUMENT);
  refused(bph_semaphore_wait(nullptr, side.stream.get(), 1, &error), "bph_semaphore_wait", BP_INVALID_ARGUMENT);
  refused(bph_semaphore_create(side.device.get(), nullptr, 0, &made, &error), "bph_semaphore_create",
          BP_INVALID_ARGUMENT);
  refused(bph_semaphore_create(side.device.get(), "conformance.unknown", 0, &made, &error), "bph_semaphore_create",
          BP_UNSUPPORTED);
  refused(bph_semaphore_import(side.device.get(), nullptr, &made, &error), "bph_semaphore_import", BP_INVALID_ARGUMENT);
  context.require(made == nullptr, "a failed call gave a semaphore");
  own.wait(side.stream, 5);
  side.stream.wait();
  bph_semaphore* const released = [&] { return backplane::Semaphore(side.device.get(), type.c_str()).get(); }();
  refused(bph_semaphore_signal(released, side.stream.get(), 1, &error), "bph_semaphore_signal", BP_INVALID_ARGUMENT);
}

}  // namespace

void add_host_external_cases(Catalogue& catalogue) {
  const auto add = [&](const char* what, std::string_view requirement, const std::function<void(Context&)>& run,
                       const char* extension = kExternalExtension) {
    add_case(catalogue, fmt::format("host.external.{}", what), {requirement},
             not_claimed_where_declined([run](Context& context) {
               (void)external_of(context, context.device());
               run(context);
             }),
             extension);
    catalogue.back().since = kExternalSince;
  };
  add("shares_memory", "BP-USE-047", [](Context& context) { host_shares_memory(context, ""); });
  add("shares_memory.checked", "BP-USE-047", [](Context& context) { host_shares_memory(context, "validation"); });
  add("types", "BP-USE-047", host_types);
  add("refuses_memory", "BP-USE-048", host_refuses_external);
  add(
      "signals", "BP-USE-049", [](Context& context) { host_signals(context, ""); }, kSemaphoreExtension);
  add(
      "signals.checked", "BP-USE-049", [](Context& context) { host_signals(context, "validation"); },
      kSemaphoreExtension);
  add("refuses_semaphores", "BP-USE-048", host_refuses_semaphores, kSemaphoreExtension);
}

}  // namespace backplane::conformance
