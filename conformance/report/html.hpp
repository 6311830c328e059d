// SPDX-License-Identifier: Apache-2.0
// Generates the sections of the certificate's HTML page. Each section depends on the certificate
// alone.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace backplane::conformance::page {

using Json = nlohmann::json;

std::string_view style();
std::string_view script();

// Each of these functions returns one section. The comment after a function lists the contents of the section.

std::string head(const Json& certificate);      // verdict, supported fraction, counts
std::string facts(const Json& certificate);     // plugin, device, suite, run
std::string profiles(const Json& certificate);  // profiles and extensions
std::string causes(const Json& certificate);    // causes of failures
std::string failures(const Json& certificate);
std::string matrix(const Json& certificate);
std::string errors(const Json& certificate);
std::string groups(const Json& certificate);
std::string mandatory(const Json& certificate);  // mandatory cases that are not claimed
std::string absences(const Json& certificate);   // all cases that are not claimed

// ---- Helpers for the sections

// Returns the reason of a case or a cause, truncated to 4000 bytes.
std::string reason(const Json& each);
// Returns a string of the certificate, escaped for HTML content and attributes.
std::string text(const Json& value);
std::string list(const Json& names);   // escaped names, separated by commas
std::string number(uint64_t value);    // for example "12 345", with narrow no-break spaces
std::string ratio_text(double ratio);  // ratio of an error to its bound, for example "0.61"
std::string seconds(double value);     // for example "1.2 s"
std::string percent(double fraction);  // for example "99.9 %"; only a fraction of 1 gives "100 %"
std::string plural(uint64_t count, std::string_view noun);
std::string_view symbol(std::string_view state);
std::string_view words(std::string_view state);  // for example "not claimed"
// Returns the symbol and the words of a state, in the state's colour.
std::string mark(std::string_view state);
uint64_t failures_of(const Json& counts);
uint64_t total_of(const Json& counts);
// Returns the counts that are not zero, for example "48 pass, 2 fail".
std::string counts_text(const Json& counts);

}  // namespace backplane::conformance::page
