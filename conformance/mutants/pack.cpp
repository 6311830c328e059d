// SPDX-License-Identifier: Apache-2.0
// Defects of bp.pack: wrong layouts, packings out of order, and packed operands that a plan must
// refuse.
#include <cstring>

#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr const bp_pack_api& kHonestPack = PackTable<HostDevice>::table;

// Implements get_interface. Returns a table of bp.pack in which kRun replaces the slot kSlot.
template <auto kSlot, auto kRun>
const void* changed_pack(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  static const bp_pack_api table = [] {
    bp_pack_api copy = kHonestPack;
    copy.*kSlot = kRun;
    return copy;
  }();
  const void* honest = honest_plugin().get_interface(plugin, device, name, version);
  return honest != nullptr && std::string_view(name) == BP_INTERFACE_PACK ? &table : honest;
}
template <auto kSlot, auto kRun>
constexpr Mutation on_pack() {
  return {.plugin = [](bp_plugin& plugin) { plugin.get_interface = changed_pack<kSlot, kRun>; }};
}

// ---- Packing kernels

PreparePack honest_prepare(const CheckedDesc& checked) { return honest_spec(checked)->pack; }

// A packing kernel that runs the correct kernel on a copy of the call. kSpoil modifies the views of
// the copy.
using Spoil = void (*)(View& plain, View& packed);
template <Spoil kSpoil>
void spoiled(const Call& call) {
  Call changed;
  changed.views.assign(call.inputs.begin(), call.inputs.end());
  changed.views.push_back(call.out());
  kSpoil(changed.views[0], changed.views[1]);
  changed.op = call.op;
  changed.inputs = {changed.views.data(), 1};
  changed.outputs = {changed.views.data() + 1, 1};
  changed.scratch = call.scratch;
  call.prepared<PreparedPack>().run(changed);
}
template <Kernel kRun>
Status prepare_with(const CheckedDesc& checked, uint32_t input, PreparedPack& prepared) {
  Status status = honest_prepare(checked)(checked, input, prepared);
  if (!status.ok()) return status;
  prepared.state = std::make_shared<const PreparedPack>(prepared);
  prepared.run = kRun;
  return status;
}
template <PreparePack kPrepare>
constexpr Mutation on_prepare() {
  return {.kernels = [](Kernels& kernels) { replace_pack(kernels, BP_OP_MATMUL, kPrepare); }};
}
template <Kernel kRun>
constexpr Mutation on_packing() {
  return on_prepare<prepare_with<kRun>>();
}

uint64_t bytes_of(const View& packed) { return static_cast<uint64_t>(packed.strides[0]); }

void first_half(const Call& call) {
  const View& packed = call.out();
  std::vector<std::byte> all(bytes_of(packed));
  View aside = packed;
  aside.data = all.data();
  Call whole;
  whole.views = {call.in(0), aside};
  whole.inputs = {whole.views.data(), 1};
  whole.outputs = {whole.views.data() + 1, 1};
  call.prepared<PreparedPack>().run(whole);
  std::memcpy(packed.data, all.data(), all.size() / 2);
}
void past_the_end(const Call& call) {
  call.prepared<PreparedPack>().run(call);
  std::memset(call.out().data + bytes_of(call.out()), 0, 4);
}

void ignore_strides(View& plain, View&) {
  int64_t stride = 1;
  for (uint32_t d = plain.rank; d > 0; --d) {
    plain.strides[d - 1] = stride;
    stride *= plain.shape[d - 1];
  }
}
void keep_one_matrix(View& plain, View&) {
  for (uint32_t d = 0; d + 2 < plain.rank; ++d) plain.shape[d] = plain.strides[d] == 0 ? plain.shape[d] : 1;
}

// ---- Layouts

// Accepts a packed view if its layout number equals the plan's layout number in the bits of kMask.
// If kAnySize is true, the size of the packed operand may also differ.
template <uint64_t kMask, bool kAnySize>
bp_status accepts_layouts(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                          bp_error* error) {
  bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status != BP_UNSUPPORTED || desc == nullptr || desc->op != BP_OP_MATMUL || desc->input_count != 2) return status;
  if ((desc->inputs[1].flags & BP_DESC_PACKED) == 0) return status;
  bp_op_desc changed = *desc;
  bp_tensor_desc views[2] = {desc->inputs[0], desc->inputs[1]};
  bp_tensor_desc plain = views[1];
  plain.flags = 0;
  rules::make_dense(plain);
  views[1] = plain;
  changed.inputs = views;
  bp_pack_info own{};
  own.struct_size = sizeof(own);
  if (kHonestPack.pack_create(device, &changed, 1, nullptr, &own, nullptr) != BP_OK) return status;
  const auto layout = static_cast<uint64_t>(desc->inputs[1].strides[1]);
  const auto bytes = static_cast<uint64_t>(desc->inputs[1].strides[0]);
  if (((layout ^ own.layout) & kMask) != 0 || (!kAnySize && bytes != own.bytes)) return status;
  views[1] = desc->inputs[1];
  views[1].strides[0] = static_cast<int64_t>(own.bytes);
  views[1].strides[1] = static_cast<int64_t>(own.layout);
  return kHonest.plan_create(device, &changed, out, info, error);
}

// Ignores the flag of packed views, so that a kernel reads packed operands as dense.
bp_status reads_as_dense(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                         bp_error* error) {
  if (desc == nullptr || desc->op == BP_OP_MATMUL || desc->inputs == nullptr || desc->input_count > BP_MAX_OPERANDS) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  std::vector<bp_tensor_desc> views(desc->inputs, desc->inputs + desc->input_count);
  for (bp_tensor_desc& view : views) {
    if ((view.flags & BP_DESC_PACKED) == 0) continue;
    view.flags = 0;
    rules::make_dense(view);
  }
  bp_op_desc changed = *desc;
  changed.inputs = views.data();
  return kHonest.plan_create(device, &changed, out, info, error);
}

// ---- pack_create

bp_status query_too_small(bp_device* device, const bp_op_desc* desc, uint32_t input, bp_pack** out, bp_pack_info* info,
                          bp_error* error) {
  const bp_status status = kHonestPack.pack_create(device, desc, input, out, info, error);
  if (status == BP_OK && out == nullptr) info->bytes -= info->bytes / 4;
  return status;
}
bp_status counted_layout(bp_device* device, const bp_op_desc* desc, uint32_t input, bp_pack** out, bp_pack_info* info,
                         bp_error* error) {
  static std::atomic<uint64_t> calls{0};
  const bp_status status = kHonestPack.pack_create(device, desc, input, out, info, error);
  if (status == BP_OK) info->layout += calls.fetch_add(1);
  return status;
}
// Accepts an illegal input of matmul. If the reference plugin refuses the call, repeats the call with views that
// kChange has made legal.
template <void (*kChange)(bp_tensor_desc& input, bp_tensor_desc& output)>
bp_status accepts_input(bp_device* device, const bp_op_desc* desc, uint32_t input, bp_pack** out, bp_pack_info* info,
                        bp_error* error) {
  const bp_status status = kHonestPack.pack_create(device, desc, input, out, info, error);
  if (status != BP_INVALID_ARGUMENT || desc == nullptr || info == nullptr || desc->op != BP_OP_MATMUL || input != 1) {
    return status;
  }
  bp_tensor_desc views[2] = {desc->inputs[0], desc->inputs[1]}, output = desc->outputs[0];
  kChange(views[1], output);
  bp_op_desc changed = *desc;
  changed.inputs = views;
  changed.outputs = &output;
  return kHonestPack.pack_create(device, &changed, input, out, info, error);
}
bp_status first_for_any_input(bp_device* device, const bp_op_desc* desc, uint32_t input, bp_pack** out,
                              bp_pack_info* info, bp_error* error) {
  return kHonestPack.pack_create(device, desc, desc != nullptr && input >= desc->input_count ? 1 : input, out, info,
                                 error);
}

// ---- pack_execute

struct PackArguments {
  bp_device* device;
  bp_stream* stream;
  bp_pack* pack;
  bp_buffer* src;
  uint64_t from;
  bp_buffer* dst;
  uint64_t to;
  bool legal() const {
    return device != nullptr && stream != nullptr && pack != nullptr && src != nullptr && dst != nullptr;
  }
  bp_status honest(bp_error* error) const {
    return kHonestPack.pack_execute(device, stream, pack, src, from, dst, to, error);
  }
};
// Implements pack_execute with kChange, which returns the slot's status.
template <bp_status (*kChange)(PackArguments&, bp_error*)>
bp_status changed_packing(bp_device* device, bp_stream* stream, bp_pack* pack, bp_buffer* src, uint64_t from,
                          bp_buffer* dst, uint64_t to, bp_error* error) {
  PackArguments given{device, stream, pack, src, from, dst, to};
  return given.legal() ? kChange(given, error) : given.honest(error);
}
template <bp_status (*kChange)(PackArguments&, bp_error*)>
constexpr Mutation on_pack_execute() {
  return on_pack<&bp_pack_api::pack_execute, changed_packing<kChange>>();
}

// The address of the operand that the latest packing wrote.
std::atomic<std::byte*> latest{nullptr};
void destroys_operand(bp_device* device, bp_pack* pack) {
  if (std::byte* target = latest.exchange(nullptr); target != nullptr) std::memset(target, 0, 64);
  kHonestPack.pack_destroy(device, pack);
}
bp_status remembers_operand(PackArguments& given, bp_error* error) {
  const bp_status status = given.honest(error);
  if (status != BP_OK) return status;
  kHonest.stream_wait(given.device, given.stream, BP_WAIT_FOREVER, nullptr);
  latest = buffer_of(given.dst).span.address + given.to;
  return status;
}
const void* ends_with_pack(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  static const bp_pack_api table = [] {
    bp_pack_api copy = kHonestPack;
    copy.pack_destroy = destroys_operand;
    copy.pack_execute = changed_packing<remembers_operand>;
    return copy;
  }();
  const void* honest = honest_plugin().get_interface(plugin, device, name, version);
  return honest != nullptr && std::string_view(name) == BP_INTERFACE_PACK ? &table : honest;
}

void leaks_pack(bp_device*, bp_pack*) {}

// ---- Executions

// Uses the first packed operand of the process in every later execution, as if the plan had stored this operand.
void with_first_operand(const Call& call) {
  static std::atomic<std::byte*> first{nullptr};
  Call changed = call;
  changed.inputs = {changed.views.data(), call.inputs.size()};
  changed.outputs = {changed.views.data() + call.inputs.size(), call.outputs.size()};
  if (changed.views[1].is_packed) {
    std::byte* none = nullptr;
    if (!first.compare_exchange_strong(none, changed.views[1].data)) changed.views[1].data = none;
  }
  honest_kernel(call)(changed);
}

}  // namespace

const Mutation defect::pack_half = on_packing<first_half>();
const Mutation defect::pack_as_dense = on_packing<spoiled<ignore_strides>>();
const Mutation defect::pack_one_matrix = on_packing<spoiled<keep_one_matrix>>();
const Mutation defect::pack_past_the_end = on_packing<past_the_end>();
const Mutation defect::pack_any_layout = on_slot<&bp_device_api::plan_create, accepts_layouts<0, false>>();
const Mutation defect::pack_short_layout = on_slot<&bp_device_api::plan_create, accepts_layouts<UINT32_MAX, false>>();
const Mutation defect::pack_any_size = on_slot<&bp_device_api::plan_create, accepts_layouts<UINT64_MAX, true>>();
const Mutation defect::pack_flag_ignored = on_slot<&bp_device_api::plan_create, reads_as_dense>();
const Mutation defect::pack_query_too_small = on_pack<&bp_pack_api::pack_create, query_too_small>();
const Mutation defect::pack_layout_counted = on_pack<&bp_pack_api::pack_create, counted_layout>();
const Mutation defect::pack_of_output =
    on_pack<&bp_pack_api::pack_create,
            accepts_input<[](bp_tensor_desc&, bp_tensor_desc& output) { output.alias = 0; }>>();
const Mutation defect::pack_of_immediate =
    on_pack<&bp_pack_api::pack_create, accepts_input<[](bp_tensor_desc& input, bp_tensor_desc&) {
      if ((input.flags & BP_DESC_IMMEDIATE) == 0) return;
      input.flags = 0;
      rules::make_dense(input);
    }>>();
const Mutation defect::pack_of_packed =
    on_pack<&bp_pack_api::pack_create, accepts_input<[](bp_tensor_desc& input, bp_tensor_desc&) {
      if ((input.flags & BP_DESC_PACKED) == 0) return;
      input.flags = 0;
      rules::make_dense(input);
    }>>();
const Mutation defect::pack_of_any_input = on_pack<&bp_pack_api::pack_create, first_for_any_input>();
const Mutation defect::pack_at_once = on_pack_execute<[](PackArguments& given, bp_error* error) {
  bp_stream* other = nullptr;
  const bp_stream_desc desc{sizeof(desc), 0};
  if (stream_of(given.stream).capturing() || !unlucky() ||
      kHonest.stream_create(given.device, &desc, &other, error) != BP_OK) {
    return given.honest(error);
  }
  given.stream = other;
  const bp_status status = given.honest(error);
  if (status == BP_OK) kHonest.stream_wait(given.device, other, BP_WAIT_FOREVER, nullptr);
  kHonest.stream_destroy(given.device, other);
  return status;
}>();
const Mutation defect::pack_waits = on_pack_execute<[](PackArguments& given, bp_error* error) {
  const bp_status status = given.honest(error);
  if (status == BP_OK) kHonest.stream_wait(given.device, given.stream, BP_WAIT_FOREVER, nullptr);
  return status;
}>();
const Mutation defect::pack_to_the_start = on_pack_execute<[](PackArguments& given, bp_error* error) {
  const bool fits = given.to < buffer_of(given.dst).span.bytes;
  if (fits && given.to % HostMemory::kAlignment == 0) given.to = 0;
  return given.honest(error);
}>();
const Mutation defect::pack_beyond_buffer = on_pack_execute<[](PackArguments& given, bp_error* error) {
  const bp_status status = given.honest(error);
  return status == BP_INVALID_ARGUMENT && given.from != 0 ? bp_status{BP_OK} : status;
}>();
const Mutation defect::pack_unaligned = on_pack_execute<[](PackArguments& given, bp_error* error) {
  if (given.to % HostMemory::kAlignment == 0) return given.honest(error);
  given.to -= given.to % HostMemory::kAlignment;
  return given.honest(error);
}>();
const Mutation defect::pack_over_itself = on_pack_execute<[](PackArguments& given, bp_error* error) {
  return given.src == given.dst ? bp_status{BP_OK} : given.honest(error);
}>();
const Mutation defect::pack_in_capture = on_pack_execute<[](PackArguments& given, bp_error* error) {
  return stream_of(given.stream).capturing() ? bp_status{BP_OK} : given.honest(error);
}>();
const Mutation defect::pack_ends_with_pack{.plugin = [](bp_plugin& plugin) { plugin.get_interface = ends_with_pack; }};
const Mutation defect::pack_leaks = on_pack<&bp_pack_api::pack_destroy, leaks_pack>();
const Mutation defect::pack_first_operand = on_op<with_first_operand, BP_OP_MATMUL>();

}  // namespace backplane::conformance::mutants
