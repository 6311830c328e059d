// SPDX-License-Identifier: Apache-2.0
// A plugin made with the kit, and helpers to call this plugin. Some of the plugin's kernels are
// slow, wait for a gate or fail.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <backplane/kit/loops.hpp>
#include <backplane/kit/plugin.hpp>
#include <stdexcept>

namespace backplane::kit::test {

using namespace std::chrono_literals;

constexpr auto kSlow = 40ms;

// Blocks the kernel of `floor` until a test sets gate_open. Tests with this gate do not depend on
// the machine's load.
inline std::atomic<bool> gate_open{false};
inline void await_gate() {
  constexpr auto kTooLong = 10s;
  for (const auto begin = Clock::now(); !gate_open.load() && Clock::now() - begin < kTooLong;) {
    std::this_thread::sleep_for(1ms);
  }
}

// Copies attributes to the heap, with struct_size set.
template <class T>
std::shared_ptr<const void> sized(T attributes) {
  attributes.struct_size = sizeof(attributes);
  return std::make_shared<const T>(attributes);
}

class Driver : public HostDriver {
 public:
  explicit Driver(Host host) : HostDriver(host, {.name = "kit_test", .version = "1"}) {
    kernels().add(BP_OP_FILL, BP_F32, [](const Call& call) {
      std::fill_n(call.out().as<float>(), call.out().elements(), call.scalar<float>(0));
    });
    kernels().add(BP_OP_COPY, BP_F32,
                  [](const Call& call) { map_stored<float, float>(call, [](float x) { return x; }); });
    kernels().add(BP_OP_NEG, BP_F32, [](const Call& call) {
      std::this_thread::sleep_for(kSlow);
      map_unary<float, float>(call, [](float x) { return -x; });
    });
    kernels().add(BP_OP_FLOOR, BP_F32, [](const Call& call) {
      await_gate();
      map_unary<float, float>(call, [](float x) { return std::floor(x); });
    });
    kernels().add(BP_OP_ABS, BP_F32, [](const Call&) { throw std::runtime_error("a planted failure"); });
    kernels().add(BP_OP_ADD, BP_F32, {.run = add, .dense = true, .workspace_bytes = 256});
    kernels().add(BP_OP_MUL, BP_F32, [](const Call& call) {
      map_binary<float, float, float>(call, [](float a, float b) { return a * b; });
    });
    // The kernel of `div` also divides by the number of output elements for which `prepare_div` prepared it.
    kernels().add(BP_OP_DIV, BP_F32, {.run = div, .prepare = prepare_div});
    // Adds kernels that do nothing for each composite that has its own shape rules.
    for (uint32_t id = 0; id < BP_OP_LIMIT; ++id) {
      if (find_op(id) == nullptr || find_op(id)->shape_rule != BP_SHAPE_COMPOSITE) continue;
      for (const uint32_t dtype : {BP_F32, BP_U8, BP_I8}) {
        kernels().add(id, dtype, KernelSpec{.run = [](const Call&) {}, .mixed = UINT32_MAX});
      }
    }
    // Writes the number of inputs that are present to every element of the output.
    kernels().add(BP_OP_QUANTIZED_MATMUL, BP_I8, BP_F32, [](const Call& call) {
      const auto present =
          std::count_if(call.inputs.begin(), call.inputs.end(), [](const View& in) { return in.dtype != 0; });
      std::fill_n(call.out().as<float>(), call.out().elements(), static_cast<float>(present));
    });
    set_memory_limit(1 << 20);
  }

  static inline std::atomic<int> prepared_alive{0};

 private:
  struct Div {
    explicit Div(int64_t n) : count(n) { ++prepared_alive; }
    ~Div() { --prepared_alive; }
    Div(const Div&) = delete;
    Div& operator=(const Div&) = delete;
    int64_t count;
  };
  static Status prepare_div(const CheckedDesc& checked, Prepared& prepared) {
    const bp_tensor_desc& out = checked.desc.outputs[0];
    if (out.shape[0] > 8) return unsupported("div: more than 8 rows are not supported; use fewer");
    int64_t count = 1;
    for (uint32_t i = 0; i < out.rank; ++i) count *= out.shape[i];
    prepared.state = std::make_shared<Div>(count);
    prepared.stage_inputs |= 1;
    prepared.workspace_bytes = 64;
    return {};
  }
  static void div(const Call& call) {
    std::memset(call.workspace, 1, 64);
    const auto count = static_cast<float>(call.prepared<Div>().count);
    map_binary<float, float, float>(call, [&](float a, float b) { return a / b / count; });
  }
  static void add(const Call& call) {
    std::memset(call.workspace, 1, 256);
    map_binary<float, float, float>(call, [](float a, float b) { return a + b; });
  }
};

inline const bp_host* host() {
  static constexpr bp_host table{sizeof(bp_host), BP_ABI_VERSION, nullptr, [](void*, int32_t, const char*) {},
                                 [](void*, const char*, uint32_t) -> const void* { return nullptr; }};
  return &table;
}

inline bp_tensor_desc view(std::initializer_list<int64_t> shape) {
  bp_tensor_desc out{};
  out.dtype = BP_F32;
  uint64_t stride = 1;  // may wrap if a test describes an impossible size
  for (const int64_t extent : shape) out.shape[out.rank++] = extent;
  for (int d = out.rank - 1; d >= 0; stride *= static_cast<uint64_t>(out.shape[d--]))
    out.strides[d] = static_cast<int64_t>(stride);
  return out;
}

class KitTest : public testing::Test {
 protected:
  KitTest() {
    gate_open = false;
    error.struct_size = sizeof(error);
    EXPECT_EQ(query<Driver>(host(), &plugin, &error), BP_OK);
    api = plugin->device_api;
    EXPECT_EQ(plugin->device_open(plugin, 0, nullptr, &device, &error), BP_OK);
    a = stream(), b = stream();
  }
  ~KitTest() override {
    gate_open = true;
    for (bp_stream* s : streams_) api->stream_destroy(device, s);
    for (bp_event* e : events_) api->event_destroy(device, e);
    for (bp_plan* p : plans_) api->plan_destroy(device, p);
    for (bp_buffer* m : buffers_) api->buffer_destroy(device, m);
    api->close(device);
    plugin->shutdown(plugin);
  }

  bp_stream* stream() {
    const bp_stream_desc desc{sizeof(desc), 0};
    bp_stream* out = nullptr;
    EXPECT_EQ(api->stream_create(device, &desc, &out, &error), BP_OK);
    return streams_.emplace_back(out);
  }
  bp_event* event(uint32_t flags = 0) {
    bp_event* out = nullptr;
    EXPECT_EQ(api->event_create(device, flags, &out, &error), BP_OK);
    return events_.emplace_back(out);
  }
  bp_buffer* buffer(uint64_t bytes = 64, uint32_t kind = BP_MEMORY_SHARED) {
    const bp_buffer_desc desc{sizeof(desc), kind, bytes, 0};
    bp_buffer* out = nullptr;
    EXPECT_EQ(api->buffer_create(device, &desc, &out, &error), BP_OK) << error.message;
    return buffers_.emplace_back(out);
  }
  float* map(bp_buffer* buffer) {
    void* out = nullptr;
    EXPECT_EQ(api->buffer_map(device, buffer, &out, &error), BP_OK);
    return static_cast<float*>(out);
  }

  // A descriptor with its operands, and its plan. By default, the operands are vectors of 4
  // elements.
  struct Op {
    std::vector<bp_tensor_desc> in, out;
    bp_op_desc desc{};
    bp_plan_info info{};
    bp_plan* plan = nullptr;
  };
  bp_status prepare(uint32_t op, Op& made, bool check_only = false) {
    const uint32_t inputs = find_op(op)->inputs_min;
    if (made.in.empty()) made.in.assign(inputs, view({4}));
    if (made.out.empty()) made.out.assign(1, view({4}));
    made.desc.struct_size = sizeof(bp_op_desc);
    made.desc.op = op;
    made.desc.inputs = made.in.data(), made.desc.outputs = made.out.data();
    made.desc.input_count = static_cast<uint32_t>(made.in.size());
    made.desc.output_count = static_cast<uint32_t>(made.out.size());
    made.desc.scalar_count = find_op(op)->scalars_max;
    made.info.struct_size = sizeof(bp_plan_info);
    const bp_status status =
        api->plan_create(device, &made.desc, check_only ? nullptr : &made.plan, &made.info, &error);
    if (made.plan != nullptr) plans_.push_back(made.plan);
    return status;
  }
  // Creates a plan for the product of two 4x4 matrices of i8. The inputs include one scale per weight
  // column and one scale per activation row. The zero point between these two inputs is absent.
  bp_status prepare_quantized_matmul(Op& op) {
    static constexpr bp_quantized_matmul_attributes attributes{sizeof(attributes), 8, 0, 0};
    op.in = {view({4, 4}), view({4, 4}), view({4}), {}, view({4})};
    op.in[0].dtype = op.in[1].dtype = BP_I8;
    op.out = {view({4, 4})};
    op.desc.attributes = &attributes;
    return prepare(BP_OP_QUANTIZED_MATMUL, op);
  }
  bp_status execute(bp_stream* s, Op& op, const std::vector<bp_operand>& in, bp_operand out,
                    const std::vector<bp_operand>& scalars = {}, bp_buffer* workspace = nullptr) {
    bp_execution execution{};
    execution.struct_size = sizeof(execution);
    execution.desc = &op.desc;
    execution.inputs = in.data(), execution.outputs = &out, execution.scalars = scalars.data();
    execution.workspace = workspace;
    execution.workspace_bytes = workspace == nullptr ? 0 : 256;
    return api->plan_execute(device, s, op.plan, &execution, &error);
  }
  // Destroys the plan of `made`, which must be the plan that was created last.
  void forget(const Op& made) {
    api->plan_destroy(device, made.plan);
    plans_.pop_back();
  }
  // Creates a plan, enqueues an execution of the plan, and then destroys the plan at once.
  bp_status enqueue(bp_stream* s, uint32_t op, bp_buffer* in, bp_buffer* out, float value = 0) {
    Op made;
    EXPECT_EQ(prepare(op, made), BP_OK) << error.message;
    const std::vector<bp_operand> inputs(made.in.size(), {in, 0, 0});
    const bp_status status = execute(s, made, inputs, {out, 0, 0}, {{nullptr, 0, std::bit_cast<uint32_t>(value)}});
    forget(made);
    return status;
  }
  bp_status wait(bp_stream* s, uint64_t ns = BP_WAIT_FOREVER) { return api->stream_wait(device, s, ns, &error); }
  bp_status wait(bp_event* e, uint64_t ns = BP_WAIT_FOREVER) { return api->event_wait(device, e, ns, &error); }

  const bp_plugin* plugin = nullptr;
  const bp_device_api* api = nullptr;
  bp_device* device = nullptr;
  bp_stream *a = nullptr, *b = nullptr;
  bp_error error{};

 private:
  std::vector<bp_stream*> streams_;
  std::vector<bp_event*> events_;
  std::vector<bp_plan*> plans_;
  std::vector<bp_buffer*> buffers_;
};

}  // namespace backplane::kit::test
