// SPDX-License-Identifier: Apache-2.0
// Text as XML and HTML take it, in content and in attributes.
#pragma once

#include <string>
#include <string_view>

namespace bp::conformance {

inline std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
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
      default:
        // Control characters are no XML, however they are written.
        result += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return result;
}

}  // namespace bp::conformance
