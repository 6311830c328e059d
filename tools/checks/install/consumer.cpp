// SPDX-License-Identifier: Apache-2.0
// A program outside the source tree. It loads a plugin by name from the SDK's plugin directory and
// runs an addition.
#include <backplane/backplane.hpp>

#include <cstdio>
#include <span>
#include <vector>

int main(int argc, char** argv) try {
  const backplane::Registry registry;
  const backplane::Plugin plugin = registry.load(argc > 1 ? argv[1] : "reference");
  const backplane::Device device = plugin.open();
  const backplane::Stream stream(device);
  auto x = backplane::Tensor::empty(stream, BP_F32, {4});
  auto y = backplane::Tensor::empty(stream, BP_F32, {4});
  backplane::fill(stream, x, 1.5);
  backplane::add(stream, y, x, x);
  std::vector<float> sum(4);
  backplane::copy_out(stream, std::span(sum), y);
  std::printf("%s: %g\n", plugin.info().library, static_cast<double>(sum[3]));
  return sum == std::vector<float>(4, 3.0F) ? 0 : 1;
} catch (const backplane::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
