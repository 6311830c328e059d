// SPDX-License-Identifier: Apache-2.0
// The host API in C++20: a header-only layer over backplane.h. Link libbackplane.
//
//   backplane::Registry registry;
//   backplane::Plugin plugin = registry.load("reference");
//   backplane::Device device = plugin.open();
//   backplane::Stream stream(device);
//   auto x = backplane::Tensor::empty(stream, BP_F32, {4});
//   backplane::fill(stream, x, 1.0);
//   stream.wait();
#pragma once

#include <backplane/operators.hpp>
