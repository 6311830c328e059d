// SPDX-License-Identifier: Apache-2.0
// The table of a plugin's operators, indexed by operator id and dtypes. `Operator` is the plugin's
// type for an entry.
#pragma once

#include <algorithm>
#include <backplane/kit/check.hpp>
#include <unordered_map>

namespace backplane::kit {

// The type Operator must have a field `mixed`, a mask of rules::Mixed. The mask contains the
// differences from the operator's plain form (rules/mixed.hpp) that the entry supports.
template <class Operator>
class Operators {
 public:
  // Adds an operator for KernelDtypes::first = `dtype` and any KernelDtypes::second.
  void add(uint32_t op, uint32_t dtype, Operator entry) {
    table_.insert_or_assign(key(op, dtype, kAny), std::move(entry));
  }
  // Adds an operator for KernelDtypes::first = `dtype` and KernelDtypes::second = `second`.
  void add(uint32_t op, uint32_t dtype, uint32_t second, Operator entry) {
    table_.insert_or_assign(key(op, dtype, second), std::move(entry));
  }

  // Returns the entry for these dtypes. Returns null if there is none, or if the entry does not
  // support all differences in `mixed` (CheckedDesc::mixed).
  const Operator* find(uint32_t op, KernelDtypes dtypes, uint32_t mixed = 0) const {
    auto found = table_.find(key(op, dtypes.first, dtypes.second));
    if (found == table_.end()) found = table_.find(key(op, dtypes.first, kAny));
    return found == table_.end() || (mixed & ~found->second.mixed) != 0 ? nullptr : &found->second;
  }
  // Returns whether `test` is true of any entry.
  template <class Test>
  bool any(const Test& test) const {
    return std::any_of(table_.begin(), table_.end(), [&](const auto& entry) { return test(entry.second); });
  }
  // Returns whether the table has an entry for these dtypes, regardless of the entry's `mixed`.
  bool knows(uint32_t op, KernelDtypes dtypes) const {
    return table_.contains(key(op, dtypes.first, dtypes.second)) || table_.contains(key(op, dtypes.first, kAny));
  }

 private:
  static constexpr uint32_t kAny = 0;
  static uint64_t key(uint32_t op, uint32_t dtype, uint32_t second) {
    return uint64_t{op} << 32 | uint64_t{dtype} << 16 | second;
  }

  std::unordered_map<uint64_t, Operator> table_;
};

template <class Operator>
Status no_kernel(const Operators<Operator>& operators, const CheckedDesc& checked) {
  const auto [first, second] = checked.dtypes;
  std::string what = text(checked.op->name, " on ", dtype_name(first));
  if (second != first) what += text(" with ", dtype_name(second));
  if (checked.mixed != 0 && operators.knows(checked.desc.op, checked.dtypes)) {
    what += text(" and ", rules::mixed_text(checked.mixed));
  }
  return unsupported(what, " is not implemented by this plugin; cast, or choose another device");
}

}  // namespace backplane::kit
