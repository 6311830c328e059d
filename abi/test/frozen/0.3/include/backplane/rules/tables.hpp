// SPDX-License-Identifier: Apache-2.0
// The size of each table at each ABI version, derived from the Since of its slots. A table of an
// older version ends at that version's size, regardless of struct_size, because private fields of a
// derived struct may follow the slots.
#pragma once

#include <backplane/plugin.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace backplane::rules {

// The size of a table in bytes from version `since` on.
struct TableSize {
  uint32_t since;
  uint32_t bytes;
};

// The sizes of a table, one row for each version that appended slots, the oldest first.
template <class Table>
struct TableGrowth;
template <>
struct TableGrowth<bp_host> {
  static constexpr TableSize sizes[] = {{BP_VERSION(0, 2), 32}};
};
template <>
struct TableGrowth<bp_plugin> {
  static constexpr TableSize sizes[] = {{BP_VERSION(0, 2), 80}};
};
template <>
struct TableGrowth<bp_device_api> {
  static constexpr TableSize sizes[] = {{BP_VERSION(0, 2), 184}};
};
template <>
struct TableGrowth<bp_import_api> {
  static constexpr TableSize sizes[] = {{BP_VERSION(0, 2), 16}};
};
template <>
struct TableGrowth<bp_graph_api> {
  static constexpr TableSize sizes[] = {{BP_VERSION(0, 3), 40}};
};
template <>
struct TableGrowth<bp_native_api> {
  static constexpr TableSize sizes[] = {{BP_VERSION(0, 3), 56}};
};
template <>
struct TableGrowth<bp_peer_api> {
  static constexpr TableSize sizes[] = {{BP_VERSION(0, 3), 48}};
};
template <>
struct TableGrowth<bp_external_api> {
  static constexpr TableSize sizes[] = {{BP_VERSION(0, 3), 88}};
};
template <>
struct TableGrowth<bp_pack_api> {
  static constexpr TableSize sizes[] = {{BP_VERSION(0, 3), 32}};
};

// Returns the size in bytes of a table that was built for `version`, or 0 if the table did not
// exist then.
constexpr uint32_t bytes_at(std::span<const TableSize> sizes, uint32_t version) {
  uint32_t bytes = 0;
  for (const TableSize& size : sizes) {
    if (size.since <= version) bytes = size.bytes;
  }
  return bytes;
}

template <class Table>
constexpr uint32_t table_bytes(uint32_t version) {
  static_assert(bytes_at(TableGrowth<Table>::sizes, BP_ABI_VERSION) == sizeof(Table),
                "the table grew: add a row with the slot's Since to TableGrowth");
  return bytes_at(TableGrowth<Table>::sizes, version);
}

// Returns a copy of a table that was built for `version`. Slots that `version` does not have, and
// slots beyond the table's struct_size, are null.
template <class Table>
Table known_part(const Table& table, uint32_t version) noexcept {
  Table copy{};
  const size_t bytes = std::min<size_t>(table.struct_size, table_bytes<Table>(version));
  std::memcpy(static_cast<void*>(&copy), &table, bytes);
  copy.struct_size = sizeof(Table);
  return copy;
}

}  // namespace backplane::rules
