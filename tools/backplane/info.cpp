// SPDX-License-Identifier: Apache-2.0
// Implements `backplane info DEVICE`, which shows a device's properties, capabilities and memory, the
// messages of its plugin, and the dtypes of each operator.
#include <algorithm>

#include "devices.hpp"
#include "subcommands.hpp"
#include "support.hpp"
#include "table.hpp"

namespace tool {
namespace {

struct Memory {
  uint32_t kind;
  bp_memory_info info;
};

struct Facts {
  std::string name;
  bp_device_info device;
  std::vector<Memory> memory;
  std::vector<OpSupport> operators;
  std::vector<std::string> messages;  // lines that the plugin logged
};

Device open_named(const Registry& registry, const std::string& name) {
  try {
    return registry.open(name.c_str());
  } catch (const backplane::Error& failure) {
    throw Failure(kExitFinding, bph_status_name(failure.status()),
                  fmt::format("device '{}' cannot be opened: {}; available devices: {}", name, failure.what(),
                              take_inventory(registry).device_names()));
  }
}

// Returns the logged lines that begin with the name of the device's plugin, without repetitions and without this
// prefix.
std::vector<std::string> messages_of(const std::string& device, Messages& messages) {
  const std::string prefix = device.substr(0, device.find(':')) + ": ";
  std::vector<std::string> out;
  const std::lock_guard lock(messages.mutex);
  for (const std::string& line : messages.lines) {
    std::string text = line;
    while (text.starts_with(prefix)) text.erase(0, prefix.size());
    if (text.size() == line.size()) continue;
    if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(std::move(text));
  }
  return out;
}

Facts gather(const Device& device, Messages& messages) {
  Facts facts{device.name(), device.info(), {}, {}, {}};
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    if ((facts.device.memory_kinds >> kind & 1) != 0) facts.memory.push_back({kind, device.memory_info(kind)});
  }
  facts.operators = query_support(device.get());
  facts.messages = messages_of(facts.name, messages);
  return facts;
}

// Returns every dtype that at least one operator accepts, floats first.
std::vector<uint32_t> dtype_columns() {
  std::vector<uint32_t> columns = {BP_F32, BP_F16, BP_BF16, BP_F64};
  for (const uint32_t dtype : dtypes_of(BP_SET_ALL & ~BP_SET_FLOATS)) columns.push_back(dtype);
  return columns;
}

Table dtype_table(const char* first, const char* second) {
  std::vector<Cell> header = {first, second};
  for (const uint32_t dtype : dtype_columns()) header.push_back(Cell(bph_dtype_name(dtype), Style::plain, true));
  return Table(std::move(header));
}

Cell count_cell(size_t have, size_t of) {
  if (of == 0) return Cell("", Style::plain, true);
  const Style style = have == of ? Style::good : have == 0 ? Style::faint : Style::warning;
  return Cell(have == 0 ? "-" : fmt::format("{}/{}", have, of), style, true);
}

// Returns a table with one row per group of operators. Each cell shows how many operators of the
// group the device supports for a dtype.
std::string summary_table(const Facts& facts, bool colour) {
  struct Group {
    size_t operators = 0, present = 0;
    std::map<uint32_t, std::pair<size_t, size_t>> dtypes;
  };
  std::vector<std::pair<std::string, Group>> groups;
  for (const OpSupport& op : facts.operators) {
    const std::string name = group_of(op.info);
    auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == name; });
    if (at == groups.end()) at = groups.insert(groups.end(), {name, {}});
    bool any = false;
    for (const auto& [dtype, support] : op.dtypes) {
      auto& [have, of] = at->second.dtypes[dtype];
      ++of;
      if (support.decomposed) continue;
      if (support.supported == support.choices) ++have;
      any |= support.supported > 0;
    }
    ++at->second.operators;
    at->second.present += any ? 1 : 0;
  }
  Table table = dtype_table("GROUP", "OPERATORS");
  for (const auto& [name, group] : groups) {
    std::vector<Cell> row = {name, count_cell(group.present, group.operators)};
    for (const uint32_t dtype : dtype_columns()) {
      const auto at = group.dtypes.find(dtype);
      row.push_back(at == group.dtypes.end() ? count_cell(0, 0) : count_cell(at->second.first, at->second.second));
    }
    table.add(std::move(row));
  }
  return table.text(colour, 2);
}

Cell support_cell(const Support& support) {
  if (support.supported == 0) {
    return support.status == BP_UNSUPPORTED ? Cell("-", Style::faint, true) : Cell("error", Style::bad, true);
  }
  if (support.decomposed) return Cell("parts", Style::faint, true);
  std::string text =
      support.supported == support.choices ? "yes" : fmt::format("{}/{}", support.supported, support.choices);
  if (support.staged > 0) text += "+";
  return Cell(text, support.supported == support.choices ? Style::good : Style::warning, true);
}

std::string full_table(const Facts& facts, bool colour) {
  Table table = dtype_table("OPERATOR", "GROUP");
  for (const OpSupport& op : facts.operators) {
    std::vector<Cell> row = {op.info.name, Cell(group_of(op.info), Style::faint)};
    for (const uint32_t dtype : dtype_columns()) {
      const auto at = op.dtypes.find(dtype);
      row.push_back(at == op.dtypes.end() ? Cell("") : support_cell(at->second));
    }
    table.add(std::move(row));
  }
  return table.text(colour, 2);
}

// Converts a number of bytes to JSON. A driver that does not report the amount of memory returns
// UINT64_MAX, which becomes null.
Json known_bytes(uint64_t bytes) { return bytes == UINT64_MAX ? Json() : Json(bytes); }

std::string memory_text(const bp_memory_info& memory) {
  return fmt::format("{}, {}", memory.total_bytes == UINT64_MAX ? "size unknown" : bytes_text(memory.total_bytes),
                     memory.free_bytes == UINT64_MAX ? "free unknown" : bytes_text(memory.free_bytes) + " free");
}

void print_text(Session& session, const Facts& facts, bool all) {
  const auto heading = [&](const char* text) { session.print("\n{}\n", styled(text, Style::strong, session.colour)); };
  session.print("{}\n", styled(facts.name, Style::strong, session.colour));
  const std::vector<std::string> capabilities = capability_names(facts.device.capabilities);
  Table table({});
  table.add({"description", facts.device.name});
  table.add({"type", device_type_name(facts.device.type)});
  table.add({"driver", facts.device.driver});
  const std::string uuid = uuid_text(facts.device.uuid);
  table.add({"uuid", uuid.empty() ? "none" : uuid});
  table.add({"capabilities", capabilities.empty() ? "none" : fmt::format("{}", fmt::join(capabilities, ", "))});
  table.add({"alignment", fmt::format("{} B", facts.device.alignment)});
  table.add({"largest buffer", bytes_text(facts.device.max_buffer_bytes)});
  for (const Memory& memory : facts.memory) {
    table.add({fmt::format("{} memory", memory_kind_name(memory.kind)), memory_text(memory.info)});
  }
  for (const std::string& message : facts.messages) table.add({"message", printable(message)});
  session.out += table.text(session.colour, 2);
  if (all) {
    heading(
        "Operators x dtype  (yes; n/m: so many of the output dtypes; +: core stages operands; parts: core runs its "
        "primitives; -: absent)");
    session.out += full_table(facts, session.colour);
  } else {
    heading("Operators that the device has, by dtype  (--all: each operator)");
    session.out += summary_table(facts, session.colour);
  }
}

void print_json(Session& session, const Facts& facts) {
  Json document = Session::document("backplane.info");
  document["name"] = facts.name;
  document.update(to_json(facts.device));
  document["memory"] = Json::array();
  for (const Memory& memory : facts.memory) {
    document["memory"].push_back(Json::object({{"kind", memory_kind_name(memory.kind)},
                                               {"total_bytes", known_bytes(memory.info.total_bytes)},
                                               {"free_bytes", known_bytes(memory.info.free_bytes)}}));
  }
  document["messages"] = Json::array();
  for (const std::string& message : facts.messages) document["messages"].push_back(message);
  document["operators"] = Json::array();
  for (const OpSupport& op : facts.operators) {
    Json row;
    row["name"] = op.info.name;
    row["id"] = op.info.op;
    row["kind"] = op.info.kind == BP_KIND_PRIMITIVE ? "primitive" : "composite";
    row["group"] = group_of(op.info);
    row["dtypes"] = Json::object();
    for (const auto& [dtype, support] : op.dtypes) {
      row["dtypes"][bph_dtype_name(dtype)] = Json::object({{"status", bph_status_name(support.status)},
                                                           {"message", support.message},
                                                           {"choices", support.choices},
                                                           {"supported", support.supported},
                                                           {"any_size", support.any_size},
                                                           {"staged_operands", support.staged},
                                                           {"workspace_bytes", support.workspace_bytes},
                                                           {"decomposed", support.decomposed}});
    }
    document["operators"].push_back(row);
  }
  session.print(document);
}

}  // namespace

int info(Session& session, const InfoOptions& options) {
  if (options.operators == !options.device.empty()) {
    fail_usage("info: {}; name a DEVICE, as in 'info reference:0', or give --operators",
               options.operators ? "--operators is the table of no device" : "a DEVICE is missing");
  }
  if (options.operators) return info_operators(session);
  Messages messages;
  const Registry registry = open_registry(session, messages);
  const Device device = open_named(registry, options.device);
  const Facts facts = gather(device, messages);
  if (session.json) {
    print_json(session, facts);
  } else {
    print_text(session, facts, options.all);
  }
  return kExitOk;
}

}  // namespace tool
