// SPDX-License-Identifier: Apache-2.0
// Packs operands with bp.pack, and executes plans with packed operands.
#pragma once

#include <utility>
#include <vector>

#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

inline constexpr const char* kPackExtension = "PACK";
inline constexpr uint32_t kPackSince = BP_VERSION(0, 3);

// Returns the slots of bp.pack. Ends the case as not claimed if the device lacks the interface.
bp_pack_api pack_of(Context& context, Device& device);

// The extents of a matrix product: a matrix of rows x depth times a matrix of depth x columns.
struct PackSize {
  int64_t rows, depth, columns;
};

// An operator whose input 1 may be constant, such as the weights of a layer.
struct PackSubject {
  std::string_view name;
  OpDesc (*make)(PackSize size);
};
const std::vector<PackSubject>& pack_subjects();
OpDesc packed_matmul(PackSize size);  // the first subject, matmul on f32

inline constexpr uint32_t kConstantInput = 1;

// Owns a bp_pack. The destructor destroys the bp_pack, unless the case failed.
class Pack {
 public:
  Pack(const bp_pack_api& api, Device& device, bp_pack* handle) : api_(api), device_(&device), handle_(handle) {}
  Pack(Pack&& other) noexcept
      : api_(other.api_), device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  Pack& operator=(Pack&&) = delete;
  ~Pack() {
    if (!abandoned()) reset();
  }
  void reset() {
    if (bp_pack* handle = std::exchange(handle_, nullptr)) api_.pack_destroy(device_->get(), handle);
  }
  bp_pack* get() const { return handle_; }

 private:
  bp_pack_api api_;
  Device* device_;
  bp_pack* handle_;
};

// A descriptor with a constant input, its operands with small integers, and the result of a plan
// without packed operands. The case ends as not claimed if the plugin does not support the
// operator, or prefers the plain input.
class PackScene {
 public:
  PackScene(Context& context, OpDesc described);

  // Calls pack_create for the input number `input` of `desc`. If `made` is null, the call is a query.
  bp_status try_create(OpDesc& desc, uint32_t input, bp_pack** made, bp_pack_info& info, ErrorRecord& error) const;
  Pack create();
  bp_status try_pack(Stream& stream, const Pack& pack, bp_buffer* from, uint64_t from_offset, bp_buffer* to,
                     uint64_t to_offset, ErrorRecord& error) const;
  // Packs the constant input to the start of a new buffer.
  Buffer packed();
  void pack(Stream& stream, const Pack& pack, Buffer& to, uint64_t to_offset = 0);

  // Returns the descriptor whose constant input is a packed view with `layout`, or with the scene's
  // layout.
  OpDesc packed_desc(const bp_pack_info& layout) const;
  OpDesc packed_desc() const { return packed_desc(info); }
  // Queries plan_create without creating a plan, and returns the status.
  bp_status try_plan(OpDesc desc, ErrorRecord& error) const;
  // Creates a plan for packed_desc(), which must be supported.
  Runner packed_plan() const;

  // Enqueues an execution with `constant` as the constant input.
  void enqueue(Stream& on, Runner& runner, bp_buffer* constant, uint64_t offset, Buffer& to);
  // Executes a plan and returns the output.
  Bytes result(Runner& runner, bp_buffer* constant, uint64_t offset = 0);
  // Writes new small integers to the constant input, and returns the result without packed
  // operands.
  Bytes refresh();
  Bytes plain_result() { return result(plain_, constant().get()); }
  // Overwrites the plain operand, so that only packed values can give the result.
  void spoil();
  Buffer& constant() { return inputs_[kConstantInput]; }
  uint64_t output_bytes() const { return output_.bytes; }

  Context& context;
  Device& device;
  bp_pack_api table;
  Stream stream;
  OpDesc desc;
  bp_pack_info info{};
  Bytes expected;  // the result without packed operands

 private:
  Runner plain_;
  std::vector<Buffer> inputs_;
  Buffer output_;
};

}  // namespace backplane::conformance
