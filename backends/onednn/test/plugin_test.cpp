// SPDX-License-Identifier: Apache-2.0
// Tests the settings of the onednn plugin, and its plans that use oneDNN.
#include <backplane/plugin.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <string>
#include <vector>

namespace backplane::onednn::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Plugin : public testing::Test {
 protected:
  Plugin() {
    error.struct_size = sizeof(error);
    library_ = dlopen(std::getenv("ONEDNN_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
    const auto query = reinterpret_cast<bp_plugin_query_fn>(dlsym(library_, BP_PLUGIN_QUERY_SYMBOL));
    static constexpr bp_host host{sizeof(bp_host), BP_ABI_VERSION, nullptr, [](void*, int32_t, const char*) {},
                                  [](void*, const char*, uint32_t) -> const void* { return nullptr; }};
    EXPECT_EQ(query(&host, &plugin, &error), BP_OK);
  }
  ~Plugin() override { plugin->shutdown(plugin); }

  bp_status open(const char* options, bp_device** out) {
    const bp_device_desc desc{sizeof(desc), 0, options};
    return plugin->device_open(plugin, 0, &desc, out, &error);
  }

  const bp_plugin* plugin = nullptr;
  bp_error error{};

 private:
  void* library_;
};

bp_tensor_desc matrix(int64_t rows, int64_t cols) {
  bp_tensor_desc out{};
  out.dtype = BP_F32;
  out.rank = 2;
  out.shape[0] = rows, out.shape[1] = cols;
  out.strides[0] = cols, out.strides[1] = 1;
  return out;
}

// Executes one operator, and returns its output of `count` f32 elements. data[i] contains the bytes of input i.
std::vector<float> execute(const bp_device_api* api, bp_device* device, const bp_op_desc& desc,
                           const std::vector<std::string>& data, size_t count, bp_plan_info& info,
                           const std::vector<float>& scalars = {}) {
  bp_error error{};
  error.struct_size = sizeof(error);
  info.struct_size = sizeof(info);
  bp_plan* plan = nullptr;
  EXPECT_EQ(api->plan_create(device, &desc, &plan, &info, &error), BP_OK) << error.message;
  std::vector<bp_buffer*> buffers;
  const auto buffer = [&](uint64_t bytes) {
    const bp_buffer_desc requested{sizeof(requested), BP_MEMORY_SHARED, bytes, 0};
    bp_buffer* out = nullptr;
    EXPECT_EQ(api->buffer_create(device, &requested, &out, &error), BP_OK) << error.message;
    buffers.push_back(out);
    return out;
  };
  const auto map = [&](bp_buffer* from) {
    void* out = nullptr;
    EXPECT_EQ(api->buffer_map(device, from, &out, &error), BP_OK) << error.message;
    return static_cast<char*>(out);
  };
  std::vector<bp_operand> operands;
  for (const std::string& bytes : data) {
    operands.push_back({buffer(bytes.size()), 0, 0});
    bytes.copy(map(operands.back().buffer), bytes.size());
  }
  bp_buffer *out = buffer(count * sizeof(float)), *work = buffer(info.workspace_bytes + 1);
  const bp_operand result{out, 0, 0};
  const bp_stream_desc requested{sizeof(requested), 0};
  bp_stream* stream = nullptr;
  EXPECT_EQ(api->stream_create(device, &requested, &stream, &error), BP_OK);
  std::vector<bp_operand> scalar_operands;
  for (const float scalar : scalars) scalar_operands.push_back({nullptr, 0, std::bit_cast<uint32_t>(scalar)});
  const bp_execution execution{sizeof(execution),      0,    &desc, operands.data(),     &result,
                               scalar_operands.data(), work, 0,     info.workspace_bytes};
  EXPECT_EQ(api->plan_execute(device, stream, plan, &execution, &error), BP_OK) << error.message;
  api->plan_destroy(device, plan);  // the execution may still be running
  EXPECT_EQ(api->stream_wait(device, stream, BP_WAIT_FOREVER, &error), BP_OK) << error.message;
  const auto* values = reinterpret_cast<const float*>(map(out));
  std::vector<float> got(values, values + count);
  api->stream_destroy(device, stream);
  for (bp_buffer* each : buffers) api->buffer_destroy(device, each);
  return got;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class Attributes, size_t kInputs>
bp_op_desc describe(uint32_t op, const Attributes& attributes, const bp_tensor_desc (&inputs)[kInputs],
                    const bp_tensor_desc& output) {
  bp_op_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.op = op;
  desc.attributes = &attributes;
  desc.inputs = inputs, desc.outputs = &output;
  desc.input_count = kInputs, desc.output_count = 1;
  return desc;
}

std::vector<float> integers(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(static_cast<int64_t>(i * 7 % 11) - 5);
  return values;
}

// Returns the product of two n x n matrices of small integers. All its sums are exact in f32.
std::vector<float> product(const bp_device_api* api, bp_device* device, int64_t n, uint64_t flags, bp_plan_info& info) {
  const bp_tensor_desc inputs[] = {matrix(n, n), matrix(n, n)}, output = matrix(n, n);
  const bp_matmul_attributes attributes{sizeof(attributes), BP_PRECISION_FULL};
  bp_op_desc desc = describe(BP_OP_MATMUL, attributes, inputs, output);
  desc.flags = flags;
  const auto count = static_cast<size_t>(n * n);
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 7);
  return execute(api, device, desc, {bytes_of(values), bytes_of(values)}, count, info);
}

TEST_F(Plugin, DriverNamesItsLibrary) {
  bp_device_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(plugin->device_info(plugin, 0, &info, &error), BP_OK);
  EXPECT_THAT(info.driver, StartsWith("oneDNN "));
}

TEST_F(Plugin, BadOptionsAreRefusedByName) {
  bp_device* device = nullptr;
  for (const char* word : {"threads=0", "threads=", "threads", "threads=2x", "threads=1025", "threads=2;threads=-1"}) {
    EXPECT_EQ(open(word, &device), BP_UNSUPPORTED) << word;
    EXPECT_THAT(error.message, HasSubstr("is not a number from 1 to 1024")) << word;
  }
  EXPECT_EQ(open("speed=2", &device), BP_UNSUPPORTED);
  EXPECT_THAT(error.message, HasSubstr("speed"));
  EXPECT_EQ(device, nullptr);
}

TEST_F(Plugin, BadVariableLeavesTheDeviceShut) {
  bp_device* device = nullptr;
  setenv("BACKPLANE_ONEDNN_THREADS", "many", 1);
  EXPECT_EQ(open(nullptr, &device), BP_UNAVAILABLE);
  EXPECT_THAT(error.message, HasSubstr("BACKPLANE_ONEDNN_THREADS=\"many\""));
  unsetenv("BACKPLANE_ONEDNN_THREADS");
}

TEST_F(Plugin, EmptyVariableCountsAsUnset) {
  for (const char* name : {"BACKPLANE_ONEDNN_THREADS", "BACKPLANE_ONEDNN_SIMD"}) {
    bp_device* device = nullptr;
    setenv(name, "", 1);
    EXPECT_EQ(open(nullptr, &device), BP_OK) << error.message;
    unsetenv(name);
    ASSERT_NE(device, nullptr) << name;
    plugin->device_api->close(device);
  }
}

TEST_F(Plugin, UnknownInstructionSetLeavesTheDeviceShut) {
  bp_device* device = nullptr;
  setenv("BACKPLANE_ONEDNN_SIMD", "mmx", 1);
  EXPECT_EQ(open(nullptr, &device), BP_UNAVAILABLE);
  EXPECT_THAT(error.message, HasSubstr("BACKPLANE_ONEDNN_SIMD=\"mmx\" is no instruction set of this processor"));
  unsetenv("BACKPLANE_ONEDNN_SIMD");
}

// The sums are exact in f32, so the result has the same bits with every number of threads.
TEST_F(Plugin, ProductsAreTheSameWithEveryTeam) {
  for (const int64_t n : {1, 5, 160}) {
    std::vector<float> expected(static_cast<size_t>(n * n));
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < n; ++c)
        for (int64_t k = 0; k < n; ++k)
          expected[static_cast<size_t>(r * n + c)] +=
              static_cast<float>((r * n + k) % 7) * static_cast<float>((k * n + c) % 7);
    for (const char* options : {"threads=1", "threads=2", "threads=3"}) {
      bp_device* device = nullptr;
      ASSERT_EQ(open(options, &device), BP_OK) << error.message;
      bp_plan_info info{};
      EXPECT_EQ(product(plugin->device_api, device, n, 0, info), expected) << options << ", n = " << n;
      EXPECT_NE(info.flags & BP_PLAN_ANY_SIZE, 0u);
      EXPECT_EQ((info.flags & BP_PLAN_SPECIALIZABLE) != 0, n > 1);
      if (n > 16) {
        EXPECT_EQ(product(plugin->device_api, device, n, BP_OP_FLAG_SPECIALIZE, info), expected)
            << options << ", n = " << n;
        EXPECT_EQ(info.flags & BP_PLAN_ANY_SIZE, 0u) << "oneDNN compiles for a size";
      }
      plugin->device_api->close(device);
    }
  }
}

// Both kinds of plans (for any size, and for one size) must compute the same sum of integers with two team
// sizes and all strides of c. The output is so large that the pass that adds c uses a team.
TEST_F(Plugin, GemmsAddInputsOfAnyStrides) {
  constexpr int64_t kRows = 640, kCols = 512, kDepth = 8;
  constexpr float kAlpha = 3, kBeta = -2;
  const std::vector<float> a = integers(kRows * kDepth), b = integers(kDepth * kCols), c = integers(kRows * kCols);
  const auto at = [](const std::vector<float>& from, int64_t i) { return from[static_cast<size_t>(i)]; };
  struct Strides {
    int64_t row, col;
  };
  for (const auto [row, col] : {Strides{kCols, 1}, Strides{0, 1}, Strides{1, 0}, Strides{0, 0}, Strides{1, kRows}}) {
    bp_tensor_desc addend = matrix(kRows, kCols);
    addend.strides[0] = row, addend.strides[1] = col;
    std::vector<float> expected;
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t k = 0; k < kCols; ++k) {
        float sum = 0;
        for (int64_t d = 0; d < kDepth; ++d) sum += at(a, r * kDepth + d) * at(b, d * kCols + k);
        expected.push_back(kAlpha * sum + kBeta * at(c, r * row + k * col));
      }
    }
    for (const char* options : {"threads=1", "threads=2"}) {
      bp_device* device = nullptr;
      ASSERT_EQ(open(options, &device), BP_OK) << error.message;
      const bp_device_api* api = plugin->device_api;
      const bp_tensor_desc inputs[] = {matrix(kRows, kDepth), matrix(kDepth, kCols), addend},
                           output = matrix(kRows, kCols);
      const bp_matmul_attributes attributes{sizeof(attributes), BP_PRECISION_FULL};
      bp_op_desc desc = describe(BP_OP_GEMM, attributes, inputs, output);
      desc.scalar_count = 2;
      for (const uint64_t flags : {uint64_t{0}, uint64_t{BP_OP_FLAG_SPECIALIZE}}) {
        SCOPED_TRACE(testing::Message() << "c has the strides " << row << ", " << col << ", " << options << ", flags "
                                        << flags);
        desc.flags = flags;
        bp_plan_info info{};
        info.struct_size = sizeof(info);
        ASSERT_EQ(api->plan_create(device, &desc, nullptr, &info, &error), BP_OK) << error.message;
        EXPECT_EQ((info.flags & BP_PLAN_ANY_SIZE) != 0, flags == 0);
        if (info.stage_inputs != 0) {  // core would stage c
          EXPECT_TRUE(flags != 0 && info.stage_inputs == 4 && col == kRows);
          continue;
        }
        EXPECT_EQ(
            execute(api, device, desc, {bytes_of(a), bytes_of(b), bytes_of(c)}, kRows * kCols, info, {kAlpha, kBeta}),
            expected);
      }
      api->close(device);
    }
  }
}

// Before it is scaled, the sum of products of integers exceeds the range of f32. The test covers one row and
// several rows of a kernel, and the rows of a panel.
TEST_F(Plugin, QuantizedSumsDoNotOverflowBeforeTheScale) {
  bp_device* device = nullptr;
  ASSERT_EQ(open("threads=1", &device), BP_OK) << error.message;
  const bp_device_api* api = plugin->device_api;
  constexpr int64_t kDepth = 64;
  for (const int64_t rows : {1, 4, 40}) {
    bp_tensor_desc weights = matrix(1, kDepth);
    weights.dtype = BP_I8;
    const bp_tensor_desc inputs[] = {matrix(rows, kDepth), weights, matrix(1, 1)}, output = matrix(rows, 1);
    const bp_quantized_matmul_attributes attributes{sizeof(attributes), 8, 0, BP_PRECISION_FULL};
    bp_plan_info info{};
    const std::vector<float> got =
        execute(api, device, describe(BP_OP_QUANTIZED_MATMUL, attributes, inputs, output),
                {bytes_of(std::vector<float>(static_cast<size_t>(rows * kDepth), 0x1p122f)),
                 bytes_of(std::vector<int8_t>(kDepth, 64)), bytes_of(std::vector<float>{0x1p-10f})},
                static_cast<size_t>(rows), info);
    EXPECT_EQ(got, std::vector<float>(static_cast<size_t>(rows), 0x1p124f)) << rows;
  }
  api->close(device);
}

// Extents [N, C, H, W] of images, which image() describes as dense or channels-last.
using Extents = std::array<int64_t, 4>;

bp_tensor_desc image(const Extents& shape, bool channels_last) {
  bp_tensor_desc out{};
  out.dtype = BP_F32;
  out.rank = 4;
  const auto [n, c, h, w] = shape;
  const Extents strides = channels_last ? Extents{h * w * c, 1, w * c, c} : Extents{c * h * w, h * w, w, 1};
  std::copy(shape.begin(), shape.end(), out.shape);
  std::copy(strides.begin(), strides.end(), out.strides);
  return out;
}

size_t elements(const bp_tensor_desc& view) {
  size_t count = 1;
  for (uint32_t d = 0; d < view.rank; ++d) count *= static_cast<size_t>(view.shape[d]);
  return count;
}

// Returns the elements of an image in dense order. If `to_memory` is set, `from` is in dense order, and the
// result is in the order of the view.
std::vector<float> reordered(const std::vector<float>& from, const bp_tensor_desc& view, bool to_memory) {
  std::vector<float> to(from.size());
  size_t i = 0;
  for (int64_t n = 0; n < view.shape[0]; ++n)
    for (int64_t c = 0; c < view.shape[1]; ++c)
      for (int64_t h = 0; h < view.shape[2]; ++h)
        for (int64_t w = 0; w < view.shape[3]; ++w, ++i) {
          const auto at = static_cast<size_t>(n * view.strides[0] + c * view.strides[1] + h * view.strides[2] +
                                              w * view.strides[3]);
          (to_memory ? to[at] : to[i]) = from[to_memory ? i : at];
        }
  return to;
}

// Runs an operator on dense and channels-last images, and requires that the results differ by at most `bound`.
// If input and output have the same layout, the plugin must stage nothing. `more` are the inputs after the
// image.
template <class Attributes>
void compare_orders(const bp_device_api* api, bp_device* device, uint32_t op, const Attributes& attributes,
                    const Extents& in, const Extents& out, const std::vector<bp_tensor_desc>& more, float bound) {
  std::vector<float> expected;
  for (const auto& [in_last, out_last] : {std::pair{false, false}, {true, true}, {true, false}, {false, true}}) {
    SCOPED_TRACE(testing::Message() << "operator " << op << ", channels-last: input " << in_last << ", output "
                                    << out_last);
    std::vector<bp_tensor_desc> inputs{image(in, in_last)};
    inputs.insert(inputs.end(), more.begin(), more.end());
    const bp_tensor_desc output = image(out, out_last);
    std::vector<std::string> data{bytes_of(reordered(integers(elements(inputs[0])), inputs[0], true))};
    for (const bp_tensor_desc& each : more) data.push_back(bytes_of(integers(elements(each))));
    bp_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.op = op;
    desc.attributes = &attributes;
    desc.inputs = inputs.data(), desc.outputs = &output;
    desc.input_count = static_cast<uint32_t>(inputs.size()), desc.output_count = 1;
    bp_plan_info info{};
    info.struct_size = sizeof(info);
    bp_error error{};
    error.struct_size = sizeof(error);
    ASSERT_EQ(api->plan_create(device, &desc, nullptr, &info, &error), BP_OK) << error.message;
    if (in_last == out_last) {
      EXPECT_EQ(info.stage_inputs, 0u);
      EXPECT_EQ(info.stage_outputs, 0u);
    }
    if (info.stage_inputs != 0 || info.stage_outputs != 0) continue;  // core would stage an operand
    const std::vector<float> got = reordered(execute(api, device, desc, data, elements(output), info), output, false);
    if (expected.empty()) expected = got;
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], bound) << i;
  }
}

TEST_F(Plugin, ImagesMayBeChannelsLast) {
  bp_tensor_desc vector{};
  vector.dtype = BP_F32, vector.rank = 1, vector.strides[0] = 1;
  const auto parameters = [&](int64_t channels) {
    vector.shape[0] = channels;
    return vector;
  };
  for (const char* options : {"threads=1", "threads=2"}) {
    bp_device* device = nullptr;
    ASSERT_EQ(open(options, &device), BP_OK) << error.message;
    const bp_device_api* api = plugin->device_api;
    for (const uint32_t activation : {BP_ACTIVATION_NONE, BP_ACTIVATION_RELU}) {
      bp_conv_attributes conv{};
      conv.struct_size = sizeof(conv);
      conv.spatial_rank = 2, conv.groups = 1, conv.activation = activation;
      for (int d = 0; d < 2; ++d) conv.stride[d] = conv.dilation[d] = conv.pad_begin[d] = conv.pad_end[d] = 1;
      // The batches of small images use the plugin's direct convolution, and the larger images use oneDNN.
      for (const Extents& in : {Extents{19, 5, 6, 7}, Extents{8, 1, 8, 8}, Extents{2, 16, 40, 30}}) {
        for (const int64_t outputs : {3, 16, 40}) {
          compare_orders(api, device, BP_OP_CONV, conv, in, {in[0], outputs, in[2], in[3]},
                         {image({outputs, in[1], 3, 3}, false), parameters(outputs)}, 0);
        }
      }
      conv.stride[0] = 2, conv.dilation[1] = 2, conv.pad_begin[1] = 3, conv.pad_end[0] = 0;
      compare_orders(api, device, BP_OP_CONV, conv, {9, 4, 7, 6}, {9, 20, 3, 6},
                     {image({20, 4, 3, 3}, false), parameters(20)}, 0);
    }
    bp_pool_attributes pool{};
    pool.struct_size = sizeof(pool);
    pool.spatial_rank = 2;
    for (int d = 0; d < 2; ++d) {
      pool.kernel[d] = 3, pool.stride[d] = 2, pool.dilation[d] = 1, pool.pad_begin[d] = pool.pad_end[d] = 1;
    }
    for (const uint32_t counted : {0u, 1u}) {
      pool.count_padding = counted;
      for (const uint32_t op : {BP_OP_MAX_POOL, BP_OP_AVG_POOL})
        compare_orders(api, device, op, pool, {3, 21, 9, 150}, {3, 21, 5, 75}, {}, 1e-6f);
    }
    bp_group_norm_attributes group{};
    group.struct_size = sizeof(group);
    group.epsilon = 1e-5f;
    for (const uint32_t groups : {1u, 4u, 12u}) {
      group.groups = groups;
      compare_orders(api, device, BP_OP_GROUP_NORM, group, {2, 12, 61, 90}, {2, 12, 61, 90},
                     {parameters(12), parameters(12)}, 1e-4f);
    }
    bp_batch_norm_attributes batch{};
    batch.struct_size = sizeof(batch);
    batch.training = 1, batch.epsilon = 1e-5f;
    compare_orders(api, device, BP_OP_BATCH_NORM, batch, {3, 12, 31, 9}, {3, 12, 31, 9},
                   {parameters(12), parameters(12)}, 1e-4f);
    api->close(device);
  }
}

}  // namespace
}  // namespace backplane::onednn::test
