// SPDX-License-Identifier: Apache-2.0
// The operator cumsum.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

constexpr int64_t kSharedFrom = 256;            // minimum elements of a slice that a whole workgroup scans
constexpr int64_t kMaxScanned = kGroup * 8192;  // maximum elements per slice and dispatch
constexpr int64_t kCarryBytes = 16;             // bytes per running sum that one dispatch passes to the next

class Cumsum : public Operator {
 public:
  explicit Cumsum(std::string shader) : shader_(std::move(shader)) {}
  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t exclusive = plan.attributes.as<bp_cumsum_attributes>().exclusive;
    Kernels out;
    out[kThread] = {shader_, {{kIdOp, exclusive}, {kIdMode, BACKPLANE_SCAN_THREAD}}};
    out[kWorkgroup] = {shader_, {{kIdOp, exclusive}, {kIdMode, BACKPLANE_SCAN_GROUP}}};
    return out;
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_cumsum_attributes>();
    const uint32_t axis = attributes.axis;
    LoopNest nest = LoopNest::of({&call.out(), &call.in(0)});
    if (nest.count() == 0) return {};
    const int64_t extent = call.out().shape[axis];
    int64_t axis_strides[2] = {nest.operand[0].strides[axis],
                               call.in(0).is_immediate ? 0 : nest.operand[1].strides[axis]};
    for (uint32_t k = 0; attributes.reverse != 0 && k < 2; ++k) {
      nest.operand[k].address += static_cast<uint64_t>((extent - 1) * axis_strides[k]);
      axis_strides[k] = -axis_strides[k];
    }
    nest.drop(axis);
    nest.merge();
    const bool shared = extent >= kSharedFrom, carried = extent > kMaxScanned;
    const uint32_t per_group = shared ? 1 : kGroup;
    Accesses accesses = accesses_of(call);
    if (carried) accesses.add({stream.scratch(), stream.scratch() + Stream::kScratchBytes, true});
    const int64_t longest = std::min(extent, kMaxScanned);
    int64_t max_slices = max_elements(shared ? 2 * (longest / kGroup + 1) + kGroup : longest, per_group);
    if (carried) max_slices = std::min(max_slices, static_cast<int64_t>(Stream::kScratchBytes) / kCarryBytes);
    return nest.for_slices(
        [&](LoopNest slices, int64_t) {
          const auto groups = groups_for(static_cast<uint64_t>(slices.count()), per_group);
          kit::Status status;
          for (int64_t first = 0; status.ok() && first < extent; first += kMaxScanned) {
            status = stream.dispatch({program.pipelines[shared ? kWorkgroup : kThread], {groups, 1, 1}, accesses},
                                     [&](Params& params, uint64_t address) {
                                       slices.fill(params, address);
                                       params.extra[0] = std::min(kMaxScanned, extent - first);
                                       params.extra[1] = axis_strides[1];
                                       params.extra[2] = axis_strides[0];
                                       params.extra[3] = carried ? static_cast<int64_t>(stream.scratch()) : 0;
                                       params.extra[4] = first == 0 ? 0 : 1;
                                     });
            for (uint32_t k = 0; k < 2; ++k)
              slices.operand[k].address += static_cast<uint64_t>(kMaxScanned * axis_strides[k]);
          }
          return status;
        },
        max_slices);
  }

 private:
  enum Pipeline : uint32_t { kThread, kWorkgroup };  // one thread or one workgroup scans a slice
  const std::string shader_;
};

}  // namespace

void add_scan(Operators& operators) {
  for_dtypes(kComputed & BP_SET_NUMERIC,
             [&](uint32_t dtype) { operators.add(BP_OP_CUMSUM, dtype, entry_of<Cumsum>(shader_name("scan", dtype))); });
}

}  // namespace backplane::vulkan
