// SPDX-License-Identifier: Apache-2.0
// Names in the kit's namespace for the tables of operators and dtypes (rules/), and storage for attributes.
#pragma once

#include <backplane/kit/structs.hpp>
#include <backplane/rules/op_table.hpp>

namespace backplane::kit {

using rules::dtype_bytes;
using rules::dtype_info;
using rules::dtype_list;
using rules::dtype_name;
using rules::DtypeInfo;
using rules::find_op;
using rules::in_set;
using rules::op_name;
using rules::op_rows;
using rules::OpInfo;

// Storage for the attributes of any operator.
struct Attributes {
  static constexpr std::size_t kBytes = rules::kMaxAttributeBytes;
  alignas(8) unsigned char bytes[kBytes];

  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(bytes);
  }
};

}  // namespace backplane::kit
