// SPDX-License-Identifier: Apache-2.0
// Each input struct at each size that a host of another version may give it, with a page behind it that ends who reads on.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "cases/abi/parts.hpp"
#include "cases/support/guarded.hpp"
#include "cases/support/op_desc.hpp"
#include "cases/support/well.hpp"

namespace bp::conformance {

namespace {

// A size, and a byte beyond today's struct that a newer host set.
struct Variant {
  const char* name;
  size_t (*size)(size_t minimum, size_t current);
  ptrdiff_t set_byte;  // from the end of today's struct; -1: none
};
constexpr Variant variants[] = {
    {"minimum", [](size_t minimum, size_t) { return minimum; }, -1},
    {"current", [](size_t, size_t current) { return current; }, -1},
    {"zero_tail_8", [](size_t, size_t current) { return current + 8; }, -1},
    {"zero_tail_64", [](size_t, size_t current) { return current + 64; }, -1},
    {"zero_tail_to_the_limit", [](size_t, size_t) -> size_t { return BP_STRUCT_LIMIT; }, -1},
    {"set_tail_first", [](size_t, size_t current) { return current + 64; }, 0},
    {"set_tail_middle", [](size_t, size_t current) { return current + 64; }, 33},
    {"set_tail_last", [](size_t, size_t current) { return current + 64; }, 63},
};
constexpr Variant too_small[] = {
    {"size_0", [](size_t, size_t) -> size_t { return 0; }, -1},
    {"size_4", [](size_t, size_t) -> size_t { return 4; }, -1},
    {"below_minimum", [](size_t minimum, size_t) { return minimum - 1; }, -1},
};
// Above the limit: what a host that did not set the size asks for. Nothing behind the struct may be read.
constexpr Variant too_large[] = {
    {"above_the_limit", [](size_t, size_t) -> size_t { return BP_STRUCT_LIMIT + 1; }, -1},
    {"uninitialised", [](size_t, size_t) -> size_t { return 0xCDCDCDCD; }, -1},
    {"size_max", [](size_t, size_t) -> size_t { return UINT32_MAX; }, -1},
};

// One try: today's struct, and the call that gets it in other clothes.
struct Trial {
  std::vector<unsigned char> value;
  std::function<bp_status(void* bytes, bp_error* error)> call;
};

// How a struct reaches the plugin.
struct Role {
  std::string name;
  size_t minimum, current;
  std::function<Trial(Context&)> start;
};

template <typename T>
std::vector<unsigned char> bytes_of(const T& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
  return {bytes, bytes + sizeof(T)};
}

void run(Context& context, const Role& role, const Variant& variant) {
  const Trial trial = role.start(context);
  const std::vector<unsigned char>& value = trial.value;
  const size_t size = variant.size(role.minimum, role.current);
  const bool above = size > BP_STRUCT_LIMIT;
  const GuardedBytes bytes(above ? role.current : std::max<size_t>(size, 4));
  std::memcpy(bytes.data(), value.data(), std::min(bytes.size(), value.size()));
  const auto stated = static_cast<uint32_t>(size);
  std::memcpy(bytes.data(), &stated, sizeof(stated));
  if (variant.set_byte >= 0) bytes.data()[role.current + static_cast<size_t>(variant.set_byte)] = 1;
  const std::vector<unsigned char> before(bytes.data(), bytes.data() + bytes.size());
  ErrorRecord error;
  const bp_status status = trial.call(bytes.data(), &error);
  if (variant.set_byte >= 0) {
    expect_status(status, error, role.name, {BP_UNSUPPORTED});
  } else if (above) {
    expect_status(status, error, role.name, {BP_INVALID_ARGUMENT});
  } else if (size < role.minimum) {
    expect_status(status, error, role.name, {BP_INVALID_ARGUMENT, BP_UNSUPPORTED});
  } else {
    expect_status(status, error, role.name, {BP_OK});
  }
  context.require(std::memcmp(before.data(), bytes.data(), before.size()) == 0, "{} wrote to its input struct",
                  role.name);
  require_well(context);
}

// `claim` ends the case as not claimed where the plugin lacks what it needs.
template <typename T>
Role of_create(
    std::string name, size_t minimum, T value, std::function<bp_status(Context&, const T*, bp_error*)> call,
    void (*claim)(Context&) = [](Context&) {}) {
  value.struct_size = sizeof(T);
  return {std::move(name), minimum, sizeof(T), [value, call = std::move(call), claim](Context& context) {
            claim(context);
            return Trial{bytes_of(value), [&context, call](void* bytes, bp_error* error) {
                           return call(context, static_cast<const T*>(bytes), error);
                         }};
          }};
}

template <typename Handle>
bp_status ended(Device& device, bp_status status, Handle* handle, void (*end)(bp_device*, Handle*)) {
  if (status == BP_OK && handle != nullptr) end(device.get(), handle);
  return status;
}

std::vector<Role> create_roles() {
  std::vector<Role> roles;
  bp_buffer_desc buffer = {};
  buffer.bytes = 100;
  roles.push_back(of_create<bp_buffer_desc>(
      "buffer_create", BP_BUFFER_DESC_MIN_SIZE, buffer, [](Context& context, const auto* desc, bp_error* error) {
        Device& device = context.device();
        bp_buffer* made = nullptr;
        return ended(device, device->buffer_create(device.get(), desc, &made, error), made, device->buffer_destroy);
      }));
  bp_stream_desc stream = {};
  stream.priority = 1;
  roles.push_back(of_create<bp_stream_desc>(
      "stream_create", BP_STREAM_DESC_MIN_SIZE, stream, [](Context& context, const auto* desc, bp_error* error) {
        Device& device = context.device();
        bp_stream* made = nullptr;
        return ended(device, device->stream_create(device.get(), desc, &made, error), made, device->stream_destroy);
      }));
  roles.push_back(of_create<bp_device_desc>(
      "device_open", BP_DEVICE_DESC_MIN_SIZE, {}, [](Context& context, const auto* desc, bp_error* error) {
        Plugin& plugin = context.plugin();
        bp_device* made = nullptr;
        const bp_status status = plugin->device_open(plugin.get(), context.device_index(), desc, &made, error);
        if (status == BP_OK && made != nullptr) plugin.slots().close(made);
        return status;
      }));
  return roles;
}

// The same for bp.import, where a plugin has it; of pages that live as long as the case.
Role import_role() {
  return {
      "import_memory", BP_IMPORT_DESC_MIN_SIZE, sizeof(bp_import_desc), [](Context& context) {
        Plugin& plugin = context.plugin();
        Device& device = context.device();
        const auto* table = plugin->get_interface == nullptr ? nullptr
                                                             : static_cast<const bp_import_api*>(plugin->get_interface(
                                                                   plugin.get(), device.get(), BP_INTERFACE_IMPORT, 1));
        if (table == nullptr) context.not_claimed("the device has no bp.import");
        auto pages = std::make_shared<GuardedBytes>(65536);
        const bp_import_desc desc = {sizeof(desc), BP_IMPORT_HOST, reinterpret_cast<uint64_t>(pages->data()), 65536};
        return Trial{bytes_of(desc), [&device, table, pages](void* bytes, bp_error* error) {
                       bp_buffer* made = nullptr;
                       uint32_t kind = 0;
                       const auto* given = static_cast<const bp_import_desc*>(bytes);
                       return ended(device, table->import_memory(device.get(), given, &kind, &made, error), made,
                                    device->buffer_destroy);
                     }};
      }};
}

OpDesc& neg() {
  static OpDesc desc = elementwise(BP_OP_NEG, BP_F32, 8);
  return desc;
}

// An execution of it with all that it points at.
struct Execution {
  explicit Execution(Device& device)
      : plan(device, neg().get()), from(device, 32), to(device, 32), workspace(device, nullptr), stream(device) {
    if (plan.info.workspace_bytes != 0) {
      Buffer made(device, plan.info.workspace_bytes);
      workspace = Owner<bp_buffer, &bp_device_api::buffer_destroy>(device, made.release());
    }
    known.struct_size = sizeof(known);
    known.desc = &neg().get();
    known.inputs = &input;
    known.outputs = &output;
    known.workspace = workspace.get();
    known.workspace_bytes = plan.info.workspace_bytes;
  }
  bp_status run(const bp_execution* execution, bp_error* error) {
    Device& device = stream.device();
    const bp_status status = device->plan_execute(device.get(), stream.get(), plan.get(), execution, error);
    stream.wait();
    return status;
  }

  Plan plan;
  Buffer from, to;
  Owner<bp_buffer, &bp_device_api::buffer_destroy> workspace;
  Stream stream;
  bp_operand input{from.get(), 0, 0}, output{to.get(), 0, 0};
  bp_execution known{};
};

std::vector<Role> plan_roles() {
  std::vector<Role> roles;
  for (const bool make : {true, false})
    roles.push_back(of_create<bp_op_desc>(
        make ? "plan_create" : "plan_create_question", BP_OP_DESC_MIN_SIZE, neg().get(),
        [make](Context& context, const auto* desc, bp_error* error) {
          Device& device = context.device();
          bp_plan* made = nullptr;
          bp_plan_info info = {};
          info.struct_size = sizeof(info);
          return ended(device, device->plan_create(device.get(), desc, make ? &made : nullptr, &info, error), made,
                       device->plan_destroy);
        },
        [](Context& context) { const Plan claimed(context.device(), neg().get()); }));
  roles.push_back({"plan_execute", BP_EXECUTION_MIN_SIZE, sizeof(bp_execution), [](Context& context) {
                     auto made = std::make_shared<Execution>(context.device());
                     return Trial{bytes_of(made->known), [made](void* bytes, bp_error* error) {
                                    return made->run(static_cast<bp_execution*>(bytes), error);
                                  }};
                   }});
  roles.push_back({"plan_execute_desc", BP_OP_DESC_MIN_SIZE, sizeof(bp_op_desc), [](Context& context) {
                     auto made = std::make_shared<Execution>(context.device());
                     return Trial{bytes_of(neg().get()), [made](void* bytes, bp_error* error) {
                                    made->known.desc = static_cast<bp_op_desc*>(bytes);
                                    return made->run(&made->known, error);
                                  }};
                   }});
  return roles;
}

void add(Catalogue& catalogue, const Role& role, const Variant& variant) {
  std::vector<std::string_view> cites = {"BP-SIZE-001"};
  if (variant.set_byte >= 0) {
    cites.push_back("BP-SIZE-002");
  } else {
    const size_t size = variant.size(role.minimum, role.current);
    cites.push_back(size > BP_STRUCT_LIMIT ? "BP-SIZE-009" : size < role.minimum ? "BP-SIZE-007" : "BP-SIZE-003");
    cites.push_back("BP-SIZE-008");
  }
  catalogue.push_back({.id = fmt::format("abi.input.{}.{}", role.name, variant.name),
                       .requirements = std::move(cites),
                       .run = [role, variant](Context& context) { run(context, role, variant); }});
}

// Attributes of each operator that has them, at plan_create.
Role attribute_role(const bph_op_info& op) {
  return {fmt::format("attributes_of_{}", op.name), op.attribute_bytes, op.attribute_bytes, [op](Context& context) {
            const Plan claimed(context.device(), sample(op, usual_dtype(op)).get());
            return Trial{sample(op, usual_dtype(op)).attribute_bytes(), [&context, op](void* bytes, bp_error* error) {
                           Device& device = context.device();
                           OpDesc desc = sample(op, usual_dtype(op));
                           bp_op_desc raw = desc.get();
                           raw.attributes = bytes;
                           bp_plan* made = nullptr;
                           bp_plan_info info = {};
                           info.struct_size = sizeof(info);
                           return ended(device, device->plan_create(device.get(), &raw, &made, &info, error), made,
                                        device->plan_destroy);
                         }};
          }};
}

}  // namespace

void add_input_size_cases(Catalogue& catalogue) {
  std::vector<Role> roles = create_roles();
  for (Role& role : plan_roles()) roles.push_back(std::move(role));
  roles.push_back(import_role());
  for (const bph_op_info& op : primitives())
    if (op.attribute_bytes != 0) roles.push_back(attribute_role(op));
  for (const Role& role : roles) {
    for (const Variant& variant : too_small) add(catalogue, role, variant);
    for (const Variant& variant : too_large) add(catalogue, role, variant);
    for (const Variant& variant : variants) add(catalogue, role, variant);
  }
}

}  // namespace bp::conformance
