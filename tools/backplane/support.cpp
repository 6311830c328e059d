// SPDX-License-Identifier: Apache-2.0
// Queries whether a device supports each operator with each dtype.
#include "support.hpp"

#include <algorithm>
#include <bit>

#include "host.hpp"

namespace tool {
namespace {

void query(bph_device* device, const bph_op_info& info, uint32_t dtype, uint32_t out_dtype, Support& support) {
  OpRequest request;
  request.dtype = dtype;
  request.out_dtype = out_dtype;
  const OpCase op = make_case(info, request);
  const CallViews views(op);
  bph_support facts = sized<bph_support>();
  bp_error error = fresh_error();
  const bp_status status = bph_device_supports(device, &views.call, &facts, &error);
  ++support.choices;
  if (status != BP_OK) {
    if (support.status == BP_OK) {
      support.status = status;
      support.message = error.message;
    }
    return;
  }
  // Stores the plan's properties for the first supported output dtype only.
  if (support.supported++ > 0) return;
  support.any_size = (facts.plan_flags & BP_PLAN_ANY_SIZE) != 0;
  support.staged = static_cast<uint32_t>(std::popcount(facts.stage_inputs) + std::popcount(facts.stage_outputs));
  support.workspace_bytes = facts.workspace_bytes;
  support.decomposed = facts.path == BPH_PATH_DECOMPOSED;
}

}  // namespace

std::vector<OpSupport> query_support(bph_device* device) {
  std::vector<OpSupport> all;
  for (const bph_op_info& info : operators()) {
    OpSupport row{info, {}};
    for (const uint32_t dtype : dtypes_of(info.dtypes)) {
      Support& support = row.dtypes[dtype];
      if (info.kind == BP_KIND_COMPOSITE) {
        query(device, info, dtype, 0, support);
        continue;
      }
      for (const uint32_t out_dtype : output_dtypes(info, dtype)) query(device, info, dtype, out_dtype, support);
    }
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace tool
