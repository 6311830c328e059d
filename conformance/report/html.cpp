// SPDX-License-Identifier: Apache-2.0
// Generates the certificate's HTML page, which has no external references.
#include "html.hpp"

#include <fmt/format.h>

#include <cmath>

#include "certificate.hpp"
#include "digest.hpp"
#include "escape.hpp"

namespace backplane::conformance {

namespace page {

constexpr size_t kMostReason = 4000;  // maximum length of a reason in bytes

std::string text(const Json& value) { return escaped(value.get_ref<const std::string&>()); }

std::string reason(const Json& each) {
  const std::string& whole = each["reason"].get_ref<const std::string&>();
  if (whole.size() <= kMostReason) return text(each["reason"]);
  size_t cut = kMostReason;
  // Moves the cut to the start of a UTF-8 character.
  while (cut > 0 && (static_cast<unsigned char>(whole[cut]) & 0xc0) == 0x80) --cut;
  return text(Json(whole.substr(0, cut))) + " … (truncated; the JSON contains the whole reason)";
}

std::string number(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, "\u202f");
  return digits;
}

std::string ratio_text(double ratio) {
  if (ratio == 0) return "0";
  return ratio < 0.001 || ratio >= 1e6 ? fmt::format("{:.1e}", ratio) : fmt::format("{:.3g}", ratio);
}

std::string seconds(double value) {
  return value < 0.0995 ? fmt::format("{:.0f} ms", value * 1e3) : fmt::format("{:.1f} s", value);
}

std::string percent(double fraction) {
  if (fraction >= 1) return "100 %";
  if (fraction > 0 && fraction < 0.001) return "below 0.1 %";
  return fmt::format("{:.1f} %", std::floor(1000 * fraction) / 10);
}

std::string plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", number(count), noun, count == 1 ? "" : "s");
}

std::string_view symbol(std::string_view state) {
  return state == "pass" ? "✓" : state == "not_claimed" ? "–" : state == "partial" ? "◐" : "✕";
}

std::string_view words(std::string_view state) {
  return state == "not_claimed" ? "not claimed" : state == "not_run" ? "not run" : state;
}

std::string mark(std::string_view state) {
  return fmt::format("<span class=\"mark {}\"><b aria-hidden=\"true\">{}</b> {}</span>", state, symbol(state),
                     words(state));
}

uint64_t total_of(const Json& counts) {
  uint64_t sum = 0;
  for (const Json& count : counts) sum += count.get<uint64_t>();
  return sum;
}

uint64_t failures_of(const Json& counts) {
  return total_of(counts) - counts["pass"].get<uint64_t>() - counts["not_claimed"].get<uint64_t>();
}

std::string counts_text(const Json& counts) {
  std::string result;
  for (const std::string_view name : {"pass", "fail", "crash", "hang", "leak", "suspect", "not_run", "not_claimed"}) {
    const auto count = counts[std::string(name)].get<uint64_t>();
    if (count != 0) result += fmt::format("{}{} {}", result.empty() ? "" : ", ", number(count), words(name));
  }
  return result;
}

}  // namespace page

std::string html_of(const nlohmann::json& certificate) {
  const uint64_t failures = page::failures_of(certificate["verdict"]["counts"]);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'sha256-{}'\">\n"
      "<title>{} {}: {}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}{}{}{}{}{}{}{}{}{}"
      "<footer>{} contains the same information for programs.</footer>\n</main>\n"
      "<script>{}</script>\n</body>\n</html>\n",
      sha256_base64(page::script()), page::text(certificate["plugin"]["name"]),
      page::text(certificate["plugin"]["version"]), failures == 0 ? "certificate" : "failures", page::style(),
      page::head(certificate), page::profiles(certificate), page::causes(certificate), page::failures(certificate),
      page::matrix(certificate), page::errors(certificate), page::groups(certificate), page::mandatory(certificate),
      page::absences(certificate), page::facts(certificate), "The JSON file next to this page", page::script());
}

}  // namespace backplane::conformance
