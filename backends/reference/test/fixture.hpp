// SPDX-License-Identifier: Apache-2.0
// Loads the built plugin as a host does. Creates tensors in any layout, with guard bytes around
// every element.
#pragma once

#include <backplane/plugin.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <backplane/rules/op_table.hpp>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "number.hpp"

namespace backplane::reference::test {

using Shape = std::vector<int64_t>;
constexpr Real kInf = std::numeric_limits<Real>::infinity();

inline int64_t count_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>{});
}

// A tensor, whose elements are stored as bits in logical order.
struct Tensor {
  uint32_t dtype = 0;
  Shape shape;
  std::vector<uint64_t> bits;

  Tensor() = default;
  Tensor(uint32_t type, Shape extents)
      : dtype(type), shape(std::move(extents)), bits(static_cast<size_t>(count_of(shape))) {}
  Tensor(uint32_t type, Shape extents, std::vector<uint64_t> raw)
      : dtype(type), shape(std::move(extents)), bits(std::move(raw)) {}
  Real at(int64_t i) const { return decode(dtype, bits[static_cast<size_t>(i)]); }
};

inline Tensor of_values(uint32_t dtype, Shape shape, const std::vector<Real>& values) {
  Tensor out(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) out.bits[i] = encode(dtype, values[i]);
  return out;
}
inline Tensor list_of(uint32_t dtype, const std::vector<uint64_t>& bits) {
  return {dtype, {static_cast<int64_t>(bits.size())}, bits};
}
// Small random integers that every dtype represents.
inline Tensor small_numbers(uint32_t dtype, const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  Tensor out(dtype, shape);
  for (uint64_t& bits : out.bits) bits = encode(dtype, dtype == BP_BOOL ? Real(random() % 2) : Real(random() % 7));
  return out;
}

// Random real numbers with mean zero.
inline Tensor noise(uint32_t dtype, const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Tensor out(dtype, shape);
  for (uint64_t& bits : out.bits) bits = encode(dtype, normal(random));
  return out;
}

enum class Layout { kDense, kReversed, kNegative, kGapped };
constexpr Layout kLayouts[] = {Layout::kDense, Layout::kReversed, Layout::kNegative, Layout::kGapped};

class Device;

// A tensor in the plugin's memory.
class Placed {
 public:
  Placed(const Device& device, const Tensor& tensor, Layout layout, bool immediate = false);
  ~Placed();
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  bp_tensor_desc desc{};
  bp_operand operand{};
  Tensor read() const;
  // Number of guard bytes whose value has changed.
  int64_t disturbed() const;

 private:
  template <class Visit>
  void visit(const Visit& each) const;

  const Device& device_;
  Shape shape_;
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
};

class Library {
 public:
  Library() {
    const char* path = std::getenv("REFERENCE_PLUGIN");
    handle_ = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) query = reinterpret_cast<bp_plugin_query_fn>(dlsym(handle_, BP_PLUGIN_QUERY_SYMBOL));
    if (query == nullptr) {
      std::fprintf(stderr, "REFERENCE_PLUGIN does not name a plugin: %s\n", path == nullptr ? "unset" : dlerror());
      std::exit(1);
    }
  }
  bp_plugin_query_fn query = nullptr;

 private:
  void* handle_ = nullptr;
};
inline const Library& library() {
  static const Library loaded;
  return loaded;
}

inline bp_host make_host(uint32_t abi_version = BP_ABI_VERSION) {
  return {sizeof(bp_host), abi_version, nullptr, [](void*, int32_t, const char*) {},
          [](void*, const char*, uint32_t) -> const void* { return nullptr; }};
}
inline bp_error make_error() {
  bp_error error{};
  error.struct_size = sizeof(error);
  return error;
}

// An instance of the plugin, its first device and one stream.
class Device {
 public:
  Device() {
    check(library().query(&host_, &plugin, &error), "query");
    api = plugin->device_api;
    check(plugin->device_open(plugin, 0, nullptr, &handle, &error), "device_open");
    const bp_stream_desc desc{sizeof(desc), 0};
    check(api->stream_create(handle, &desc, &stream, &error), "stream_create");
  }
  ~Device() {
    api->stream_destroy(handle, stream);
    api->close(handle);
    plugin->shutdown(plugin);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  bp_buffer* buffer(uint64_t bytes, uint32_t kind = BP_MEMORY_SHARED) const {
    const bp_buffer_desc desc{sizeof(desc), kind, bytes, 0};
    bp_buffer* out = nullptr;
    check(api->buffer_create(handle, &desc, &out, &error), "buffer_create");
    return out;
  }
  std::byte* map(bp_buffer* buffer) const {
    void* out = nullptr;
    check(api->buffer_map(handle, buffer, &out, &error), "buffer_map");
    return static_cast<std::byte*>(out);
  }

  // Creates a plan, executes it and waits for the result.
  bp_status run(uint32_t op, const void* attributes, const std::vector<Placed*>& in, const std::vector<Placed*>& out,
                const std::vector<uint64_t>& scalars = {}) const {
    std::vector<bp_tensor_desc> in_desc, out_desc;
    std::vector<bp_operand> in_data, out_data, scalar_data;
    for (const Placed* p : in) in_desc.push_back(p->desc), in_data.push_back(p->operand);
    for (const Placed* p : out) out_desc.push_back(p->desc), out_data.push_back(p->operand);
    for (const uint64_t s : scalars) scalar_data.push_back({nullptr, 0, s});
    bp_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.op = op;
    desc.attributes = attributes;
    desc.inputs = in_desc.data();
    desc.outputs = out_desc.data();
    desc.input_count = static_cast<uint32_t>(in.size());
    desc.output_count = static_cast<uint32_t>(out.size());
    desc.scalar_count = static_cast<uint32_t>(scalars.size());
    bp_plan_info info{};
    info.struct_size = sizeof(info);
    bp_plan* plan = nullptr;
    bp_status status = api->plan_create(handle, &desc, &plan, &info, &error);
    if (status != BP_OK) return status;
    EXPECT_EQ(info.stage_inputs, 0u);
    EXPECT_EQ(info.stage_outputs, 0u);
    bp_execution execution{};
    execution.struct_size = sizeof(execution);
    execution.desc = &desc;
    execution.inputs = in_data.data();
    execution.outputs = out_data.data();
    execution.scalars = scalar_data.data();
    status = api->plan_execute(handle, stream, plan, &execution, &error);
    api->plan_destroy(handle, plan);
    if (status != BP_OK) return status;
    return api->stream_wait(handle, stream, BP_WAIT_FOREVER, &error);
  }

  const bp_plugin* plugin = nullptr;
  const bp_device_api* api = nullptr;
  bp_device* handle = nullptr;
  bp_stream* stream = nullptr;
  mutable bp_error error = make_error();

 private:
  void check(bp_status status, const char* what) const {
    if (status == BP_OK) return;
    std::fprintf(stderr, "%s: status %d: %s\n", what, status, error.message);
    std::exit(1);
  }
  bp_host host_ = make_host();
};
inline const Device& device() {
  static const Device opened;
  return opened;
}

constexpr std::byte kGuard{0xA5};
constexpr size_t kGuardBytes = 64;

inline Placed::Placed(const Device& owner, const Tensor& tensor, Layout layout, bool immediate)
    : device_(owner), shape_(tensor.shape) {
  desc.dtype = static_cast<uint16_t>(tensor.dtype);
  desc.rank = static_cast<uint8_t>(shape_.size());
  const auto size = static_cast<int64_t>(bytes_of(tensor.dtype));
  if (immediate) {
    desc.flags = BP_DESC_IMMEDIATE;
    std::copy(shape_.begin(), shape_.end(), desc.shape);
    operand.immediate = tensor.bits.at(0);
    return;
  }
  int64_t stride = layout == Layout::kGapped ? 3 : 1, start = 0;
  for (size_t k = 0; k < shape_.size(); ++k) {
    const size_t d = layout == Layout::kReversed ? k : shape_.size() - 1 - k;
    desc.shape[d] = shape_[d];
    desc.strides[d] = layout == Layout::kNegative ? -stride : stride;
    if (layout == Layout::kNegative) start += stride * std::max<int64_t>(shape_[d] - 1, 0);
    stride *= std::max<int64_t>(shape_[d], 1) + (layout == Layout::kGapped ? 1 : 0);
  }
  if (count_of(shape_) == 0) return;
  bytes_ = static_cast<size_t>(stride * size) + 2 * kGuardBytes;
  operand.buffer = device_.buffer(bytes_);
  operand.offset = kGuardBytes + static_cast<uint64_t>(start * size);
  memory_ = device_.map(operand.buffer);
  std::fill_n(memory_, bytes_, kGuard);
  visit([&](std::byte* at, size_t i) { std::memcpy(at, &tensor.bits[i], bytes_of(tensor.dtype)); });
}

inline Placed::~Placed() {
  if (operand.buffer != nullptr) device_.api->buffer_destroy(device_.handle, operand.buffer);
}

template <class Visit>
void Placed::visit(const Visit& each) const {
  const auto size = static_cast<int64_t>(bytes_of(desc.dtype));
  for (int64_t n = 0; n < count_of(shape_); ++n) {
    int64_t remaining = n, position = 0;
    for (size_t d = shape_.size(); d-- > 0; remaining /= shape_[d]) position += remaining % shape_[d] * desc.strides[d];
    each(memory_ + operand.offset + position * size, static_cast<size_t>(n));
  }
}

inline Tensor Placed::read() const {
  Tensor out(desc.dtype, shape_);
  visit([&](const std::byte* at, size_t i) { std::memcpy(&out.bits[i], at, bytes_of(desc.dtype)); });
  return out;
}

inline int64_t Placed::disturbed() const {
  std::vector<bool> element(bytes_);
  visit([&](const std::byte* at, size_t) {
    for (uint32_t b = 0; b < bytes_of(desc.dtype); ++b) element[static_cast<size_t>(at - memory_) + b] = true;
  });
  int64_t out = 0;
  for (size_t i = 0; i < bytes_; ++i) out += !element[i] && memory_[i] != kGuard;
  return out;
}

// Runs an operator on copies of its operands, each in `layout`, and returns the outputs.
inline std::vector<Tensor> run(uint32_t op, const void* attributes, const std::vector<Tensor>& in,
                               const std::vector<Tensor>& out, const std::vector<uint64_t>& scalars = {},
                               Layout layout = Layout::kDense) {
  std::vector<std::unique_ptr<Placed>> held;
  std::vector<Placed*> inputs, outputs;
  for (const Tensor& t : in) inputs.push_back(held.emplace_back(std::make_unique<Placed>(device(), t, layout)).get());
  for (const Tensor& t : out) outputs.push_back(held.emplace_back(std::make_unique<Placed>(device(), t, layout)).get());
  EXPECT_EQ(device().run(op, attributes, inputs, outputs, scalars), BP_OK) << device().error.message;
  std::vector<Tensor> results;
  for (const auto& placed : held) EXPECT_EQ(placed->disturbed(), 0) << "bytes outside of an operand changed";
  for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(inputs[i]->read().bits, in[i].bits) << "input " << i << " changed";
  for (const Placed* p : outputs) results.push_back(p->read());
  return results;
}
inline Tensor run1(uint32_t op, const void* attributes, const std::vector<Tensor>& in, const Tensor& out,
                   const std::vector<uint64_t>& scalars = {}, Layout layout = Layout::kDense) {
  return run(op, attributes, in, {out}, scalars, layout)[0];
}

// Expects equal bits, except that any NaN equals any other NaN.
inline void expect_same(const Tensor& got, const std::vector<uint64_t>& expected, const std::string& what) {
  ASSERT_EQ(got.bits.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (is_nan(got.dtype, expected[i]) && is_nan(got.dtype, got.bits[i])) continue;
    ASSERT_EQ(got.bits[i], expected[i]) << what << ": element " << i << " is "
                                        << static_cast<double>(decode(got.dtype, got.bits[i])) << ", expected "
                                        << static_cast<double>(decode(got.dtype, expected[i]));
  }
}

inline std::string dtype_text(uint32_t dtype) { return rules::dtype_name(dtype); }

}  // namespace backplane::reference::test
