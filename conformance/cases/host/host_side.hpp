// SPDX-License-Identifier: Apache-2.0
// The plugin as a framework has it: through the host library, by its path.
#pragma once

#include <backplane/backplane.hpp>

#include <mutex>
#include <string>
#include <vector>

#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

// Collects what the library logs; lives longer than the registry.
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
  // `layers`: names with commas between; "" none, whatever the environment says.
  explicit HostSide(Context& context, const char* layers = "", const bph_device_desc* desc = nullptr);
  HostLog log;
  backplane::Registry registry;
  backplane::Plugin plugin;
  backplane::Device device;
  backplane::Stream stream;
};

// One for the cases of a worker that need none of their own, with the validation layer between. Never ends: a worker does.
HostSide& shared_host_side(Context& context);

// The operands of one call, in buffers of their own at the start.
struct HostCall {
  HostCall(HostSide& side, OpDesc& desc, const std::vector<Bytes>& inputs, const std::vector<Bytes>& outputs,
           std::vector<uint64_t> scalar_bits);
  // Enqueues; any answer.
  bp_status execute(HostSide& side, bp_error* error);
  // Enqueues; ends the case for anything but OK. What the plugin declines, core declines: that is not claimed.
  void execute(Context& context, HostSide& side);
  std::vector<Bytes> results(HostSide& side) const;

  std::vector<backplane::Buffer> buffers;
  std::vector<bph_tensor> inputs, outputs;
  std::vector<uint64_t> scalars;
  std::vector<uint64_t> output_bytes;
  bph_call call{};
  std::vector<unsigned char> attributes;
};

// A case of several operators: the one that the plugin declines, core declines. The case is then not claimed.
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
// Small whole numbers for each operand of the descriptor, as support/samples.hpp has them.
struct HostData {
  HostData(Context& context, const bph_op_info& op, OpDesc& desc);
  std::vector<Bytes> inputs, outputs;
  std::vector<uint64_t> scalars;
};

}  // namespace backplane::conformance
