// SPDX-License-Identifier: Apache-2.0
// What a framework of 0.2 does with libbackplane: opens a plugin by its path, makes tensors, executes, and compares what comes out.
#pragma once

#include <backplane/backplane.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace framework {

struct Array {
  uint32_t dtype = 0;  // 0: absent
  std::vector<int64_t> shape{};
  std::vector<double> values{};  // of an output: what it must hold afterwards
  std::vector<double> before{};  // of an output that is read too
};

// Elements as bytes and back, of the dtypes that the test has.
inline void encode(uint32_t dtype, double value, unsigned char* to) {
  const auto put = [&](auto number) { std::memcpy(to, &number, sizeof(number)); };
  if (dtype == BP_F32) return put(static_cast<float>(value));
  if (dtype == BP_I32) return put(static_cast<int32_t>(value));
  if (bph_dtype_bytes(dtype) == 2) return put(static_cast<int16_t>(value));
  put(static_cast<unsigned char>(value));
}
inline double decode(uint32_t dtype, const unsigned char* from) {
  const auto get = [&](auto number) {
    std::memcpy(&number, from, sizeof(number));
    return static_cast<double>(number);
  };
  if (dtype == BP_F32) return get(float{});
  if (dtype == BP_I32) return get(int32_t{});
  return bph_dtype_bytes(dtype) == 2 ? get(int16_t{}) : get(static_cast<unsigned char>(0));
}

class Session {
 public:
  // Ends the program with a message if the plugin does not serve.
  explicit Session(const char* path) {
    error_.struct_size = sizeof(error_);
    bph_registry_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
    desc.search_path = "";
    need(bph_registry_create(&desc, &registry_, &error_), "registry");
    need(bph_plugin_load(registry_, path, &plugin_, &error_), "load");
    need(bph_plugin_device_open(plugin_, 0, nullptr, &device_, &error_), "open");
    need(bph_stream_create(device_, 0, &stream_, &error_), "stream");
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    bph_stream_release(stream_);
    bph_device_release(device_);
    bph_plugin_release(plugin_);
    bph_registry_release(registry_);
  }

  bph_plugin* plugin() const { return plugin_; }
  bph_device* device() const { return device_; }
  bp_error* error() { return &error_; }

  // Executes `call` on these operands. -> "native", "decomposed", the name of a status, or what is wrong.
  std::string run(bph_call call, const std::vector<Array>& inputs, const std::vector<Array>& outputs) {
    Memory memory(*this);
    std::vector<bph_tensor> views;
    for (const Array& input : inputs) views.push_back(memory.tensor(input, input.values));
    for (const Array& output : outputs) {
      const std::vector<double> zeros(output.values.size());
      views.push_back(memory.tensor(output, output.before.empty() ? zeros : output.before));
    }
    call.inputs = views.data();
    call.outputs = views.data() + inputs.size();
    call.input_count = static_cast<uint32_t>(inputs.size());
    call.output_count = static_cast<uint32_t>(outputs.size());
    bph_support support = {};
    support.struct_size = sizeof(support);
    const bp_status told = bph_device_supports(device_, &call, &support, &error_);
    bp_status status = bph_execute(stream_, &call, &error_);
    if (status == BP_OK) status = bph_stream_wait(stream_, UINT64_MAX, &error_);
    if (told != status)
      return std::string("supports says ") + bph_status_name(told) + ", execute " + bph_status_name(status);
    if (status != BP_OK) return bph_status_name(status);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!memory.holds(inputs.size() + i, outputs[i])) return "WRONG";
    }
    return support.path == BPH_PATH_NATIVE ? "native" : support.path == BPH_PATH_DECOMPOSED ? "decomposed" : "fallback";
  }

 private:
  class Memory {
   public:
    explicit Memory(Session& session) : session_(session) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
      for (bph_buffer* buffer : buffers_) bph_buffer_release(buffer);
    }
    bph_tensor tensor(const Array& array, const std::vector<double>& values) {
      bph_tensor view = {};
      addresses_.push_back(nullptr);
      if (array.dtype == 0) return view;
      bph_buffer_desc desc = {};
      desc.struct_size = sizeof(desc);
      desc.kind = BP_MEMORY_SHARED;
      desc.bytes = 4096;
      buffers_.push_back(nullptr);
      session_.need(bph_buffer_create(session_.device_, &desc, &buffers_.back(), &session_.error_), "buffer");
      void* address = nullptr;
      session_.need(bph_buffer_map(buffers_.back(), &address, &session_.error_), "map");
      addresses_.back() = static_cast<unsigned char*>(address);
      std::memset(address, 0, desc.bytes);
      for (size_t i = 0; i < values.size(); ++i) {
        encode(array.dtype, values[i], addresses_.back() + i * bph_dtype_bytes(array.dtype));
      }
      view.buffer = buffers_.back();
      view.dtype = static_cast<uint16_t>(array.dtype);
      view.rank = static_cast<uint8_t>(array.shape.size());
      int64_t stride = 1;
      for (size_t i = array.shape.size(); i-- > 0; stride *= array.shape[i]) {
        view.shape[i] = array.shape[i];
        view.strides[i] = stride;
      }
      return view;
    }
    bool holds(size_t index, const Array& expected) const {
      for (size_t i = 0; i < expected.values.size(); ++i) {
        const double found = decode(expected.dtype, addresses_[index] + i * bph_dtype_bytes(expected.dtype));
        if (!(std::abs(found - expected.values[i]) <= 1e-4)) return false;
      }
      return true;
    }

   private:
    Session& session_;
    std::vector<bph_buffer*> buffers_{};
    std::vector<unsigned char*> addresses_{};
  };

  void need(bp_status status, const char* what) {
    if (status == BP_OK) return;
    std::printf("%s\t%s: %s\n", what, bph_status_name(status), error_.message);
    std::exit(1);
  }

  bp_error error_ = {};
  bph_registry* registry_ = nullptr;
  bph_plugin* plugin_ = nullptr;
  bph_device* device_ = nullptr;
  bph_stream* stream_ = nullptr;
};

inline bph_call call_of(uint32_t op, const void* attributes = nullptr) {
  bph_call call = {};
  call.struct_size = sizeof(call);
  call.op = op;
  call.attributes = attributes;
  return call;
}

// One line of the table: what grew, and what came of it. Written at once: the next call may end the program.
inline void report(const char* what, const std::string& outcome) {
  std::printf("%s\t%s\n", what, outcome.c_str());
  std::fflush(stdout);
}

// ---- The calls of 0.2, in operators that grow later.

// The values of attention over the first `keys` keys, one batch, one head.
inline std::vector<double> attend(const Array& q, const Array& k, const Array& v, double scale, size_t keys) {
  const auto rows = static_cast<size_t>(q.shape[2]), depth = static_cast<size_t>(q.shape[3]);
  const auto width = static_cast<size_t>(v.shape[3]);
  std::vector<double> out(rows * width);
  for (size_t row = 0; row < rows; ++row) {
    double total = 0;
    for (size_t s = 0; s < keys; ++s) {
      double score = 0;
      for (size_t d = 0; d < depth; ++d) score += q.values[row * depth + d] * k.values[s * depth + d];
      const double weight = std::exp(score * scale);
      total += weight;
      for (size_t e = 0; e < width; ++e) out[row * width + e] += weight * v.values[s * width + e];
    }
    for (size_t e = 0; e < width; ++e) out[row * width + e] /= total;
  }
  return out;
}

inline const Array attention_q = {BP_F32, {1, 1, 2, 2}, {0.5, -1, 2, 0.25}};
inline const Array attention_k = {BP_F32, {1, 1, 3, 2}, {1, 0.5, -0.5, 2, 0.75, -1}};
inline const Array attention_v = {BP_F32, {1, 1, 3, 2}, {1, 2, 3, 4, 5, 6}};

inline bp_attention_attributes attention_attributes() {
  bp_attention_attributes attributes = {};
  attributes.struct_size = sizeof(attributes);
  attributes.scale = 0.5F;
  return attributes;
}

inline std::string run_attention(Session& session, size_t keys, std::vector<Array> more = {}) {
  const bp_attention_attributes attributes = attention_attributes();
  std::vector<Array> inputs = {attention_q, attention_k, attention_v};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return session.run(call_of(BP_OP_ATTENTION, &attributes), inputs,
                     {{BP_F32, {1, 1, 2, 2}, attend(attention_q, attention_k, attention_v, 0.5, keys)}});
}

inline uint64_t bits_of(float value) {
  uint32_t word = 0;
  std::memcpy(&word, &value, sizeof(word));
  return word;
}

// One step on {1, -2} with gradients {0.5, 0.25} that count `scale` times.
inline std::string run_adamw(Session& session, double scale, const std::vector<float>& more = {}) {
  bp_adamw_attributes attributes = {};
  attributes.struct_size = sizeof(attributes);
  attributes.beta1 = 0.5F;
  attributes.beta2 = 0.75F;
  attributes.epsilon = 0.125F;
  std::vector<uint64_t> scalars = {bits_of(0.5F), bits_of(0.5F), bits_of(0.25F)};
  for (const float scalar : more) scalars.push_back(bits_of(scalar));
  bph_call call = call_of(BP_OP_ADAMW, &attributes);
  call.scalars = scalars.data();
  call.scalar_count = static_cast<uint32_t>(scalars.size());
  const double before[] = {1, -2}, gradients[] = {0.5, 0.25};
  Array parameter = {BP_F32, {2}, {}, {1, -2}}, first = {BP_F32, {2}, {}, {0, 0}}, second = first;
  for (size_t i = 0; i < 2; ++i) {
    const double g = gradients[i] * scale, m = 0.5 * g, v = 0.25 * g * g;
    first.values.push_back(m);
    second.values.push_back(v);
    parameter.values.push_back(before[i] - 0.5 * (m / 0.5) / (std::sqrt(v / 0.25) + 0.125));
  }
  return session.run(call, {{BP_F32, {2}, {0.5, 0.25}}}, {parameter, first, second});
}

inline std::string run_cast(Session& session, const void* attributes, std::vector<double> expected) {
  return session.run(call_of(BP_OP_CAST, attributes), {{BP_I32, {4}, {300, -5, 7, 255}}},
                     {{BP_U8, {4}, std::move(expected)}});
}

inline std::string run_gelu(Session& session, uint32_t approximation, double (*gelu)(double)) {
  bp_gelu_attributes attributes = {};
  attributes.struct_size = sizeof(attributes);
  attributes.approximation = approximation;
  return session.run(call_of(BP_OP_GELU, &attributes), {{BP_F32, {3}, {-1.5, 0.5, 2}}},
                     {{BP_F32, {3}, {gelu(-1.5), gelu(0.5), gelu(2)}}});
}
inline double gelu_erf(double x) { return x * (0.5 + 0.5 * std::erf(x / std::sqrt(2.0))); }
inline double gelu_tanh(double x) {
  return x * (0.5 + 0.5 * std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

inline std::string run_add(Session& session, bph_call call = call_of(BP_OP_ADD)) {
  return session.run(call, {{BP_F32, {3}, {1, 2, 3}}, {BP_F32, {3}, {10, 20, 30}}}, {{BP_F32, {3}, {11, 22, 33}}});
}

inline std::string run_matmul(Session& session, uint32_t precision) {
  bp_matmul_attributes attributes = {};
  attributes.struct_size = sizeof(attributes);
  attributes.precision = precision;
  return session.run(call_of(BP_OP_MATMUL, &attributes),
                     {{BP_F32, {2, 2}, {1, 2, 3, 4}}, {BP_F32, {2, 2}, {5, 6, 7, 8}}},
                     {{BP_F32, {2, 2}, {19, 22, 43, 50}}});
}

inline std::string run_floor(Session& session, uint32_t dtype, const std::vector<double>& values) {
  std::vector<double> expected;
  for (const double value : values) expected.push_back(std::floor(value));
  return session.run(call_of(BP_OP_FLOOR), {{dtype, {3}, values}}, {{dtype, {3}, expected}});
}

inline std::string run_copy(Session& session, uint32_t dtype) {
  return session.run(call_of(BP_OP_COPY), {{dtype, {5}, {1, -2, 3, -4, 5}}}, {{dtype, {5}, {1, -2, 3, -4, 5}}});
}

// Every call as a framework of 0.2 makes it.
inline void report_old_calls(Session& session) {
  report("attribute", run_cast(session, nullptr, {44, 251, 7, 255}));
  report("operand", run_attention(session, 3));
  report("scalar", run_adamw(session, 1));
  report("dtype", run_copy(session, BP_F32));
  report("set of dtypes", run_floor(session, BP_F32, {-1.5, 0.25, 7}));
  report("flag", run_add(session));
  report("permission bit", run_matmul(session, 1));
  report("hint bit", run_add(session));
  report("enumerator", run_gelu(session, BP_GELU_TANH, gelu_tanh));
  report("host struct", run_add(session));
  bp_device_info info = {};
  info.struct_size = sizeof(info);
  const bp_status status = bph_device_get_info(session.device(), &info, session.error());
  report("output field", status == BP_OK && info.alignment != 0 ? "read" : bph_status_name(status));
}

}  // namespace framework
