// SPDX-License-Identifier: Apache-2.0
#include "digest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace backplane::conformance {

namespace {

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw std::runtime_error("the digest library offers no SHA-256");
  }
  void add(const void* bytes, size_t count) { EVP_DigestUpdate(context_.get(), bytes, count); }
  std::array<unsigned char, 32> end() {
    std::array<unsigned char, 32> bytes{};
    EVP_DigestFinal_ex(context_.get(), bytes.data(), nullptr);
    return bytes;
  }
  std::string text() {
    std::string result;
    for (const unsigned char byte : end()) result += fmt::format("{:02x}", byte);
    return result;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256(std::string_view bytes) {
  Digest digest;
  digest.add(bytes.data(), bytes.size());
  return digest.text();
}

std::string sha256_base64(std::string_view bytes) {
  Digest digest;
  digest.add(bytes.data(), bytes.size());
  const auto value = digest.end();
  unsigned char text[48];  // 4 characters per 3 bytes, rounded up, and a terminator
  const int length = EVP_EncodeBlock(text, value.data(), static_cast<int>(value.size()));
  return std::string(text, text + length);
}

std::string sha256_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  Digest digest;
  char bytes[1 << 14];
  while (file.read(bytes, sizeof(bytes)) || file.gcount() > 0) digest.add(bytes, static_cast<size_t>(file.gcount()));
  return digest.text();
}

}  // namespace backplane::conformance
