// SPDX-License-Identifier: Apache-2.0
// Assigns offsets to temporaries, and determines the alignments and aliases of operands.
#include <algorithm>
#include <bit>

#include "base/strided_view.hpp"
#include "composite/builder.hpp"

namespace backplane::core::composite {

namespace {

constexpr uint64_t kGranule = uint64_t{1} << BP_MAX_ALIGNMENT_LOG2;

// The memory blocks in use, in order of offset.
class Arena {
 public:
  uint64_t take(uint64_t bytes) {
    const uint64_t size = (std::max<uint64_t>(bytes, 1) + kGranule - 1) / kGranule * kGranule;
    uint64_t offset = 0;
    auto at = used_.begin();
    for (; at != used_.end() && at->offset - offset < size; ++at) offset = at->offset + at->bytes;
    used_.insert(at, {offset, size});
    end_ = std::max(end_, offset + size);
    return offset;
  }
  void give(uint64_t offset) {
    used_.erase(std::find_if(used_.begin(), used_.end(), [&](const Block& block) { return block.offset == offset; }));
  }
  uint64_t end() const { return end_; }

 private:
  struct Block {
    uint64_t offset, bytes;
  };
  std::vector<Block> used_;
  uint64_t end_ = 0;
};

}  // namespace

// Returns true if the step's output may reuse the memory of an input, because the step works in
// place and no later step uses the input.
bool Builder::may_take_over(const Draft& draft, size_t step, const std::vector<size_t>& last, uint32_t& from) const {
  const bool in_place = draft.row->shape_rule == BP_SHAPE_ELEMENTWISE && draft.row->id != BP_OP_CUMSUM;
  const Value& output = draft.operands[draft.inputs];
  const Storage& target = storages_[output.storage];
  if (!in_place || target.kind != Location::Kind::temporary || target.writes != 1) return false;
  for (uint32_t i = 0; i < draft.inputs; ++i) {
    const Value& input = draft.operands[i];
    const Storage& storage = storages_[input.storage];
    if (storage.kind != Location::Kind::temporary || last[input.storage] != step || storage.bytes != target.bytes)
      continue;
    const bool alone =
        std::all_of(draft.operands.begin(), draft.operands.begin() + draft.inputs, [&](const Value& other) {
          return other.storage != input.storage ||
                 (same_view(other.view, output.view) && other.offset == output.offset);
        });
    if (!alone) continue;
    from = input.storage;
    return true;
  }
  return false;
}

uint64_t Builder::lay_out_temporaries() {
  constexpr size_t never = SIZE_MAX;
  std::vector<size_t> first(storages_.size(), never), last(storages_.size(), never);
  for (size_t s = 0; s < drafts_.size(); ++s) {
    for (const Value& operand : drafts_[s].operands) {
      if (first[operand.storage] == never) first[operand.storage] = s;
      last[operand.storage] = s;
    }
  }
  Arena arena;
  for (size_t s = 0; s < drafts_.size(); ++s) {
    const Draft& draft = drafts_[s];
    uint32_t from = 0;
    const bool takes_over = may_take_over(draft, s, last, from);
    for (size_t i = draft.inputs; i < draft.operands.size(); ++i) {
      const uint32_t written = draft.operands[i].storage;
      Storage& storage = storages_[written];
      if (storage.kind != Location::Kind::temporary || first[written] != s) continue;
      first[written] = never;  // marks the temporary as placed
      storage.offset = takes_over ? storages_[from].offset : arena.take(static_cast<uint64_t>(storage.bytes));
    }
    for (const Value& operand : drafts_[s].operands) {
      const uint32_t used = operand.storage;
      if (storages_[used].kind != Location::Kind::temporary || last[used] != s) continue;
      last[used] = never;  // marks the block as freed, or as owned by the output
      if (!takes_over || used != from) arena.give(storages_[used].offset);
    }
  }
  return arena.end();
}

bool Builder::same_memory(const Value& output, const Value& input) const {
  if (output.offset != input.offset || !same_view(output.view, input.view)) return false;
  const Storage &to = storages_[output.storage], &from = storages_[input.storage];
  if (output.storage == input.storage) return true;
  if (to.kind == Location::Kind::temporary && from.kind == Location::Kind::temporary) return to.offset == from.offset;
  return to.kind == Location::Kind::output && from.kind == Location::Kind::input &&
         desc_.outputs[to.index].alias == from.index + 1;
}

Builder::Operands Builder::operands_of(const Draft& draft) const {
  Operands made;
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    const Value& operand = draft.operands[i];
    const Storage& storage = storages_[operand.storage];
    bp_tensor_desc& view = made.views[i];
    view = operand.view;
    const auto zeros = static_cast<uint32_t>(std::countr_zero(static_cast<uint64_t>(operand.offset)));
    view.alignment_log2 = static_cast<uint8_t>(
        (view.flags & BP_DESC_IMMEDIATE) != 0 ? BP_MAX_ALIGNMENT_LOG2 : std::min(storage.alignment_log2, zeros));
    const bool moves = storage.kind == Location::Kind::input || storage.kind == Location::Kind::output;
    const uint64_t value = storage.kind == Location::Kind::constant ? storage.bits
                           : moves                                  ? static_cast<uint64_t>(operand.offset)
                                   : storage.offset + static_cast<uint64_t>(operand.offset);
    made.locations[i] = {storage.kind, storage.index, value};
    for (uint32_t k = 0; i >= draft.inputs && k < draft.inputs && view.alias == 0; ++k) {
      if (same_memory(operand, draft.operands[k])) view.alias = static_cast<uint16_t>(k + 1);
    }
  }
  return made;
}

}  // namespace backplane::core::composite
