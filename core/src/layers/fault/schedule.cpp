// SPDX-License-Identifier: Apache-2.0
// Parses the text of fault schedules.
#include "layers/fault/schedule.hpp"

#include <backplane/backplane.h>

#include <charconv>
#include <string>

#include "base/error.hpp"

namespace backplane::core::layers {

namespace {

constexpr uint64_t kMaxCalls = 1'000'000'000;
constexpr std::chrono::nanoseconds kMaxDelay = std::chrono::minutes(1);
constexpr Slot kWorkSlots[] = {Slot::plan_execute, Slot::copy, Slot::copy_in, Slot::copy_out};

struct Unit {
  std::string_view name;
  int64_t nanoseconds;
};
constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};

std::string slot_names() {
  std::string names;
  for (size_t i = 0; i < kSlotCount; ++i) names.append(i == 0 ? "" : " ").append(slot_name(static_cast<Slot>(i)));
  return names;
}

class Parser {
 public:
  Parser(std::string_view text, const char* source) : text_(text), source_(source) {}

  FaultSchedule run() {
    FaultSchedule schedule;
    for (;;) {
      skip_blanks();
      if (at_ == text_.size()) return schedule;
      if (text_[at_] == ';') {
        ++at_;
        continue;
      }
      entry(schedule);
      skip_blanks();
      if (at_ != text_.size() && text_[at_] != ';') refuse(word(), "is too much; end the rule with ';'");
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view found, std::string_view why) const {
    throw Error(BP_INVALID_ARGUMENT, "{}, character {}: \"{:.40}\" {}", source_, start_ + 1, found, why);
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    start_ = at_;
  }
  // Returns the next word of the fault rule, or an empty string at the end of the rule.
  std::string_view word() {
    skip_blanks();
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != ';') ++at_;
    return text_.substr(start_, at_ - start_);
  }

  void entry(FaultSchedule& schedule) {
    const std::string_view verb = word();
    if (verb == "fail") {
      FaultEntry made = {FaultEntry::Kind::fail, slot(word())};
      made.call = number(word(), &made.onward);
      made.status = status(word());
      schedule.entries.push_back(made);
    } else if (verb == "delay") {
      const std::string_view name = word();
      FaultEntry made = {FaultEntry::Kind::delay, Slot::count};
      if (name != "work") made.slot = slot(name);
      made.time = time(word());
      for (const Slot each : kWorkSlots) {
        if (name == "work") made.slot = each;
        schedule.entries.push_back(made);
        if (name != "work") break;
      }
    } else if (verb == "lose") {
      FaultEntry made = {FaultEntry::Kind::lose, std::nullopt};
      std::string_view next = word();
      if (!next.empty() && (next.front() < '0' || next.front() > '9')) {
        made.slot = slot(next);
        next = word();
      }
      made.call = number(next, nullptr);
      schedule.entries.push_back(made);
    } else {
      refuse(verb, "is no rule; write fail SLOT N[+] STATUS, delay SLOT TIME or lose [SLOT] N");
    }
  }

  Slot slot(std::string_view name) const {
    for (size_t i = 0; i < kSlotCount; ++i) {
      if (name == slot_name(static_cast<Slot>(i))) return static_cast<Slot>(i);
    }
    refuse(name, "is no slot that can fail; these are: " + slot_names());
  }

  uint64_t number(std::string_view text, bool* onward) const {
    std::string_view digits = text;
    if (onward != nullptr && digits.ends_with('+')) {
      *onward = true;
      digits.remove_suffix(1);
    }
    uint64_t value = 0;
    const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || stop != digits.data() + digits.size() || value == 0 || value > kMaxCalls) {
      refuse(text, onward != nullptr ? "is no call; write 1 to 1000000000, with a + behind for every later one too"
                                     : "is no call; write 1 to 1000000000");
    }
    return value;
  }

  bp_status status(std::string_view name) const {
    std::string names;
    for (bp_status each = BP_INVALID_ARGUMENT; each <= BP_EXECUTION_FAILED; ++each) {
      if (name == bph_status_name(each)) return each;
      names.append(" ").append(bph_status_name(each));
    }
    refuse(name, "is no status of a failure; these are:" + names);
  }

  std::chrono::nanoseconds time(std::string_view text) const {
    uint64_t value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view remaining = text.substr(static_cast<size_t>(stop - text.data()));
    for (const Unit& unit : kUnits) {
      const auto most = static_cast<uint64_t>(kMaxDelay.count() / unit.nanoseconds);
      if (code == std::errc() && remaining == unit.name && value <= most) {
        return std::chrono::nanoseconds(static_cast<int64_t>(value) * unit.nanoseconds);
      }
    }
    refuse(text, "is no time; write a whole number with ns, us, ms or s, at most 60s");
  }

  std::string_view text_;
  const char* source_;
  size_t at_ = 0;
  size_t start_ = 0;  // position of the latest word
};

}  // namespace

FaultSchedule parse_faults(std::string_view text, const char* source) { return Parser(text, source).run(); }

}  // namespace backplane::core::layers
