// SPDX-License-Identifier: Apache-2.0
// The arguments of a kernel: strided views with addresses, attributes, scalars and scratch memory.
#pragma once

#include <backplane/kit/op_table.hpp>
#include <memory>
#include <span>
#include <vector>

namespace backplane::kit {

// A strided view with its address. Strides are in elements.
struct View {
  std::byte* data = nullptr;  // address of element 0; null if there are no elements
  uint32_t dtype = 0;
  uint32_t rank = 0;
  int64_t shape[BP_MAX_RANK] = {};
  int64_t strides[BP_MAX_RANK] = {};
  uint64_t immediate = 0;  // value of an immediate; `data` points to this field
  bool is_immediate = false;
  bool is_packed = false;  // `data` points to packed bytes; strides[0] is their number, and strides[1] is the layout

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  int64_t elements() const {
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; ++i) count *= shape[i];
    return count;
  }
};

// Memory that a kernel may use while it runs. The stream keeps the memory for its later executions.
class Scratch {
 public:
  // Returns at least `bytes` bytes, aligned for any vector. Earlier pointers become invalid.
  std::byte* get(std::size_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();
      capacity_ = 0;
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, kAlign)));
      capacity_ = bytes;
    }
    return memory_.get();
  }

 private:
  static constexpr std::align_val_t kAlign{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlign); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t capacity_ = 0;
};

// One execution and its arguments. A `Call` is self-contained, so the plan and the caller's
// bp_execution may be destroyed before the kernel runs. Buffers must outlive the kernel. A stream
// reuses a `Call` without allocating. A `Call` must not move while in use, because its views point
// to its immediates.
struct Call {
  static constexpr uint32_t kMaxScalars = rules::kMaxScalars;

  const OpInfo* op = nullptr;
  std::span<const View> inputs;
  std::span<const View> outputs;
  std::byte* workspace = nullptr;
  uint64_t workspace_bytes = 0;
  Scratch* scratch = nullptr;
  std::shared_ptr<const void> state;  // KernelSpec::state, or the state that `prepare` sets

  const View& in(uint32_t i) const { return inputs[i]; }
  const View& out(uint32_t i = 0) const { return outputs[i]; }
  // Returns the state as a T.
  template <class T>
  const T& prepared() const {
    return *static_cast<const T*>(state.get());
  }
  template <class T>
  const T& attributes() const {
    return attribute_bytes.as<T>();
  }
  // Returns the value of scalar `i`. T has the size of the scalar's dtype. If the scalar is in
  // device memory, this function reads that memory.
  template <class T>
  T scalar(uint32_t i) const {
    T value;
    const void* from = scalar_at[i] == nullptr ? static_cast<const void*>(&scalar_bits[i]) : scalar_at[i];
    std::memcpy(&value, from, sizeof(T));
    return value;
  }

  Attributes attribute_bytes;
  uint64_t scalar_bits[kMaxScalars] = {};
  const std::byte* scalar_at[kMaxScalars] = {};
  std::vector<View> views;  // inputs, then outputs
};

// A kernel runs on the stream's thread. If a kernel throws, its stream fails with the exception's
// message.
using Kernel = void (*)(const Call& call);

}  // namespace backplane::kit
