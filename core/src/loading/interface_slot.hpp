// SPDX-License-Identifier: Apache-2.0
// The optional interfaces of an open device.
#pragma once

#include "loading/device.hpp"
#include "loading/interfaces.hpp"

namespace backplane::core {

// Returns the slots of an interface of the device. All slots are null if the device lacks the
// interface.
template <class Table>
Table interface_of(const Device& device) {
  const Plugin& plugin = *device.plugin;
  return known_interface<Table>(plugin.get_interface(device.handle, kInterfaceName<Table>, 1),
                                plugin.instance->abi_version);
}

}  // namespace backplane::core
