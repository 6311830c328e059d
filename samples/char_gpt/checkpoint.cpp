// SPDX-License-Identifier: Apache-2.0
// Writes and checks the file format that checkpoint.hpp describes.
#include "checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

namespace char_gpt {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "the file is written in the byte order of memory");

constexpr char kMagic[8] = {'B', 'P', 'C', 'H', 'R', 'G', 'P', 'T'};
constexpr uint32_t kFormatVersion = 1;

struct Header {
  char magic[8];
  uint32_t version, header_bytes;
  int64_t context, width, heads, blocks;
  int64_t steps, batch, streams;
  double peak_rate;
  uint64_t seed, text_hash;
  int64_t steps_done;
  uint64_t payload_bytes, payload_hash, header_hash;
};
static_assert(sizeof(Header) == 16 + 14 * 8, "no padding");

template <class... Args>
[[noreturn]] void fail_checkpoint(fmt::format_string<Args...> format, Args&&... args) {
  throw std::runtime_error("checkpoint: " + fmt::format(format, std::forward<Args>(args)...));
}

uint64_t hash_of(const Header& header) { return XXH3_64bits(&header, offsetof(Header, header_hash)); }

class File {
 public:
  File(const fs::path& path, int flags) : path_(path), descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail_checkpoint("cannot open {}: {}", path.string(), std::strerror(errno));
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write_all(const void* data, size_t bytes) const {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t count = write(descriptor_, at, bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail_checkpoint("cannot write {}: {}", path_.string(), std::strerror(errno));
      at += count;
      bytes -= static_cast<size_t>(count);
    }
  }
  void sync() const {
    if (fsync(descriptor_) != 0) fail_checkpoint("cannot write {}: {}", path_.string(), std::strerror(errno));
  }

 private:
  fs::path path_;
  int descriptor_;
};

Header header_of(const Checkpoint& checkpoint, const std::vector<float>& payload) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kFormatVersion;
  header.header_bytes = sizeof(Header);
  const Config& config = checkpoint.config;
  header.context = config.context, header.width = config.width;
  header.heads = config.heads, header.blocks = config.blocks;
  const Schedule& schedule = checkpoint.schedule;
  header.steps = schedule.steps, header.batch = schedule.batch, header.streams = schedule.streams;
  header.peak_rate = schedule.peak_rate;
  header.seed = schedule.seed;
  header.text_hash = checkpoint.text_hash;
  header.steps_done = checkpoint.state.steps_done;
  header.payload_bytes = payload.size() * sizeof(float);
  header.payload_hash = XXH3_64bits(payload.data(), header.payload_bytes);
  header.header_hash = hash_of(header);
  return header;
}

void check_header(const fs::path& file, const Header& header, uint64_t file_bytes) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0)
    fail_checkpoint("{} is no checkpoint of char_gpt: it begins with other bytes", file.string());
  if (header.version != kFormatVersion)
    fail_checkpoint("{} has version {} of the format; this program reads {}", file.string(), header.version,
                    kFormatVersion);
  if (header.header_bytes != sizeof(Header) || header.header_hash != hash_of(header))
    fail_checkpoint("{} is damaged: the checksum of its header is not that of its bytes", file.string());
  const uint64_t whole = sizeof(Header) + header.payload_bytes;
  if (file_bytes < whole) fail_checkpoint("{} is cut short: {} bytes of {}", file.string(), file_bytes, whole);
  if (file_bytes > whole) fail_checkpoint("{} is damaged: {} bytes after its end", file.string(), file_bytes - whole);
}

}  // namespace

void save_checkpoint(const fs::path& file, const Checkpoint& checkpoint) {
  std::vector<float> payload;
  for (const auto* part : {&checkpoint.state.parameters, &checkpoint.state.moment1, &checkpoint.state.moment2})
    payload.insert(payload.end(), part->begin(), part->end());
  const Header header = header_of(checkpoint, payload);
  const fs::path fresh = file.string() + fmt::format(".{}.tmp", getpid());
  try {
    {
      const File out(fresh, O_WRONLY | O_CREAT | O_TRUNC);
      out.write_all(&header, sizeof(header));
      out.write_all(payload.data(), header.payload_bytes);
      out.sync();
    }
    std::error_code error;
    fs::rename(fresh, file, error);
    if (error) fail_checkpoint("cannot replace {}: {}", file.string(), error.message());
  } catch (...) {
    std::error_code ignored;
    fs::remove(fresh, ignored);
    throw;
  }
}

Checkpoint load_checkpoint(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) fail_checkpoint("no file {}", file.string());
  const uint64_t bytes = fs::file_size(file, error);
  std::ifstream in(file, std::ios::binary);
  if (!in || error) fail_checkpoint("cannot read {}", file.string());
  Header header{};
  in.read(reinterpret_cast<char*>(&header), sizeof(header));
  if (static_cast<uint64_t>(in.gcount()) < sizeof(header)) {
    if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0)
      fail_checkpoint("{} is no checkpoint of char_gpt: it begins with other bytes", file.string());
    fail_checkpoint("{} is cut short: {} bytes, and the header alone has {}", file.string(), bytes, sizeof(header));
  }
  check_header(file, header, bytes);

  Checkpoint checkpoint;
  checkpoint.config = {header.context, header.width, header.heads, header.blocks};
  checkpoint.schedule = {header.steps, header.batch, header.streams, header.peak_rate, header.seed};
  check(checkpoint.config);
  check(checkpoint.schedule);
  checkpoint.text_hash = header.text_hash;
  checkpoint.state.steps_done = header.steps_done;
  const auto count = static_cast<size_t>(count_parameters(checkpoint.config).all);
  if (header.payload_bytes != 3 * count * sizeof(float))
    fail_checkpoint("{} contains {} bytes of state, which does not match a model of {} parameters", file.string(),
                    header.payload_bytes, count);
  XXH3_state_t* hash = XXH3_createState();
  if (!hash) throw std::bad_alloc();
  XXH3_64bits_reset(hash);
  for (auto* part : {&checkpoint.state.parameters, &checkpoint.state.moment1, &checkpoint.state.moment2}) {
    part->resize(count);
    in.read(reinterpret_cast<char*>(part->data()), static_cast<std::streamsize>(count * sizeof(float)));
    XXH3_64bits_update(hash, part->data(), count * sizeof(float));
  }
  const uint64_t found = XXH3_64bits_digest(hash);
  XXH3_freeState(hash);
  if (!in) fail_checkpoint("cannot read {} to its end", file.string());
  if (found != header.payload_hash)
    fail_checkpoint("{} is damaged: the checksum of its numbers is not that of its bytes", file.string());
  return checkpoint;
}

}  // namespace char_gpt
