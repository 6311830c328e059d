// SPDX-License-Identifier: Apache-2.0
// A plugin of ABI 0.2 on the kit of then, compiled against the headers beside it. Edited only while 0.2 is unfinished.
#include <backplane/kit/plugin.hpp>

#include "arithmetic.h"

#ifndef FROZEN_ADAMW_SCALARS
#define FROZEN_ADAMW_SCALARS 3  // a copy of this file that was built for a later version may have more
#endif

namespace {

using namespace backplane::kit;

frozen_view view_of(const View& from) {
  frozen_view view{};
  view.data = reinterpret_cast<unsigned char*>(from.data);
  view.dtype = from.dtype;
  view.rank = from.rank;
  std::copy(std::begin(from.shape), std::end(from.shape), view.shape);
  std::copy(std::begin(from.strides), std::end(from.strides), view.strides);
  return view;
}

void run(const Call& call) {
  frozen_call of{};
  of.op = call.op->id;
  of.attributes = &call.attributes<uint32_t>();
  of.inputs = static_cast<uint32_t>(call.inputs.size());
  of.outputs = static_cast<uint32_t>(call.outputs.size());
  for (uint32_t i = 0; i < of.inputs; ++i) of.in[i] = view_of(call.inputs[i]);
  for (uint32_t i = 0; i < of.outputs; ++i) of.out[i] = view_of(call.outputs[i]);
  const uint32_t scalars = of.op == BP_OP_FILL    ? 1
                           : of.op == BP_OP_IOTA  ? 2
                           : of.op == BP_OP_ADAMW ? FROZEN_ADAMW_SCALARS
                                                  : 0;
  for (uint32_t i = 0; i < scalars; ++i) of.scalars[i] = call.scalar<float>(i);
  frozen_run(&of);
}

class Driver : public HostDriver {
 public:
  explicit Driver(Host host) : HostDriver(host, {.name = "frozen_kit", .version = "0.2"}) {
    for (uint32_t op = 1; op < BP_OP_LIMIT; ++op) {
      if (frozen_knows(op) == 0) continue;
      for (const uint32_t dtype : {BP_F32, BP_I32, BP_U8, BP_BOOL}) kernels().add(op, dtype, run);
    }
  }
};

}  // namespace

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return query<Driver>(host, out, error);
}
