// SPDX-License-Identifier: Apache-2.0
// Escapes text for XML and HTML, in content and in attributes.
#pragma once

#include <string>
#include <string_view>

namespace backplane::conformance {

inline std::string escaped(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      case '\xef':  // U+FFFE and U+FFFF are illegal in XML, so U+FFFD replaces them
        if (text.substr(at + 1, 2) == "\xbf\xbe" || text.substr(at + 1, 2) == "\xbf\xbf") {
          result += "\xef\xbf\xbd";
          at += 2;
          break;
        }
        [[fallthrough]];
      default:
        // XML cannot represent control characters, so a space replaces them.
        result += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return result;
}

}  // namespace backplane::conformance
