// SPDX-License-Identifier: Apache-2.0
// Test cases for bp_device_info, before and after a device is opened.
#include <bit>
#include <cstring>

#include "cases/abi/cases.hpp"
#include "cases/support/health_check.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

bool same(const bp_device_info& a, const bp_device_info& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

void for_each_device(Context& context, const std::function<void(uint32_t, const bp_device_info&)>& body) {
  const uint32_t count = context.plugin().device_count();
  context.require(count > context.device_index(), "device {} is requested, there are {}", context.device_index(),
                  count);
  for (uint32_t index = 0; index < count; ++index) body(index, context.plugin().device_info(index));
}

void text_field(Context& context, const char (&field)[128], const char* name, uint32_t index) {
  const size_t length = strnlen(field, sizeof(field));
  context.require(length < sizeof(field), "{} of device {} has no NUL", name, index);
  context.require(length != 0, "{} of device {} is empty", name, index);
  context.require(is_text({field, length}), "{} of device {} is not UTF-8 text", name, index);
}

void count_is_stable(Context& context) {
  const uint32_t first = context.plugin().device_count();
  for (int i = 0; i < 32; ++i) {
    const uint32_t again = context.plugin().device_count();
    context.require(again == first, "device_count was {} and is {}", first, again);
  }
  const Device device(context.plugin(), context.device_index());
  context.require(context.plugin().device_count() == first, "an open device changed device_count");
}

void info_is_stable(Context& context) {
  for_each_device(context, [&](uint32_t index, const bp_device_info& first) {
    for (int i = 0; i < 8; ++i)
      context.require(same(first, context.plugin().device_info(index)), "bp_device_info of device {} changed", index);
  });
}

void info_is_the_same_while_open(Context& context) {
  const bp_device_info before = context.plugin().device_info(context.device_index());
  Device device(context.plugin(), context.device_index());
  const Buffer buffer(device, 1u << 20);
  context.require(same(before, context.plugin().device_info(context.device_index())),
                  "bp_device_info changed when the device was opened and used");
}

void info_of_another_instance(Context& context) {
  const Plugin other(context.path());
  context.require(other.device_count() == context.plugin().device_count(), "two instances see different devices");
  for_each_device(context, [&](uint32_t index, const bp_device_info& info) {
    context.require(same(info, other.device_info(index)), "two instances return different properties of device {}",
                    index);
  });
}

void threads_ask_at_once(Context& context) {
  const bp_device_info known = context.plugin().device_info(context.device_index());
  const uint32_t count = context.plugin().device_count();
  in_threads(context, 8, [&](unsigned) {
    for (int i = 0; i < 50; ++i) {
      context.require(context.plugin().device_count() == count, "device_count changed under threads");
      context.require(same(known, context.plugin().device_info(context.device_index())),
                      "bp_device_info changed under threads");
    }
  });
}

void threads_open_at_once(Context& context) {
  Plugin& plugin = context.plugin();
  in_threads(context, 8, [&](unsigned) {
    for (int i = 0; i < 4; ++i) {
      Device device(plugin, context.device_index());
      Stream(device).wait();
    }
  });
}

// Checks that device_open accepts `desc`, which is null or states no options.
void opens(Context& context, const bp_device_desc* desc) {
  Plugin& plugin = context.plugin();
  bp_device* device = nullptr;
  ErrorRecord error;
  expect_status(plugin->device_open(plugin.get(), context.device_index(), desc, &device, &error), error, "device_open",
                {BP_OK});
  context.require(device != nullptr, "device_open returned OK with a null device");
  plugin.slots().close(device);
}

void opens_are_their_own(Context& context) {
  Plugin& plugin = context.plugin();
  Device first(plugin, context.device_index());
  auto second = std::make_unique<Device>(plugin, context.device_index());
  context.require(first.get() != second->get(), "two opens of a device gave one handle");
  Stream stream(first);
  Buffer buffer(first, 4096);
  const Buffer other(*second, 4096);
  const std::vector<unsigned char> data(4096, 0x77);
  first.write(buffer.get(), 0, data.data(), data.size());
  { const Buffer moved = Buffer(*second, 4096); }
  const_cast<Buffer&>(other).reset();
  second.reset();
  std::vector<unsigned char> got(4096);
  first.read(buffer.get(), 0, got.data(), got.size(), stream.get());
  context.require(got == data, "closing one open of a device disturbed another");
}

using Check = void (*)(Context&, uint32_t, const bp_device_info&);
struct Field {
  const char* name;
  std::string_view requirement;
  Check check;
};
constexpr uint64_t kKnownKinds = (uint64_t{1} << BP_MEMORY_KINDS) - 1;
constexpr uint64_t kKnownCapabilities = BP_CAP_SYNCHRONOUS | BP_CAP_HOST_OPERANDS | BP_CAP_FTZ_F32 |
                                        BP_CAP_DETERMINISTIC | BP_CAP_TIMING | BP_CAP_UNIFIED_MEMORY |
                                        BP_CAP_PROCESS_ADDRESSES;
constexpr Field kFields[] = {
    {"name", "BP-DEV-003",
     [](Context& context, uint32_t index, const bp_device_info& info) {
       text_field(context, info.name, "name", index);
     }},
    {"driver", "BP-DEV-003",
     [](Context& context, uint32_t index, const bp_device_info& info) {
       text_field(context, info.driver, "driver", index);
     }},
    {"type", "BP-DEV-018",
     [](Context& context, uint32_t index, const bp_device_info& info) {
       context.require(info.type >= BP_DEVICE_CPU && info.type <= BP_DEVICE_OTHER, "type of device {} is {}", index,
                       info.type);
     }},
    {"alignment", "BP-DEV-009",
     [](Context& context, uint32_t index, const bp_device_info& info) {
       context.require(std::has_single_bit(info.alignment), "alignment of device {} is {}, which is not a power of two",
                       index, info.alignment);
       context.require(info.alignment >= 8, "alignment of device {} is {}: an f64 would not be aligned", index,
                       info.alignment);
     }},
    {"max_buffer_bytes", "BP-DEV-012",
     [](Context& context, uint32_t index, const bp_device_info& info) {
       context.require(info.max_buffer_bytes != 0, "max_buffer_bytes of device {} is 0", index);
     }},
    {"memory_kinds", "BP-DEV-010",
     [](Context& context, uint32_t index, const bp_device_info& info) {
       context.require((info.memory_kinds >> BP_MEMORY_DEVICE & 1) != 0, "memory_kinds of device {} lacks DEVICE",
                       index);
       context.require((info.memory_kinds & ~kKnownKinds) == 0, "memory_kinds of device {} is {:#x}", index,
                       info.memory_kinds);
     }},
    {"capabilities", "BP-DEV-011",
     [](Context& context, uint32_t index, const bp_device_info& info) {
       context.require((info.capabilities & ~kKnownCapabilities) == 0, "capabilities of device {} are {:#x}", index,
                       info.capabilities);
     }},
    {"dlpack", "BP-DEV-018",
     [](Context& context, uint32_t index, const bp_device_info& info) {
       for (uint32_t kind = 0; kind < 4; ++kind)
         context.require(info.dlpack_type[kind] == 0 || (info.memory_kinds >> kind & 1) != 0,
                         "device {} has a dlpack_type for memory of kind {}, which it does not offer", index, kind);
       context.require(info.dlpack_id >= 0, "dlpack_id of device {} is {}", index, info.dlpack_id);
     }},
    {"reserved", "BP-SIZE-005",
     [](Context& context, uint32_t index, const bp_device_info& info) {
       context.require(info.reserved == 0, "reserved of device {} is {}", index, info.reserved);
     }},
};

}  // namespace

void add_device_info_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    catalogue.push_back(
        {.id = "abi.device." + std::move(what), .requirements = std::move(requirements), .run = std::move(run)});
  };
  for (const Field& field : kFields)
    add(fmt::format("info_{}", field.name), {field.requirement}, [&field](Context& context) {
      for_each_device(context, [&](uint32_t index, const bp_device_info& info) { field.check(context, index, info); });
    });
  add("count_is_stable", {"BP-DEV-001"}, count_is_stable);
  add("info_is_stable", {"BP-DEV-002"}, info_is_stable);
  add("info_is_the_same_while_open", {"BP-DEV-002"}, info_is_the_same_while_open);
  add("info_of_another_instance", {"BP-DEV-002"}, info_of_another_instance);
  add("threads_ask_at_once", {"BP-DEV-013", "BP-THR-002"}, threads_ask_at_once);
  add("threads_open_at_once", {"BP-DEV-013", "BP-THR-002"}, threads_open_at_once);
  add("opens_are_their_own", {"BP-DEV-008"}, opens_are_their_own);
  add("opens_without_desc", {"BP-DEV-007"}, [](Context& context) { opens(context, nullptr); });
  add("opens_with_null_options", {"BP-DEV-007"}, [](Context& context) {
    const bp_device_desc desc = {sizeof(desc), 0, nullptr};
    opens(context, &desc);
  });
  add("opens_with_empty_options", {"BP-DEV-007"}, [](Context& context) {
    const bp_device_desc desc = {sizeof(desc), 0, ""};
    opens(context, &desc);
  });
}

}  // namespace backplane::conformance
