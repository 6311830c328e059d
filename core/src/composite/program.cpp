// SPDX-License-Identifier: Apache-2.0
// Makes programs from descriptors and runs them.
#include "composite/program.hpp"

#include <algorithm>
#include <backplane/rules/mixed.hpp>
#include <map>
#include <set>
#include <string>

#include "base/error.hpp"
#include "base/strided_view.hpp"
#include "base/work_scope.hpp"
#include "composite/families.hpp"
#include "dispatch/execution.hpp"
#include "graph/recorder.hpp"
#include "loading/device.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

namespace {

using composite::Builder;
using composite::Draft;

// Returns true if every output is absent or has no elements.
bool writes_nothing(const bp_op_desc& desc) {
  return std::all_of(desc.outputs, desc.outputs + desc.output_count,
                     [](const bp_tensor_desc& view) { return view.dtype == 0 || element_count(view) == 0; });
}

void decompose(Builder& b, uint32_t op) {
  if (writes_nothing(b.desc())) return;
  switch (op) {
#define BP_COMPOSITE(symbol, function) \
  case BP_OP_##symbol:                 \
    return composite::function(b);
    BP_COMPOSITE(GELU, gelu)
    BP_COMPOSITE(SILU, silu)
    BP_COMPOSITE(SIGMOID, sigmoid)
    BP_COMPOSITE(POW, pow)
    BP_COMPOSITE(SOFTMAX, softmax)
    BP_COMPOSITE(LOG_SOFTMAX, log_softmax)
    BP_COMPOSITE(LAYER_NORM, layer_norm)
    BP_COMPOSITE(RMS_NORM, rms_norm)
    BP_COMPOSITE(GROUP_NORM, group_norm)
    BP_COMPOSITE(BATCH_NORM, batch_norm)
    BP_COMPOSITE(LINEAR, linear)
    BP_COMPOSITE(CONV, conv)
    BP_COMPOSITE(CONV_TRANSPOSE, conv_transpose)
    BP_COMPOSITE(CONV_BWD_INPUT, conv_bwd_input)
    BP_COMPOSITE(CONV_BWD_WEIGHT, conv_bwd_weight)
    BP_COMPOSITE(MAX_POOL, max_pool)
    BP_COMPOSITE(AVG_POOL, avg_pool)
    BP_COMPOSITE(ATTENTION, attention)
    BP_COMPOSITE(ROPE, rope)
    BP_COMPOSITE(QUANTIZE, quantize)
    BP_COMPOSITE(DEQUANTIZE, dequantize)
    BP_COMPOSITE(QUANTIZED_MATMUL, quantized_matmul)
    BP_COMPOSITE(EMBEDDING, embedding)
    BP_COMPOSITE(TOPK, topk)
    BP_COMPOSITE(CROSS_ENTROPY, cross_entropy)
    BP_COMPOSITE(SOFTMAX_BWD, softmax_bwd)
    BP_COMPOSITE(NORM_BWD, norm_bwd)
    BP_COMPOSITE(ADAMW, adamw)
    BP_COMPOSITE(ACTIVATION_BWD, activation_bwd)
    BP_COMPOSITE(UNARY, unary)
    BP_COMPOSITE(ATTENTION_BWD, attention_bwd)
    BP_COMPOSITE(NLL, nll)
    BP_COMPOSITE(NLL_BWD, nll_bwd)
    BP_COMPOSITE(GEMM, gemm)
    BP_COMPOSITE(UNIFORM, uniform)
    BP_COMPOSITE(NORMAL, normal)
    BP_COMPOSITE(DROPOUT, dropout)
    BP_COMPOSITE(ROTATE, rotate)
    BP_COMPOSITE(SORT, sort)
    BP_COMPOSITE(MATMUL, matmul)
    BP_COMPOSITE(FILL, fill)
#undef BP_COMPOSITE
    case BP_OP_ARGMAX:
    case BP_OP_ARGMIN:
      return composite::arg(b, op);
    default:
      throw Error(BP_INTERNAL, "operator {} has no decomposition; please report it", op).with_op(op);
  }
}

// Returns the plan key of a step, with the composite's flags and hints.
Descriptor key_of(const Draft& draft, const Builder::Operands& operands, const bp_op_desc& composite) {
  const OpRow& row = *draft.row;
  const auto count = static_cast<uint32_t>(draft.operands.size());
  DescriptorHead head;
  head.op = row.id;
  head.inputs = static_cast<uint8_t>(draft.inputs);
  head.outputs = static_cast<uint8_t>(count - draft.inputs);
  head.scalars = static_cast<uint8_t>(row.scalars_max);
  // A step keeps the flag DEVICE_SCALARS only if it uses the composite's scalars. All other scalars of steps are on the
  // host.
  const uint64_t dropped = draft.scalars_of_call ? 0 : uint64_t{BP_OP_FLAG_DEVICE_SCALARS};
  head.flags = static_cast<uint32_t>(composite.flags & ~dropped);
  head.hints = composite.hints;
  Descriptor key(row, head);
  std::memcpy(key.attributes(), draft.attributes.data(), row.attributes->bytes);
  for (uint32_t i = 0; i < count; ++i) {
    bp_tensor_desc& view = key.views()[i];
    view = operands.views[i];
    if ((view.flags & BP_DESC_IMMEDIATE) != 0) std::fill(std::begin(view.strides), std::end(view.strides), 0);
  }
  return key;
}

// Converts the error of a step to an error of the composite.
Error failed_step(const Error& error, const Device& device, const OpRow& composite, const Draft& draft) {
  const uint32_t dtype = draft.operands[0].dtype();
  if (error.status() == BP_UNSUPPORTED) {
    return Error(BP_UNSUPPORTED, "{}: {} is not native, and its decomposition needs {} of {}: {}", device.name,
                 composite.name, draft.row->name, dtype_name(dtype), error.what())
        .with_op(composite.id);
  }
  const bp_status status = error.status() == BP_INVALID_ARGUMENT ? BP_INTERNAL : error.status();
  return Error(status, "{}: {} by decomposition: {}", device.name, composite.name, error.what()).with_op(composite.id);
}

std::string bytes_of(const Descriptor& key) { return {static_cast<const char*>(key.data()), key.bytes()}; }

}  // namespace

bool has_program(const OpRow& row, const bp_op_desc& desc) {
  const bool fills_from_memory = row.id == BP_OP_FILL && (desc.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0;
  return row.kind == BP_KIND_COMPOSITE || fills_from_memory || rules::mixed_of(desc) != 0;
}

Ref<Program> make_program(Device& device, PlanCache& plans, const OpRow& row, const bp_op_desc& desc, bool specialize) {
  Builder builder(row, desc, device.full_alignment_log2);
  decompose(builder, row.id);
  Ref<Program> program(kAdopt, new Program);
  program->temporary_bytes = builder.lay_out_temporaries();
  // Tiles of one size share plan entries, because their steps differ only in offsets.
  std::map<std::string, Ref<PlanEntry>> entries;
  for (const Draft& draft : builder.drafts()) {
    const Builder::Operands operands = builder.operands_of(draft);
    const Descriptor key = key_of(draft, operands, desc);
    Ref<PlanEntry>& entry = entries[bytes_of(key)];
    try {
      if (!entry) entry = plans.make_planned(key, specialize);
    } catch (const Error& error) {
      throw failed_step(error, device, row, draft);
    }
    program->workspace_bytes = std::max(program->workspace_bytes, entry->workspace_bytes);
    program->steps.push_back({entry,
                              static_cast<uint32_t>(program->locations.size()),
                              {draft.scalars[0], draft.scalars[1]},
                              draft.scalars_of_call});
    program->locations.insert(program->locations.end(), operands.locations, operands.locations + draft.operands.size());
  }
  return program;
}

uint64_t check_program(Device& device, const OpRow& row, const bp_op_desc& desc) {
  Builder builder(row, desc, device.full_alignment_log2);
  decompose(builder, row.id);
  const uint64_t bytes = builder.lay_out_temporaries();
  std::set<std::string> queried;
  for (const Draft& draft : builder.drafts()) {
    const Descriptor key = key_of(draft, builder.operands_of(draft), desc);
    if (!queried.insert(bytes_of(key)).second) continue;
    try {
      (void)plan_facts(device, *PlanEntry::create(device, key));
    } catch (const Error& error) {
      throw failed_step(error, device, row, draft);
    }
  }
  return bytes;
}

void run_program(Stream& stream, PlanEntry& borrowed, const bp_operand* inputs, const bp_operand* outputs,
                 const bp_operand* scalars) {
  // Keeps the entry alive, because staging looks up plans, and a lookup may evict the entry.
  const Ref<PlanEntry> entry(&borrowed);
  const Program& program = *entry->program;
  const WorkScope scope("composite", entry->row->name);
  Span temporaries;
  if (stream.recorder != nullptr) {
    temporaries = stream.recorder->temporaries(stream, program.temporary_bytes);
  } else {
    if (program.workspace_bytes != 0) (void)stream.workspace_of(program.workspace_bytes);
    if (program.temporary_bytes != 0) temporaries = stream.temporaries_of(program.temporary_bytes);
  }
  const auto operand_at = [&](const Location& location) -> bp_operand {
    const bp_operand* base = nullptr;
    switch (location.kind) {
      case Location::Kind::input:
        base = inputs + location.index;
        break;
      case Location::Kind::output:
        base = outputs + location.index;
        break;
      case Location::Kind::temporary:
        return {temporaries.buffer, temporaries.offset + location.value, 0};
      case Location::Kind::constant:
        return {nullptr, 0, location.value};
      case Location::Kind::scalar:
        return scalars[location.index];
    }
    return base->buffer == nullptr ? *base : bp_operand{base->buffer, base->offset + location.value, 0};
  };
  for (const Program::Step& step : program.steps) {
    const bp_op_desc& desc = step.entry->desc;
    bp_operand operands[8];
    for (uint32_t i = 0; i < desc.input_count + desc.output_count; ++i) {
      operands[i] = operand_at(program.locations[step.first + i]);
    }
    const bp_operand step_scalars[2] = {{nullptr, 0, step.scalars[0]}, {nullptr, 0, step.scalars[1]}};
    run_entry(stream, *step.entry, operands, operands + desc.input_count,
              step.scalars_of_call ? scalars : step_scalars);
  }
  stream.device->counters.decomposed_executions.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace backplane::core
