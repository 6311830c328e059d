// SPDX-License-Identifier: Apache-2.0
// A library for matrix products with the interface that cuBLASLt and hipBLASLt share. The plugin opens the library at
// run time, and states the names and constants in which the two libraries differ.
#pragma once

#include <functional>

#include "gpu_host/context.hpp"

namespace backplane::gpu_host {

// Constants that are equal in both libraries: data types (cudaDataType_t, hipDataType) and epilogues.
inline constexpr int32_t kLtF32 = 0, kLtF16 = 2, kLtBf16 = 14;
inline constexpr uint32_t kLtNoEpilogue = 1, kLtBias = 4;

// A status of the library, and the status that the plugin returns.
struct LtResult {
  int32_t code;
  const char* name;
  bp_status status;
};

// The constants in which the libraries differ. An attribute that a library lacks is kLtAbsent.
inline constexpr int32_t kLtAbsent = -1;
struct LtNumbers {
  int32_t not_supported, arch_mismatch;  // statuses
  int32_t op_n, op_t;
  int32_t compute_f32, compute_tf32;
  // Attributes of product descriptions, layouts and preferences.
  int32_t trans_a, trans_b, epilogue, bias_pointer, bias_type;
  int32_t batch_count, batch_stride;
  int32_t max_workspace, reduction_mask;
  int32_t alignments[4];     // attributes for a, b, c and d
  uint32_t algorithm_bytes;  // size of the algorithm, with which the result of a heuristic begins
};

// Maximum size of a heuristic's result. A result contains an algorithm, a size_t for the workspace, an int32_t for
// the status, and further fields.
inline constexpr std::size_t kLtMaxHeuristicBytes = 128;

struct LtKind {
  const char* name;
  const char* prefix;   // begins the names of the functions
  const char* setting;  // environment variable: on, off, or the file of the library
  const char* remedy;   // tells the user how to install the library
  std::span<const char* const> files;
  std::span<const LtResult> results;
  LtNumbers numbers;
  bool is_deterministic;  // whether the library promises the same bits for a repeated product of the same operands
  // Returns the library's version as text. `library` is a handle of dlopen.
  std::string (*version)(void* library, void* handle);
  // Returns whether the library has kernels for this architecture. A file that the user names is opened anyway.
  bool (*has_kernels)(std::string_view architecture);
  // Returns whether the library computes products of this dtype, within the bounds of the specification, on devices
  // of this architecture.
  bool (*is_accurate)(uint32_t dtype, std::string_view architecture);
};

// A product in the library's terms. The matrices are column-major, and d = op(a) op(b) has `rows` rows.
struct LtProduct {
  uint64_t rows = 0, columns = 0, depth = 0, batches = 1;
  uint64_t type = 0, d_type = 0;  // types of a and b, and of d
  uint64_t transposes_a = 0, transposes_b = 0, has_bias = 0, allows_tf32 = 0;
  int64_t ld_a = 0, ld_b = 0, ld_d = 0;
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;  // distances between the matrices of a batch
  uint64_t alignment_a = 0, alignment_b = 0, alignment_d = 0, alignment_bias = 0;  // bytes, at most kLtMaxAlignment
  uint64_t scratch_bytes = 0;

  bool operator==(const LtProduct&) const = default;
};
// The largest alignment that an algorithm needs, in bytes.
inline constexpr uint64_t kLtMaxAlignment = 16;

struct LtAddresses {
  const std::byte *a = nullptr, *b = nullptr, *bias = nullptr;
  std::byte *d = nullptr, *scratch = nullptr;
};

// The library's objects for a product, and its algorithm. One thread at a time uses a plan.
class LtPlan;

// Every function needs a calling thread that has entered the context of the device.
class LtLibrary {
 public:
  // Opens the library. Returns UNAVAILABLE with the reason if the library cannot be used. `plugin` begins messages.
  static kit::Result<std::unique_ptr<LtLibrary>> open(const LtKind& kind, const char* plugin);
  ~LtLibrary();
  LtLibrary(const LtLibrary&) = delete;
  LtLibrary& operator=(const LtLibrary&) = delete;

  const LtKind& kind() const { return kind_; }
  // The name, the version and the file of the library.
  const std::string& description() const { return description_; }

  // Returns a handle, which only one stream may use, because kernels of a handle share memory. Handles exist until the
  // process ends, because destroying them waits for the device.
  kit::Result<Handle> take_handle();
  void give_back(Handle handle);

  // Returns the library's plan for a product, or null if the library has no algorithm. `bias` is any address with the
  // alignment that the product states.
  kit::Result<std::shared_ptr<LtPlan>> plan(Handle handle, const LtProduct& product, const std::byte* bias) const;
  // Returns whether multiply() has used the plan. The first use may load kernels.
  static bool has_run(const LtPlan& plan);
  kit::Status multiply(Handle handle, LtPlan& plan, const LtAddresses& addresses, Handle stream) const;

 private:
  struct Functions;
  LtLibrary(const LtKind& kind, const char* plugin);
  kit::Status load(const char* file);
  kit::Status status_of(int32_t code, const char* function) const;
  kit::Status describe(LtPlan& plan, const LtProduct& product, const std::byte* bias) const;
  // Sets plan.algorithm, or leaves it empty.
  kit::Status choose(Handle handle, LtPlan& plan, const LtProduct& product) const;

  const LtKind& kind_;
  const char* const plugin_;
  std::unique_ptr<Functions> functions_;
  std::string description_;
  std::mutex mutex_;             // guards handles_
  std::vector<Handle> handles_;  // the handles that no stream uses
};

}  // namespace backplane::gpu_host
