// SPDX-License-Identifier: Apache-2.0
// The certificate as one page without any reference to the outside.
#include <fmt/format.h>

#include "certificate.hpp"
#include "escape.hpp"

namespace bp::conformance {

std::string html_of(const nlohmann::json& certificate) {
  return fmt::format("<!doctype html><meta charset=\"utf-8\"><title>Certificate</title><h1>{}</h1>\n",
                     escaped(certificate["verdict"]["statement"].get<std::string>()));
}

}  // namespace bp::conformance
