// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/sampling.hpp"
#include "json.hpp"

namespace tool {

inline Json figure_json(const Figure& figure) {
  return Json::object(
      {{"p10", figure.p10}, {"median", figure.median}, {"p90", figure.p90}, {"samples", figure.samples}});
}

}  // namespace tool
