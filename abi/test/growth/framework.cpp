// SPDX-License-Identifier: Apache-2.0
// A framework built for the grown ABI: framework PLUGIN. Prints the results of calls that already
// exist in ABI 0.2, and of calls whose new fields are zero or set.
#include <dlfcn.h>

#include "../frozen/0.2/framework.hpp"

namespace {

using namespace framework;

std::string run_saturating_cast(Session& session, uint32_t saturate) {
  bp_cast_attributes attributes = {};
  attributes.struct_size = sizeof(attributes);
  attributes.saturate = saturate;
  return run_cast(session, &attributes,
                  saturate == 0 ? std::vector<double>{44, 251, 7, 255} : std::vector<double>{255, 0, 7, 255});
}

double gelu_quick(double x) { return x / (1 + std::exp(-1.702 * x)); }

std::string run_square(Session& session) {
  return session.run(call_of(BP_OP_SQUARE), {{BP_F32, {2}, {3, -4}}}, {{BP_F32, {2}, {9, 16}}});
}

// Runs a composite of ABI 0.3, which every core of this test knows and no plugin implements.
std::string run_activation_bwd(Session& session) {
  bp_activation_bwd_attributes attributes = {};
  attributes.struct_size = sizeof(attributes);
  attributes.activation = BP_ACTIVATION_RELU;
  return session.run(call_of(BP_OP_ACTIVATION_BWD, &attributes), {{BP_F32, {3}, {5, 6, 7}}, {BP_F32, {3}, {-1, 0, 2}}},
                     {{BP_F32, {3}, {0, 0, 7}}});
}

// Looks up bph_device_later at run time, so that the framework also runs with older libraries.
std::string report_later(Session& session) {
  const auto later = reinterpret_cast<decltype(&bph_device_later)>(dlsym(RTLD_DEFAULT, "bph_device_later"));
  if (later == nullptr) return "no function";
  uint64_t number = 0;
  const bp_status status = later(session.device(), &number, session.error());
  return status == BP_OK ? std::to_string(number) : bph_status_name(status);
}

std::string report_interface(Session& session) {
  const void* found = nullptr;
  bp_device* device = nullptr;
  if (bph_device_get_interface(session.device(), BP_INTERFACE_IMPORT, 1, &found, &device, session.error()) != BP_OK) {
    return "no interface";
  }
  bph_plugin_info about = {};
  about.struct_size = sizeof(about);
  if (bph_plugin_get_info(session.plugin(), &about, session.error()) != BP_OK) return "no version";
  const auto& table = *static_cast<const bp_import_api*>(found);
  if (!BP_HAS_SLOT(about.abi_version, table.struct_size, bp_import_api, later, BP_SINCE_0_4) ||
      table.later == nullptr) {
    return "no slot";
  }
  uint64_t number = 0;
  const bp_status status = table.later(device, &number, session.error());
  return status == BP_OK ? std::to_string(number) : bph_status_name(status);
}

std::string report_info(Session& session) {
  bp_device_info info = {};
  info.struct_size = sizeof(info);
  const bp_status status = bph_device_get_info(session.device(), &info, session.error());
  if (status != BP_OK) return bph_status_name(status);
  return info.later == 0 ? "not said" : std::to_string(info.later);
}

bph_call call_with(uint64_t flags, uint32_t hints, uint64_t later) {
  bph_call call = call_of(BP_OP_ADD);
  call.flags = flags;
  call.hints = hints;
  call.later = later;
  return call;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  Session session(arguments[1]);
  report_old_calls(session);
  const Array two_keys = {BP_I32, {1}, {2}}, absent = {};
  report("attribute, zero", run_saturating_cast(session, 0));
  report("attribute, given", run_saturating_cast(session, 1));
  report("operand, absent", run_attention(session, 3, {absent, absent, absent}));
  report("operand, given", run_attention(session, 2, {absent, absent, two_keys}));
  report("scalar, zero", run_adamw(session, 1, {0.0F}));
  report("scalar, minus zero", run_adamw(session, 1, {-0.0F}));
  report("scalar, given", run_adamw(session, 0.5, {0.5F}));
  report("dtype, given", run_copy(session, BP_I16));
  report("set of dtypes, given", run_floor(session, BP_I32, {-3, 0, 7}));
  report("flag, given", run_add(session, call_with(BP_OP_FLAG_LATER, 0, 0)));
  report("permission bit, given", run_matmul(session, BP_PRECISION_ALLOW_LATER));
  report("hint bit, given", run_add(session, call_with(0, BP_HINT_LATER, 0)));
  report("enumerator, given", run_gelu(session, 2, gelu_quick));
  report("host struct, given", run_add(session, call_with(0, 0, 1)));
  report("operator, given", run_square(session));
  report("composite of 0.3", run_activation_bwd(session));
  report("slot, called by a bph_ function", report_later(session));
  report("interface slot, given", report_interface(session));
  report("output field, read", report_info(session));
  return 0;
}
