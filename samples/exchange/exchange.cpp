// SPDX-License-Identifier: Apache-2.0
// Two plugins work on one buffer without a copy. In turn, each plugin creates a buffer and exports it, and the
// other plugin imports it. The exporter writes one half of the buffer, and the importer computes the other half
// from it. The exporter then reads and checks the results. If the plugins share a semaphore type, semaphores
// order the work. Otherwise the host waits for each stream.
#include <unistd.h>

#include <backplane/backplane.hpp>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace bp = backplane;

namespace {

constexpr int kSkipped = 77;  // the exit status if the plugins have no device in common
constexpr int64_t kElements = 1 << 20;
constexpr uint32_t kRounds = 8;

struct Side {
  explicit Side(bp::Device opened) : device(std::move(opened)), stream(device) {}
  bp::Device device;
  bp::Stream stream;
};

// A handle whose file descriptor this program owns.
struct Handle {
  explicit Handle(const bp_external_handle& given) : value(given) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (value.fd >= 0) ::close(static_cast<int>(value.fd));
  }
  bp_external_handle value;
};

// Returns the types of memory and semaphores that the device can share, or nothing if it can share none.
std::vector<bp_external_type> types_of(const bp::Device& device) {
  std::vector<bp_external_type> out;
  try {
    for (uint32_t i = 0;; ++i) out.push_back(device.external_type(i));
  } catch (const bp::Error& error) {
    if (error.status() != BP_UNSUPPORTED) throw;
  }
  return out;
}

// Returns the name of a type that `from` can export and `to` can import, or nothing. `exports` and `imports`
// are the flags of memory or of semaphores.
std::optional<std::string> common_type(const Side& from, uint32_t exports, const Side& to, uint32_t imports) {
  for (const bp_external_type& own : types_of(from.device)) {
    for (const bp_external_type& other : types_of(to.device)) {
      const bool fits = (own.flags & exports) != 0 && (other.flags & imports) != 0;
      if (fits && std::strcmp(own.name, other.name) == 0) return own.name;
    }
  }
  return std::nullopt;
}

// A semaphore that both sides use, as an object of each side. `owner` is the name of the device that created
// it.
struct Shared {
  bp::Semaphore exporters, importers;
  std::string owner;
};
std::optional<Shared> share_semaphore(const Side& exporter, const Side& importer) {
  constexpr uint32_t kExports = BP_EXTERNAL_SEMAPHORE_EXPORT, kImports = BP_EXTERNAL_SEMAPHORE_IMPORT;
  if (const auto type = common_type(exporter, kExports, importer, kImports)) {
    bp::Semaphore own(exporter.device.get(), type->c_str());
    const Handle handle(own.export_as(type->c_str()));
    bp::Semaphore other = bp::Semaphore::import_external(importer.device.get(), handle.value);
    return Shared{std::move(own), std::move(other), exporter.device.name()};
  }
  if (const auto type = common_type(importer, kExports, exporter, kImports)) {
    bp::Semaphore own(importer.device.get(), type->c_str());
    const Handle handle(own.export_as(type->c_str()));
    bp::Semaphore other = bp::Semaphore::import_external(exporter.device.get(), handle.value);
    return Shared{std::move(other), std::move(own), importer.device.name()};
  }
  return std::nullopt;
}

float value_at(uint32_t round, int64_t i) { return static_cast<float>(i % 4096 + round); }

// Prints one line. Returns false if a value is wrong.
bool exchange(const Side& exporter, const Side& importer) {
  const auto type = common_type(exporter, BP_EXTERNAL_MEMORY_EXPORT, importer, BP_EXTERNAL_MEMORY_IMPORT);
  if (!type) {
    std::printf("%s exports no memory that %s imports\n", exporter.device.name().c_str(),
                importer.device.name().c_str());
    return true;
  }
  const uint64_t bytes = 2 * kElements * sizeof(float);
  bph_buffer_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.kind = BP_MEMORY_DEVICE;
  desc.bytes = bytes;
  auto own =
      std::make_shared<const bp::Buffer>(bp::Buffer::create_external(exporter.device.get(), desc, type->c_str()));
  const Handle handle(own->export_as(type->c_str()));
  auto other = std::make_shared<const bp::Buffer>(bp::Buffer::import_external(importer.device.get(), handle.value));
  const auto half = [](const std::shared_ptr<const bp::Buffer>& of, uint64_t number) {
    return bp::Tensor(of, number * kElements * sizeof(float), BP_F32, {kElements}, {1});
  };
  const std::optional<Shared> semaphore = share_semaphore(exporter, importer);
  // Makes work that `to` enqueues later wait for all work that `from` has enqueued so far.
  uint64_t value = 0;
  const auto hand_over = [&](const Side& from, const Side& to) {
    if (!semaphore) {
      from.stream.wait();
      return;
    }
    const bool is_export = &from == &exporter;
    (is_export ? semaphore->exporters : semaphore->importers).signal(from.stream, ++value);
    (is_export ? semaphore->importers : semaphore->exporters).wait(to.stream, value);
  };

  std::vector<float> values(kElements), results(kElements);
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (int64_t i = 0; i < kElements; ++i) values[static_cast<std::size_t>(i)] = value_at(round, i);
    bp::copy_in<float>(exporter.stream, half(own, 0), values, BPH_COPY_SOURCE_FREE);
    hand_over(exporter, importer);
    bp::mul(importer.stream, half(other, 1), half(other, 0), bp::Tensor::scalar(BP_F32, 3));
    hand_over(importer, exporter);
    bp::copy_out<float>(exporter.stream, results, half(own, 1));
    for (int64_t i = 0; i < kElements; ++i) {
      const float result = results[static_cast<std::size_t>(i)], expected = 3 * value_at(round, i);
      if (result == expected) continue;
      std::printf("%s exports to %s: round %u, element %lld is %g, not %g\n", exporter.device.name().c_str(),
                  importer.device.name().c_str(), round, static_cast<long long>(i), result, expected);
      return false;
    }
  }
  importer.stream.wait();
  std::printf("%s exports %s to %s: %u rounds of %llu bytes are equal, ordered by %s\n", exporter.device.name().c_str(),
              type->c_str(), importer.device.name().c_str(), kRounds, static_cast<unsigned long long>(bytes),
              semaphore ? ("a semaphore of " + semaphore->owner).c_str() : "the host");
  return true;
}

// Returns the first device of `plugin` with this uuid, or the first device of `plugin` if none has it.
bp::Device open_same(const bp::Plugin& plugin, const uint8_t (&uuid)[16]) {
  for (uint32_t i = 0; i < plugin.device_count(); ++i) {
    if (std::memcmp(plugin.device_info(i).uuid, uuid, sizeof(uuid)) == 0) return plugin.open(i);
  }
  return plugin.open();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: exchange PLUGIN_A PLUGIN_B (names, or paths of libraries or manifests)\n");
    return 2;
  }
  try {
    const bp::Registry registry;
    const bp::Plugin plugins[] = {registry.load(argv[1]), registry.load(argv[2])};
    const Side a(plugins[0].open());
    const Side b(open_same(plugins[1], a.device.info().uuid));
    const bool forth = exchange(a, b), back = exchange(b, a);
    return forth && back ? 0 : 1;
  } catch (const bp::Error& error) {
    std::fprintf(stderr, "exchange: %s (%s)\n", error.what(), bph_status_name(error.status()));
    return error.status() == BP_UNAVAILABLE ? kSkipped : 1;
  }
}
