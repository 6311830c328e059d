// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "harness/context.hpp"

namespace backplane::conformance {

inline void add_case(Catalogue& catalogue, std::string id, std::vector<std::string_view> requirements,
                     std::function<void(Context&)> run, std::string_view extension = "") {
  catalogue.push_back(
      {.id = std::move(id), .extension = extension, .requirements = std::move(requirements), .run = std::move(run)});
}

}  // namespace backplane::conformance
