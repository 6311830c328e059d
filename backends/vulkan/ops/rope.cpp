// SPDX-License-Identifier: Apache-2.0
// The operator rope, which rotates pairs of elements. The elements of a pair are adjacent or half a
// row apart. The host computes the frequencies and appends them to the parameters.
#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numbers>

#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

constexpr uint32_t kTable = BACKPLANE_ROPE_TABLE;

struct RopeParams {
  Params base;
  uint32_t steps[kTable];  // frequency / (2 pi), without whole revolutions, times 2^32, rounded down
  float rests[kTable];     // the fraction that `steps` drops when it is rounded down
};
static_assert(offsetof(RopeParams, steps) == BACKPLANE_PARAMS_BYTES);

struct Table {
  int64_t half = 0;
  float base = 0;
  std::vector<uint32_t> steps;
  std::vector<float> rests;
};

class Rope : public Operator {
 public:
  Rope(std::string shader, std::string copy) : shader_(std::move(shader)), copy_(std::move(copy)) {}

  Kernels kernels(const kit::PlanForm&, bool) const override {
    Kernels out;
    out[kRotate] = {shader_, {}};
    out[kCopy] = {copy_, {{kIdOp, BACKPLANE_COPY_COPY}}};
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_rope_attributes>();
    const View &y = call.out(), &x = call.in(0), &position = call.in(1);
    const uint32_t last = x.rank - 1;
    const int64_t depth = x.shape[last], rotated = attributes.rotary_extent == 0 ? depth : attributes.rotary_extent;
    const int64_t half = rotated / 2;
    const std::shared_ptr<const Table> table = table_of(half, attributes.base);
    LoopNest nest = LoopNest::of({&y, &x});
    nest.add(position);
    if (kit::Status status = copy_rest(stream, program, call, nest, rotated); !status.ok()) return status;
    const bool pairs = attributes.interleaved != 0;
    int64_t seconds[2];
    for (uint32_t k = 0; k < 2; ++k) {
      int64_t& stride = nest.operand[k].strides[last];
      seconds[k] = pairs ? stride : half * stride;
      if (pairs) stride *= 2;
    }
    nest.add_counter(last);
    nest.shape[last] = std::min<int64_t>(half, kTable);
    const Accesses accesses = accesses_of(call);
    for (int64_t first = 0; first < half; first += kTable) {
      LoopNest slice = nest;
      slice.shape[last] = std::min<int64_t>(half - first, kTable);
      for (uint32_t k = 0; k < 2; ++k)
        slice.operand[k].address += static_cast<uint64_t>(first * slice.operand[k].strides[last]);
      slice.merge();
      kit::Status status = slice.for_slices([&](const LoopNest& part, int64_t) {
        const auto groups = groups_for(static_cast<uint64_t>(part.count()));
        return stream.dispatch<RopeParams>(
            {program.pipelines[kRotate], {groups, 1, 1}, accesses}, [&](RopeParams& params, uint64_t address) {
              part.fill(params.base, address);
              params.base.extra[0] = seconds[0];
              params.base.extra[1] = seconds[1];
              const auto count = static_cast<std::size_t>(std::min<int64_t>(half - first, kTable));
              std::copy_n(table->steps.begin() + first, count, params.steps);
              std::copy_n(table->rests.begin() + first, count, params.rests);
            });
      });
      if (!status.ok()) return status;
    }
    return {};
  }

 private:
  enum Pipeline : uint32_t { kRotate, kCopy };

  // Copies the elements that are not rotated.
  static kit::Status copy_rest(Stream& stream, const Program& program, const Call& call, LoopNest nest,
                               int64_t rotated) {
    const uint32_t last = nest.rank - 1;
    nest.operands = 2;
    nest.shape[last] -= rotated;
    for (uint32_t k = 0; k < 2; ++k)
      nest.operand[k].address += static_cast<uint64_t>(rotated * nest.operand[k].strides[last]);
    nest.merge();
    return launch_elementwise(stream, program.pipelines[kCopy], nest, call);
  }

  // Returns a table from the cache of recently used tables, or makes the table. The layers of a
  // model share a few tables.
  std::shared_ptr<const Table> table_of(int64_t half, float base) const {
    std::lock_guard lock(mutex_);
    const auto known = std::ranges::find_if(
        tables_, [&](const auto& table) { return table != nullptr && table->half == half && table->base == base; });
    // If the table is not cached, a new table replaces the least recently used table.
    const auto entry = known != tables_.end() ? known : tables_.end() - 1;
    if (known == tables_.end()) *entry = make_table(half, base);
    std::rotate(tables_.begin(), entry, entry + 1);
    return tables_.front();
  }

  static std::shared_ptr<const Table> make_table(int64_t half, float base) {
    auto table = std::make_shared<Table>();
    table->half = half;
    table->base = base;
    constexpr long double kTwoPi = 2 * std::numbers::pi_v<long double>;
    for (int64_t i = 0; i < half; ++i) {
      const long double exponent = -static_cast<long double>(i) / static_cast<long double>(half);
      const long double turns = std::pow(static_cast<long double>(base), exponent) / kTwoPi;
      const long double scaled = std::ldexp(turns - std::floor(turns), 32), whole = std::floor(scaled);
      table->steps.push_back(static_cast<uint32_t>(whole));
      table->rests.push_back(std::min(static_cast<float>(scaled - whole), 0x1.fffffep-1f));
    }
    return table;
  }

  const std::string shader_, copy_;
  mutable std::mutex mutex_;
  mutable std::array<std::shared_ptr<const Table>, 8> tables_;  // cached tables, most recently used first
};

}  // namespace

void add_rope(Operators& operators) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    operators.add(BP_OP_ROPE, dtype, entry_of<Rope>(shader_name("rope", dtype), copy_shader(dtype)));
  });
}

}  // namespace backplane::vulkan
