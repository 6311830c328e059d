// SPDX-License-Identifier: Apache-2.0
// Which operators a device has, for which dtypes: asked of the device with one representative descriptor each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "op_case.hpp"

namespace tool {

struct Support {
  bp_status status = BP_OK;  // of the worst choice that the dtype rule leaves
  std::string message;       // why not
  uint32_t choices = 0;      // output dtypes that the rule leaves
  uint32_t supported = 0;    // of those
  bool any_size = false;
  uint32_t staged = 0;  // operands that core would stage
  uint64_t workspace_bytes = 0;
  bool decomposed = false;  // works, but as primitives: the device does not have the operator itself
};

struct OpSupport {
  bph_op_info info;
  std::map<uint32_t, Support> dtypes;  // each legal dtype of the operator
};

std::vector<OpSupport> ask_support(bph_device* device);

}  // namespace tool
