// SPDX-License-Identifier: Apache-2.0
// The plugin as a framework uses it: opened by its path through the host library.
#pragma once

#include <backplane/backplane.hpp>

#include <mutex>
#include <string>
#include <vector>

#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

// Collects the library's log. It must outlive the registry.
class HostLog {
 public:
  bph_registry_desc desc(const char* layers);
  std::vector<std::string> lines();

 private:
  static void take(void* context, int32_t level, const char* message);
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

struct HostSide {
  // `layers`: names separated by commas. With "" there are no layers, whatever the environment
  // says.
  explicit HostSide(Context& context, const char* layers = "", const bph_device_desc* desc = nullptr);
  HostLog log;
  backplane::Registry registry;
  backplane::Plugin plugin;
  backplane::Device device;
  backplane::Stream stream;
};

// A host side with the validation layer, shared by the cases of a worker that need none of their
// own. It is never destroyed: the worker ends first.
HostSide& shared_host_side(Context& context);

// The operands of one call, each at the start of its own buffer.
struct HostCall {
  HostCall(HostSide& side, OpDesc& desc, const std::vector<Bytes>& inputs, const std::vector<Bytes>& outputs,
           std::vector<uint64_t> scalar_bits);
  // Enqueues the call and returns the status.
  bp_status execute(HostSide& side, bp_error* error);
  // Enqueues the call. UNSUPPORTED ends the case as not claimed, since core declines what the
  // plugin declines. Any other status than OK fails it.
  void execute(Context& context, HostSide& side);
  std::vector<Bytes> results(HostSide& side) const;

  std::vector<backplane::Buffer> buffers;
  std::vector<bph_tensor> inputs, outputs;
  std::vector<uint64_t> scalars;
  std::vector<uint64_t> output_bytes;
  bph_call call{};
  std::vector<unsigned char> attributes;
};

// Runs a case of several operators. The case is not claimed if core declines one of them.
template <typename Run>
auto not_claimed_where_declined(Run run) {
  return [run](Context& context) {
    try {
      run(context);
    } catch (const backplane::Error& error) {
      if (error.status() != BP_UNSUPPORTED) throw;
      context.not_claimed("{}", error.what());
    }
  };
}

bph_tensor view_of(const bp_tensor_desc& desc, bph_buffer* buffer, uint64_t offset = 0);
// Small integers for each operand of the descriptor (support/samples.hpp).
struct HostData {
  HostData(Context& context, const bph_op_info& op, OpDesc& desc);
  std::vector<Bytes> inputs, outputs;
  std::vector<uint64_t> scalars;
};

}  // namespace backplane::conformance
