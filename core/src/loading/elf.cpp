// SPDX-License-Identifier: Apache-2.0
// Checks a library's ELF header and digest, and compares its program headers with the file's size.
#include "loading/elf.hpp"

#include <elf.h>
#include <link.h>

#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#ifdef BACKPLANE_HAVE_LIBCRYPTO
#include <openssl/evp.h>
#endif

#include "loading/file.hpp"

namespace backplane::core {

namespace {

struct Architecture {
  const char* name;
  uint16_t machine;
};
constexpr Architecture kArchitectures[] = {{"x86_64", EM_X86_64}, {"i686", EM_386},      {"aarch64", EM_AARCH64},
                                           {"arm", EM_ARM},       {"riscv64", EM_RISCV}, {"ppc64le", EM_PPC64},
                                           {"s390x", EM_S390},    {"mips64", EM_MIPS}};

constexpr uint16_t kHostMachine =
#if defined(__x86_64__)
    EM_X86_64;
#elif defined(__i386__)
    EM_386;
#elif defined(__aarch64__)
    EM_AARCH64;
#elif defined(__arm__)
    EM_ARM;
#elif defined(__riscv)
    EM_RISCV;
#elif defined(__powerpc64__)
    EM_PPC64;
#elif defined(__s390x__)
    EM_S390;
#else
#error "state this architecture's ELF machine here"
#endif

std::string machine_name(uint16_t machine) {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.machine == machine) return architecture.name;
  }
  return fmt::format("ELF machine {}", machine);
}

constexpr unsigned char kHostClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char kHostData = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

[[noreturn]] void refuse_format(const std::string& path, const char* why) {
  throw Refusal(BP_INVALID_ARGUMENT, "library.format", "plugin",
                "{}: not a shared library for this system: {}; install the "
                "right file",
                shown(path), why);
}

void check_headers(const FileDescriptor& file, uint64_t size, const std::string& path) {
  const auto truncated = [&](uint64_t wanted) {
    throw Refusal(BP_INVALID_ARGUMENT, "library.truncated", "plugin",
                  "{}: truncated: the file has {} bytes, its headers state {}; install it again", shown(path), size,
                  wanted);
  };
  ElfW(Ehdr) header = {};
  const size_t got = read_at(file, &header, sizeof(header), 0, path, kLibraryRules);
  if (got < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) refuse_format(path, "no ELF header");
  if (got < sizeof(header)) truncated(sizeof(header));
  if (header.e_ident[EI_DATA] != kHostData || header.e_ident[EI_CLASS] != kHostClass ||
      header.e_machine != kHostMachine) {
    const bool swapped = header.e_ident[EI_DATA] != kHostData;
    throw Refusal(
        BP_INVALID_ARGUMENT, "library.architecture", "plugin",
        "{}: built for {}{}, {}-bit; this program runs on {}; install that build", shown(path),
        swapped ? "the other byte order, " : "",
        machine_name(swapped ? static_cast<uint16_t>(header.e_machine << 8 | header.e_machine >> 8) : header.e_machine),
        header.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32, host_architecture());
  }
  if (header.e_ident[EI_VERSION] != EV_CURRENT) refuse_format(path, "its ELF version is unknown");
  if (header.e_type != ET_DYN) refuse_format(path, "the ELF type is not DYN");
  if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum == 0) refuse_format(path, "no program headers");

  const auto inside = [&](uint64_t offset, uint64_t bytes) {
    if (offset > size || bytes > size - offset) truncated(offset + bytes < offset ? UINT64_MAX : offset + bytes);
  };
  inside(header.e_phoff, static_cast<uint64_t>(header.e_phnum) * sizeof(ElfW(Phdr)));
  if (header.e_shoff != 0) inside(header.e_shoff, static_cast<uint64_t>(header.e_shnum) * header.e_shentsize);
  std::vector<ElfW(Phdr)> segments(header.e_phnum);
  if (read_at(file, segments.data(), segments.size() * sizeof(segments[0]), header.e_phoff, path, kLibraryRules) !=
      segments.size() * sizeof(segments[0])) {
    truncated(header.e_phoff + segments.size() * sizeof(segments[0]));
  }
  bool loadable = false;
  bool dynamic = false;
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type == PT_LOAD || segment.p_type == PT_DYNAMIC || segment.p_type == PT_NOTE ||
        segment.p_type == PT_TLS) {
      inside(segment.p_offset, segment.p_filesz);
    }
    loadable = loadable || segment.p_type == PT_LOAD;
    dynamic = dynamic || segment.p_type == PT_DYNAMIC;
  }
  if (!loadable || !dynamic) refuse_format(path, "no loadable or no dynamic segment");
}

#ifdef BACKPLANE_HAVE_LIBCRYPTO
std::string digest_of(const FileDescriptor& file, const std::string& path) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
  std::vector<unsigned char> chunk(256 * 1024);
  uint64_t offset = 0;
  while (const size_t got = read_at(file, chunk.data(), chunk.size(), offset, path, kLibraryRules)) {
    if (EVP_DigestUpdate(context.get(), chunk.data(), got) != 1) throw std::bad_alloc();
    offset += got;
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_DigestFinal_ex(context.get(), digest, &length) != 1) throw std::bad_alloc();
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

void check_digest(const FileDescriptor& file, const std::string& path, const std::string& wanted) {
  const std::string found = digest_of(file, path);
  if (found != wanted) {
    throw Refusal(BP_INVALID_ARGUMENT, "library.sha256", "plugin",
                  "{}: sha256 is {}, the manifest says {}; install library and manifest of one build", shown(path),
                  found, wanted);
  }
}
#else
void check_digest(const FileDescriptor&, const std::string& path, const std::string&) {
  throw Refusal(BP_UNSUPPORTED, "library.sha256", "host",
                "{}: the manifest requires a digest check and this build has none; build backplane with libcrypto",
                shown(path));
}
#endif

}  // namespace

const char* host_architecture() noexcept {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.machine == kHostMachine) return architecture.name;
  }
  return "unknown";
}

void check_library(const std::string& path, const std::string& sha256) {
  uint64_t size = 0;
  const FileDescriptor file = open_regular(path, kLibraryRules, &size);
  check_headers(file, size, path);
  if (!sha256.empty()) check_digest(file, path, sha256);
}

}  // namespace backplane::core
