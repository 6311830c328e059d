// SPDX-License-Identifier: Apache-2.0
// Test cases for memory_info: the bounds of its values, and their changes after allocations.
#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

// The first version whose headers state that memory_info covers all open devices on the same hardware.
constexpr uint32_t kSharedSince = BP_VERSION(0, 3);

bp_memory_info info_of(Device& device, uint32_t kind) {
  bp_memory_info info = {};
  info.struct_size = sizeof(info);
  ErrorRecord error;
  expect_status(device->memory_info(device.get(), kind, &info, &error), error, "memory_info", {BP_OK});
  return info;
}

void bounds(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device fresh(context.plugin(), context.device_index());
  for (int held = 0; held < 3; ++held) {
    const bp_memory_info info = info_of(fresh, kind);
    context.require(info.total_bytes != 0, "total_bytes of {} memory is 0", kind_name(kind));
    context.require(info.free_bytes <= info.total_bytes || info.free_bytes == UINT64_MAX,
                    "{} bytes of {} memory are free, of {}", info.free_bytes, kind_name(kind), info.total_bytes);
    context.require(info.reserved == 0, "bp_memory_info.reserved is {}", info.reserved);
  }
}

void total_is_stable(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device& device = context.device();
  const uint64_t total = info_of(device, kind).total_bytes;
  const Buffer held(device, 1u << 20, kind);
  context.require(info_of(device, kind).total_bytes == total, "total_bytes moved with an allocation");
}

// Requires that the free memory of `observed` changes when `owner` creates and destroys a buffer. Other processes and
// the driver's caches also change the amount of free memory. So the function allocates large buffers and repeats the
// queries.
void require_moves(Context& context, Device& observed, Device& owner, uint32_t kind, uint64_t bytes) {
  // UINT64_MAX means that the driver does not know the amount of free memory.
  if (info_of(observed, kind).free_bytes == UINT64_MAX) return;
  bool fell = false, rose = false;
  for (int attempt = 0; attempt < 8 && !(fell && rose); ++attempt) {
    const uint64_t before = info_of(observed, kind).free_bytes;
    Buffer held(owner, bytes, kind);
    const uint64_t during = info_of(observed, kind).free_bytes;
    held.reset();
    const uint64_t after = info_of(observed, kind).free_bytes;
    fell = fell || (before >= during && before - during >= bytes);
    rose = rose || (after >= during && after - during >= bytes);
  }
  const char* const where = &observed == &owner ? "" : " through another handle of the device";
  context.require(fell, "free_bytes did not fall by the {} bytes that were allocated{}", bytes, where);
  context.require(rose, "free_bytes did not rise by the {} bytes that were freed{}", bytes, where);
}

void moves(Context& context, uint32_t kind, uint64_t bytes) {
  need_kind(context, kind);
  require_moves(context, context.device(), context.device(), kind, bytes);
}

void covers_all_handles(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device other(context.plugin(), context.device_index());
  require_moves(context, context.device(), other, kind, 4u << 20);
  require_moves(context, other, context.device(), kind, 4u << 20);
}

void many_are_all_given_back(Context& context, uint32_t kind) {
  need_kind(context, kind);
  Device& device = context.device();
  if (info_of(device, kind).free_bytes == UINT64_MAX) return;
  constexpr uint64_t bytes = 256u << 10;
  uint64_t lost = UINT64_MAX;
  for (int attempt = 0; attempt < 6 && lost >= bytes; ++attempt) {
    const uint64_t before = info_of(device, kind).free_bytes;
    for (int round = 0; round < 16; ++round) {
      const Buffer first(device, bytes, kind), second(device, bytes, kind), third(device, 3, kind);
    }
    const uint64_t after = info_of(device, kind).free_bytes;
    lost = after < before ? before - after : 0;
  }
  context.require(lost < bytes, "{} bytes are missing after 48 buffers were created and destroyed", lost);
}

// Checks that a quarter of the free memory can be allocated. The case writes nothing to the memory.
// Other processes may also allocate memory, so the case makes several attempts.
void free_can_be_had(Context& context) {
  Device& device = context.device();
  std::string refused;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const bp_memory_info info = info_of(device, BP_MEMORY_DEVICE);
    if (info.free_bytes == UINT64_MAX) return;
    std::vector<Owner<bp_buffer, &bp_device_api::buffer_destroy>> held;
    refused.clear();
    for (uint64_t left = info.free_bytes / 4; left != 0 && held.size() < 64 && refused.empty();) {
      bp_buffer_desc desc = {};
      desc.struct_size = sizeof(desc);
      desc.bytes = std::min(left, device.info().max_buffer_bytes);
      bp_buffer* buffer = nullptr;
      ErrorRecord error;
      const bp_status status = device->buffer_create(device.get(), &desc, &buffer, &error);
      expect_status(status, error, "buffer_create", {BP_OK, BP_OUT_OF_MEMORY});
      if (status == BP_OUT_OF_MEMORY) {
        refused =
            fmt::format("memory_info states {} free bytes, and buffer_create cannot allocate a quarter of them: {}",
                        info.free_bytes, error.text(status));
        break;
      }
      held.emplace_back(device, buffer);
      left -= desc.bytes;
    }
    if (refused.empty()) return;
  }
  context.fail("{}", refused);
}

void info_from_threads(Context& context) {
  Device& device = context.device();
  in_threads(context, 4, [&](unsigned) {
    for (int i = 0; i < 50; ++i) {
      const bp_memory_info info = info_of(device, BP_MEMORY_DEVICE);
      context.require(info.free_bytes <= info.total_bytes || info.free_bytes == UINT64_MAX, "{} of {} bytes are free",
                      info.free_bytes, info.total_bytes);
      const Buffer buffer(device, 4096);
    }
  });
}

}  // namespace

void add_memory_cases(Catalogue& catalogue) {
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    const auto add = [&](std::string what, std::string_view requirement, std::function<void(Context&)> run) {
      add_case(catalogue, fmt::format("runtime.memory_info.{}_{}", kind_name(kind), what), {requirement},
               std::move(run), kind_extension(kind));
    };
    add("bounds", "BP-MEMI-001", [kind](Context& context) { bounds(context, kind); });
    add("total_is_stable", "BP-MEMI-004", [kind](Context& context) { total_is_stable(context, kind); });
    for (const uint64_t mebibytes : {4u, 16u, 64u})
      add(fmt::format("moves_by_{}_mib", mebibytes), "BP-MEMI-003",
          [kind, mebibytes](Context& context) { moves(context, kind, mebibytes << 20); });
    add("all_given_back", "BP-MEMI-003", [kind](Context& context) { many_are_all_given_back(context, kind); });
    add("covers_all_handles", "BP-MEMI-006", [kind](Context& context) { covers_all_handles(context, kind); });
    catalogue.back().since = kSharedSince;
  }
  add_case(catalogue, "runtime.memory_info.free_can_be_had", {"BP-MEMI-005"}, free_can_be_had);
  catalogue.back().large = true;
  add_case(catalogue, "runtime.memory_info.from_threads", {"BP-MEMI-004", "BP-THR-002"}, info_from_threads);
}

}  // namespace backplane::conformance
