// SPDX-License-Identifier: Apache-2.0
// Defects in the binary interface: struct sizes, versions, tables, names, indices.
#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

// ---- Input structs

bp_status reads_past_desc(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  if (desc != nullptr) (void)*(reinterpret_cast<const volatile unsigned char*>(desc) + desc->struct_size);
  return kHonest.buffer_create(device, desc, out, error);
}
bp_status larger_desc_rejected(bp_device* device, const bp_stream_desc* desc, bp_stream** out, bp_error* error) {
  if (desc != nullptr && desc->struct_size > sizeof(*desc)) {
    if (out != nullptr) *out = nullptr;
    return report(error, BP_INVALID_ARGUMENT, "mutant: bp_stream_desc is larger than this plugin's");
  }
  return kHonest.stream_create(device, desc, out, error);
}
bp_status short_desc_accepted(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  if (desc == nullptr || desc->struct_size >= sizeof(*desc)) return kHonest.buffer_create(device, desc, out, error);
  bp_buffer_desc known{};
  std::memcpy(&known, desc, desc->struct_size);
  known.struct_size = sizeof(known);
  known.bytes = std::max<uint64_t>(known.bytes, 1);
  return kHonest.buffer_create(device, &known, out, error);
}
bp_status op_tail_accepted(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                           bp_error* error) {
  if (desc == nullptr || desc->struct_size <= sizeof(*desc)) return kHonest.plan_create(device, desc, out, info, error);
  bp_op_desc known = *desc;
  known.struct_size = sizeof(known);
  return kHonest.plan_create(device, &known, out, info, error);
}
bp_status desc_tail_accepted(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  if (desc == nullptr || desc->struct_size <= sizeof(*desc)) return kHonest.buffer_create(device, desc, out, error);
  bp_buffer_desc known = *desc;
  known.struct_size = sizeof(known);
  return kHonest.buffer_create(device, &known, out, error);
}
// Calls plan_create with a copy of the attributes that `change(Attributes&, op)` has modified.
// Attributes that are larger than both `most` and the current struct are passed unmodified.
template <class Change>
bp_status with_attributes(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error,
                          const Change& change, uint32_t most = 0) {
  const OpInfo* op = desc == nullptr ? nullptr : find_op(desc->op);
  if (op == nullptr || desc->attributes == nullptr || op->attributes->bytes == 0) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  Attributes known{};
  const uint32_t given = *static_cast<const uint32_t*>(desc->attributes);
  if (given > std::max(most, op->attributes->bytes)) return kHonest.plan_create(device, desc, out, info, error);
  std::memcpy(known.bytes, desc->attributes, std::min(given, op->attributes->bytes));
  change(known, *op);
  bp_op_desc changed = *desc;
  changed.attributes = known.bytes;
  return kHonest.plan_create(device, &changed, out, info, error);
}
bp_status attribute_tail_accepted(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                                  bp_error* error) {
  const auto cut = [](Attributes& known, const OpInfo& op) {
    auto& size = *reinterpret_cast<uint32_t*>(known.bytes);
    size = std::min(size, op.attributes->bytes);
  };
  return with_attributes(device, desc, out, info, error, cut, BP_STRUCT_LIMIT);
}
uint32_t size_of_attributes(const bp_op_desc* desc) {
  return desc == nullptr || desc->attributes == nullptr ? 0 : *static_cast<const uint32_t*>(desc->attributes);
}
bp_status attribute_zero_tail_refused(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                                      bp_error* error) {
  const OpInfo* op = desc == nullptr ? nullptr : find_op(desc->op);
  if (op == nullptr || op->attributes->bytes == 0 || size_of_attributes(desc) <= op->attributes->bytes ||
      size_of_attributes(desc) > BP_STRUCT_LIMIT) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  if (out != nullptr) *out = nullptr;
  return report(error, BP_UNSUPPORTED, "mutant: the attributes are longer than this plugin's", desc->op);
}
// Reads the last byte of the current attribute struct, even if the caller's struct is shorter.
bp_status attributes_read_past(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                               bp_error* error) {
  const OpInfo* op = desc == nullptr ? nullptr : find_op(desc->op);
  const uint32_t size = size_of_attributes(desc);
  if (op != nullptr && size >= BP_ATTRIBUTES_MIN_SIZE && size % 8 == 0 && size < op->attributes->bytes) {
    (void)*(static_cast<const volatile unsigned char*>(desc->attributes) + op->attributes->bytes - 1);
  }
  return kHonest.plan_create(device, desc, out, info, error);
}
bp_status no_attributes_refused(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                                bp_error* error) {
  const OpInfo* op = desc == nullptr ? nullptr : find_op(desc->op);
  if (op == nullptr || op->attributes->bytes != 0 || desc->attributes == nullptr) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  if (out != nullptr) *out = nullptr;
  return report(error, BP_INVALID_ARGUMENT, "mutant: the operator has no attributes", desc->op);
}
bp_status no_attributes_unread(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                               bp_error* error) {
  const OpInfo* op = desc == nullptr ? nullptr : find_op(desc->op);
  if (op == nullptr || op->attributes->bytes != 0 || desc->struct_size != sizeof(*desc)) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  bp_op_desc changed = *desc;
  changed.attributes = nullptr;
  return kHonest.plan_create(device, &changed, out, info, error);
}
bp_status late_operand_invalid(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                               bp_error* error) {
  const OpInfo* op = desc == nullptr ? nullptr : find_op(desc->op);
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  const bool late = op != nullptr && desc->struct_size >= BP_OP_DESC_MIN_SIZE &&
                    (desc->input_count > op->inputs_max || desc->output_count > op->outputs_max);
  if (status != BP_UNSUPPORTED || !late) return status;
  return report(error, BP_INVALID_ARGUMENT, "mutant: too many operands", desc->op);
}
bp_status absent_operand_counted(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                                 bp_error* error) {
  const OpInfo* op = desc == nullptr ? nullptr : find_op(desc->op);
  if (op == nullptr || desc->struct_size < BP_OP_DESC_MIN_SIZE || desc->input_count <= op->inputs_max) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  if (out != nullptr) *out = nullptr;
  return report(error, BP_UNSUPPORTED, "mutant: more inputs than there are", desc->op);
}
bp_status hint_refused(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  if (desc == nullptr || desc->struct_size < BP_OP_DESC_MIN_SIZE || desc->hints == 0) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  if (out != nullptr) *out = nullptr;
  return report(error, BP_UNSUPPORTED, "mutant: a hint is unknown", desc->op);
}
bp_status attribute_range_unchecked(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                                    bp_error* error) {
  return with_attributes(device, desc, out, info, error, [](Attributes& known, const OpInfo& op) {
    auto& compare = *reinterpret_cast<bp_compare_attributes*>(known.bytes);
    if (op.id == BP_OP_COMPARE) compare.predicate %= 6;
  });
}
bp_status reserved_unchecked(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                             bp_error* error) {
  return with_attributes(device, desc, out, info, error, [](Attributes& known, const OpInfo& op) {
    if (op.id == BP_OP_SORT) reinterpret_cast<bp_sort_attributes*>(known.bytes)->reserved = 0;
    if (op.id == BP_OP_SCATTER) reinterpret_cast<bp_scatter_attributes*>(known.bytes)->reserved = 0;
  });
}
bp_status op_flag_accepted(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                           bp_error* error) {
  if (desc == nullptr || desc->struct_size < sizeof(*desc) || desc->struct_size > BP_STRUCT_LIMIT) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  bp_op_desc known;
  std::vector<std::byte> whole(desc->struct_size);
  std::memcpy(whole.data(), desc, whole.size());
  std::memcpy(&known, desc, sizeof(known));
  known.flags &= BP_OP_FLAGS_ALL;
  std::memcpy(whole.data(), &known, sizeof(known));
  return kHonest.plan_create(device, reinterpret_cast<const bp_op_desc*>(whole.data()), out, info, error);
}
bp_status view_flag_accepted(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                             bp_error* error) {
  if (desc == nullptr || desc->inputs == nullptr || desc->struct_size != sizeof(*desc)) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  std::vector<bp_tensor_desc> inputs(desc->inputs, desc->inputs + desc->input_count);
  for (bp_tensor_desc& view : inputs) view.flags &= BP_DESC_IMMEDIATE;
  bp_op_desc changed = *desc;
  changed.inputs = inputs.data();
  return kHonest.plan_create(device, &changed, out, info, error);
}
bp_status event_flag_accepted(bp_device* device, uint32_t flags, bp_event** out, bp_error* error) {
  return kHonest.event_create(device, flags & BP_EVENT_TIMING, out, error);
}
bp_status unknown_op_accepted(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                              bp_error* error) {
  if (desc == nullptr || find_op(desc->op) != nullptr || desc->input_count == 0) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  bp_op_desc copy = *desc;
  copy.op = BP_OP_COPY;
  copy.attributes = nullptr;
  copy.input_count = copy.output_count = 1;
  copy.scalar_count = 0;
  return kHonest.plan_create(device, &copy, out, info, error);
}

// ---- Output structs

bp_status info_tail_kept(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  if (out == nullptr || out->struct_size <= sizeof(*out)) return honest_plugin().device_info(plugin, index, out, error);
  const uint32_t size = out->struct_size;
  out->struct_size = sizeof(*out);
  const bp_status status = honest_plugin().device_info(plugin, index, out, error);
  out->struct_size = size;
  return status;
}
bp_status output_overrun(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  const bp_status status = kHonest.memory_info(device, kind, out, error);
  if (status == BP_OK) std::memset(reinterpret_cast<unsigned char*>(out) + out->struct_size, 0, 8);
  return status;
}
bp_status output_size_overwritten(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  const bp_status status = kHonest.memory_info(device, kind, out, error);
  if (status == BP_OK) out->struct_size = sizeof(*out);
  return status;
}
bp_status plan_info_overrun(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                            bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status == BP_OK) std::memset(reinterpret_cast<unsigned char*>(info) + info->struct_size, 0, 8);
  return status;
}
bp_status short_output_accepted(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  if (out == nullptr || out->struct_size >= BP_MEMORY_INFO_MIN_SIZE)
    return kHonest.memory_info(device, kind, out, error);
  bp_memory_info known{sizeof(known), 0, 0, 0};
  const bp_status status = kHonest.memory_info(device, kind, &known, error);
  if (out->struct_size > 4)
    std::memcpy(reinterpret_cast<unsigned char*>(out) + 4, reinterpret_cast<const unsigned char*>(&known) + 4,
                out->struct_size - 4);
  return status;
}

// ---- Query and tables

bp_status any_host_accepted(const bp_host* host, const bp_plugin** out, bp_error* error) {
  if (host == nullptr || host->struct_size < sizeof(*host)) return query_honest(host, out, error);
  auto* newer = new bp_host(*host);  // leaked, because the instance keeps the pointer
  newer->abi_version = std::max(newer->abi_version, uint32_t{BP_ABI_VERSION});
  return query_honest(newer, out, error);
}
bp_status any_major_accepted(const bp_host* host, const bp_plugin** out, bp_error* error) {
  const bool other = host != nullptr && BP_HAS_FIELD(host->struct_size, bp_host, abi_version) &&
                     host->abi_version >> 16 != BP_ABI_VERSION_MAJOR;
  static const bp_host own{sizeof(own), BP_ABI_VERSION, nullptr, [](void*, int32_t, const char*) {},
                           [](void*, const char*, uint32_t) -> const void* { return nullptr; }};
  return query_honest(other ? &own : host, out, error);
}
bp_status newer_host_refused(const bp_host* host, const bp_plugin** out, bp_error* error) {
  if (host != nullptr && out != nullptr && host->struct_size >= sizeof(*host) && host->abi_version > BP_ABI_VERSION) {
    *out = nullptr;
    return report(error, BP_ABI_MISMATCH, "mutant: the host is not of exactly this version");
  }
  return query_honest(host, out, error);
}
bp_status larger_host_refused(const bp_host* host, const bp_plugin** out, bp_error* error) {
  if (host != nullptr && out != nullptr && host->struct_size > sizeof(*host)) {
    *out = nullptr;
    return report(error, BP_INVALID_ARGUMENT, "mutant: bp_host is larger than this plugin's");
  }
  return query_honest(host, out, error);
}
bp_status one_instance(const bp_host* host, const bp_plugin** out, bp_error* error) {
  static const bp_plugin* first = nullptr;
  if (first != nullptr && out != nullptr) return *out = first, BP_OK;
  const bp_status status = query_honest(host, out, error);
  if (status == BP_OK) first = *out;
  return status;
}
const void* any_interface(const bp_plugin* plugin, bp_device* device, const char*, uint32_t version) {
  return honest_plugin().get_interface(plugin, device, BP_INTERFACE_IMPORT, version);
}
const void* any_interface_version(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t) {
  return honest_plugin().get_interface(plugin, device, name, 1);
}
bp_status index_accepted(const bp_plugin* plugin, uint32_t, const bp_device_desc* desc, bp_device** out,
                         bp_error* error) {
  return honest_plugin().device_open(plugin, 0, desc, out, error);
}
bp_status info_index_accepted(const bp_plugin* plugin, uint32_t, bp_device_info* out, bp_error* error) {
  return honest_plugin().device_info(plugin, 0, out, error);
}
bp_status option_accepted(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                          bp_error* error) {
  if (desc == nullptr || desc->struct_size < sizeof(*desc))
    return honest_plugin().device_open(plugin, index, desc, out, error);
  bp_device_desc plain{sizeof(plain), desc->flags, nullptr};
  return honest_plugin().device_open(plugin, index, &plain, out, error);
}

}  // namespace

const Mutation defect::desc_read_past = on_slot<&bp_device_api::buffer_create, reads_past_desc>();
const Mutation defect::larger_desc_rejected = on_slot<&bp_device_api::stream_create, mutants::larger_desc_rejected>();
const Mutation defect::short_desc_accepted = on_slot<&bp_device_api::buffer_create, mutants::short_desc_accepted>();
const Mutation defect::op_tail_accepted = on_slot<&bp_device_api::plan_create, mutants::op_tail_accepted>();
const Mutation defect::desc_tail_accepted = on_slot<&bp_device_api::buffer_create, mutants::desc_tail_accepted>();
const Mutation defect::attribute_zero_tail_refused =
    on_slot<&bp_device_api::plan_create, mutants::attribute_zero_tail_refused>();
const Mutation defect::attributes_read_past = on_slot<&bp_device_api::plan_create, mutants::attributes_read_past>();
const Mutation defect::no_attributes_refused = on_slot<&bp_device_api::plan_create, mutants::no_attributes_refused>();
const Mutation defect::no_attributes_unread = on_slot<&bp_device_api::plan_create, mutants::no_attributes_unread>();
const Mutation defect::late_operand_invalid = on_slot<&bp_device_api::plan_create, mutants::late_operand_invalid>();
const Mutation defect::absent_operand_counted = on_slot<&bp_device_api::plan_create, mutants::absent_operand_counted>();
const Mutation defect::hint_refused = on_slot<&bp_device_api::plan_create, mutants::hint_refused>();
const Mutation defect::attribute_tail_accepted =
    on_slot<&bp_device_api::plan_create, mutants::attribute_tail_accepted>();
const Mutation defect::attribute_range_unchecked =
    on_slot<&bp_device_api::plan_create, mutants::attribute_range_unchecked>();
const Mutation defect::reserved_unchecked = on_slot<&bp_device_api::plan_create, mutants::reserved_unchecked>();
const Mutation defect::op_flag_accepted = on_slot<&bp_device_api::plan_create, mutants::op_flag_accepted>();
const Mutation defect::view_flag_accepted = on_slot<&bp_device_api::plan_create, mutants::view_flag_accepted>();
const Mutation defect::event_flag_accepted = on_slot<&bp_device_api::event_create, mutants::event_flag_accepted>();
const Mutation defect::unknown_op_accepted = on_slot<&bp_device_api::plan_create, mutants::unknown_op_accepted>();
const Mutation defect::output_overrun = on_slot<&bp_device_api::memory_info, mutants::output_overrun>();
const Mutation defect::output_size_overwritten =
    on_slot<&bp_device_api::memory_info, mutants::output_size_overwritten>();
const Mutation defect::plan_info_overrun = on_slot<&bp_device_api::plan_create, mutants::plan_info_overrun>();
const Mutation defect::short_output_accepted = on_slot<&bp_device_api::memory_info, mutants::short_output_accepted>();
const Mutation defect::required_slot_null = on_slot<&bp_device_api::stream_wait_event, nullptr>();
const Mutation defect::table_too_small{.plugin = [](bp_plugin& plugin) { plugin.struct_size = 24; }};
const Mutation defect::private_fields_counted{.plugin = [](bp_plugin& plugin) { plugin.struct_size += 16; }};
const Mutation defect::private_slots_counted{.api = [](bp_device_api& api) { api.struct_size += 8; }};
const Mutation defect::version_before_the_break{
    .plugin = [](bp_plugin& plugin) { plugin.abi_version = plugin.abi_version_min = BP_ABI_VERSION_OLDEST - 1; }};
const Mutation defect::version_range_empty{
    .plugin = [](bp_plugin& plugin) { plugin.abi_version_min = plugin.abi_version + 1; }};
const Mutation defect::version_of_another_major{.plugin = [](bp_plugin& plugin) { plugin.abi_version = 9u << 16; }};
const Mutation defect::name_illegal{.plugin = [](bp_plugin& plugin) { plugin.name = "Mutant!"; }};
const Mutation defect::info_tail_kept{
    .plugin = [](bp_plugin& plugin) { plugin.device_info = mutants::info_tail_kept; }};
const Mutation defect::any_host_accepted{.query = mutants::any_host_accepted};
const Mutation defect::any_major_accepted{.query = mutants::any_major_accepted};
const Mutation defect::newer_host_refused{.query = mutants::newer_host_refused};
const Mutation defect::larger_host_refused{.query = mutants::larger_host_refused};
const Mutation defect::one_instance{.query = mutants::one_instance};
const Mutation defect::any_interface{
    .plugin = [](bp_plugin& plugin) { plugin.get_interface = mutants::any_interface; }};
const Mutation defect::any_interface_version{
    .plugin = [](bp_plugin& plugin) { plugin.get_interface = mutants::any_interface_version; }};
const Mutation defect::index_accepted{
    .plugin = [](bp_plugin& plugin) { plugin.device_open = mutants::index_accepted; }};
const Mutation defect::info_index_accepted{
    .plugin = [](bp_plugin& plugin) { plugin.device_info = mutants::info_index_accepted; }};
const Mutation defect::option_accepted{
    .plugin = [](bp_plugin& plugin) { plugin.device_open = mutants::option_accepted; }};

}  // namespace backplane::conformance::mutants
