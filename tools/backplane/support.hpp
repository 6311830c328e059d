// SPDX-License-Identifier: Apache-2.0
// Queries which operators and dtypes a device supports, with one representative descriptor per pair
// of operator and dtype.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "op_case.hpp"

namespace tool {

struct Support {
  bp_status status = BP_OK;  // BP_OK, or the status for the first output dtype that the device does not support
  std::string message;       // message for the same output dtype
  uint32_t choices = 0;      // number of output dtypes that the rule allows
  uint32_t supported = 0;    // number of output dtypes that the device supports
  bool any_size = false;
  uint32_t staged = 0;  // number of operands that core would stage
  uint64_t workspace_bytes = 0;
  // True if the operator runs as primitives, because the plugin does not implement the operator.
  bool decomposed = false;
};

struct OpSupport {
  bph_op_info info;
  std::map<uint32_t, Support> dtypes;  // the key is the dtype T of the operator's dtype rule
};

std::vector<OpSupport> query_support(bph_device* device);

}  // namespace tool
