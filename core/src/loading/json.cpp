// SPDX-License-Identifier: Apache-2.0
// Builds a Json tree from the events of nlohmann's SAX parser.
#include "loading/json.hpp"

#include <nlohmann/json.hpp>

namespace backplane::core {

namespace {

// The maximum number of members per object. The search for duplicate keys takes quadratic time.
constexpr size_t kMembersLimit = 256;

class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(const std::string& path, const char* rule, size_t depth_limit)
      : path_(path), rule_(rule), depth_limit_(depth_limit) {}

  Json root;

  bool null() override { return add(Json::null); }
  bool boolean(bool) override { return add(Json::boolean); }
  bool number_integer(number_integer_t value) override { return add(Json::integer, value); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= INT64_MAX ? add(Json::integer, static_cast<int64_t>(value)) : add(Json::real);
  }
  bool number_float(number_float_t, const string_t&) override { return add(Json::real); }
  bool string(string_t& value) override { return add(Json::string, 0, std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object); }
  bool start_array(size_t) override { return open(Json::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (open_.back()->children.size() == kMembersLimit) {
      throw Refusal(BP_INVALID_ARGUMENT, rule_, "plugin", "{}: an object of more than {} keys; shorten it",
                    shown(path_), kMembersLimit);
    }
    if (open_.back()->find(value) != nullptr) {
      throw Refusal(BP_INVALID_ARGUMENT, rule_, "plugin", "{}: key \"{:.64}\" appears twice; remove one", shown(path_),
                    value);
    }
    key_ = std::move(value);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& failure) override {
    std::string_view what = failure.what();
    what.remove_prefix(std::min(what.find(']') + 2, what.size()));
    throw Refusal(BP_INVALID_ARGUMENT, rule_, "plugin", "{}: not JSON: {:.200}; correct it", shown(path_), what);
  }

 private:
  Json& next_value() {
    if (open_.empty()) return root;
    Json& added = open_.back()->children.emplace_back();
    added.key = std::move(key_);
    key_.clear();
    return added;
  }
  bool add(Json::Type type, int64_t number = 0, std::string text = {}) {
    Json& value = next_value();
    value.type = type;
    value.number = number;
    value.text = std::move(text);
    return true;
  }
  bool open(Json::Type type) {
    if (open_.size() == depth_limit_) {
      throw Refusal(BP_INVALID_ARGUMENT, rule_, "plugin", "{}: nested deeper than {}; flatten it", shown(path_),
                    depth_limit_);
    }
    Json& value = next_value();
    value.type = type;
    open_.push_back(&value);  // the pointer stays valid, because the parent does not grow until close()
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& path_;
  const char* rule_;
  size_t depth_limit_;
  std::vector<Json*> open_;
  std::string key_;
};

}  // namespace

const Json* Json::find(std::string_view wanted) const noexcept {
  for (const Json& child : children) {
    if (child.key == wanted) return &child;
  }
  return nullptr;
}

const char* Json::type_name() const noexcept {
  static constexpr const char* names[] = {"null", "boolean", "number", "number", "string", "array", "object"};
  return names[type];
}

Json parse_json(std::string_view text, const std::string& path, const char* rule, size_t depth_limit) {
  Builder builder(path, rule, depth_limit);
  nlohmann::json::sax_parse(text, &builder);
  return std::move(builder.root);
}

}  // namespace backplane::core
