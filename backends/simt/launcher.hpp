// SPDX-License-Identifier: Apache-2.0
// The interface between the operators and the stack that runs their kernels.
#pragma once

#include <backplane/kit/queue_call.hpp>

#include <atomic>
#include <span>

namespace backplane::simt {

// Base class of each stack's buffers. `id` is unique within the process, and not 0. An address
// does not identify a buffer, because a later buffer may have the same address.
struct Buffer {
  Buffer()
      : id([] {
          static std::atomic<uint64_t> last{0};
          return ++last;
        }()) {}
  const uint64_t id;
  std::byte* address = nullptr;  // null if kernels access the memory by a handle
  uint64_t offset = 0;           // bytes from the start of the handle's memory to the buffer; 0 with an address
};

using Place = kit::Place<Buffer*>;
using View = kit::QueueView<Buffer*>;
using Scalar = kit::QueueScalar<Buffer*>;
using Call = kit::QueueCall<Buffer*>;

// The properties of a device that determine the choice of kernels and grids.
struct Limits {
  uint32_t width = 32;            // threads per sub-group
  uint32_t max_group_size = 256;  // threads
  uint32_t local_bytes = 32768;   // local memory per group
  uint32_t compute_units = 1;
  bool is_cpu = false;     // a CPU runs the sub-groups of a group one after another
  bool has_teams = false;  // teams of threads smaller than a group process the rows of RowParams (device/nest.h)
  // The matrix instructions that the stack's own kernels may use, as bits that the stack defines, and the maximum of
  // Launch::local_bytes.
  uint32_t matrix_instructions = 0;
  uint32_t launch_bytes = 0;
};

// A function in a compiled module. A module is a source of device/ that is compiled for a dtype or
// an element size. An empty module means that the entry is unused.
struct KernelName {
  std::string module;
  std::string function;
  uint32_t launch_bytes = 0;  // maximum of Launch::local_bytes
};

// Maximum number of operands of a launch, including the workspace.
inline constexpr std::size_t kMaxPlaces = 11;

// A description of an operand, with which a kernel copies boxes of the operand's matrices. Elements have 16 bits, and a
// box is 64 elements of each of `lines` lines. Element 0 of the operand is at its place.
struct TensorMap {
  uint32_t place;       // an element of Launch::places
  uint32_t dtype;       // BP_F16 or BP_BF16
  uint64_t extents[3];  // elements of a line, lines of a matrix, and matrices
  uint64_t pitches[2];  // bytes between lines and between matrices
  uint32_t lines;       // lines of a box
};

// One kernel with its arguments. `params` is a parameter struct (device/params.h, tile_params.h).
// The launcher writes the offsets of `places` to the beginning of `params`. A stack that passes
// addresses to kernels writes 0 instead of an offset.
struct Launch {
  uint32_t kernel;     // an element of Program::kernels
  uint32_t groups[3];  // each is at least 1
  uint32_t group_size;
  std::span<const Place> places;
  void* params;
  uint32_t params_bytes;
  uint32_t local_bytes = 0;  // bytes of local memory per group, in addition to the kernel's own; cuda and hip accept it
  std::span<const TensorMap> maps{};  // arguments after `params`; only stacks with tensor maps accept them
};

// A matrix of a product. Strides are in elements.
struct Matrix {
  Place place;
  uint32_t dtype = 0;
  int64_t row_stride = 0, column_stride = 0, batch_stride = 0;
};

// A batched matrix product, c[m,n] = activation(sum of a[m,k] * b[k,n] over k, plus bias[n]). The operands are in
// memory, and no extent is 0.
struct MatrixProduct {
  uint64_t rows = 0, columns = 0, depth = 0, batches = 0;
  Matrix c{}, a{}, b{};
  Place bias{};
  uint32_t bias_dtype = 0;  // 0 if there is no bias. The bias is contiguous
  uint32_t activation = 0;  // BP_ACTIVATION_*
  uint32_t precision = 0;   // BP_PRECISION_*
  Place scratch{};          // memory that the library may use
  uint64_t scratch_bytes = 0;
};

class Launcher {
 public:
  explicit Launcher(const Limits& limits) : limits_(limits) {}
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;

  const Limits& limits() const { return limits_; }
  // Enqueues the kernel to run after all earlier kernels, or enqueues nothing and returns a
  // failure.
  kit::Status launch(const Launch& launch) {
    kit::Status status = enqueue(launch);
    if (status.ok()) ++launched_;
    return status;
  }
  // Enqueues a product that a library or kernels of the stack compute after all earlier kernels. Returns false, and
  // enqueues nothing, if the shared kernels must compute the product.
  kit::Result<bool> multiply(const MatrixProduct& product) {
    kit::Result<bool> done = enqueue_product(product);
    if (done.ok() && done.value()) ++launched_;
    return done;
  }
  // Returns the number of kernels and products that were enqueued.
  uint64_t launched() const { return launched_; }

 private:
  virtual kit::Status enqueue(const Launch& launch) = 0;
  virtual kit::Result<bool> enqueue_product(const MatrixProduct&) { return false; }

  const Limits& limits_;
  uint64_t launched_ = 0;
};

// Returns the status of calls while the process exits (driver_call.hpp).
inline kit::Status exiting(const char* plugin) {
  return {BP_UNAVAILABLE, kit::text(plugin, ": the process is exiting")};
}

}  // namespace backplane::simt
