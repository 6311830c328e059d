// SPDX-License-Identifier: Apache-2.0
// Operators that work along one axis: running sums and sorting.
#include "ops/kernels.hpp"

namespace backplane::vulkan {

namespace {

constexpr int64_t kLong = 256;                   // from so many elements on, a workgroup shares a lane
constexpr int64_t kMostScanned = kGroup * 8192;  // of a lane in one dispatch, which goes through them twice
constexpr int64_t kCarryBytes = 16;              // of a lane's running sum between dispatches

class Cumsum : public Operator {
 public:
  explicit Cumsum(std::string shader) : shader_(std::move(shader)) {}
  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t exclusive = plan.attributes.as<bp_cumsum_attributes>().exclusive;
    return {{shader_, {0, exclusive, 0, 0}}, {shader_, {0, exclusive, 0, 1}}};
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_cumsum_attributes>();
    const uint32_t axis = attributes.axis;
    Nest nest = Nest::of({&call.out(), &call.in(0)});
    if (nest.count() == 0) return {};
    const int64_t extent = call.out().shape[axis];
    int64_t along[2] = {nest.operand[0].strides[axis], call.in(0).is_immediate ? 0 : nest.operand[1].strides[axis]};
    for (uint32_t k = 0; attributes.reverse != 0 && k < 2; ++k) {
      nest.operand[k].address += static_cast<uint64_t>((extent - 1) * along[k]);
      along[k] = -along[k];
    }
    nest.drop(axis);
    nest.merge();
    const bool shared = extent >= kLong, carried = extent > kMostScanned;
    const uint32_t per_group = shared ? 1 : kGroup;
    Accesses accesses = accesses_of(call);
    if (carried) accesses.add({stream.scratch(), stream.scratch() + Stream::kScratchBytes, true});
    const int64_t longest = std::min(extent, kMostScanned);
    int64_t most = most_elements(shared ? 2 * (longest / kGroup + 1) + kGroup : longest, per_group);
    if (carried) most = std::min(most, static_cast<int64_t>(Stream::kScratchBytes) / kCarryBytes);
    return nest.for_parts(
        [&](Nest lanes, int64_t) {
          const auto groups = groups_for(static_cast<uint64_t>(lanes.count()), per_group);
          kit::Status status;
          for (int64_t first = 0; status.ok() && first < extent; first += kMostScanned) {
            status = stream.dispatch({program.pipelines[shared ? 1 : 0], {groups, 1, 1}, accesses},
                                     [&](Params& params, uint64_t address) {
                                       lanes.fill(params, address);
                                       params.extra[0] = std::min(kMostScanned, extent - first);
                                       params.extra[1] = along[1];
                                       params.extra[2] = along[0];
                                       params.extra[3] = carried ? static_cast<int64_t>(stream.scratch()) : 0;
                                       params.extra[4] = first == 0 ? 0 : 1;
                                     });
            for (uint32_t k = 0; k < 2; ++k) lanes.operand[k].address += static_cast<uint64_t>(kMostScanned * along[k]);
          }
          return status;
        },
        most);
  }

 private:
  const std::string shader_;
};

// Up to so many elements by counting, in one step; a network of about log2(n)^2 / 2 steps beyond.
constexpr int64_t kCounted = 512;

class Sort : public Operator {
 public:
  explicit Sort(std::string shader) : shader_(std::move(shader)) {}
  // A sort that gives no indices keeps them in its workspace, whose size is that of the operands.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    const bp_op_desc& desc = checked.desc;
    needs.any_size = desc.output_count > 1 && desc.outputs[1].dtype != 0;
    if (needs.any_size) return {};
    uint64_t bytes = sizeof(int32_t);
    for (uint32_t i = 0; i < desc.inputs[0].rank; ++i) {
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(desc.inputs[0].shape[i]), &bytes))
        return kit::unsupported("sort: the indices of this input are more than memory holds; divide it");
    }
    needs.workspace_bytes = bytes;
    return {};
  }
  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t descending = plan.attributes.as<bp_sort_attributes>().descending;
    return {{shader_, {0, descending, 0, 0}}, {shader_, {0, descending, 0, 1}}, {shader_, {0, descending, 0, 2}}};
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const uint32_t axis = call.attributes<bp_sort_attributes>().axis;
    const bool indexed = call.outputs.size() > 1 && call.out(1).dtype != 0;
    const View own = indexed ? View{} : packed_indices(call);
    Nest nest = Nest::of({&call.out(0), indexed ? &call.out(1) : &own, &call.in(0)});
    if (nest.count() == 0) return {};
    Accesses accesses = accesses_of(call);
    if (!indexed) add_access(accesses, own, true);
    const int64_t extent = call.in(0).shape[axis];
    int64_t along[3];
    for (uint32_t k = 0; k < 3; ++k) {
      along[k] = nest.operand[k].strides[axis];
      nest.operand[k].strides[axis] = 0;
    }
    if (call.in(0).is_immediate) along[2] = 0;
    nest.add_counter(axis);
    const auto run = [&](uint32_t mode, Nest over, int64_t distance, bool mirrored) {
      over.merge();
      return over.for_parts(
          [&](const Nest& part, int64_t) {
            const auto groups = groups_for(static_cast<uint64_t>(part.count()));
            return stream.dispatch({program.pipelines[mode], {groups, 1, 1}, accesses},
                                   [&](Params& params, uint64_t address) {
                                     part.fill(params, address);
                                     params.extra[0] = extent;
                                     params.extra[1] = along[2];
                                     params.extra[2] = along[0];
                                     params.extra[3] = along[1];
                                     params.extra[4] = distance;
                                     params.extra[5] = mirrored ? 1 : 0;
                                   });
          },
          most_elements(mode == 0 ? extent : 1));
    };
    if (extent > int64_t{1} << 31) {
      return kit::invalid_argument("sort: axis ", axis, " has ", extent, " elements; indices are i32, so at most 2^31");
    }
    if (extent <= kCounted) return run(0, nest, 0, false);
    kit::Status status = run(1, nest, 0, false);
    for (int64_t block = 2; status.ok() && block < 2 * extent; block *= 2) {
      Nest pairs = nest;
      pairs.shape[axis] = (extent + block - 1) / block * (block / 2);  // those of whole blocks; the rest is skipped
      status = run(2, pairs, block / 2, true);
      for (int64_t distance = block / 4; status.ok() && distance > 0; distance /= 2)
        status = run(2, pairs, distance, false);
    }
    return status;
  }

 private:
  // The indices where nobody asked for them: what keeps equal values in order.
  static View packed_indices(const Call& call) {
    View out = call.out(0);
    out.dtype = BP_I32;
    out.place = call.workspace;
    out.is_immediate = false;
    int64_t stride = 1;
    for (uint32_t i = out.rank; i-- > 0; stride *= out.shape[i]) out.strides[i] = stride;
    return out;
  }

  const std::string shader_;
};

}  // namespace

void add_lanes(Operators& operators) {
  for_dtypes(kComputed & BP_SET_NUMERIC, [&](uint32_t dtype) {
    operators.add(BP_OP_CUMSUM, dtype, entry_of<Cumsum>(shader_name("scan", dtype)));
    operators.add(BP_OP_SORT, dtype, entry_of<Sort>(shader_name("sort", dtype)));
  });
}

}  // namespace backplane::vulkan
