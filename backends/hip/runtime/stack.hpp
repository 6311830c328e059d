// SPDX-License-Identifier: Apache-2.0
// Implements gpu_host::Stack with the HIP runtime API.
#pragma once

#include "gpu_host/platform.hpp"
#include "runtime/api.hpp"

namespace backplane::hip {

class Stack : public gpu_host::Stack {
 public:
  explicit Stack(const Api& api) : hip_(api) {}

  const char* plugin() const override { return "hip"; }
  gpu_host::DlpackTypes dlpack_types() const override { return {10, 11, 10}; }  // kDLROCM, kDLROCMHost
  kit::Result<int> count() const override;
  kit::Status describe(int ordinal, gpu_host::PhysicalDevice& out) const override;
  kit::Result<gpu_host::Handle> retain_context(int ordinal) const override;
  kit::Result<bp_native_handle> device_handle(int ordinal, gpu_host::Handle context, uint32_t index) const override;
  std::span<const std::byte> image_of(std::string_view name) const override;
  const gpu_host::LtKind& product_library() const override;
  kit::Status enter(gpu_host::Handle context, gpu_host::Calls calls, gpu_host::Caller& caller) const override;
  void leave(const gpu_host::Caller& caller) const override;
  void forget_failure() const override { (void)hip_.hipGetLastError(); }

  kit::Status memory_info(uint64_t& free_bytes, uint64_t& total_bytes) const override;
  kit::Result<gpu_host::Handle> create_pool(int ordinal, uint64_t kept_bytes) const override;
  void destroy_pool(gpu_host::Handle pool) const override;
  void trim_pool(gpu_host::Handle pool) const override;
  kit::Result<uint64_t> unused_bytes(gpu_host::Handle pool) const override;
  kit::Result<std::byte*> allocate_device(uint64_t bytes, gpu_host::Handle pool,
                                          gpu_host::Handle stream) const override;
  kit::Status free_device(std::byte* address, gpu_host::Handle stream) const override;
  kit::Result<std::byte*> allocate_host(uint64_t bytes) const override;
  kit::Status free_host(std::byte* address) const override;
  kit::Result<std::byte*> allocate_shared(uint64_t bytes) const override;
  kit::Status free_shared(std::byte* address) const override;
  kit::Status register_host(std::byte* address, uint64_t bytes) const override;
  kit::Status unregister_host(std::byte* address) const override;
  gpu_host::AddressKind kind_of(const std::byte* address) const override;

  kit::Result<gpu_host::Handle> create_stream(int priority) const override;
  void destroy_stream(gpu_host::Handle stream) const override;
  kit::Status check_stream(gpu_host::Handle stream, gpu_host::Handle context, int ordinal) const override;
  kit::Status wait_stream(gpu_host::Handle stream) const override;
  kit::Status wait_event(gpu_host::Handle stream, gpu_host::Handle event) const override;
  kit::Status copy(std::byte* dst, const std::byte* src, uint64_t bytes, gpu_host::Handle stream) const override;

  kit::Result<gpu_host::Handle> create_event(bool timed) const override;
  kit::Status record(gpu_host::Handle event, gpu_host::Handle stream) const override;
  kit::Status query(gpu_host::Handle event) const override;
  kit::Status await_event(gpu_host::Handle event) const override;
  kit::Result<int64_t> elapsed(gpu_host::Handle begin, gpu_host::Handle end) const override;

  kit::Result<gpu_host::Handle> load_module(std::span<const std::byte> image) const override;
  kit::Result<gpu_host::Handle> find_kernel(gpu_host::Handle module, const std::string& name,
                                            uint32_t launch_bytes) const override;
  kit::Status launch(gpu_host::Handle kernel, const uint32_t (&groups)[3], uint32_t group_size, uint32_t local_bytes,
                     std::span<const std::byte> arguments, std::span<const simt::TensorMap> maps,
                     gpu_host::Handle stream) const override;

  bool has_graphs() const override { return hip_.has_graphs; }
  // The vendor does not document whether a change of an executable graph affects its running launches.
  bool updates_running_graphs() const override { return false; }
  kit::Result<gpu_host::Handle> create_graph() const override;
  void destroy_graph(gpu_host::Handle graph) const override;
  kit::Result<gpu_host::Handle> add_node(gpu_host::Handle graph, std::span<const gpu_host::Handle> after,
                                         const gpu_host::GraphNode& node) const override;
  kit::Result<gpu_host::Handle> instantiate(gpu_host::Handle graph) const override;
  void destroy_executable(gpu_host::Handle executable) const override;
  kit::Status set_node(gpu_host::Handle executable, gpu_host::Handle node,
                       const gpu_host::GraphNode& changed) const override;
  kit::Status launch_graph(gpu_host::Handle executable, gpu_host::Handle stream) const override;

 private:
  const Api& hip_;
};

// Returns the devices of the process.
gpu_host::Platform& platform();

}  // namespace backplane::hip
