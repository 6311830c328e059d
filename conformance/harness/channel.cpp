// SPDX-License-Identifier: Apache-2.0
#include "channel.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace backplane::conformance {

namespace {

struct Header {
  uint32_t magic;
  uint32_t kind;
  uint32_t index;
  uint32_t outcome;
  uint64_t nanoseconds;
  double error_ratio;
  uint64_t text_bytes;
};
constexpr uint32_t kHeaderMagic = 0x62704d73;
constexpr size_t kMostText = 64u << 10;

bool write_all(int fd, const char* bytes, size_t count) {
  while (count != 0) {
    const ssize_t written = write(fd, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    count -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

uint64_t file_bytes(int fd) {
  struct stat facts {};
  return fstat(fd, &facts) == 0 ? static_cast<uint64_t>(facts.st_size) : 0;
}

bool send(int fd, const Message& message) {
  const std::string_view text = std::string_view(message.result.message).substr(0, kMostText);
  const Header header = {kHeaderMagic,
                         static_cast<uint32_t>(message.kind),
                         message.index,
                         static_cast<uint32_t>(message.result.outcome),
                         message.result.nanoseconds,
                         message.result.error_ratio,
                         text.size()};
  std::vector<char> bytes(sizeof(header) + text.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), text.data(), text.size());
  return write_all(fd, bytes.data(), bytes.size());
}

std::optional<Message> MessageReader::next() {
  Header header;
  if (broken_ || bytes_.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes_.data(), sizeof(header));
  if (header.magic != kHeaderMagic || header.text_bytes > kMostText || header.outcome >= kOutcomeCount) {
    broken_ = true;
    return std::nullopt;
  }
  const size_t whole = sizeof(header) + header.text_bytes;
  if (bytes_.size() < whole) return std::nullopt;
  Message message;
  message.kind = static_cast<Message::Kind>(header.kind);
  message.index = header.index;
  message.result.outcome = static_cast<Outcome>(header.outcome);
  message.result.nanoseconds = header.nanoseconds;
  message.result.error_ratio = header.error_ratio;
  message.result.message.assign(bytes_.data() + sizeof(header), header.text_bytes);
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(whole));
  return message;
}

}  // namespace backplane::conformance
