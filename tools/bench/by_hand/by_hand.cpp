// SPDX-License-Identifier: Apache-2.0
// Compares the Vulkan plugin with minimal Vulkan programs, each of which runs one kernel. The plugin's time minus the
// program's time is the cost of parameters, barriers and core's dispatch. The plugin and the program run alternately,
// so that slow phases of the machine affect both. `by_hand PLUGIN` prints a table. Its ratios are the program's time
// divided by the plugin's time, so a ratio above 1 means that the plugin is faster.
#include <backplane/backplane.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "bench/by_hand/hand_written.hpp"
#include "bench/by_hand/shaders.hpp"

namespace bp = backplane;
using by_hand::HandWritten;

namespace {

constexpr uint32_t kRounds = 15;
constexpr uint32_t kThreads = 128, kMostGroups = 32768;

std::span<const uint32_t> spirv_of(std::string_view name) {
  for (std::size_t i = 0; i < by_hand::kShaderCount; ++i) {
    const by_hand::Shader& shader = by_hand::kShaders[i];
    if (name == shader.name) return {shader.words, shader.word_count};
  }
  return {};
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Case {
  const char* name;
  std::span<const uint32_t> spirv;
  // `elements` is the number of floats in each buffer, `count` is the value of the push constant, and `threads` is the
  // number of shader threads.
  uint32_t elements, count, threads;
  uint32_t calls;  // number of calls per sample
  std::function<void(const bp::Stream&, const bp::Tensor& out, const bp::Tensor& a, const bp::Tensor& b)> call;
  bp::Dims shape;
};

// Compares the plugin with the hand-written program in one case. Returns false if a result differs by 1e-5 or more,
// relative to the larger of 1 and its magnitude.
bool compare(const bp::Device& device, const Case& one) {
  std::vector<float> values(one.elements);
  for (uint32_t i = 0; i < one.elements; ++i) values[i] = static_cast<float>(i % 1000) * 0.001f;
  HandWritten hand(
      {one.spirv, one.elements, one.count, std::min((one.threads + kThreads - 1) / kThreads, kMostGroups), one.calls},
      values);
  bp::Stream stream(device);
  const bp::Tensor a = bp::Tensor::empty(stream, BP_F32, one.shape), b = bp::Tensor::empty(stream, BP_F32, one.shape),
                   out = bp::Tensor::empty(stream, BP_F32, one.shape);
  bp::copy_in<float>(stream, a, values);
  bp::copy_in<float>(stream, b, values);
  const auto plugin = [&] {
    for (uint32_t i = 0; i < one.calls; ++i) one.call(stream, out, a, b);
    stream.wait();
  };
  plugin();
  hand.run();
  std::vector<float> got(one.elements);
  bp::copy_out<float>(stream, got, out);
  double worst = 0;
  for (uint32_t i = 0; i < one.elements; ++i) {
    const double apart = std::abs(double{got[i]} - hand.result()[i]) / std::max(1.0, std::abs(double{got[i]}));
    if (!(apart <= worst)) worst = apart;  // the condition is also true for NaN
  }

  std::vector<double> plugin_s, hand_s, ratios;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const bool plugin_first = round % 2 == 0;
    if (plugin_first) plugin_s.push_back(seconds_of(plugin));
    hand_s.push_back(seconds_of([&] { hand.run(); }));
    if (!plugin_first) plugin_s.push_back(seconds_of(plugin));
    ratios.push_back(hand_s.back() / plugin_s.back());
  }
  const double per_call = 1e6 / one.calls;
  std::printf("%-18s %12.1f %12.1f %8.2f %12.1e\n", one.name, median(plugin_s) * per_call, median(hand_s) * per_call,
              median(ratios), worst);
  return worst < 1e-5;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: by_hand PLUGIN [CASE] (the plugin's name, or the path of a library or manifest)\n");
    return 2;
  }
  try {
    bp::Registry registry;
    const bp::Plugin plugin = registry.load(argv[1]);
    const bp::Device device = plugin.open();
    const auto by_hand_add = spirv_of("by_hand_add"), by_hand_add_row = spirv_of("by_hand_add_row"),
               by_hand_exp = spirv_of("by_hand_exp"), by_hand_matmul = spirv_of("by_hand_matmul");
    const auto add = [](const bp::Stream& stream, const bp::Tensor& out, const bp::Tensor& a, const bp::Tensor& b) {
      bp::add(stream, out, a, b);
    };
    const auto exp = [](const bp::Stream& stream, const bp::Tensor& out, const bp::Tensor& a, const bp::Tensor&) {
      bp::exp(stream, out, a);
    };
    const auto matmul = [](const bp::Stream& stream, const bp::Tensor& out, const bp::Tensor& a, const bp::Tensor& b) {
      bp::matmul(stream, out, a, b);
    };
    const auto dense = [](const char* name, std::span<const uint32_t> spirv, uint32_t count, uint32_t calls,
                          auto call) { return Case{name, spirv, count, count, count, calls, call, {count}}; };
    // Views `a` and `out` as rows of 1,024 elements, and adds the first 1,024 elements of `b` to each row.
    const auto add_row = [](const bp::Stream& stream, const bp::Tensor& out, const bp::Tensor& a, const bp::Tensor& b) {
      const bp::Dims rows{out.shape()[0] / 1024, 1024};
      bp::add(stream, out.reshape(rows), a.reshape(rows), b.slice(0, 0, 1024).reshape({1, 1024}));
    };
    const auto square = [&](const char* name, uint32_t side, uint32_t calls) {
      return Case{name, by_hand_matmul, side * side, side, side * side, calls, matmul, {side, side}};
    };
    const Case cases[] = {
        dense("add 1024", by_hand_add, 1024, 1000, add),
        dense("add 1 Mi", by_hand_add, 1 << 20, 20, add),
        dense("add 16 Mi", by_hand_add, 1 << 24, 2, add),
        dense("add a row, 1 Mi", by_hand_add_row, 1 << 20, 20, add_row),
        dense("exp 1 Mi", by_hand_exp, 1 << 20, 20, exp),
        dense("exp 16 Mi", by_hand_exp, 1 << 24, 2, exp),
        square("matmul 64", 64, 100),
        square("matmul 128", 128, 20),
        square("matmul 256", 256, 4),
    };
    std::printf("%s (%s)\n%-18s %12s %12s %8s %12s\n", device.name().c_str(), device.info().name, "CASE", "PLUGIN us",
                "BY HAND us", "RATIO", "DIFFERENCE");
    bool same = true;
    for (const Case& one : cases) {
      if (argc == 2 || std::string_view(argv[2]) == one.name) same = compare(device, one) && same;
    }
    return same ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "by_hand: %s\n", error.what());
    return 1;
  }
}
