// SPDX-License-Identifier: Apache-2.0
// Test cases in which the host accesses parts of mapped memory while the device works on adjacent
// bytes.
#include <cstring>
#include <optional>

#include "cases/runtime/cases.hpp"
#include "cases/runtime/imported.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"

namespace backplane::conformance {

namespace {

// Memory that alternates between a part for the host and a part for the device. Each part has
// `grain` bytes.
struct Halves {
  uint64_t grain, count;
  uint64_t host(uint64_t i) const { return 2 * i * grain; }
  uint64_t device(uint64_t i) const { return (2 * i + 1) * grain; }
  uint64_t bytes() const { return 2 * count * grain; }
};

// Memory that both the host and the device access: a mapped buffer, or imported host pages.
class Mapped {
 public:
  static constexpr uint32_t kImportedPages = UINT32_MAX;  // this value of `kind` means imported pages

  Mapped(Context& context, uint32_t kind, uint64_t bytes) {
    if (kind != kImportedPages) {
      need_kind(context, kind);
      own_.emplace(context.device(), bytes, kind);
      buffer_ = own_->get();
      data_ = reinterpret_cast<unsigned char*>(own_->map());
      return;
    }
    pages_.emplace(bytes);
    import_.emplace(context, pages_->data(), bytes);
    need_import_of_pages(context, *import_);
    buffer_ = import_->buffer.get();
    data_ = pages_->data();
  }
  bp_buffer* buffer() const { return buffer_; }
  unsigned char* data() const { return data_; }

 private:
  std::optional<Buffer> own_;
  std::optional<Pages> pages_;
  std::optional<Imported> import_;
  bp_buffer* buffer_ = nullptr;
  unsigned char* data_ = nullptr;
};

// The device writes its parts after a delay. Meanwhile the host writes the host's parts.
void device_writes_adjacent(Context& context, uint32_t kind, uint64_t grain) {
  Device& device = context.device();
  Delay delay(context);
  const Halves halves{grain, 24};
  const Mapped shared(context, kind, halves.bytes());
  Buffer source(device, halves.bytes());
  unsigned char* const bytes = shared.data();
  Stream stream(device);
  for (unsigned round = 0; round < 12; ++round) {
    const Bytes before = noise(context, halves.bytes()), written = noise(context, halves.bytes()),
                host = noise(context, halves.bytes());
    std::memcpy(bytes, before.data(), before.size());
    upload(source, written);
    delay.enqueue(stream, context.below(3000));
    for (uint64_t i = 0; i < halves.count; ++i)
      stream.copy(shared.buffer(), halves.device(i), source.get(), halves.device(i), grain);
    for (uint64_t i = 0; i < halves.count; ++i)  // the device's work may still be pending or running
      std::memcpy(bytes + halves.host(i), host.data() + halves.host(i), grain);
    stream.wait();
    for (uint64_t i = 0; i < halves.count; ++i) {
      context.require(std::memcmp(bytes + halves.host(i), host.data() + halves.host(i), grain) == 0,
                      "{} bytes at {} that the host wrote are lost: the device wrote adjacent bytes", grain,
                      halves.host(i));
      context.require(std::memcmp(bytes + halves.device(i), written.data() + halves.device(i), grain) == 0,
                      "{} bytes at {} that the device wrote are lost: the host wrote adjacent bytes", grain,
                      halves.device(i));
    }
  }
}

// The device reads its parts after a delay. Meanwhile the host writes the host's parts.
void device_reads_adjacent(Context& context, uint32_t kind, uint64_t grain) {
  Device& device = context.device();
  Delay delay(context);
  const Halves halves{grain, 24};
  const Mapped shared(context, kind, halves.bytes());
  Buffer target(device, halves.bytes());
  unsigned char* const bytes = shared.data();
  Stream stream(device);
  for (unsigned round = 0; round < 12; ++round) {
    const Bytes data = noise(context, halves.bytes());
    std::memcpy(bytes, data.data(), data.size());
    delay.enqueue(stream, context.below(3000));
    for (uint64_t i = 0; i < halves.count; ++i)
      stream.copy(target.get(), halves.device(i), shared.buffer(), halves.device(i), grain);
    for (uint64_t i = 0; i < halves.count; ++i) std::memset(bytes + halves.host(i), static_cast<int>(round), grain);
    stream.wait();
    const Bytes got = download<unsigned char>(target, halves.bytes());
    for (uint64_t i = 0; i < halves.count; ++i) {
      context.require(std::memcmp(got.data() + halves.device(i), data.data() + halves.device(i), grain) == 0,
                      "the device read {} bytes at {} wrongly while the host wrote adjacent bytes", grain,
                      halves.device(i));
      context.require(bytes[halves.host(i)] == round, "a byte at {} that the host wrote is lost", halves.host(i));
    }
  }
}

}  // namespace

void add_neighbour_cases(Catalogue& catalogue) {
  // The smallest parts have 256 bytes in HOST memory and one byte in SHARED memory. Imported memory
  // may have either kind, so its parts have at least 256 bytes.
  const auto add = [&](uint32_t kind, uint64_t grain) {
    const bool imported = kind == Mapped::kImportedPages;
    const auto add_one = [&](const char* what, auto body) {
      add_case(
          catalogue,
          fmt::format("runtime.neighbours.{}_{}_in_blocks_of_{}", imported ? "imported" : kind_name(kind), what, grain),
          {"BP-BUF-018"}, [=](Context& context) { body(context, kind, grain); },
          imported ? "IMPORT" : kind_extension(kind));
    };
    add_one("written", device_writes_adjacent);
    add_one("read", device_reads_adjacent);
  };
  for (const uint64_t grain : {256u, 4096u}) add(BP_MEMORY_HOST, grain);
  for (const uint64_t grain : {1u, 7u, 256u, 4096u}) add(BP_MEMORY_SHARED, grain);
  for (const uint64_t grain : {256u, 4096u}) add(Mapped::kImportedPages, grain);
}

}  // namespace backplane::conformance
