// SPDX-License-Identifier: Apache-2.0
// Compares a plugin's matmul with direct calls of the vendor's library for matrix products, on the same memory.
// `direct_products PLUGIN [small] [kernels]` prints a table. With `kernels`, the plugin uses its own kernels instead of
// the library. RATIO and SAME are times of direct calls divided by the plugin's time. A value above 1 means that the
// plugin is faster.
// - RATIO: the direct calls permit every algorithm and have a workspace of 32 MiB. They also permit algorithms that add
//   split-K partial sums in the dtype of the output, which is less accurate.
// - SAME: the direct calls permit only the plugin's algorithms and have the plugin's workspace. If the plugin uses the
//   library, the difference is the cost of core and the plugin.
#include <cmath>

#include "direct.hpp"
#include "ops/gemm_library.hpp"

namespace bp = backplane;
namespace direct = backplane::direct;
namespace gpu_host = backplane::gpu_host;

namespace {

using direct::check, direct::value_of;

constexpr uint64_t kScratchBytes = uint64_t{32} << 20;

struct Shape {
  uint32_t dtype;
  int64_t batches, rows, columns, depth;
  uint32_t calls;  // number of calls per sample
};
constexpr Shape kShapes[] = {
    {BP_F32, 1, 1, 4096, 4096, 200},     {BP_F32, 1, 512, 4096, 4096, 20},   {BP_F32, 1, 4096, 4096, 4096, 4},
    {BP_BF16, 1, 1, 4096, 4096, 200},    {BP_BF16, 1, 16, 4096, 4096, 200},  {BP_BF16, 1, 512, 4096, 4096, 100},
    {BP_BF16, 1, 512, 11008, 4096, 50},  {BP_BF16, 1, 4096, 4096, 4096, 20}, {BP_BF16, 1, 8192, 8192, 8192, 4},
    {BP_BF16, 32, 1024, 1024, 128, 100}, {BP_F16, 1, 4096, 4096, 4096, 20},  {BP_F16, 1, 2048, 2048, 2048, 50},
    {BP_F16, 1, 512, 768, 3072, 200},    {BP_F16, 1, 128, 4096, 4096, 200},  {BP_F16, 96, 512, 64, 512, 100},
    {BP_F16, 1, 25088, 256, 1152, 100}};
constexpr Shape kSmallShapes[] = {
    {BP_F32, 1, 33, 65, 129, 4}, {BP_F32, 3, 16, 32, 48, 4}, {BP_F32, 1, 1, 64, 256, 4}, {BP_F16, 1, 16, 24, 64, 4}};

// The vendor's library, which shares the plugin's context and memory. With `permits_all`, the library permits every
// algorithm; otherwise it permits only the algorithms that the plugin permits.
class Library {
 public:
  Library(const direct::Vendor& vendor, bool permits_all) : vendor_(vendor), kind_(vendor.stack().product_library()) {
    if (permits_all) kind_.numbers.reduction_mask = gpu_host::kLtAbsent;
    library_ = value_of(gpu_host::LtLibrary::open(kind_, vendor_.stack().plugin()));
    handle_ = value_of(library_->take_handle());
    scratch_ = vendor_.memory(kScratchBytes);
  }
  const std::string& description() const { return library_->description(); }
  void prepare(backplane::simt::MatrixProduct product, uint64_t scratch_bytes) {
    product.scratch = {scratch_, 0};
    product.scratch_bytes = std::min(scratch_bytes, kScratchBytes);
    call_ = gpu_host::lt_call(product).value();
    plan_ = value_of(library_->plan(handle_, call_.product, nullptr));
    if (plan_ == nullptr) throw std::runtime_error("the library has no algorithm");
  }
  void run(uint32_t calls) const {
    for (uint32_t i = 0; i < calls; ++i) check(library_->multiply(handle_, *plan_, call_.addresses, vendor_.stream()));
    check(vendor_.stack().wait_stream(vendor_.stream()));
  }

 private:
  const direct::Vendor& vendor_;
  gpu_host::LtKind kind_;
  std::unique_ptr<gpu_host::LtLibrary> library_;
  gpu_host::Handle handle_ = nullptr;
  backplane::simt::Buffer* scratch_ = nullptr;
  gpu_host::LtCall call_;
  std::shared_ptr<gpu_host::LtPlan> plan_;
};

void set_library(const char* value) { ::setenv(BP_LIBRARY_SETTING, value, 1); }

// Returns the number of workspace bytes of the plugin's plan for a product whose output has the extents `dims`.
uint64_t plugin_scratch(const bp::Dims& dims) {
  bp_tensor_desc c{};
  c.rank = static_cast<uint8_t>(dims.size());
  std::ranges::copy(dims, c.shape);
  bp_op_desc desc{};
  desc.op = BP_OP_MATMUL;
  desc.outputs = &c;
  return backplane::simt::gemm_library_workspace(desc);
}

// Compares the plugin with direct calls for one shape. Returns false if two results differ by at least 0.01 * depth.
bool compare(const bp::Device& device, const direct::Vendor& vendor, Library& library, Library& same,
             const Shape& shape) {
  const bp::Stream stream(device);
  const uint64_t size = static_cast<uint64_t>(bp::dtype_bytes(shape.dtype));
  const bp::Dims dims[3] = {{shape.batches, shape.rows, shape.columns},
                            {shape.batches, shape.rows, shape.depth},
                            {shape.batches, shape.depth, shape.columns}};
  backplane::simt::Matrix matrices[3];
  bp::Tensor tensors[3];
  for (int i = 0; i < 3; ++i) {
    const int64_t width = dims[i][2], area = dims[i][1] * width;
    const uint64_t bytes = static_cast<uint64_t>(shape.batches * area) * size;
    backplane::simt::Buffer* const memory = vendor.memory(bytes);
    matrices[i] = {{memory, 0}, shape.dtype, width, 1, area};
    auto desc = bp::detail::sized<bph_import_desc>();
    desc.type = BP_IMPORT_DEVICE;
    desc.address = reinterpret_cast<uint64_t>(memory->address);
    desc.bytes = bytes;
    auto buffer = std::make_shared<const bp::Buffer>(bp::Buffer::import(device.get(), desc));
    tensors[i] = bp::Tensor(std::move(buffer), 0, shape.dtype, dims[i], {area, width, 1});
    // Fills the tensor with random values between -1 and 1.
    const bp::Tensor words = bp::Tensor::empty(stream, BP_U32, dims[i]);
    const bp::Tensor numbers = bp::Tensor::empty(stream, BP_F32, dims[i]);
    bp::philox(stream, words, static_cast<uint64_t>(i) + 1, 0, 0);
    bp::cast(stream, numbers, words);
    bp::mul(stream, numbers, numbers, bp::Tensor::scalar(BP_F32, 0x1p-31));
    bp::sub(stream, numbers, numbers, bp::Tensor::scalar(BP_F32, 1));
    bp::cast(stream, tensors[i], numbers);
  }
  stream.wait();
  backplane::simt::MatrixProduct product;
  product.rows = static_cast<uint64_t>(shape.rows);
  product.columns = static_cast<uint64_t>(shape.columns);
  product.depth = static_cast<uint64_t>(shape.depth);
  product.batches = static_cast<uint64_t>(shape.batches);
  product.c = matrices[0];
  product.a = matrices[1];
  product.b = matrices[2];
  library.prepare(product, kScratchBytes);
  same.prepare(product, plugin_scratch(dims[0]));
  const auto plugin = [&] {
    for (uint32_t i = 0; i < shape.calls; ++i) bp::matmul(stream, tensors[0], tensors[1], tensors[2]);
    stream.wait();
  };
  const auto by_library = [&] { library.run(shape.calls); };
  const auto outputs = [&] {
    const bp::Tensor wide = bp::Tensor::empty(stream, BP_F32, dims[0]);
    bp::cast(stream, wide, tensors[0]);
    std::vector<float> out(static_cast<std::size_t>(wide.elements()));
    bp::copy_out<float>(stream, out, wide);
    return out;
  };
  plugin();
  const std::vector<float> ours = outputs();
  by_library();
  const std::vector<float> theirs = outputs();
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double apart = std::abs(double{ours[i]} - theirs[i]) / static_cast<double>(shape.depth);
    if (!(apart <= worst)) worst = apart;  // the condition is also true for NaN
  }
  const direct::Paired times = direct::measure(plugin, by_library);
  const direct::Paired alike = direct::measure(plugin, [&] { same.run(shape.calls); });
  const double per_call = 1e6 / shape.calls;
  std::printf("%-5s %3lld x %5lld x %5lld x %5lld %12.1f %12.1f %8.3f %8.3f %12.1e\n", bph_dtype_name(shape.dtype),
              static_cast<long long>(shape.batches), static_cast<long long>(shape.rows),
              static_cast<long long>(shape.columns), static_cast<long long>(shape.depth), times.plugin * per_call,
              times.direct * per_call, times.ratio, alike.ratio, worst);
  return worst < 1e-2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + std::min(argc, 2), argv + argc);
  const auto has = [&](std::string_view word) { return std::ranges::count(words, word) == 1; };
  if (argc < 2 || words.size() != std::size_t{has("small")} + std::size_t{has("kernels")}) {
    std::fprintf(stderr,
                 "usage: direct_products PLUGIN [small] [kernels] (the plugin's name, or the path of a library "
                 "or manifest)\n");
    return 2;
  }
  return direct::guarded("direct_products", [&] {
    bp::Registry registry;
    const bp::Plugin plugin = registry.load(argv[1]);
    // The plugin reads the setting twice: when it opens a device and when it makes the first plan. With `kernels`, the
    // setting is "off" at both times. In between, it has the user's value while this program opens the library.
    const char* const setting = std::getenv(BP_LIBRARY_SETTING);
    const std::string given = setting == nullptr ? "" : setting;
    if (has("kernels")) set_library("off");
    const bp::Device device = plugin.open();
    set_library(given.c_str());
    const direct::Vendor vendor;
    Library library(vendor, true), same(vendor, false);
    if (has("kernels")) set_library("off");
    std::printf("%s (%s), %s\n%-31s %12s %12s %8s %8s %12s\n", device.name().c_str(), device.info().name,
                library.description().c_str(), "BATCHES x ROWS x COLUMNS x K", "PLUGIN us", "DIRECT us", "RATIO",
                "SAME", "DIFFERENCE");
    bool close = true;
    const std::span<const Shape> shapes =
        has("small") ? std::span<const Shape>(kSmallShapes) : std::span<const Shape>(kShapes);
    for (const Shape& shape : shapes) close = compare(device, vendor, library, same, shape) && close;
    return close ? 0 : 1;
  });
}
