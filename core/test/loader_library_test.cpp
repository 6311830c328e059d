// SPDX-License-Identifier: Apache-2.0
// Tests files that must not reach dlopen: truncated libraries, libraries for another machine, files that are not
// libraries, and libraries that other users can write.
#include <elf.h>
#include <sys/stat.h>

#include <iterator>

#include "loader_fixture.hpp"

namespace backplane::core::test {

namespace {

using testing::HasSubstr;

class LoaderLibrary : public LoaderTest {
 protected:
  LoaderLibrary() {
    EXPECT_EQ(create(""), BP_OK);
    std::ifstream file(plugin_file("null_plugin"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    EXPECT_GT(bytes.size(), sizeof(Elf64_Ehdr));
    library = folder + "/library.so";
  }

  std::string rule_with(const std::string& content) {
    write("library.so", content);
    return rule_of(library);
  }
  std::string rule_with_byte(size_t offset, char value) {
    std::string changed = bytes;
    changed[offset] = value;
    return rule_with(changed);
  }

  std::string bytes;
  std::string library;
};

TEST_F(LoaderLibrary, TruncatedAtAnyLength) {
  for (size_t length = 0; length < bytes.size(); length += length < 1024 ? 7 : 509) {
    const std::string rule = rule_with(bytes.substr(0, length));
    EXPECT_EQ(rule, length < SELFMAG ? "library.format" : "library.truncated") << length;
  }
  EXPECT_EQ(rule_with(bytes.substr(0, bytes.size() - 1)), "library.truncated");
  EXPECT_EQ(rule_with(bytes), "loaded") << error.message;
}

TEST_F(LoaderLibrary, HeadersThatLie) {
  EXPECT_EQ(rule_with_byte(offsetof(Elf64_Ehdr, e_machine), static_cast<char>(EM_SPARC)), "library.architecture");
  EXPECT_THAT(error.message, HasSubstr("ELF machine 2"));
  EXPECT_EQ(rule_with_byte(EI_CLASS, ELFCLASS32), "library.architecture");
  EXPECT_EQ(rule_with_byte(EI_DATA, ELFDATA2MSB), "library.architecture");
  EXPECT_EQ(rule_with_byte(EI_VERSION, 9), "library.format");
  EXPECT_EQ(rule_with_byte(offsetof(Elf64_Ehdr, e_type), ET_EXEC), "library.format");
  EXPECT_EQ(rule_with_byte(offsetof(Elf64_Ehdr, e_phentsize), 1), "library.format");
  EXPECT_EQ(rule_with_byte(offsetof(Elf64_Ehdr, e_phoff) + 7, 0x7F), "library.truncated");
  EXPECT_EQ(rule_with_byte(offsetof(Elf64_Ehdr, e_shoff) + 6, 0x7F), "library.truncated");
  EXPECT_EQ(rule_with_byte(sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz) + 5, 1), "library.truncated");
}

TEST_F(LoaderLibrary, NoLibraryAtAll) {
  EXPECT_EQ(rule_with("#!/bin/sh\necho no\n"), "library.format");
  EXPECT_EQ(load(folder + "/nothing.so"), BP_UNAVAILABLE);
  EXPECT_THAT(error.message, HasSubstr("nothing.so: no such library"));
  std::filesystem::create_directory(folder + "/folder.so");
  EXPECT_EQ(rule_of(folder + "/folder.so"), "library.type");
  ASSERT_EQ(mkfifo((folder + "/fifo.so").c_str(), 0600), 0);
  EXPECT_EQ(rule_of(folder + "/fifo.so"), "library.type");
  std::filesystem::create_symlink(folder + "/gone", folder + "/dangling.so");
  EXPECT_EQ(load(folder + "/dangling.so"), BP_UNAVAILABLE);
  std::filesystem::create_symlink(folder + "/loop.so", folder + "/loop.so");
  EXPECT_EQ(load(folder + "/loop.so"), BP_UNAVAILABLE);
  EXPECT_EQ(load(folder + "/" + std::string(2000, 'x')), BP_INVALID_ARGUMENT);
  std::string deep = folder;
  for (int i = 0; i < 600; ++i) deep += "/x";
  EXPECT_NE(load(deep), BP_OK);
}

TEST_F(LoaderLibrary, WritableByOthersIsRefused) {
  EXPECT_EQ(rule_with(bytes), "loaded");
  ASSERT_EQ(create(""), BP_OK);
  chmod(library.c_str(), 0664);
  EXPECT_EQ(load(library), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("library.so: mode 0664 lets others"));
  EXPECT_THAT(error.message, HasSubstr("chmod go-w"));
  chmod(library.c_str(), 0644);
  chmod(folder.c_str(), 0777);
  EXPECT_EQ(load(library), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("mode 0777"));
  chmod(folder.c_str(), 01777);
  EXPECT_OK(load(library, &error));
  chmod(folder.c_str(), 0700);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(library.c_str(), 65533, 65533), 0);
    EXPECT_EQ(load(library), BP_INVALID_ARGUMENT);
    EXPECT_THAT(error.message, HasSubstr("belongs to user 65533"));
  }
}

TEST_F(LoaderLibrary, DigestIsChecked) {
  write("library.so", bytes);
  write("wrong.json", manifest_text("null", "library.so", {{"sha256", '"' + std::string(64, '0') + '"'}}));
  ASSERT_EQ(create(), BP_OK);
  const bp_status status = load("null");
  EXPECT_STREQ(candidate(0).rule, "library.sha256");
  ASSERT_NE(status, BP_OK);
  const std::string message = error.message;
  if (status == BP_UNSUPPORTED) return;  // a build without libcrypto refuses every digest
  const std::string found = message.substr(message.find("sha256 is ") + 10, 64);
  write("wrong.json", manifest_text("null", "library.so", {{"sha256", '"' + found + '"'}}));
  ASSERT_EQ(create(), BP_OK);
  EXPECT_OK(load("null", &error));
}

}  // namespace

}  // namespace backplane::core::test
