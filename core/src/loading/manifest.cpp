// SPDX-License-Identifier: Apache-2.0
// Reads a manifest, key by key.
#include "loading/manifest.hpp"

#include <backplane/base.h>

#include <cctype>
#include <charconv>

#include "loading/file.hpp"
#include "loading/json.hpp"

namespace backplane::core {

namespace {

struct Reader {
  const std::string& path;
  const Json& root;

  const Json& need(const Json& object, const char* key, const char* rule) const {
    const Json* found = object.find(key);
    if (found == nullptr) {
      throw Refusal(BP_INVALID_ARGUMENT, rule, "plugin", "{}: \"{}\" is missing; add it", shown(path), key);
    }
    return *found;
  }

  const std::string& need_string(const Json& object, const char* key, const char* rule) const {
    const Json& value = need(object, key, rule);
    if (value.type != Json::string) {
      throw Refusal(BP_INVALID_ARGUMENT, rule, "plugin", "{}: \"{}\" is of type {}; make it a string", shown(path), key,
                    value.type_name());
    }
    return value.text;
  }

  uint32_t need_version(const Json& object, const char* key) const {
    const std::string& text = need_string(object, key, "manifest.abi");
    uint32_t version = 0;
    if (!parse_version(text, &version)) {
      throw Refusal(BP_INVALID_ARGUMENT, "manifest.abi", "plugin",
                    "{}: abi.{} \"{:.32}\" is no version; write \"major.minor\"", shown(path), key, text);
    }
    return version;
  }

  void check_library(const std::string& library) const {
    const auto refuse = [&](const char* why) {
      throw Refusal(BP_INVALID_ARGUMENT, "manifest.library", "plugin", "{}: library \"{:.120}\" {}", shown(path),
                    library, why);
    };
    if (library.empty() || library.back() == '/') refuse("names no file; name the shared library");
    if (library.size() >= kPathLimit) refuse("is longer than 1023 bytes; shorten it");
    for (const char c : library) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) refuse("holds a control character; remove it");
    }
    for (size_t begin = 0; begin <= library.size();) {
      const size_t end = std::min(library.find('/', begin), library.size());
      if (std::string_view(library).substr(begin, end - begin) == "..") {
        refuse("leaves the manifest's folder; keep the library below it, or give an absolute path");
      }
      begin = end + 1;
    }
  }
};

}  // namespace

bool valid_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > 63) return false;
  for (const char c : name) {
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_') return false;
  }
  return true;
}

bool parse_version(std::string_view text, uint32_t* out) noexcept {
  uint16_t part[2];
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 2; ++i) {
    if (i == 1 && (at == end || *at++ != '.')) return false;
    const auto [stop, code] = std::from_chars(at, end, part[i]);
    if (code != std::errc()) return false;
    at = stop;
  }
  *out = static_cast<uint32_t>(part[0]) << 16 | part[1];
  return at == end;
}

std::string version_text(uint32_t version) { return fmt::format("{}.{}", version >> 16, version & 0xFFFFu); }

void parse_manifest(std::string_view text, const std::string& path, Manifest& out) {
  const Json root = parse_json(text, path, "manifest.json", kJsonDepthLimit);
  if (root.type != Json::object) {
    throw Refusal(BP_INVALID_ARGUMENT, "manifest.json", "plugin", "{}: the top is of type {}; make it an object",
                  shown(path), root.type_name());
  }
  const Reader reader{path, root};

  const std::string& name = reader.need_string(root, "name", "manifest.name");
  if (!valid_name(name)) {
    throw Refusal(BP_INVALID_ARGUMENT, "manifest.name", "plugin",
                  "{}: name \"{:.80}\" is not [a-z0-9_]{{1,63}}; correct it", shown(path), name);
  }
  out.name = name;

  const Json& version = reader.need(root, "manifest_version", "manifest.version");
  if (version.type != Json::integer || version.number != 1) {
    throw Refusal(BP_UNSUPPORTED, "manifest.version",
                  version.type == Json::integer && version.number > 1 ? "host" : "plugin",
                  "{}: manifest_version is {}, not 1, all that this library knows; correct it or update the library",
                  shown(path), version.type == Json::integer ? std::to_string(version.number) : version.type_name());
  }

  out.library = reader.need_string(root, "library", "manifest.library");
  reader.check_library(out.library);

  const Json& abi = reader.need(root, "abi", "manifest.abi");
  if (abi.type != Json::object) {
    throw Refusal(BP_INVALID_ARGUMENT, "manifest.abi", "plugin",
                  "{}: \"abi\" is of type {}; write {{\"min\": ..., \"max\": "
                  "...}}",
                  shown(path), abi.type_name());
  }
  out.abi_min = reader.need_version(abi, "min");
  out.abi_max = reader.need_version(abi, "max");
  if (out.abi_min > out.abi_max) {
    throw Refusal(BP_INVALID_ARGUMENT, "manifest.abi", "plugin", "{}: abi.min {} is above abi.max {}; correct them",
                  shown(path), version_text(out.abi_min), version_text(out.abi_max));
  }

  const Json& architectures = reader.need(root, "architectures", "manifest.architectures");
  const auto refuse_architectures = [&] {
    throw Refusal(BP_INVALID_ARGUMENT, "manifest.architectures", "plugin",
                  "{}: \"architectures\" is not a list of names; write for example [\"x86_64\"]", shown(path));
  };
  if (architectures.type != Json::array || architectures.children.empty()) refuse_architectures();
  for (const Json& architecture : architectures.children) {
    if (architecture.type != Json::string) refuse_architectures();
    out.architectures.push_back(architecture.text);
  }

  if (root.find("sha256") != nullptr) {
    out.sha256 = reader.need_string(root, "sha256", "manifest.sha256");
    bool digest = out.sha256.size() == 64;
    for (char& c : out.sha256) {
      digest = digest && std::isxdigit(static_cast<unsigned char>(c)) != 0;
      if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    }
    if (!digest) {
      throw Refusal(BP_INVALID_ARGUMENT, "manifest.sha256", "plugin",
                    "{}: sha256 is not 64 hexadecimal digits; correct it", shown(path));
    }
  }
  if (root.find("description") != nullptr) (void)reader.need_string(root, "description", "manifest.description");

  static constexpr std::string_view known[] = {"manifest_version", "name",   "library",    "abi",
                                               "architectures",    "sha256", "description"};
  for (const Json& item : root.children) {
    if (std::find(std::begin(known), std::end(known), item.key) == std::end(known)) {
      out.unknown_keys.push_back(item.key);
    }
  }
}

}  // namespace backplane::core
