// SPDX-License-Identifier: Apache-2.0
#include "causes.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <vector>

#include "harness/reason.hpp"

namespace backplane::conformance {

namespace {

using Json = nlohmann::json;

constexpr size_t kMostKey = 400;  // maximum length in bytes of the text that identifies a cause

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '+' || c == '-';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_value(std::string_view word) {
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  return word == "inf" || word == "nan" || (!word.empty() && is_digit(word[0]));
}

bool is_dtype(std::string_view word) {
  if (word.starts_with('b')) word.remove_prefix(1);
  return word.size() > 1 && std::string_view("fiu").find(word[0]) != std::string_view::npos &&
         std::all_of(word.begin() + 1, word.end(), is_digit);
}

bool is_case_id(std::string_view word) {
  return std::count(word.begin(), word.end(), '.') >= 2 && std::islower(static_cast<unsigned char>(word[0])) != 0 &&
         std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::isupper(c) != 0; });
}

std::string masked(std::string_view word) {
  if (is_value(word) || is_dtype(word) || is_case_id(word)) return "#";
  std::string result;
  for (const char c : word) {
    if (!is_digit(c)) {
      result += c;
    } else if (!result.ends_with('#')) {
      result += '#';
    }
  }
  return result;
}

// Replaces each list with one mask, so that lists of different lengths become equal, as in "element
// 3 (0,3)" and "element 0 ()".
std::string without_lists(const std::string& text) {
  static const std::regex list(R"([(\[][#, ]*[)\]]|#(, ?#)+)");
  return std::regex_replace(text, list, "#");
}

// Returns the part of the reason that describes the failure itself. For a case that was not run
// after equal failures, this part is the reason of those failures.
std::string_view own_part(std::string_view reason) {
  if (const size_t at = reason.find(kGivenUpMark); at != std::string_view::npos)
    reason.remove_prefix(at + kGivenUpMark.size());
  return shared_part(reason);
}

// Returns the first slot of the ABI that the reason names. "copy" and "close" are also ordinary
// words, so they are treated as slots only if "returned" follows.
std::string_view slot_in(std::string_view reason) {
  // The list of the latest calls also names slots, so the list is removed first.
  reason = reason.substr(0, reason.find(kStepsMark));
  constexpr std::string_view slots[] = {
      "bp_plugin_query", "device_count",   "device_info",    "device_open",   "get_interface",     "shutdown",
      "memory_info",     "buffer_create",  "buffer_destroy", "buffer_map",    "stream_create",     "stream_destroy",
      "stream_wait",     "event_create",   "event_destroy",  "event_record",  "stream_wait_event", "event_wait",
      "event_elapsed",   "copy_in",        "copy_out",       "plan_create",   "plan_destroy",      "plan_execute",
      "plan_workspace",  "buffer_address", "import_memory",  "device_native", "stream_native",     "buffer_native",
      "event_native",    "stream_wrap",    "buffer_wrap",    "graph_begin",   "graph_end",         "graph_launch",
      "graph_destroy",   "pack_create",    "pack_execute",   "pack_destroy"};
  constexpr std::string_view also_words[] = {"copy", "close"};
  for (size_t at = 0; at < reason.size();) {
    const size_t end = static_cast<size_t>(
        std::find_if_not(reason.begin() + static_cast<ptrdiff_t>(at), reason.end(), is_word) - reason.begin());
    const std::string_view word = reason.substr(at, end - at);
    if (std::find(std::begin(slots), std::end(slots), word) != std::end(slots)) return word;
    if (reason.substr(end).starts_with(" returned") &&
        std::find(std::begin(also_words), std::end(also_words), word) != std::end(also_words))
      return word;
    at = end + 1;
  }
  return "";
}

const std::string& text_of(const Json& each, const char* key) { return each[key].get_ref<const std::string&>(); }

bool was_run(const Json& each) { return each["outcome"] != "not_run"; }

// Returns the slot that most cases name. Cases with the same cause may name different slots: a case
// may detect a change of state several calls after the call that made the change.
std::string usual_slot(const std::vector<const Json*>& cases) {
  std::map<std::string_view, size_t> counts;
  for (const Json* each : cases) {
    if (was_run(*each)) ++counts[slot_in(text_of(*each, "reason"))];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? std::string() : std::string(most->first);
}

Json cause_from(const std::vector<const Json*>& cases) {
  // Uses the reason of the first case that was run and whose reason names the usual slot. If no
  // such case exists, uses the first case.
  const std::string slot = usual_slot(cases);
  const auto with_message = std::find_if(cases.begin(), cases.end(), [&](const Json* each) {
    return was_run(*each) && slot_in(text_of(*each, "reason")) == slot;
  });
  const Json& first = with_message == cases.end() ? *cases.front() : **with_message;
  const std::string& reason = text_of(first, "reason");
  Json outcomes = Json::object(), groups = Json::object();
  for (const Json* each : cases) {
    const std::string& id = text_of(*each, "id");
    for (auto [counts, name] : {std::pair{&outcomes, text_of(*each, "outcome")},
                                std::pair{&groups, id.substr(0, id.find('.', id.find('.') + 1))}})
      (*counts)[name] = counts->value(name, uint64_t{0}) + 1;
  }
  const Advice advice = advice_for(reason);
  return {{"reason", reason},
          {"count", cases.size()},
          {"outcomes", outcomes},
          {"groups", groups},
          {"first", first["id"]},
          {"repro", first.value("repro", "")},
          {"slot", slot},
          {"requirements", advice.requirement.empty() ? first["requirements"] : Json::array({advice.requirement})},
          {"remedy", advice.remedy},
          {"guide", advice.guide}};
}

}  // namespace

std::string cause_of(std::string_view reason) {
  reason = own_part(reason);
  std::string key;
  for (size_t at = 0; at < reason.size() && key.size() < kMostKey;) {
    if (!is_word(reason[at])) {
      key += reason[at++];
      continue;
    }
    size_t end = at;
    while (end < reason.size() && is_word(reason[end])) ++end;
    size_t last = end;  // end of the word without trailing full stops
    while (last > at && reason[last - 1] == '.') --last;
    key += masked(reason.substr(at, last - at));
    key += reason.substr(last, end - last);
    at = end;
  }
  return without_lists(key);
}

Json causes_of(const Json& non_passes) {
  std::vector<std::vector<const Json*>> causes;
  std::map<std::string, size_t> indices;
  for (const Json& each : non_passes) {
    if (each["outcome"] == "not_claimed") continue;
    const auto [entry, fresh] = indices.try_emplace(cause_of(text_of(each, "reason")), causes.size());
    if (fresh) causes.emplace_back();
    causes[entry->second].push_back(&each);
  }
  std::stable_sort(causes.begin(), causes.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  Json result = Json::array();
  for (const auto& cases : causes) result.push_back(cause_from(cases));
  return result;
}

}  // namespace backplane::conformance
