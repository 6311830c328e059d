// SPDX-License-Identifier: Apache-2.0
// A JSON document being built. Own, because the command must survive memory exhaustion: nlohmann's values allocate in
// their destructor, and failing there ends the process.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tool {

// Keys keep their order; a key is set once.
class Json {
 public:
  struct Member;

  // Bodies follow Member: until then a vector of it may only be named.
  Json();                          // null
  template <std::same_as<bool> T>  // and no pointer
  Json(T value) : Json(Verbatim{}, value ? "true" : "false") {}
  Json(double value);  // null if not finite
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Json(T value) : Json(Verbatim{}, std::to_string(value)) {}
  Json(std::string_view value);
  Json(const char* value) : Json(std::string_view(value)) {}
  Json(const std::string& value) : Json(std::string_view(value)) {}
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  static Json array();
  static Json object();
  static Json object(std::initializer_list<std::pair<const char*, Json>> members);

  // The value of `key`, null until it is assigned. Makes an object of a null.
  Json& operator[](std::string_view key);
  void push_back(Json value);
  // Adds the members of another object.
  void update(const Json& other);
  // Indented by two.
  std::string text() const;

 private:
  struct Verbatim {};
  enum class Kind { scalar, array, object };
  Json(Verbatim, std::string text);
  void write(std::string& out, size_t indent) const;

  Kind kind_ = Kind::scalar;
  std::string scalar_;
  std::vector<Member> members_;  // of an array without keys
};

struct Json::Member {
  std::string key;
  Json value;
};

inline Json::Json() : Json(Verbatim{}, "null") {}
inline Json::Json(Verbatim, std::string text) : scalar_(std::move(text)) {}
inline Json::Json(const Json&) = default;
inline Json::Json(Json&&) noexcept = default;
inline Json& Json::operator=(const Json&) = default;
inline Json& Json::operator=(Json&&) noexcept = default;
inline Json::~Json() = default;

}  // namespace tool
