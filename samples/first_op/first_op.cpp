// SPDX-License-Identifier: Apache-2.0
// A minimal program. It loads the plugin that the command line names, and adds two vectors on the plugin's
// first device.
// [include]
#include <backplane/backplane.hpp>
// [/include]

#include <array>
#include <cstdio>

namespace bp = backplane;

int main(int argc, char** argv) {
  if (argc != 2)
    return std::fprintf(stderr, "usage: first_op PLUGIN (a name, or the path of a library or manifest)\n"), 2;
  try {
    // [load]
    bp::Registry registry;
    bp::Plugin plugin = registry.load(argv[1]);
    bp::Device device = plugin.open();
    bp::Stream stream(device);
    // [/load]

    // [tensors]
    const std::array<float, 4> a_values = {1, 2, 3, 4}, b_values = {10, 20, 30, 40};
    const bp::Tensor a = bp::Tensor::empty(stream, BP_F32, {4});
    const bp::Tensor b = bp::Tensor::empty(stream, BP_F32, {4});
    const bp::Tensor sum = bp::Tensor::empty(stream, BP_F32, {4});
    bp::copy_in<float>(stream, a, a_values);
    bp::copy_in<float>(stream, b, b_values);
    // [/tensors]

    // [call]
    bp::add(stream, sum, a, b);                                // enqueues the addition and returns
    bp::mul(stream, sum, sum, bp::Tensor::scalar(BP_F32, 2));  // works in place; the scalar 2 needs no device memory
    // [/call]

    // [read]
    std::array<float, 4> values{};
    bp::copy_out<float>(stream, values, sum);  // waits until the values have arrived
    // [/read]
    std::printf("%s: %g %g %g %g\n", device.name().c_str(), values[0], values[1], values[2], values[3]);
    return 0;
    // [errors]
  } catch (const bp::Error& error) {
    std::fprintf(stderr, "first_op: %s (%s)\n", error.what(), bph_status_name(error.status()));
    return 1;
  }
  // [/errors]
}
