// SPDX-License-Identifier: Apache-2.0
// Tests copies in each direction with sizes near powers of two and near the chunk sizes of drivers,
// at unaligned offsets. Large copies write and check data only near the boundaries of chunks, so
// that other pages stay untouched.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <set>
#include <thread>

#include "cases/runtime/cases.hpp"
#include "cases/runtime/imported.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/large_buffer.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kWindow = 64;  // number of bytes written and checked before and after each offset of edges()

enum class Route { device_to_device, host_to_device, device_to_host, in, out };
struct Direction {
  Route route;
  const char* name;
  std::string_view extension;
};
const Direction kDirections[] = {{Route::device_to_device, "device_to_device", ""},
                                 {Route::host_to_device, "host_to_device", kind_extension(BP_MEMORY_HOST)},
                                 {Route::device_to_host, "device_to_host", kind_extension(BP_MEMORY_HOST)},
                                 {Route::in, "copy_in", "PAGEABLE_COPY"},
                                 {Route::out, "copy_out", "PAGEABLE_COPY"}};

// The source or target of a copy, with functions that let the host access this memory.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void write(uint64_t at, const Bytes& data) = 0;
  virtual Bytes read(uint64_t at, uint64_t count) = 0;
  virtual bp_buffer* buffer() const { return nullptr; }
  virtual unsigned char* address() const { return nullptr; }
};

// A buffer of any memory kind.
class OfDevice : public Memory {
 public:
  explicit OfDevice(Buffer buffer) : buffer_(std::move(buffer)) {}
  void write(uint64_t at, const Bytes& data) override { upload(buffer_, data, at); }
  Bytes read(uint64_t at, uint64_t count) override { return download<unsigned char>(buffer_, count, at); }
  bp_buffer* buffer() const override { return buffer_.get(); }

 private:
  Buffer buffer_;
};
// Pageable host memory.
class OfHost : public Memory {
 public:
  explicit OfHost(uint64_t bytes) : pages_(bytes) {}
  void write(uint64_t at, const Bytes& data) override { std::copy(data.begin(), data.end(), pages_.data() + at); }
  Bytes read(uint64_t at, uint64_t count) override { return Bytes(pages_.data() + at, pages_.data() + at + count); }
  unsigned char* address() const override { return pages_.data(); }

 private:
  Pages pages_;
};

// Returns the source or the target of a copy. If `large`, ends the case as not claimed if the device has too little
// memory.
std::unique_ptr<Memory> make_memory(Context& context, Route route, bool target, uint64_t bytes, bool large) {
  const bool host = target ? route == Route::device_to_host || route == Route::out
                           : route == Route::host_to_device || route == Route::in;
  if (host && (route == Route::in || route == Route::out)) return std::make_unique<OfHost>(bytes);
  const uint32_t kind = host ? BP_MEMORY_HOST : BP_MEMORY_DEVICE;
  return std::make_unique<OfDevice>(large ? make_large(context, bytes, kind) : Buffer(context.device(), bytes, kind));
}

void need(Context& context, Route route) {
  Device& device = context.device();
  if ((route == Route::in || route == Route::out) && (device->copy_in == nullptr || device->copy_out == nullptr))
    context.not_claimed("the device has no copy_in and copy_out");
  if (route == Route::host_to_device || route == Route::device_to_host) need_kind(context, BP_MEMORY_HOST);
}

void enqueue(Device& device, Stream& stream, Route route, Memory& to, uint64_t to_offset, Memory& from,
             uint64_t from_offset, uint64_t count) {
  ErrorRecord error;
  if (route == Route::in) {
    expect_ok(device->copy_in(device.get(), stream.get(), to.buffer(), to_offset, from.address() + from_offset, count,
                              &error),
              error, "copy_in");
  } else if (route == Route::out) {
    expect_ok(device->copy_out(device.get(), stream.get(), to.address() + to_offset, from.buffer(), from_offset, count,
                               &error),
              error, "copy_out");
  } else {
    stream.copy(to.buffer(), to_offset, from.buffer(), from_offset, count);
  }
}

// Tests copies of 2^log2 - 1 to 3 * 2^log2 bytes. Every byte is written and checked.
void whole(Context& context, Route route, unsigned log2) {
  need(context, route);
  const uint64_t power = uint64_t{1} << log2;
  Stream stream(context.device());
  for (const uint64_t count : {power - 1, power, power + 1, power + 37, power + power / 2 + 13, 3 * power}) {
    const uint64_t to_offset = count % 3 == 0 ? 0 : 1 + context.below(60), from_offset = context.below(60);
    const std::unique_ptr<Memory> from = make_memory(context, route, false, count + 200, false),
                                  to = make_memory(context, route, true, count + 200, false);
    const Bytes source = noise(context, count + 200);
    Bytes target = noise(context, count + 200);
    from->write(0, source);
    to->write(0, target);
    enqueue(context.device(), stream, route, *to, to_offset, *from, from_offset, count);
    stream.wait();
    std::copy_n(source.begin() + static_cast<ptrdiff_t>(from_offset), count,
                target.begin() + static_cast<ptrdiff_t>(to_offset));
    const Bytes got = to->read(0, count + 200);
    if (got != target)  // require_same also locates the difference, but takes longer
      require_same(context, got, target,
                   fmt::format("a copy of {} bytes from offset {} to offset {}", count, from_offset, to_offset));
  }
}

// Returns offsets, counted from the start of the copy, near which the case writes and checks data. The offsets are the
// two ends, random offsets, and multiples of `step`. Multiples are counted from the start of the copy and from the
// start of each buffer. The offsets are sorted, and the windows around them do not overlap.
std::vector<uint64_t> edges(Context& context, uint64_t count, uint64_t step, uint64_t to_offset, uint64_t from_offset) {
  std::vector<uint64_t> all = {kWindow, count - kWindow};
  for (uint64_t at = step; at < count; at += step)
    for (const uint64_t edge : {at, at - to_offset, at - from_offset}) all.push_back(edge);
  for (int i = 0; i < 16; ++i) all.push_back(context.below(count));
  std::sort(all.begin(), all.end());
  std::vector<uint64_t> apart;
  for (const uint64_t at : all)
    if (at >= kWindow && at + kWindow <= count && (apart.empty() || at - apart.back() >= 2 * kWindow))
      apart.push_back(at);
  if (apart.back() != count - kWindow) apart.back() = count - kWindow;  // the end of the copy must be included
  return apart;
}

void sparse_copy(Context& context, Route route, Memory& to, uint64_t to_offset, Memory& from, uint64_t from_offset,
                 uint64_t count, const std::vector<uint64_t>& at) {
  Stream stream(context.device());
  const auto data = [](uint64_t edge) {
    Bytes bytes(2 * kWindow);
    for (uint64_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<unsigned char>((edge + i) * 0x9E3779B97F4A7C15u >> 56 | 1u);
    return bytes;
  };
  const Bytes margin(kWindow, 0xA5);
  for (const uint64_t edge : at) {
    from.write(from_offset + edge - kWindow, data(edge));
    to.write(to_offset + edge - kWindow, Bytes(2 * kWindow, 0));
  }
  to.write(to_offset - kWindow, margin);
  to.write(to_offset + count, margin);
  enqueue(context.device(), stream, route, to, to_offset, from, from_offset, count);
  stream.wait();
  const std::string what = fmt::format("a copy of {} bytes from offset {} to offset {}", count, from_offset, to_offset);
  for (const uint64_t edge : at)
    require_same(context, to.read(to_offset + edge - kWindow, 2 * kWindow), data(edge),
                 fmt::format("{}, the bytes from {} on", what, edge - kWindow));
  require_same(context, to.read(to_offset - kWindow, kWindow), margin, "the bytes before " + what);
  require_same(context, to.read(to_offset + count, kWindow), margin, "the bytes after " + what);
}

// Tests a copy of `count` bytes. The case writes and checks data only near the boundaries of mebibytes and near a few
// random offsets.
void large(Context& context, Route route, uint64_t count) {
  need(context, route);
  const uint64_t to_offset = kWindow + 1 + context.below(60), from_offset = kWindow + context.below(60);
  const uint64_t room = count + 4 * kWindow + 128;
  const std::unique_ptr<Memory> from = make_memory(context, route, false, room, true),
                                to = make_memory(context, route, true, room, true);
  sparse_copy(context, route, *to, to_offset, *from, from_offset, count,
              edges(context, count, 1u << 20, to_offset, from_offset));
}

// Many gibibytes of host memory. Pages that are never written read as zero and use no physical
// memory.
class Zeros : public OfHost {
 public:
  explicit Zeros(uint64_t bytes) : OfHost(bytes) { madvise(address(), bytes, MADV_HUGEPAGE); }
};

// A range of many gibibytes of host addresses that uses only a few mebibytes of memory. The range consists of pieces of
// kPiece bytes, which all map the same memory. Only pages near data have their own memory.
class Repeated : public Memory {
 public:
  Repeated(uint64_t bytes, uint64_t offset, const std::vector<uint64_t>& windows)
      : bytes_((bytes + kPiece - 1) / kPiece * kPiece) {
    const int file = memfd_create("conformance", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, kPiece) != 0) throw std::bad_alloc();
    void* const memory = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    address_ = static_cast<unsigned char*>(memory);
    for (uint64_t at = 0; at < bytes_; at += kPiece) map(at, kPiece, MAP_SHARED, file);
    close(file);
    for (const uint64_t at : windows) {
      const uint64_t first = (offset + at - 2 * kWindow) / kPage * kPage,
                     last = (offset + at + 2 * kWindow) / kPage * kPage;
      map(first, last + kPage - first, MAP_PRIVATE | MAP_ANONYMOUS, -1);
      own_.insert(first / kPiece);
      own_.insert(last / kPiece);
    }
    sweeper_ = std::jthread([this](const std::stop_token& stop) { sweep(stop); });
  }
  ~Repeated() override {
    sweeper_.request_stop();
    sweeper_.join();
    munmap(address_, bytes_);
  }
  void write(uint64_t at, const Bytes& data) override { std::copy(data.begin(), data.end(), address_ + at); }
  Bytes read(uint64_t at, uint64_t count) override { return Bytes(address_ + at, address_ + at + count); }
  unsigned char* address() const override { return address_; }

 private:
  static constexpr uint64_t kPiece = 8u << 20, kPage = 4096;
  void map(uint64_t at, uint64_t count, int flags, int file) {
    if (mmap(address_ + at, count, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file, 0) == MAP_FAILED)
      throw std::bad_alloc();
  }
  // If a page is mapped several times, resident memory counts the page once per touched mapping. Therefore this thread
  // releases pages during the copy, except in pieces with data.
  void sweep(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (uint64_t at = 0; at < bytes_; at += kPiece)
        if (!own_.contains(at / kPiece)) madvise(address_ + at, kPiece, MADV_DONTNEED);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  uint64_t bytes_;
  unsigned char* address_ = nullptr;
  std::set<uint64_t> own_{};  // indices of pieces with data
  std::jthread sweeper_;
};

// Host memory that the device imports. The template parameter `Memory`, such as the class Zeros, allocates the memory.
template <typename Memory>
class OfImport : public Memory {
 public:
  template <typename... Args>
  explicit OfImport(Context& context, uint64_t bytes, const Args&... args)
      : Memory(bytes, args...), imported_(context, this->address(), bytes) {
    if (!imported_) context.not_claimed("the device does not import {} bytes of the host's memory", bytes);
  }
  bp_buffer* buffer() const override { return imported_.buffer.get(); }
  uint32_t kind() const { return imported_.kind; }

 private:
  Imported imported_;
};

// Tests copies of more than 2^32 bytes. The device accesses imported host memory where possible, so
// that most copies need no device memory.
void past_32_bits(Context& context, Route route, uint64_t count) {
  need(context, route);
#if defined(__SANITIZE_THREAD__)
  context.not_claimed("a thread sanitizer stores four bytes per copied byte, which would not fit in memory");
#endif
  const uint64_t to_offset = 2 * kWindow + 1 + context.below(60), from_offset = 2 * kWindow + context.below(60);
  const uint64_t room = count + 8 * kWindow + 128;
  // The case belongs to LARGE, so a device without buffers of this size does not claim the case.
  std::unique_ptr<Memory> of_device = std::make_unique<OfDevice>(make_large(context, room));
  const std::vector<uint64_t> at = edges(context, count, 1u << 30, to_offset, from_offset);
  std::vector<uint64_t> of_target = at;
  of_target.push_back(count);
  of_target.push_back(kWindow);
  const auto make = [&](bool pageable, uint64_t offset,
                        const std::vector<uint64_t>& windows) -> std::unique_ptr<Memory> {
    if (pageable) return std::make_unique<Repeated>(room, offset, windows);
    return std::make_unique<OfImport<Repeated>>(context, room, offset, windows);
  };
  std::unique_ptr<Memory> from;
  if (route == Route::in) {
    from = std::make_unique<Zeros>(room);
  } else {
    auto imported = std::make_unique<OfImport<Zeros>>(context, room);
    // If imported memory has kind HOST, a copy between two imports would be an illegal copy from
    // HOST to HOST memory. The source is then device memory instead.
    if (route == Route::out || imported->kind() == BP_MEMORY_SHARED) {
      from = std::move(imported);
    } else {
      from = std::move(of_device);
    }
  }
  of_device.reset();
  const std::unique_ptr<Memory> to = make(route == Route::out, to_offset, of_target);
  sparse_copy(context, route, *to, to_offset, *from, from_offset, count, at);
}

}  // namespace

void add_copy_size_cases(Catalogue& catalogue) {
  for (const Direction& direction : kDirections) {
    const Route route = direction.route;
    const auto add = [&](std::string what, std::function<void(Context&)> run, std::string_view extension) {
      add_case(catalogue, fmt::format("runtime.copy_size.{}.{}", direction.name, what), {"BP-CPY-008"}, std::move(run),
               extension);
    };
    for (unsigned log2 = 10; log2 <= 20; ++log2)
      add(
          fmt::format("about_2_to_{}", log2), [=](Context& context) { whole(context, route, log2); },
          direction.extension);
    for (unsigned log2 = 21; log2 <= 28; ++log2)
      for (const uint64_t tail : {uint64_t{0}, uint64_t{1}, uint64_t{1003}, uint64_t{4099}}) {
        // Sizes of 2^26 bytes and more are tested with only one tail, to save time.
        if (log2 > 25 && tail != (log2 == 27 ? 0 : 1003)) continue;
        const uint64_t count = (uint64_t{1} << log2) + tail;
        // Sizes of 2^26 bytes and more belong to the extension LARGE, because a device need not
        // support large buffers.
        add(
            fmt::format("of_2_to_{}_and_{}", log2, tail), [=](Context& context) { large(context, route, count); },
            log2 > 25 ? "LARGE" : direction.extension);
      }
    // The following case uses imported host memory instead of device memory. Therefore the route device_to_device also
    // covers copies from and to HOST memory.
    if (route == Route::host_to_device || route == Route::device_to_host) continue;
    const uint64_t count = (uint64_t{1} << 32) + 1003;
    add(
        "of_2_to_32_and_1003", [=](Context& context) { past_32_bits(context, route, count); }, "LARGE");
    catalogue.back().large = true;
  }
}

}  // namespace backplane::conformance
