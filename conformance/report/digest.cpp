// SPDX-License-Identifier: Apache-2.0
#include "digest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace bp::conformance {

namespace {

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw std::runtime_error("the digest library offers no SHA-256");
  }
  void add(const void* bytes, size_t count) { EVP_DigestUpdate(context_.get(), bytes, count); }
  std::string text() {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned count = 0;
    EVP_DigestFinal_ex(context_.get(), bytes, &count);
    std::string result;
    for (unsigned index = 0; index < count; ++index) result += fmt::format("{:02x}", bytes[index]);
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

std::string sha256_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  Digest digest;
  char bytes[1 << 14];
  while (file.read(bytes, sizeof(bytes)) || file.gcount() > 0) digest.add(bytes, static_cast<size_t>(file.gcount()));
  return digest.text();
}

}  // namespace bp::conformance
