// SPDX-License-Identifier: Apache-2.0
// A JSON document under construction. The command must survive exhausted memory. nlohmann::json is
// not used, because its destructor allocates, and a failed allocation there would end the process.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tool {

// A JSON value. The keys of an object keep their order and are unique.
class Json {
 public:
  struct Member;

  // The default constructor, the copy and move functions and the destructor are defined below, after Member. Before
  // that point Member is incomplete, and a vector of an incomplete type can only be declared.
  Json();                          // makes a null
  template <std::same_as<bool> T>  // excludes pointers, which would convert to bool
  Json(T value) : Json(Verbatim{}, value ? "true" : "false") {}
  Json(double value);  // makes a null if the value is not finite
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

  // Returns the value of `key`, which is null until it is assigned. Turns a null document into an
  // object.
  Json& operator[](std::string_view key);
  void push_back(Json value);
  // Adds the members of another object.
  void update(const Json& other);
  // Returns the document as text, indented by two blanks per level.
  std::string text() const;

 private:
  struct Verbatim {};
  enum class Kind { scalar, array, object };
  Json(Verbatim, std::string text);
  void write(std::string& out, size_t indent) const;

  Kind kind_ = Kind::scalar;
  std::string scalar_;
  std::vector<Member> members_;  // an array's members have empty keys
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
