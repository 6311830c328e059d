// SPDX-License-Identifier: Apache-2.0
// The tables of the optional interfaces that core and the layers call.
#pragma once

#include <backplane/plugin.h>

#include <backplane/rules/tables.hpp>

namespace backplane::core {

// The name of an interface's table, such as "bp.import".
template <class Table>
inline constexpr const char* kInterfaceName = nullptr;
#define BP_LAYER_INTERFACE(owner, NAME) \
  template <>                           \
  inline constexpr const char* kInterfaceName<bp_##owner##_api> = BP_INTERFACE_##NAME;
#include "layers/interfaces.def"
#undef BP_LAYER_INTERFACE

// Returns those slots of an interface that exist in the plugin's ABI version. All slots are null if `given`, the result
// of get_interface, is null.
template <class Table>
Table known_interface(const void* given, uint32_t abi_version) noexcept {
  return given == nullptr ? Table{} : rules::known_part(*static_cast<const Table*>(given), abi_version);
}

}  // namespace backplane::core
