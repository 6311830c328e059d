// SPDX-License-Identifier: Apache-2.0
// Registers kernels for ATen overloads.
//
// PyTorch derives the functional and the in-place form of a structured operator from its `out` form. PyTorch
// also computes the shape and the dtype of the output, and checks the arguments. For such operators, the bridge
// registers only the `out` form. Its output already has the right shape and dtype.
#pragma once

#include <torch/library.h>

#include <string>
#include <utility>
#include <vector>

#include "errors.hpp"

namespace backplane_torch {

// A string that can be a template argument.
template <size_t size>
struct Name {
  consteval Name(const char (&from)[size]) {
    for (size_t i = 0; i < size; ++i) text[i] = from[i];
  }
  char text[size];
};

// A function that calls a kernel within an OverloadScope.
template <Name name, auto kernel>
struct Overload;
template <Name name, class Result, class... Arguments, Result (*kernel)(Arguments...)>
struct Overload<name, kernel> {
  static Result run(Arguments... arguments) {
    const OverloadScope scope(name.text);
    return kernel(std::forward<Arguments>(arguments)...);
  }
};

// Registers the overloads of a family. The family's name is the name of the source file.
class Family {
 public:
  Family(torch::Library& library, const char* name) : library_(library), name_(name) {}

  template <Name overload, auto kernel>
  void add() {
    library_.impl(overload.text, &Overload<overload, kernel>::run);
    note(overload.text);
  }

 private:
  void note(const char* overload) const;

  torch::Library& library_;
  const char* name_;
};

// Returns the pairs (family, overload) of all registered kernels.
const std::vector<std::pair<std::string, std::string>>& registered_overloads();

}  // namespace backplane_torch
