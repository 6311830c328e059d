// SPDX-License-Identifier: Apache-2.0
// The skeleton plugin after the steps of docs/writing_a_backend.md. It has more operators and dtypes than the
// skeleton, and a device with its own memory.
#include <backplane/kit/loops.hpp>
#include <backplane/kit/plugin.hpp>

#include <cmath>

namespace {

using namespace backplane::kit;

void add_f32(const Call& call) {
  map_binary<float, float, float>(call, [](float a, float b) { return a + b; });
}

// [second]
// out = a * b
void mul_f32(const Call& call) {
  map_binary<float, float, float>(call, [](float a, float b) { return a * b; });
}

// out = -x
void neg_f32(const Call& call) {
  map_unary<float, float>(call, [](float x) { return -x; });
}
// [/second]

// [dtypes]
// out = max(a, b). If an operand is NaN, so is the result. Supports all numeric dtypes. Operands of 16-bit
// floats arrive as f32, and the result is rounded once.
void add_max(Kernels& kernels) {
  for_types(Numeric{}, [&]<class T>() {
    kernels.add(BP_OP_MAX, kDtypeOf<T>, [](const Call& call) {
      map_binary<T, T, T>(call, [](auto a, auto b) { return a > b || a != a ? a : b; });
    });
  });
}
// [/dtypes]

// [dense]
// out = sqrt(x) for dense operands. Core makes other operands dense with the plugin's operator `copy`.
void sqrt_f32(const Call& call) {
  const float* x = call.in(0).as<float>();
  float* out = call.out().as<float>();
  for (int64_t i = 0; i < call.out().elements(); ++i) out[i] = std::sqrt(x[i]);
}
// [/dense]

// [attributes]
// out = index of the maximum along `axis`. Of several maxima, the first one counts. If there is a NaN, out is
// the index of the first NaN.
void argmax_f32(const Call& call) {
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const int64_t length = call.in(0).shape[axis], axis_stride = byte_stride(call.in(0), axis);
  const View lane = lanes(call.in(0), axis);
  LoopNest<2>({&call.out(), &lane}).rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const auto value = [&](int64_t k) {
        return *reinterpret_cast<const float*>(at[1] + i * strides[1] + k * axis_stride);
      };
      int64_t best = 0;
      for (int64_t k = 1; k < length && value(best) == value(best); ++k) {
        if (value(k) > value(best) || value(k) != value(k)) best = k;
      }
      *reinterpret_cast<int32_t*>(at[0] + i * strides[0]) = static_cast<int32_t>(best);
    }
  });
}
// [/attributes]

// [device]
// A card whose memory has no host address. Copies between the host and the card use pinned memory.
class Card : public HostDevice {
 public:
  using HostDevice::HostDevice;
  Status memory_info(uint32_t kind, bp_memory_info& out) const {
    return kind == BP_MEMORY_SHARED ? no_shared_memory() : HostDevice::memory_info(kind, out);
  }
  Result<Buffer*> create_buffer(const bp_buffer_desc& desc) {
    if (desc.kind == BP_MEMORY_SHARED) return no_shared_memory();
    return HostDevice::create_buffer(desc);
  }
  Result<Buffer*> import_memory(const bp_import_desc&, uint32_t&) = delete;
  Result<Buffer*> wrap_memory(const bp_native_handle&, uint32_t&) = delete;
  std::span<const ExternalType> external_types() const = delete;

 private:
  static Status no_shared_memory() { return unsupported("the card has no SHARED memory; use DEVICE or HOST"); }
};
// [/device]

// [driver]
class Driver : public HostDriver {
 public:
  using Device = Card;

  explicit Driver(Host host) : HostDriver(host, {.name = "grown", .version = PLUGIN_VERSION}) {
    kernels().add(BP_OP_ADD, BP_F32, add_f32);
    // [register]
    kernels().add(BP_OP_MUL, BP_F32, mul_f32);
    kernels().add(BP_OP_NEG, BP_F32, neg_f32);
    // [/register]
    kernels().add(BP_OP_ARGMAX, BP_F32, argmax_f32);
    kernels().add(BP_OP_SQRT, BP_F32, {.run = sqrt_f32, .dense = true});
    add_max(kernels());
  }

  // The host calls this function before it opens the device. Unlike the constructor, this function may start
  // the vendor's driver.
  Status device_info(uint32_t index, bp_device_info& info) const {
    Status status = HostDriver::device_info(index, info);
    info.type = BP_DEVICE_OTHER;
    info.memory_kinds = (1u << BP_MEMORY_DEVICE) | (1u << BP_MEMORY_HOST);
    info.dlpack_type[BP_MEMORY_SHARED] = 0;
    info.capabilities = BP_CAP_DETERMINISTIC | BP_CAP_TIMING;
    return status;
  }
  Result<Device*> open(uint32_t index, std::string_view options) const { return open_device<Card>(index, options); }
};
// [/driver]

}  // namespace

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return query<Driver>(host, out, error);
}
