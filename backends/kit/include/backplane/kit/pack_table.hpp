// SPDX-License-Identifier: Apache-2.0
// The C table of the interface "bp.pack", implemented by a C++ device class. The class has the type Pack
// and these methods, or none of them:
//   bool packs() const;
//       Returns whether the device has the interface.
//   Status create_pack(const CheckedDesc&, uint32_t input, Pack** out, bp_pack_info&);
//       The input is constant, plain and has elements. `out` is null if the caller
//       requests only the bp_pack_info.
//   Status execute(Stream&, const Pack&, const Buffer& src, uint64_t, Buffer& dst, uint64_t);
//   void destroy(Pack*);
#pragma once

#include <backplane/kit/check.hpp>
#include <backplane/kit/slot.hpp>

namespace backplane::kit {

template <class Device>
concept HasPacks = requires(Device& d, typename Device::Stream& s, typename Device::Pack& p, bp_pack_info& info,
                            const CheckedDesc& checked, typename Device::Buffer& b) {
  d.packs();
  d.create_pack(checked, 0u, nullptr, info);
  d.execute(s, p, b, 0, b, 0);
  d.destroy(&p);
};

// Returns INVALID_ARGUMENT unless the input of a descriptor can be packed.
inline Status check_packable(const CheckedDesc& checked, uint32_t input) {
  const bp_op_desc& desc = checked.desc;
  const char* name = checked.op->name;
  if (input >= desc.input_count || desc.inputs[input].dtype == 0) {
    return invalid_argument(name, ": input ", input, " is absent; pack an input that the descriptor has");
  }
  const bp_tensor_desc& view = desc.inputs[input];
  if (rules::is_packed(view))
    return invalid_argument(name, ": input ", input, " is packed already; pass its plain view");
  if ((view.flags & BP_DESC_IMMEDIATE) != 0 || view.rank < 2 || rules::element_count(view) == 0) {
    return invalid_argument(name, ": input ", input, " with shape ", shape_text(view),
                            " cannot be packed; pack an input in a buffer, of rank 2 or more and with elements");
  }
  for (uint32_t o = 0; o < desc.output_count; ++o) {
    if (desc.outputs[o].alias != input + 1) continue;
    return invalid_argument(name, ": input ", input, " is not constant, because output ", o,
                            " overwrites it; pack an input that no output aliases");
  }
  return {};
}

template <class Device>
class PackTable : DeviceSlots<Device> {
  using Slots = DeviceSlots<Device>;
  using Slots::of;
  using Slots::slot;
  using Pack = typename Device::Pack;

  static Pack& of(bp_pack* pack) { return *reinterpret_cast<Pack*>(pack); }

  static bp_status pack_create(bp_device* device, const bp_op_desc* desc, uint32_t input, bp_pack** out,
                               bp_pack_info* info, bp_error* error) {
    if (out != nullptr) *out = nullptr;
    return slot(
        error, "pack_create",
        [&] {
          Status status = check_output(info, BP_PACK_INFO_MIN_SIZE, "bp_pack_info");
          CheckedDesc checked;
          if (status.ok()) status = check_desc(desc, checked, true);
          if (status.ok()) status = check_packable(checked, input);
          bp_pack_info layout{};
          if (status.ok()) status = of(device).create_pack(checked, input, reinterpret_cast<Pack**>(out), layout);
          if (status.ok()) write_output(info, layout);
          return status;
        },
        device);
  }

  static bp_status pack_execute(bp_device* device, bp_stream* stream, bp_pack* pack, bp_buffer* src,
                                uint64_t src_offset, bp_buffer* dst, uint64_t dst_offset, bp_error* error) {
    return slot(
        error, "pack_execute",
        [&] { return of(device).execute(of(stream), of(pack), of(src), src_offset, of(dst), dst_offset); }, device,
        stream, pack, src, dst);
  }

  static void pack_destroy(bp_device* device, bp_pack* pack) {
    if (pack != nullptr) of(device).destroy(&of(pack));
  }

  static constexpr bp_pack_api make() {
    bp_pack_api api{};
    api.struct_size = sizeof(bp_pack_api);
    api.pack_create = pack_create;
    api.pack_execute = pack_execute;
    api.pack_destroy = pack_destroy;
    return api;
  }

 public:
  static constexpr bp_pack_api table = make();
};

}  // namespace backplane::kit
