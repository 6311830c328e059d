// SPDX-License-Identifier: Apache-2.0
// Builds and formats JSON documents.
#include "json.hpp"

#include <fmt/format.h>

#include <cmath>

#include "table.hpp"

namespace tool {
namespace {

// Returns `text` as a JSON string: escapes quotes, backslashes and control characters, and replaces
// invalid UTF-8.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : valid_utf8(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out += '"';
}

}  // namespace

Json::Json(double value) : scalar_(std::isfinite(value) ? fmt::format("{}", value) : "null") {}
Json::Json(std::string_view value) : scalar_(quoted(value)) {}

Json Json::array() {
  Json json;
  json.kind_ = Kind::array;
  return json;
}

Json Json::object() {
  Json json;
  json.kind_ = Kind::object;
  return json;
}

Json Json::object(std::initializer_list<std::pair<const char*, Json>> members) {
  Json json = object();
  for (const auto& [key, value] : members) json.members_.push_back({key, value});
  return json;
}

Json& Json::operator[](std::string_view key) {
  kind_ = Kind::object;
  for (Member& member : members_) {
    if (member.key == key) return member.value;
  }
  return members_.emplace_back(Member{std::string(key), Json()}).value;
}

void Json::push_back(Json value) { members_.push_back({"", std::move(value)}); }

void Json::update(const Json& other) {
  for (const Member& member : other.members_) (*this)[member.key] = member.value;
}

std::string Json::text() const {
  std::string out;
  write(out, 0);
  return out;
}

void Json::write(std::string& out, size_t indent) const {
  if (kind_ == Kind::scalar) {
    out += scalar_;
    return;
  }
  const bool is_object = kind_ == Kind::object;
  out += is_object ? '{' : '[';
  bool first = true;
  for (const Member& member : members_) {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(indent + 2, ' ');
    if (is_object) out += quoted(member.key) + ": ";
    member.value.write(out, indent + 2);
  }
  if (!first) {
    out += '\n';
    out.append(indent, ' ');
  }
  out += is_object ? '}' : ']';
}

}  // namespace tool
