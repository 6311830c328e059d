// SPDX-License-Identifier: Apache-2.0
// A plugin made with the kit that binds the operands of an execution but runs no kernel. `backplane
// bench dispatch` measures the cost of this binding.
#include <backplane/kit/plugin.hpp>

namespace {

namespace kit = backplane::kit;

class NullDevice : public kit::HostDevice {
 public:
  struct Stream : kit::HostStream {
    kit::Call call;
  };

  using HostDevice::destroy;
  using HostDevice::HostDevice;
  kit::Result<Stream*> create_stream(const bp_stream_desc&) { return new Stream; }
  void destroy(Stream* stream) { delete stream; }
  kit::Status begin_graph(Stream&, std::span<const bp_graph_binding>) = delete;
  kit::Status execute(Stream& stream, const Plan& plan, const bp_execution* execution) {
    const auto span_of = [](bp_buffer* buffer) { return reinterpret_cast<Buffer*>(buffer)->span; };
    return kit::bind_call(plan, execution, span_of, stream.call);
  }
};

class Driver : public kit::HostDriver {
 public:
  using Device = NullDevice;

  explicit Driver(kit::Host host) : HostDriver(host, {.name = "null_kit", .version = "0.1.0"}) {
    kernels().add(BP_OP_ADD, BP_F32, [](const kit::Call&) {});
  }
  kit::Result<Device*> open(uint32_t index, std::string_view options) const {
    return open_device<Device>(index, options);
  }
};

}  // namespace

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return kit::query<Driver>(host, out, error);
}
