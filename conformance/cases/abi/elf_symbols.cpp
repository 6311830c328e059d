// SPDX-License-Identifier: Apache-2.0
#include "elf_symbols.hpp"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace backplane::conformance {

namespace {

// The contents of an ELF file. Every read checks that its offset is inside the file.
class Image {
 public:
  explicit Image(std::vector<char> bytes) : bytes_(std::move(bytes)) {}
  template <typename T>
  bool read(uint64_t offset, T& out) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) return false;
    std::memcpy(&out, bytes_.data() + offset, sizeof(T));
    return true;
  }
  std::string text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    return std::string(bytes_.data() + offset, strnlen(bytes_.data() + offset, bytes_.size() - offset));
  }

 private:
  std::vector<char> bytes_;
};

}  // namespace

DynamicSymbols read_dynamic_symbols(const std::string& path) {
  DynamicSymbols found;
  std::ifstream file(path, std::ios::binary);
  const Image image(std::vector<char>(std::istreambuf_iterator<char>(file), {}));
  ElfW(Ehdr) header;
  if (!image.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    found.error = "no ELF file";
    return found;
  }
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    ElfW(Shdr) section, strings;
    if (!image.read(header.e_shoff + i * header.e_shentsize, section) || section.sh_type != SHT_DYNSYM) continue;
    if (!image.read(header.e_shoff + uint64_t{section.sh_link} * header.e_shentsize, strings)) continue;
    for (uint64_t at = sizeof(ElfW(Sym)); at + sizeof(ElfW(Sym)) <= section.sh_size; at += sizeof(ElfW(Sym))) {
      ElfW(Sym) symbol;
      if (!image.read(section.sh_offset + at, symbol)) continue;
      std::string name = image.text(strings.sh_offset + symbol.st_name);
      const auto binding = symbol.st_info >> 4;
      const auto visibility = symbol.st_other & 3;
      if (name.empty() || binding == STB_LOCAL) continue;
      if (symbol.st_shndx == SHN_UNDEF) {
        if (binding != STB_WEAK) found.wanted.push_back(std::move(name));
      } else if (visibility == STV_DEFAULT || visibility == STV_PROTECTED) {
        found.defined.push_back(std::move(name));
      }
    }
    return found;
  }
  found.error = "no table of dynamic symbols";
  return found;
}

}  // namespace backplane::conformance
