// SPDX-License-Identifier: Apache-2.0
#include "probe_external.hpp"

#include <fmt/format.h>

#include <backplane/rules/tables.hpp>
#include <charconv>
#include <cstring>

#include "plugin.hpp"

namespace backplane::conformance {

namespace {

void require(bool holds, const char* what) {
  if (!holds) end_case(Outcome::fail, fmt::format("the other process: {}", what));
}

}  // namespace

std::string external_argument(const ExternalObjects& objects) {
  std::string text;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&objects);
  for (size_t i = 0; i < sizeof(objects); ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

void use_external_objects(const std::string& path, uint32_t device_index, std::string_view argument) {
  ExternalObjects objects{};
  require(argument.size() == 2 * sizeof(objects), "the argument has another length");
  for (size_t i = 0; i < sizeof(objects); ++i) {
    unsigned value = 0;
    std::from_chars(argument.data() + 2 * i, argument.data() + 2 * i + 2, value, 16);
    reinterpret_cast<unsigned char*>(&objects)[i] = static_cast<unsigned char>(value);
  }
  Plugin plugin(path);
  Device device(plugin, device_index);
  const void* given = plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_EXTERNAL, 1);
  require(given != nullptr, "the device has no bp.external");
  const bp_external_api table =
      backplane::rules::known_part(*static_cast<const bp_external_api*>(given), plugin->abi_version);

  ErrorRecord error;
  const uint64_t bytes = objects.memory.bytes;
  bp_buffer* memory = nullptr;
  uint32_t kind = 0;
  expect_ok(table.buffer_import(device.get(), &objects.memory, &kind, &memory, &error), error, "buffer_import");
  Buffer shared(device, memory, bytes), copy(device, bytes);
  Stream stream(device);
  bp_semaphore* semaphore = nullptr;
  if (objects.semaphore.type[0] != '\0') {
    expect_ok(table.semaphore_import(device.get(), &objects.semaphore, &semaphore, &error), error, "semaphore_import");
    expect_ok(table.semaphore_wait(device.get(), stream.get(), semaphore, 1, &error), error, "semaphore_wait");
  }
  stream.copy(copy.get(), 0, shared.get(), 0, bytes);
  stream.wait();
  std::vector<unsigned char> contents(bytes);
  device.read(copy.get(), 0, contents.data(), bytes);
  for (uint64_t i = 0; i < bytes; ++i)
    require(contents[i] == external_byte(i, false), "the memory has other contents than this process wrote");
  for (uint64_t i = 0; i < bytes; ++i) contents[i] = external_byte(i, true);
  device.write(copy.get(), 0, contents.data(), bytes);
  stream.copy(shared.get(), 0, copy.get(), 0, bytes);
  if (semaphore != nullptr)
    expect_ok(table.semaphore_signal(device.get(), stream.get(), semaphore, 2, &error), error, "semaphore_signal");
  stream.wait();
  if (semaphore != nullptr) table.semaphore_destroy(device.get(), semaphore);
}

}  // namespace backplane::conformance
