// SPDX-License-Identifier: Apache-2.0
// Compares an eager call through core with a direct launch of the same kernel with the same arguments. The call adds
// two tensors of 4 elements; its plan is cached. The time of the call minus the time of the launch is the cost of core
// and the plugin. `direct_launch PLUGIN [small]` prints a table. RATIO is the time of the direct launch divided by the
// time of the call, so a ratio above 1 means that the call is faster.
#include "direct.hpp"
#include "ops/kernels.hpp"

namespace bp = backplane;
namespace direct = backplane::direct;
namespace gpu_host = backplane::gpu_host;
namespace simt = backplane::simt;

namespace {

constexpr int64_t kElements = 4;

// Stores the arguments, the number of groups and the group size of the launch that the plugin's operator would make.
// The launch itself is omitted.
class Recorder : public simt::Launcher {
 public:
  using simt::Launcher::Launcher;
  bool is_rows() const { return kernel_ == kRows; }
  std::span<const std::byte> arguments() const { return arguments_; }
  uint32_t groups() const { return groups_; }
  uint32_t group_size() const { return group_size_; }
  static constexpr uint32_t kAny = 0, kRows = 1;

 private:
  backplane::kit::Status enqueue(const simt::Launch& launch) override {
    for (const simt::Place& place : launch.places) {
      const std::byte* const address = place.memory == nullptr ? nullptr : place.memory->address + place.offset;
      const auto* const bytes = reinterpret_cast<const std::byte*>(&address);
      arguments_.insert(arguments_.end(), bytes, bytes + sizeof(address));
    }
    const auto* const params = static_cast<const std::byte*>(launch.params);
    arguments_.insert(arguments_.end(), params, params + launch.params_bytes);
    kernel_ = launch.kernel;
    groups_ = launch.groups[0];
    group_size_ = launch.group_size;
    return {};
  }

  std::vector<std::byte> arguments_;
  uint32_t kernel_ = 0, groups_ = 1, group_size_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  const bool small = argc == 3 && std::string_view(argv[2]) == "small";
  if (argc != 2 && !small) {
    std::fprintf(stderr,
                 "usage: direct_launch PLUGIN [small] (the plugin's name, or the path of a library or manifest)\n");
    return 2;
  }
  return direct::guarded("direct_launch", [&] {
    bp::Registry registry;
    const bp::Device device = registry.load(argv[1]).open();
    const bp::Stream stream(device);
    const bp::Tensor x = bp::Tensor::empty(stream, BP_F32, {kElements}),
                     y = bp::Tensor::empty(stream, BP_F32, {kElements});
    bp::fill(stream, x, 2);

    const direct::Vendor vendor;
    simt::View view;
    view.dtype = BP_F32;
    view.rank = 1;
    view.shape[0] = kElements;
    view.strides[0] = 1;
    view.place = {vendor.memory(kElements * sizeof(float)), 0};
    simt::Nest nest = simt::Nest::over(view);
    for (int operand = 0; operand < 3; ++operand) nest.add(view);
    Recorder recorded(vendor.limits());
    direct::check(simt::launch_map(recorded, Recorder::kAny, Recorder::kRows, nest));
    const std::string module = simt::module_name("elementwise_binary", BP_F32);
    const gpu_host::Handle kernel = direct::value_of(
        vendor.stack().find_kernel(direct::value_of(vendor.stack().load_module(vendor.stack().image_of(module))),
                                   recorded.is_rows() ? "add_rows" : "add_nest", 0));
    const auto launch = [&] {
      direct::check(vendor.stack().launch(kernel, {recorded.groups(), 1, 1}, recorded.group_size(), 0,
                                          recorded.arguments(), {}, vendor.stream()));
    };

    std::printf("%s (%s)\n%-42s %10s %10s %8s\n", device.name().c_str(), device.info().name, "add f32 4", "PLUGIN ns",
                "DIRECT ns", "RATIO");
    const auto report = [&](const char* what, uint32_t calls, uint32_t calls_per_wait) {
      const auto plugin = [&] {
        for (uint32_t i = 1; i <= calls; ++i) {
          bp::add(stream, y, x, x);
          if (i % calls_per_wait == 0) stream.wait();
        }
      };
      const auto by_driver = [&] {
        for (uint32_t i = 1; i <= calls; ++i) {
          launch();
          if (i % calls_per_wait == 0) direct::check(vendor.stack().wait_stream(vendor.stream()));
        }
      };
      plugin();
      by_driver();
      const direct::Paired times = direct::measure(plugin, by_driver);
      std::printf("%-42s %10.0f %10.0f %8.3f\n", what, times.plugin * 1e9 / calls, times.direct * 1e9 / calls,
                  times.ratio);
    };
    const uint32_t calls = small ? 16 : 4096;
    report("call and wait", calls / 8, 1);
    report("many calls, one wait", calls, calls);
    return 0;
  });
}
