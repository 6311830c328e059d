// SPDX-License-Identifier: Apache-2.0
// Tests each input struct with the sizes that hosts of other ABI versions may pass. A guard page
// follows the struct.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "cases/abi/cases.hpp"
#include "cases/runtime/external.hpp"
#include "cases/runtime/native.hpp"
#include "cases/support/guarded.hpp"
#include "cases/support/health_check.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

// A struct size to test, optionally with a nonzero byte beyond the current struct.
struct Variant {
  const char* name;
  size_t (*size)(size_t minimum, size_t current);
  ptrdiff_t set_byte;  // offset of the nonzero byte from the end of the current struct; -1 means none
};
constexpr Variant kVariants[] = {
    {"minimum", [](size_t minimum, size_t) { return minimum; }, -1},
    {"current", [](size_t, size_t current) { return current; }, -1},
    {"zero_tail_8", [](size_t, size_t current) { return current + 8; }, -1},
    {"zero_tail_64", [](size_t, size_t current) { return current + 64; }, -1},
    {"zero_tail_to_the_limit", [](size_t, size_t) -> size_t { return BP_STRUCT_LIMIT; }, -1},
};
constexpr Variant kSetTails[] = {
    {"set_tail_first", [](size_t, size_t current) { return current + 64; }, 0},
    {"set_tail_middle", [](size_t, size_t current) { return current + 64; }, 33},
    {"set_tail_last", [](size_t, size_t current) { return current + 64; }, 63},
};
constexpr Variant kIllegalSizes[] = {
    {"size_0", [](size_t, size_t) -> size_t { return 0; }, -1},
    {"size_4", [](size_t, size_t) -> size_t { return 4; }, -1},
    {"below_minimum", [](size_t minimum, size_t) { return minimum - 1; }, -1},
    {"above_the_limit", [](size_t, size_t) -> size_t { return BP_STRUCT_LIMIT + 8; }, -1},
    {"uninitialised", [](size_t, size_t) -> size_t { return 0xCCCCCCC8; }, -1},
};

// A call, and the initial bytes of the struct that the call passes.
struct Trial {
  std::vector<unsigned char> value;
  std::function<bp_status(void* bytes, bp_error* error)> call;
};

// One struct argument of one slot, with its minimum and current sizes.
struct InputRole {
  std::string name;
  size_t minimum, current;
  std::function<Trial(Context&)> start;
};

template <typename T>
std::vector<unsigned char> bytes_of(const T& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
  return {bytes, bytes + sizeof(T)};
}

// Runs `trial` with a struct of `held` bytes that ends at an inaccessible page. The struct_size
// field contains `stated`. If `set_byte` is not negative, the byte at that offset is 1.
bp_status call_with(Context& context, const std::string& name, const Trial& trial, size_t stated, size_t held,
                    ptrdiff_t set_byte, ErrorRecord& error) {
  const GuardedBytes bytes(std::max<size_t>(held, 4));
  std::memcpy(bytes.data(), trial.value.data(), std::min(bytes.size(), trial.value.size()));
  const auto size = static_cast<uint32_t>(stated);
  std::memcpy(bytes.data(), &size, sizeof(size));
  if (set_byte >= 0) bytes.data()[set_byte] = 1;
  const std::vector<unsigned char> before(bytes.data(), bytes.data() + bytes.size());
  const bp_status status = trial.call(bytes.data(), &error);
  context.require(std::memcmp(before.data(), bytes.data(), before.size()) == 0, "{} wrote to its input struct", name);
  return status;
}

void run_input(Context& context, const InputRole& role, const Variant& variant) {
  const Trial trial = role.start(context);
  const size_t size = variant.size(role.minimum, role.current);
  const size_t held = size > BP_STRUCT_LIMIT ? role.current : size;
  const ptrdiff_t set = variant.set_byte < 0 ? -1 : static_cast<ptrdiff_t>(role.current) + variant.set_byte;
  ErrorRecord error;
  const bp_status status = call_with(context, role.name, trial, size, held, set, error);
  const bool legal = size >= role.minimum && size <= BP_STRUCT_LIMIT;
  expect_status(status, error, role.name, {set >= 0 ? BP_UNSUPPORTED : legal ? BP_OK : BP_INVALID_ARGUMENT});
  require_healthy(context);
}

// Returns the InputRole of the descriptor that a slot such as buffer_create receives. `claim` ends
// the case as not claimed if the plugin lacks a prerequisite.
template <typename T>
InputRole of_create(
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

std::vector<InputRole> create_roles() {
  std::vector<InputRole> roles;
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

// Returns the InputRole of the descriptor that import_memory of bp.import receives. Trial::call owns
// the imported pages.
InputRole import_role() {
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

constexpr std::string_view kStreamWrap = "stream_wrap", kBufferWrap = "buffer_wrap";

// Returns the InputRole of the handle that a slot of bp.native wraps.
InputRole wrap_role(std::string_view name, bool of_stream) {
  return {std::string(name), BP_NATIVE_HANDLE_MIN_SIZE, sizeof(bp_native_handle), [of_stream](Context& context) {
            Device& device = context.device();
            const bp_native_api table = native_of(context, device);
            if (of_stream) {
              if (table.stream_wrap == nullptr) context.not_claimed("the device has no stream_wrap");
              auto own = std::make_shared<Stream>(device);
              return Trial{bytes_of(handle_of(context, *own)), [&device, table, own](void* bytes, bp_error* error) {
                             bp_stream* made = nullptr;
                             const auto* given = static_cast<const bp_native_handle*>(bytes);
                             return ended(device, table.stream_wrap(device.get(), given, &made, error), made,
                                          device->stream_destroy);
                           }};
            }
            if (table.buffer_wrap == nullptr) context.not_claimed("the device has no buffer_wrap");
            auto buffer = std::make_shared<Buffer>(device, 4096);
            return Trial{bytes_of(handle_of(context, *buffer)), [&device, table, buffer](void* bytes, bp_error* error) {
                           bp_buffer* made = nullptr;
                           uint32_t kind = 0;
                           const auto* given = static_cast<const bp_native_handle*>(bytes);
                           return ended(device, table.buffer_wrap(device.get(), given, &kind, &made, error), made,
                                        device->buffer_destroy);
                         }};
          }};
}

constexpr std::string_view kBufferImport = "buffer_import", kSemaphoreImport = "semaphore_import";

// Returns the InputRole of the handle that buffer_import of bp.external receives.
InputRole memory_import_role() {
  return {std::string(kBufferImport), BP_EXTERNAL_HANDLE_MIN_SIZE, sizeof(bp_external_handle), [](Context& context) {
            Device& device = context.device();
            const std::string type = type_with(context, BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT);
            auto own =
                std::make_shared<Exported>(export_of(context, external_buffer(context, device, type, 4096), type));
            const auto slot = external_of(context, device).buffer_import;
            return Trial{bytes_of(own->handle), [&device, slot, own](void* bytes, bp_error* error) {
                           bp_buffer* made = nullptr;
                           uint32_t kind = 0;
                           const auto* given = static_cast<const bp_external_handle*>(bytes);
                           return ended(device, slot(device.get(), given, &kind, &made, error), made,
                                        device->buffer_destroy);
                         }};
          }};
}
// Returns the InputRole of the handle that semaphore_import of bp.external receives.
InputRole semaphore_import_role() {
  return {std::string(kSemaphoreImport), BP_EXTERNAL_HANDLE_MIN_SIZE, sizeof(bp_external_handle), [](Context& context) {
            Device& device = context.device();
            auto own = std::make_shared<Exported>(semaphore_on(context, device).exported(semaphore_type(context)));
            const bp_external_api table = external_of(context, device);
            return Trial{bytes_of(own->handle), [&device, table, own](void* bytes, bp_error* error) {
                           bp_semaphore* made = nullptr;
                           const auto* given = static_cast<const bp_external_handle*>(bytes);
                           return ended(device, table.semaphore_import(device.get(), given, &made, error), made,
                                        table.semaphore_destroy);
                         }};
          }};
}

// The extension of a role's cases, and the version that introduced the role's struct.
struct RoleOrigin {
  std::string_view extension = {};
  uint32_t since = BP_VERSION(0, 2);
};
RoleOrigin origin_of(const InputRole& role) {
  if (role.name == kStreamWrap || role.name == kBufferWrap) return {kNativeExtension, kNativeSince};
  if (role.name == kBufferImport) return {kExternalExtension, kExternalSince};
  if (role.name == kSemaphoreImport) return {kSemaphoreExtension, kExternalSince};
  if (role.name == "import_memory") return {"IMPORT"};
  return {};
}

OpDesc& neg() {
  static OpDesc desc = elementwise(BP_OP_NEG, BP_F32, 8);
  return desc;
}

// A bp_execution of the neg operator, with the plan, the buffers and the stream that it needs.
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
  bp_status run_input(const bp_execution* execution, bp_error* error) {
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

void add_plan_roles(std::vector<InputRole>& roles) {
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
}

std::vector<InputRole> execution_roles() {
  std::vector<InputRole> roles;
  roles.push_back({"plan_execute", BP_EXECUTION_MIN_SIZE, sizeof(bp_execution), [](Context& context) {
                     auto made = std::make_shared<Execution>(context.device());
                     return Trial{bytes_of(made->known), [made](void* bytes, bp_error* error) {
                                    return made->run_input(static_cast<bp_execution*>(bytes), error);
                                  }};
                   }});
  roles.push_back({"plan_execute_desc", BP_OP_DESC_MIN_SIZE, sizeof(bp_op_desc), [](Context& context) {
                     auto made = std::make_shared<Execution>(context.device());
                     return Trial{bytes_of(neg().get()), [made](void* bytes, bp_error* error) {
                                    made->known.desc = static_cast<bp_op_desc*>(bytes);
                                    return made->run_input(&made->known, error);
                                  }};
                   }});
  return roles;
}

void add_input(Catalogue& catalogue, const InputRole& role, const Variant& variant) {
  std::vector<std::string_view> cites = {"BP-SIZE-001"};
  const size_t size = variant.size(role.minimum, role.current);
  if (variant.set_byte >= 0) {
    cites.push_back("BP-SIZE-002");
  } else if (size > BP_STRUCT_LIMIT) {
    cites.push_back("BP-SIZE-009");
  } else {
    cites.push_back(size < role.minimum ? "BP-SIZE-007" : "BP-SIZE-003");
    cites.push_back("BP-SIZE-008");
  }
  const RoleOrigin origin = origin_of(role);
  catalogue.push_back({.id = fmt::format("abi.input.{}.{}", role.name, variant.name),
                       .extension = origin.extension,
                       .requirements = std::move(cites),
                       .run = [role, variant](Context& context) { run_input(context, role, variant); },
                       .since = origin.since});
}

// ---- Sizes of attribute structs, which plan_create receives

Trial attribute_trial(Context& context, const bph_op_info& op) {
  OpDesc desc = sample(op, usual_dtype(op));
  std::vector<unsigned char> bytes = desc.attribute_bytes();
  if (bytes.empty()) {
    const bp_no_attributes none = {sizeof(none), 0};
    bytes = bytes_of(none);
  }
  return {std::move(bytes), [&context, op](void* attributes, bp_error* error) {
            Device& device = context.device();
            OpDesc made = sample(op, usual_dtype(op));
            bp_op_desc raw = made.get();
            raw.attributes = attributes;
            bp_plan* plan = nullptr;
            bp_plan_info info = {};
            info.struct_size = sizeof(info);
            return ended(device, device->plan_create(device.get(), &raw, &plan, &info, error), plan,
                         device->plan_destroy);
          }};
}

std::string attributes_of(const bph_op_info& op) { return fmt::format("attributes_of_{}", op.name); }

// Calls plan_create with an attribute struct of `size` bytes, and with a full struct whose
// remaining bytes are zero. Both calls must return the same status.
void run_shorter(Context& context, const bph_op_info& op, size_t size) {
  const Plan claimed(context.device(), sample(op, usual_dtype(op)).get());
  const Trial trial = attribute_trial(context, op);
  Trial whole = trial;
  std::fill(whole.value.begin() + static_cast<ptrdiff_t>(size), whole.value.end(), static_cast<unsigned char>(0));
  ErrorRecord error, expected_error;
  const bp_status expected =
      call_with(context, attributes_of(op), whole, whole.value.size(), whole.value.size(), -1, expected_error);
  const bp_status status = call_with(context, attributes_of(op), trial, size, size, -1, error);
  expect_status(status, error, fmt::format("{} at struct_size {}", attributes_of(op), size), {expected});
  require_healthy(context);
}

struct AttributeSize {
  const char* name;
  size_t stated, held;
  ptrdiff_t set_byte;  // offset of the byte that is set to 1; -1 means none
  bp_status expected;
  std::string_view requirement;
};

void run_size(Context& context, const bph_op_info& op, const AttributeSize& variant) {
  const Plan claimed(context.device(), sample(op, usual_dtype(op)).get());
  ErrorRecord error;
  const bp_status status = call_with(context, attributes_of(op), attribute_trial(context, op), variant.stated,
                                     variant.held, variant.set_byte, error);
  expect_status(status, error, attributes_of(op), {variant.expected});
  require_healthy(context);
}

void add_attribute_cases(Catalogue& catalogue, const bph_op_info& op) {
  const size_t now = std::max(op.attribute_bytes, BP_ATTRIBUTES_MIN_SIZE);
  for (size_t size = BP_ATTRIBUTES_MIN_SIZE; size < now; size += 8) {
    catalogue.push_back({.id = fmt::format("abi.input.{}.size_{}", attributes_of(op), size),
                         .requirements = {"BP-SIZE-001", "BP-SIZE-010"},
                         .run = [op, size](Context& context) { run_shorter(context, op, size); }});
  }
  const auto end = static_cast<ptrdiff_t>(now);
  std::vector<AttributeSize> sizes = {
      {"current", now, now, -1, BP_OK, "BP-SIZE-008"},
      {"zero_tail_8", now + 8, now + 8, -1, BP_OK, "BP-SIZE-003"},
      {"zero_tail_to_the_limit", BP_STRUCT_LIMIT, BP_STRUCT_LIMIT, -1, BP_OK, "BP-SIZE-003"},
      {"set_tail_first", now + 8, now + 8, end, BP_UNSUPPORTED, "BP-SIZE-002"},
      {"set_tail_last", now + 64, now + 64, end + 63, BP_UNSUPPORTED, "BP-SIZE-002"},
      {"size_0", 0, now, -1, BP_INVALID_ARGUMENT, "BP-SIZE-007"},
      {"size_4", 4, 4, -1, BP_INVALID_ARGUMENT, "BP-SIZE-007"},
      {"size_9", 9, now + 8, -1, BP_INVALID_ARGUMENT, "BP-SIZE-011"},
      {"size_12", 12, now + 8, -1, BP_INVALID_ARGUMENT, "BP-SIZE-011"},
      {"above_the_limit", BP_STRUCT_LIMIT + 8, now, -1, BP_INVALID_ARGUMENT, "BP-SIZE-009"},
      {"uninitialised", 0xCCCCCCC8, now, -1, BP_INVALID_ARGUMENT, "BP-SIZE-009"},
  };
  if (op.attribute_bytes == 0) sizes.push_back({"field", 8, 8, 4, BP_UNSUPPORTED, "BP-SIZE-012"});
  for (const AttributeSize& variant : sizes) {
    std::vector<std::string_view> cites = {"BP-SIZE-001", variant.requirement};
    if (op.attribute_bytes == 0 && variant.expected == BP_OK) cites.push_back("BP-SIZE-012");
    catalogue.push_back({.id = fmt::format("abi.input.{}.{}", attributes_of(op), variant.name),
                         .requirements = std::move(cites),
                         .run = [op, variant](Context& context) { run_size(context, op, variant); }});
  }
}

// ---- Parts of a descriptor that must not affect results

// Checks that the neg operator still gives correct results after `spoil` has changed its
// descriptor.
void run_ignorable(Context& context, void (*spoil)(bp_op_desc& desc, std::vector<bp_tensor_desc>& inputs)) {
  Execution execution(context.device());
  std::vector<bp_tensor_desc> inputs = neg().inputs();
  bp_op_desc desc = neg().get();
  spoil(desc, inputs);
  desc.inputs = inputs.data();
  desc.input_count = static_cast<uint32_t>(inputs.size());
  std::vector<bp_operand> operands(inputs.size());
  operands[0] = execution.input;
  Device& device = context.device();
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  ErrorRecord own_error;
  expect_ok(device->plan_create(device.get(), &desc, nullptr, &info, &own_error), own_error, "plan_create");
  execution.plan = Plan(device, desc);
  execution.known.desc = &desc;
  execution.known.inputs = operands.data();
  const std::vector<float> values = {1, -2, 3, -4, 5, -6, 7, -8};
  std::vector<float> got(values.size());
  device.write(execution.from.get(), 0, values.data(), values.size() * sizeof(float));
  ErrorRecord error;
  expect_ok(execution.run_input(&execution.known, &error), error, "plan_execute");
  device.read(execution.to.get(), 0, got.data(), got.size() * sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) {
    context.require(got[i] == -values[i], "element {} is {}, not {}", i, got[i], -values[i]);
  }
}

}  // namespace

void add_input_size_cases(Catalogue& catalogue) {
  const auto add_ignorable = [&](const char* name, std::string_view requirement, auto spoil) {
    catalogue.push_back({.id = fmt::format("abi.input.op_desc.{}", name),
                         .requirements = {requirement},
                         .run = [spoil](Context& context) { run_ignorable(context, spoil); }});
  };
  add_ignorable("hints", "BP-SIZE-006",
                [](bp_op_desc& desc, std::vector<bp_tensor_desc>&) { desc.hints = UINT32_MAX; });
  add_ignorable("view_hints", "BP-SIZE-006",
                [](bp_op_desc&, std::vector<bp_tensor_desc>& inputs) { inputs[0].flags |= BP_DESC_HINTS; });
  add_ignorable("absent_operands", "BP-PLAN-006",
                [](bp_op_desc&, std::vector<bp_tensor_desc>& inputs) { inputs.resize(3); });
  std::vector<InputRole> roles = create_roles();
  roles.push_back(import_role());
  roles.push_back(wrap_role(kStreamWrap, true));
  roles.push_back(wrap_role(kBufferWrap, false));
  roles.push_back(memory_import_role());
  roles.push_back(semaphore_import_role());
  add_plan_roles(roles);
  for (const InputRole& role : roles) {
    for (const Variant& variant : kIllegalSizes) add_input(catalogue, role, variant);
    for (const Variant& variant : kVariants) add_input(catalogue, role, variant);
    for (const Variant& variant : kSetTails) add_input(catalogue, role, variant);
  }
  // Only core passes these structs, and core passes legal sizes. So illegal sizes are not tested.
  for (const InputRole& role : execution_roles()) {
    for (const Variant& variant : kVariants) add_input(catalogue, role, variant);
  }
  for (const bph_op_info& op : primitives()) add_attribute_cases(catalogue, op);
}

}  // namespace backplane::conformance
